"""The decisions of the feature pipeline, each with its reason and the gates behind it."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Text, Texts
from fairwitness.contracts.common.completion import StepId
from fairwitness.contracts.common.gates import GateAnswer
from fairwitness.contracts.common.ids import SafeName
from fairwitness.contracts.common.policy import RunPath
from fairwitness.contracts.common.vocabulary import Confidence, Size


class ErrorClass(StrEnum):
    """The class of a failure; only a transient failure may pass by itself."""

    TRANSIENT = "transient"
    DETERMINISTIC = "deterministic"
    SECURITY = "security"
    SCOPE = "scope"


class ErrorCause(StrEnum):
    """Why an agent call failed, as Fair Witness observed it."""

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
    """What a retry repeats."""

    CALL = "call"
    BASELINE = "baseline"
    CHECKS = "checks"


class WaitsFor(StrEnum):
    """What the run waits for."""

    CALLS = "calls"
    CHECKS = "checks"
    PERSON = "person"
    PERMISSION = "permission"


class HaltOutcome(StrEnum):
    """The outcome of a run that stops early."""

    ERROR = "error"
    HALTED = "halted"
    ABANDONED = "abandoned"
    OUT_OF_BUDGET = "out_of_budget"


class FinishOutcome(StrEnum):
    """The outcome of a run that completes."""

    COMMITTED = "committed"
    LOW_CONFIDENCE = "low_confidence"


class BaseDecision(Contract):
    """The common fields of every decision."""

    reason: Text
    gates: tuple[GateAnswer, ...] = ()


class Advance(BaseDecision):
    """Enter or continue a step and start these calls."""

    kind: Literal["advance"] = "advance"
    to: StepId
    start: Texts = ()
    round: Positive | None = None
    constraints: Texts = ()
    """Constraints for the next step."""
    known_issues: Texts = ()
    degradations: Texts = ()
    auto_selected: SafeName | None = None
    """The option selected without asking a person, because the run is autonomous."""
    path: Maybe[RunPath] = None
    """The path on which the run continues, if it changes."""


class Retry(BaseDecision):
    """Repeat the same work once."""

    kind: Literal["retry"] = "retry"
    step: StepId
    what: RetryOf
    instances: Annotated[Texts, Field(min_length=1)]


class Revise(BaseDecision):
    """Return the work to an earlier step with the findings."""

    kind: Literal["revise"] = "revise"
    to: StepId
    round: Positive
    findings: Texts = ()


class Replan(BaseDecision):
    """Have the tasks that failed done again: by the implementer as planned, or after the planner replaced them."""

    kind: Literal["replan"] = "replan"
    by: Maybe[Literal["implementer"]] = None
    """Who does them again as planned; None if the planner replaces them first."""
    iteration: Positive
    tasks: Annotated[Texts, Field(min_length=1)]


class Revert(BaseDecision):
    """Restore the files of tasks to the baseline."""

    kind: Literal["revert"] = "revert"
    iteration: Positive
    tasks: Annotated[Texts, Field(min_length=1)]
    then: Literal["replan", "go-on"]


class AskHuman(BaseDecision):
    """Ask a person; the question survives a restart."""

    kind: Literal["ask_human"] = "ask_human"
    gate_id: SafeName
    step: StepId
    options: Annotated[tuple[SafeName, ...], Field(min_length=2)]
    default: SafeName


class Wait(BaseDecision):
    """Wait for an event outside the run."""

    kind: Literal["wait"] = "wait"
    waits_for: WaitsFor
    what: Annotated[Texts, Field(min_length=1)]


class Halt(BaseDecision):
    """Stop the run and keep its work."""

    kind: Literal["halt"] = "halt"
    outcome: HaltOutcome
    resumable: Flag


class Finish(BaseDecision):
    """Complete the run."""

    kind: Literal["finish"] = "finish"
    outcome: FinishOutcome
    confidence: Confidence


Decision = Annotated[
    Advance | Retry | Revise | Replan | Revert | AskHuman | Wait | Halt | Finish, Field(discriminator="kind")
]


class Graded(Contract):
    """A confidence with every reason why it is not higher."""

    level: Confidence
    because: Texts


class Depth(Contract):
    """The verification depth of a task."""

    size: Size
    tiers: tuple[Positive, ...]
    checks: Count
    required: Texts
    """Checks that must pass in addition to the count."""
