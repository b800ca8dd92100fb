"""Enumerations and small scalar types that several autopilot contracts share."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict
from pydantic_core import PydanticCustomError

from fairwitness.contracts.common.base import Flag, Texts


class AutopilotRunStatus(StrEnum):
    """The status of an autopilot run; it decides whether the run can be resumed."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"


class PhaseStatus(StrEnum):
    """The status of a phase."""

    NOT_STARTED = "not_started"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    NEEDS_HUMAN_VERIFICATION = "needs_human_verification"
    SKIPPED = "skipped"


class PhaseType(StrEnum):
    """What a phase mainly produces; it decides the checks and the cost estimate."""

    UI = "ui"
    PROTOCOL = "protocol"
    DATA = "data"
    MIXED = "mixed"


class StepName(StrEnum):
    """The nine steps of a phase in order, and the debug step."""

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


class CheckState(StrEnum):
    """The state of a step that judges."""

    IN_PROGRESS = "in_progress"
    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"


class WorkState(StrEnum):
    """The state of a step that produces something."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    SKIPPED = "skipped"


class TriageRoute(StrEnum):
    """The decision of triage: the full pipeline, or only the verification of existing work."""

    FULL_PIPELINE = "full_pipeline"
    VERIFY_ONLY = "verify_only"


class Recommendation(StrEnum):
    """What a judge or a phase recommends next."""

    PROCEED = "proceed"
    DEBUG = "debug"
    ROLLBACK = "rollback"
    HALT = "halt"


class Complexity(StrEnum):
    """The size of a task or phase; it decides the token estimate."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"


class FailureCategory(StrEnum):
    """The ten categories of failures."""

    EXECUTOR_INCOMPLETE = "executor_incomplete"
    EXECUTOR_WRONG_APPROACH = "executor_wrong_approach"
    COMPILATION_FAILURE = "compilation_failure"
    LINT_FAILURE = "lint_failure"
    BUILD_FAILURE = "build_failure"
    ACCEPTANCE_CRITERIA_UNMET = "acceptance_criteria_unmet"
    SCOPE_CREEP = "scope_creep"
    CONTEXT_EXHAUSTION = "context_exhaustion"
    TOOL_FAILURE = "tool_failure"
    COORDINATION_FAILURE = "coordination_failure"


class RunFlag(StrEnum):
    """The flags of a run that change how scores are judged, or that exclude one another."""

    FORCE = "force"
    QUALITY = "quality"
    GAPS = "gaps"
    COMPLETE = "complete"
    MAP = "map"
    LENIENT = "lenient"
    DISCUSS = "discuss"
    VISUAL = "visual"


class ImprovementLoop(StrEnum):
    """The three loops that improve a completed phase."""

    REMEDIATION = "remediation"
    QUALITY = "quality"
    GAPS = "gaps"


class HumanWord(StrEnum):
    """A person's verdict on a deferred phase."""

    PASS = "pass"
    FAIL = "fail"
    ISSUES_FOUND = "issues_found"


class FixComplexity(StrEnum):
    """How a gap of the self-audit is fixed: directly, or by an executor."""

    SMALL = "small"
    LARGE = "large"


Grade = Annotated[float, Strict(), Field(ge=1, le=10, allow_inf_nan=False)]
"""A confidence or sufficiency from 1 to 10; whole numbers are allowed, unlike alignment scores."""

Threshold = Annotated[float, Strict(), Field(ge=7, le=10, allow_inf_nan=False)]
"""A score to reach: 9 by default, 7 lenient, 9.5 for quality; never below the mark at which a phase fails."""

Percent = Annotated[int, Strict(), Field(ge=0, le=100)]

Snippet = Annotated[str, Field(max_length=200)]
"""Output as an agent returns it: the first 200 characters, possibly empty."""

Capture = Annotated[str, Field(max_length=500)]
"""Output as Fair Witness stores it: the first 500 characters, possibly empty."""

CommandsRun = Annotated[Texts, Field(min_length=1)]
"""Commands with their results; a verdict needs at least one command."""


def _tally(value: str) -> str:
    done, total = value.split("/")
    if int(done) > int(total):
        raise PydanticCustomError("tally", "a count such as 2/3, not above its total")
    return value


Tally = Annotated[str, Field(pattern=r"^[0-9]{1,6}/[0-9]{1,6}$"), AfterValidator(_tally)]
"""A count of a total, written `2/3`."""


def tally(value: str) -> tuple[int, int]:
    """Return the two numbers of a tally.

    >>> tally("2/3")
    (2, 3)
    """
    done, total = value.split("/")
    return int(done), int(total)


def _check_word(value: object) -> object:
    if isinstance(value, bool) or value == "n/a":
        return value
    raise PydanticCustomError("check_word", 'true, false or "n/a"')


CheckWord = Annotated[Flag | Literal["n/a"], BeforeValidator(_check_word)]
"""The result of an automated check, or `n/a` if there was none to run."""


def _said(value: object) -> object:
    if value is None:
        raise PydanticCustomError("omitted", "the field left out rather than null")
    return value


def never_null(shape: Any) -> BeforeValidator:
    """Return a validator for an optional field that is omitted rather than null."""
    return BeforeValidator(_said, json_schema_input_type=shape)


SkipReason = Annotated[str, Field(pattern=r"^(already_completed|blocked_by_phase_[0-9]{1,6}(\.[0-9]{1,6})?[a-z]?)$")]
"""Why `--complete` did not run a phase."""


def blocked_by(reason: str) -> str | None:
    """Return the failed phase that a skip reason names, or None.

    >>> blocked_by("blocked_by_phase_6.1"), blocked_by("already_completed")
    ('6.1', None)
    """
    return reason.removeprefix("blocked_by_phase_") if reason.startswith("blocked_by_phase_") else None
