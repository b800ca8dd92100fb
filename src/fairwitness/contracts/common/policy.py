"""The settings that rules use: thresholds, rounds, retries and caps.

Bounds enforce minimum evidence and maximum rounds: a setting may require more evidence or fewer rounds, never less
evidence or an endless loop.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, Strict

from fairwitness.contracts.common.base import Contract, Positive, Text
from fairwitness.contracts.common.vocabulary import Risk


class OnExhausted(StrEnum):
    """What happens to a run whose code review never approves."""

    ERROR = "error"
    LOW_CONFIDENCE = "low-confidence"


class RunPath(StrEnum):
    """The path of a feature run: which steps it has."""

    FULL = "full"
    LIGHT = "light"


def _is_full(path: RunPath) -> bool:
    return path is RunPath.FULL


OnPath = Annotated[RunPath, Field(exclude_if=_is_full)]
"""A path that is omitted when it is the full one, as in what was recorded before there was another."""


class PathChoice(StrEnum):
    """How the path of a run is chosen."""

    FULL = "full"
    LIGHT = "light"
    AUTO = "auto"
    """Light if the plan is small and has no 🔴 file."""


class RetryPolicy(Contract):
    """How often a failed operation is repeated."""

    dispatch: Annotated[int, Strict(), Field(ge=0, le=3)] = 1
    """Further calls of an agent after a transient failure."""
    inside_agent: Annotated[int, Strict(), Field(ge=0, le=3)] = 2
    """Further tries of a tool inside one call."""
    database_busy: Annotated[int, Strict(), Field(ge=0, le=5)] = 3
    checks: Annotated[int, Strict(), Field(ge=0, le=3)] = 1
    """Further runs of checks without evidence: a time-out, a lost sandbox, a changed tree."""


class ReviewPolicy(Contract):
    """Quorum and rounds of the design and code reviews; the full path has three reviewers, the light path one."""

    approvals: Annotated[int, Strict(), Field(ge=2, le=3)] = 2
    design_revisions: Annotated[int, Strict(), Field(ge=0, le=1)] = 1
    code_rounds: Annotated[int, Strict(), Field(ge=1, le=2)] = 2
    on_exhausted: OnExhausted = OnExhausted.LOW_CONFIDENCE


class VerificationPolicy(Contract):
    """How much evidence a task needs, and its maximum iterations."""

    standard_checks: Annotated[int, Strict(), Field(ge=2)] = 2
    large_checks: Annotated[int, Strict(), Field(ge=3)] = 3
    iterations: Annotated[int, Strict(), Field(ge=1, le=3)] = 3
    revert_from: Annotated[int, Strict(), Field(ge=1, le=3)] = 2
    """The iteration from which a failing task's files are restored to the baseline."""
    self_fixes: Annotated[int, Strict(), Field(ge=0, le=2)] = 2
    """How often a task whose checks failed goes back to its implementer before it is planned anew; the last iteration
    always has a new plan."""


class RiskRule(Contract):
    """A user-defined risk for files: `*` matches within a folder, `**` across folders; without `/` a file name."""

    pattern: Text
    risk: Risk


class Policy(Contract):
    """The settings that a decision of the feature pipeline depends on, in addition to the facts."""

    path: PathChoice = PathChoice.FULL
    """Which steps a run has; no path leaves out a check or an evidence gate."""
    retry: RetryPolicy = RetryPolicy()
    review: ReviewPolicy = ReviewPolicy()
    verification: VerificationPolicy = VerificationPolicy()
    risk: tuple[RiskRule, ...] = ()
    """Risk overrides; the first match applies."""
    researchers: Annotated[int, Strict(), Field(ge=2, le=4)] = 2
    """How many of the four researchers must succeed."""
    max_concurrent: Positive = 4
    human_loops: Annotated[int, Strict(), Field(ge=0, le=1)] = 1
    """How often each of expand, other, revise and modify may return the work at one gate."""
