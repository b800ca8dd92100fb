"""What a rule answers: one closed union of decisions, each with its reason and the gates behind it."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Count, Flag, Positive, Text, Texts
from fairwitness.contracts.common.completion import StepId
from fairwitness.contracts.common.gates import GateAnswer
from fairwitness.contracts.common.ids import SafeName
from fairwitness.contracts.common.vocabulary import Confidence, Size


class ErrorClass(StrEnum):
    """What kind of failure: only the first kind may pass by itself."""

    TRANSIENT = "transient"
    DETERMINISTIC = "deterministic"
    SECURITY = "security"
    SCOPE = "scope"


class ErrorCause(StrEnum):
    """Why a call failed, as the harness saw it."""

    AGENT_ERROR = "agent_error"
    TIMEOUT = "timeout"
    NETWORK = "network"
    TOOL_UNAVAILABLE = "tool_unavailable"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    DATABASE_BUSY = "database_busy"
    SANDBOX_LOST = "sandbox_lost"
    SCHEMA_VIOLATION = "schema_violation"
    MISSING_INPUT = "missing_input"
    NOT_FOUND = "not_found"
    PERMISSION_DENIED = "permission_denied"
    SECURITY_BLOCKER = "security_blocker"
    OUT_OF_SCOPE = "out_of_scope"


class RetryOf(StrEnum):
    """What is tried again."""

    CALL = "call"
    BASELINE = "baseline"
    CHECKS = "checks"


class WaitsFor(StrEnum):
    """Who or what has to move before the run can."""

    CALLS = "calls"
    CHECKS = "checks"
    PERSON = "person"
    PERMISSION = "permission"


class HaltOutcome(StrEnum):
    """How a run that stops early ends."""

    ERROR = "error"
    HALTED = "halted"
    ABANDONED = "abandoned"
    OUT_OF_BUDGET = "out_of_budget"


class FinishOutcome(StrEnum):
    """How a run that came to its end ends."""

    COMMITTED = "committed"
    LOW_CONFIDENCE = "low_confidence"


class BaseDecision(Contract):
    """What every decision carries."""

    reason: Text
    gates: tuple[GateAnswer, ...] = ()


class Advance(BaseDecision):
    """Begin a step, or go on with it: start these calls."""

    kind: Literal["advance"] = "advance"
    to: StepId
    start: Texts = ()
    round: Positive | None = None
    constraints: Texts = ()
    """What the next step must take into account."""
    known_issues: Texts = ()
    degradations: Texts = ()
    auto_selected: SafeName | None = None
    """The option that nobody was asked about, since the run is autonomous."""


class Retry(BaseDecision):
    """Do the same again, once more."""

    kind: Literal["retry"] = "retry"
    step: StepId
    what: RetryOf
    instances: Annotated[Texts, Field(min_length=1)]


class Revise(BaseDecision):
    """Send the work back to an earlier step with what was found."""

    kind: Literal["revise"] = "revise"
    to: StepId
    round: Positive
    findings: Texts = ()


class Replan(BaseDecision):
    """Ask the planner to replace the tasks that failed."""

    kind: Literal["replan"] = "replan"
    iteration: Positive
    tasks: Annotated[Texts, Field(min_length=1)]


class Revert(BaseDecision):
    """Put the files of tasks back to the baseline."""

    kind: Literal["revert"] = "revert"
    iteration: Positive
    tasks: Annotated[Texts, Field(min_length=1)]
    then: Literal["replan", "go-on"]


class AskHuman(BaseDecision):
    """Put a durable question to a person."""

    kind: Literal["ask_human"] = "ask_human"
    gate_id: SafeName
    step: StepId
    options: Annotated[tuple[SafeName, ...], Field(min_length=2)]
    default: SafeName


class Wait(BaseDecision):
    """Nothing to do until something else moves."""

    kind: Literal["wait"] = "wait"
    waits_for: WaitsFor
    what: Annotated[Texts, Field(min_length=1)]


class Halt(BaseDecision):
    """Stop the run; what was done is kept."""

    kind: Literal["halt"] = "halt"
    outcome: HaltOutcome
    resumable: Flag


class Finish(BaseDecision):
    """The run came to its end."""

    kind: Literal["finish"] = "finish"
    outcome: FinishOutcome
    confidence: Confidence


Decision = Annotated[
    Advance | Retry | Revise | Replan | Revert | AskHuman | Wait | Halt | Finish, Field(discriminator="kind")
]


class Graded(Contract):
    """A confidence, and every reason why it is not higher."""

    level: Confidence
    because: Texts


class Depth(Contract):
    """How deep a task is verified."""

    size: Size
    tiers: tuple[Positive, ...]
    checks: Count
    required: Texts
    """Checks that must have passed, whatever the count."""
