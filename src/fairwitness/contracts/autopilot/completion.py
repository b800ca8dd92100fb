"""The data of the report of a `--complete` run."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fairwitness.contracts.autopilot.vocabulary import SkipReason, blocked_by
from fairwitness.contracts.common.base import Amount, Contract, Count, Maybe, Text, Timestamp
from fairwitness.contracts.common.ids import AutopilotRunId, PhaseId
from fairwitness.contracts.common.problems import expect, is_ratio


class SkippedPhase(Contract):
    """A phase that was not run, and the reason."""

    phase_id: PhaseId
    phase_name: Text
    reason: SkipReason
    original_run_timestamp: Maybe[Timestamp] = None
    blocking_phase: Maybe[PhaseId] = None

    @model_validator(mode="after")
    def _reason_names_the_blocker(self) -> Self:
        expect(
            self, blocked_by(self.reason) == self.blocking_phase, "the blocking_phase of the reason", "blocking_phase"
        )
        return self


class BlockedPhase(Contract):
    """A phase that depends on a failed phase."""

    phase_id: PhaseId
    phase_name: Text


class DependencyGap(Contract):
    """A failed phase and all phases that depend on it."""

    failed_phase_id: PhaseId
    failed_phase_name: Text
    failure_reason: Text
    blocked_phases: tuple[BlockedPhase, ...]


class CompletionReport(Contract):
    """The result of a `--complete` run: completed, failed and remaining phases."""

    run_id: AutopilotRunId
    timestamp: Timestamp
    mode: Literal["--complete"]
    total_phases_in_roadmap: Count
    completed_phases_total: Count
    completion_percentage: Annotated[Amount, Field(le=100)]
    phases_attempted: Count
    phases_succeeded: Count
    phases_failed: Count
    phases_skipped: tuple[SkippedPhase, ...]
    phases_deferred: Count
    dependency_gaps: tuple[DependencyGap, ...]

    @model_validator(mode="after")
    def _counts_fit(self) -> Self:
        ended = self.phases_succeeded + self.phases_failed + self.phases_deferred
        expect(self, ended <= self.phases_attempted, "no more phases ended than attempted", "phases_attempted")
        share = is_ratio(self.completion_percentage / 100, self.completed_phases_total, self.total_phases_in_roadmap)
        expect(self, share, "completion_percentage of the phases in the roadmap", "completion_percentage")
        return self
