"""One span of a step's trace, a line of `{step}-trace.jsonl` and of `TRACE.jsonl`."""

from enum import StrEnum

from fairwitness.contracts.autopilot.vocabulary import Snippet
from fairwitness.contracts.common.base import Contract, Count, Timestamp
from fairwitness.contracts.common.ids import PhaseId


class TraceStep(StrEnum):
    """The step that acted: a step of the phase, its debug loop, or the phase itself."""

    PREFLIGHT = "preflight"
    TRIAGE = "triage"
    RESEARCH = "research"
    PLAN = "plan"
    PLAN_CHECK = "plan_check"
    EXECUTE = "execute"
    VERIFY = "verify"
    JUDGE = "judge"
    RATE = "rate"
    DEBUG = "debug"
    PHASE_RUNNER = "phase_runner"


class TraceAction(StrEnum):
    """The kind of the action."""

    FILE_READ = "file_read"
    FILE_WRITE = "file_write"
    COMMAND_RUN = "command_run"
    TOOL_CALL = "tool_call"
    AGENT_SPAWN = "agent_spawn"
    DECISION = "decision"


class TraceStatus(StrEnum):
    """The result of the action."""

    SUCCESS = "success"
    FAILURE = "failure"
    SKIPPED = "skipped"


class TraceSpan(Contract):
    """One action of a step."""

    timestamp: Timestamp
    phase_id: PhaseId
    step: TraceStep
    action: TraceAction
    input_summary: Snippet
    output_summary: Snippet
    duration_ms: Count
    status: TraceStatus
