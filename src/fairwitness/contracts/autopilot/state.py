"""The state file of a run, `.autopilot/state.json`."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from fairwitness.contracts.autopilot.breaker import BreakerState
from fairwitness.contracts.autopilot.events import AutopilotEvent
from fairwitness.contracts.autopilot.phase_record import PhaseRecord
from fairwitness.contracts.autopilot.vocabulary import (
    AutopilotRunStatus,
    Grade,
    HumanWord,
    Percent,
    StepName,
    Threshold,
)
from fairwitness.contracts.common.base import (
    Amount,
    Contract,
    Count,
    Fraction,
    Maybe,
    SchemaVersion,
    Text,
    Timestamp,
)
from fairwitness.contracts.common.ids import AutopilotRunId, PhaseId, RelPath, Sha256
from fairwitness.contracts.common.problems import expect


class Deferral(Contract):
    """One phase that was deferred, or nearly deferred, to a person."""

    phase_id: PhaseId
    reason: Text
    autonomous_confidence: Grade | None
    human_verdict: HumanWord | None
    timestamp: Timestamp


class Meta(Contract):
    """The identity and the status of the run."""

    version: SchemaVersion
    run_id: AutopilotRunId
    started_at: Timestamp
    last_checkpoint: Timestamp
    status: AutopilotRunStatus
    total_phases: Count
    current_phase: PhaseId | None
    current_step: StepName | None
    orchestrator_context_pct: Percent
    human_deferred_count: Count
    total_phases_processed: Count
    pass_threshold: Threshold
    autonomous_resolution_rate: Fraction
    deferral_threshold: Fraction
    """The share of deferred phases above which a warning is given."""
    deferral_confidence: Maybe[Annotated[float, Strict(), Field(ge=3, le=8, allow_inf_nan=False)]] = None
    """The confidence from which a phase is not deferred; starts at 6 and follows the human verdicts."""
    deferral_history: tuple[Deferral, ...]

    @model_validator(mode="after")
    def _deferred_were_processed(self) -> Self:
        counted = self.human_deferred_count <= self.total_phases_processed
        expect(self, counted, "human_deferred_count up to total_phases_processed", "human_deferred_count")
        return self


class SpecLock(Contract):
    """A specification locked when the run began."""

    path: RelPath
    hash: Sha256
    locked_at: Timestamp


class RunTotals(Contract):
    """The totals of the run so far."""

    total_tokens_used: Count
    total_duration_minutes: Amount
    phases_completed: Count
    phases_failed: Count
    debug_loops_total: Count
    replan_count: Count


def _bare_ids(value: Any) -> Any:
    """Read the older spelling `phase_6.1` of a phase's key as `6.1`."""
    if not isinstance(value, Mapping):
        return value
    bare = {key.removeprefix("phase_") if isinstance(key, str) else key: record for key, record in value.items()}
    if len(bare) != len(value):
        raise PydanticCustomError("phase_keys", "one record per phase")
    return bare


Phases = Annotated[Mapping[PhaseId, PhaseRecord], BeforeValidator(_bare_ids)]


class State(Contract):
    """The complete state of a run: everything that a resume needs."""

    meta: Meta = Field(alias="_meta")
    spec: SpecLock
    specs: tuple[SpecLock, ...] = ()
    """Every specification file that exists, each locked by its own hash; `spec` may be among them."""
    roadmap_path: RelPath
    phases: Phases
    circuit_breaker: BreakerState
    event_log: tuple[AutopilotEvent, ...]
    metrics: RunTotals

    @model_validator(mode="after")
    def _one_lock_per_path(self) -> Self:
        locks = {lock.path: lock for lock in self.specs}
        expect(self, len(locks) == len(self.specs), "one lock per path in specs", "specs")
        expect(self, locks.get(self.spec.path, self.spec) == self.spec, "the same lock in spec and specs", "spec")
        return self
