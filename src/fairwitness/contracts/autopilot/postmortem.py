"""The post-mortem of a failed phase."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from fairwitness.contracts.autopilot.trace import TraceStep
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, StepName
from fairwitness.contracts.common.base import Contract, Positive, Text, Texts, Timestamp
from fairwitness.contracts.common.ids import Commit, PhaseId


class TimelineStatus(StrEnum):
    """The status of one entry of the timeline."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    SKIPPED = "skipped"


class RootCause(Contract):
    """The earliest cause that explains the failure."""

    category: FailureCategory
    description: Text
    first_observed_at: Timestamp
    step: StepName


class TimelineEntry(Contract):
    """One event on the way to the failure."""

    timestamp: Timestamp
    step: TraceStep
    event: Text
    status: TimelineStatus


class PostMortemEvidence(Contract):
    """The commands run and the files inspected."""

    commands_run: Texts
    files_checked: Texts


class AttemptedFix(Contract):
    """One debug attempt; it has no commit if it changed nothing."""

    attempt: Positive
    description: Text
    commit_sha: Commit | None
    resolved: Texts
    remaining: Texts


class PostMortem(Contract):
    """Why a phase failed, and a rule that prevents it from happening again."""

    phase_id: PhaseId
    phase_name: Text
    timestamp: Timestamp
    status: Literal["failed"]
    root_cause: RootCause
    timeline: Annotated[tuple[TimelineEntry, ...], Field(max_length=20)]
    evidence: PostMortemEvidence
    attempted_fixes: tuple[AttemptedFix, ...]
    prevention_rule: Text
