"""The settings that rules read: thresholds, rounds, retries and caps, with the seeds' numbers as defaults.

Bounds hold the seeds' floor and ceiling: a setting may ask for more evidence or fewer rounds, never for less evidence
or for a loop without end.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, Strict

from fairwitness.contracts.common.base import Contract, Positive, Text
from fairwitness.contracts.common.vocabulary import Risk


class OnExhausted(StrEnum):
    """What a code review that never came to an approval does to the run."""

    ERROR = "error"
    LOW_CONFIDENCE = "low-confidence"


class RetryPolicy(Contract):
    """How often something is tried again before it counts as failed."""

    dispatch: Annotated[int, Strict(), Field(ge=0, le=3)] = 1
    """Further calls of an agent that failed in a way that may pass."""
    inside_agent: Annotated[int, Strict(), Field(ge=0, le=3)] = 2
    """Further tries of a tool inside one call."""
    database_busy: Annotated[int, Strict(), Field(ge=0, le=5)] = 3
    checks: Annotated[int, Strict(), Field(ge=0, le=3)] = 1
    """Further runs of checks that gave no evidence: a time-out, a lost sandbox, a tree that moved on."""


class ReviewPolicy(Contract):
    """Quorum and rounds of the two reviews; three reviewers always."""

    approvals: Annotated[int, Strict(), Field(ge=2, le=3)] = 2
    design_revisions: Annotated[int, Strict(), Field(ge=0, le=1)] = 1
    code_rounds: Annotated[int, Strict(), Field(ge=1, le=2)] = 2
    on_exhausted: OnExhausted = OnExhausted.LOW_CONFIDENCE


class VerificationPolicy(Contract):
    """How much evidence a task needs, and how often it may be tried."""

    standard_checks: Annotated[int, Strict(), Field(ge=2)] = 2
    large_checks: Annotated[int, Strict(), Field(ge=3)] = 3
    iterations: Annotated[int, Strict(), Field(ge=1, le=3)] = 3
    revert_from: Annotated[int, Strict(), Field(ge=1, le=3)] = 2
    """The iteration from which a failing task's files are put back to the baseline."""
    self_fixes: Annotated[int, Strict(), Field(ge=0, le=2)] = 2


class RiskRule(Contract):
    """A person's word on files: `*` stays within a folder, `**` does not; without `/` the pattern is a file name."""

    pattern: Text
    risk: Risk


class Policy(Contract):
    """Everything a decision of the feature pipeline depends on besides the facts."""

    retry: RetryPolicy = RetryPolicy()
    review: ReviewPolicy = ReviewPolicy()
    verification: VerificationPolicy = VerificationPolicy()
    risk: tuple[RiskRule, ...] = ()
    """Overrides, first match first."""
    researchers: Annotated[int, Strict(), Field(ge=2, le=4)] = 2
    """Of four, how many must be done."""
    max_concurrent: Positive = 4
    human_loops: Annotated[int, Strict(), Field(ge=0, le=1)] = 1
    """How often each of expand, other, revise and modify sends the work back at one gate."""
