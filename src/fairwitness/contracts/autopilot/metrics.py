"""The metrics of finished runs, their trend, and the constants of cost estimates."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, RootModel, Strict, model_validator
from pydantic_core import PydanticCustomError

from fairwitness.contracts.autopilot.vocabulary import FailureCategory, PhaseStatus
from fairwitness.contracts.common.base import (
    AlignmentScore,
    Amount,
    Contract,
    Count,
    Fraction,
    Integer,
    Number,
    Positive,
    Score,
    Timestamp,
)
from fairwitness.contracts.common.ids import AutopilotRunId, PhaseId
from fairwitness.contracts.common.problems import expect, is_ratio


class PhaseMetrics(Contract):
    """One phase of a finished run; a phase that was never rated has no score."""

    phase_id: PhaseId
    status: PhaseStatus
    alignment_score: AlignmentScore | None
    estimated_tokens: Count
    duration_minutes: Amount


class RunMetrics(Contract):
    """One finished run."""

    run_id: AutopilotRunId
    timestamp: Timestamp
    phases_attempted: Count
    phases_succeeded: Count
    phases_failed: Count
    phases_human_deferred: Count
    failure_taxonomy_histogram: Mapping[FailureCategory, Positive]
    avg_alignment_score: Score | None
    total_duration_minutes: Amount
    total_estimated_tokens: Count
    total_debug_loops: Count
    total_replan_attempts: Count
    success_rate: Fraction
    per_phase_summary: tuple[PhaseMetrics, ...]

    @model_validator(mode="after")
    def _counts_fit(self) -> Self:
        ended = self.phases_succeeded + self.phases_failed + self.phases_human_deferred
        expect(self, ended <= self.phases_attempted, "no more phases ended than attempted", "phases_attempted")
        rate = is_ratio(self.success_rate, self.phases_succeeded, self.phases_attempted)
        expect(self, rate, "success_rate equal to phases_succeeded of phases_attempted", "success_rate")
        return self


class MetricsFile(RootModel[tuple[RunMetrics, ...]]):
    """All finished runs, oldest first; the file is a JSON array."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="after")
    def _one_entry_per_run(self) -> Self:
        runs = [entry.run_id for entry in self.root]
        if len(set(runs)) != len(runs):
            raise PydanticCustomError("run_ids", "one entry per run")
        return self

    def plain(self) -> list[dict[str, Any]]:
        """Return the file as plain JSON values."""
        return [entry.plain() for entry in self.root]


class Spread(Contract):
    """Minimum, maximum and average of a number over all runs."""

    min: Number
    max: Number
    avg: Number

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        expect(self, self.min <= self.avg <= self.max, "min, avg and max in ascending order")
        return self


class History(Contract):
    """Statistics over all runs."""

    total_runs: Annotated[int, Strict(), Field(ge=2)]  # a trend needs two runs
    success_rate: Spread
    avg_alignment: Spread | None
    total_cost: Spread


class TrendSummary(Contract):
    """This run compared with the previous one; a positive delta is an increase."""

    success_rate_delta: Annotated[Number, Field(ge=-1, le=1)]
    avg_alignment_delta: Annotated[float, Strict(), Field(ge=-10, le=10, allow_inf_nan=False)] | None
    estimated_cost_delta: Integer
    recurring_failures: tuple[FailureCategory, ...]
    historical: History


class Trend(Contract):
    """The document that holds the trend."""

    trend_summary: TrendSummary


class TaskTokens(Contract):
    """The tokens of one task, by complexity."""

    simple: Positive = 15_000
    medium: Positive = 30_000
    complex: Positive = 60_000


class DefaultEstimates(Contract):
    """The tokens of a phase that has no plan yet, by type."""

    protocol: Positive = 150_000
    ui: Positive = 250_000
    data: Positive = 100_000
    mixed: Positive = 200_000


class CostEstimation(Contract):
    """The constants of a cost estimate."""

    task_tokens: TaskTokens = TaskTokens()
    pipeline_overhead: Positive = 50_000
    buffer_multiplier: Annotated[float, Strict(), Field(ge=1, allow_inf_nan=False)] = 1.20
    warning_threshold_pct: Annotated[int, Strict(), Field(ge=1, le=100)] = 80  # of the cap per phase
    default_estimates: DefaultEstimates = DefaultEstimates()


class CostConstants(Contract):
    """The document that holds the constants."""

    cost_estimation: CostEstimation
