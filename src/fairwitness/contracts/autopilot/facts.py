"""The input of autopilot's rules: the roadmap, the result of a step, the usage, and the facts beside an event.

The published details of an event leave out what the state file stores of a step. `EventFacts` is part of the envelope's
data beside them, so that the state file can be computed from the events alone.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.autopilot.phase_record import HumanVerifyJustification, PhaseSteps
from fairwitness.contracts.autopilot.state import SpecLock, State
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, Grade, Percent, PhaseType, StepName
from fairwitness.contracts.common.base import Contract, Count, Fraction, Maybe, Positive, Text, Texts
from fairwitness.contracts.common.ids import PhaseId, RelPath
from fairwitness.contracts.common.problems import expect


class RoadmapPhase(Contract):
    """One phase of the roadmap, with what its order depends on."""

    id: PhaseId
    name: Text
    type: PhaseType
    depends_on: tuple[PhaseId, ...]


class RunSetup(Contract):
    """The setup of a run: its roadmap, its locked specifications, and how many events the state file keeps."""

    roadmap_path: RelPath
    phases: Annotated[tuple[RoadmapPhase, ...], Field(min_length=1)]
    spec: SpecLock
    specs: tuple[SpecLock, ...]
    deferral_threshold: Fraction
    kept_events: Positive | None
    """How many of the last events the state file holds; None for the archive, which holds all."""

    @model_validator(mode="after")
    def _one_entry_per_phase(self) -> Self:
        expect(self, len({phase.id for phase in self.phases}) == len(self.phases), "one entry per phase", "phases")
        return self


class StepFailureCause(Contract):
    """Why a step failed: the category, and the first line of the output."""

    category: FailureCategory
    first_line: Text


class StepEffect(Contract):
    """The effect of a step, measured by Fair Witness."""

    step: StepName
    new_commits: Count
    newly_passing: Count
    score_gained: Count
    """Tenths of a point above the best score so far."""
    error: StepFailureCause | None


class RunUsage(Contract):
    """What a phase and the whole run used so far, in whole minutes and tokens."""

    phase_tokens: Count
    phase_minutes: Count
    total_tokens: Count
    total_minutes: Count
    total_retries: Count


class RetryKind(StrEnum):
    """The three kinds of retries that count against the run; remediation cycles do not."""

    TASK = "task_retry"
    DEBUG = "debug"
    REPLAN = "replan"


class Retries(Contract):
    """Retries used so far: debugging and replanning in this phase, and all kinds in the run."""

    debug_in_phase: Count
    replan_in_phase: Count
    total: Count


class DeferralFacts(Contract):
    """Why a phase is deferred to a person."""

    reason: Text
    autonomous_confidence: Grade | None
    justification: HumanVerifyJustification


class EventFacts(Contract):
    """Facts of an event for the state file, in addition to its published details."""

    steps: Maybe[PhaseSteps] = None
    """The entry of the step that ended; entries of other steps are left out."""
    outcome: Maybe[StepEffect] = None
    tokens: Maybe[Count] = None
    """Tokens used since the previous event."""
    deferral: Maybe[DeferralFacts] = None
    context_pct: Maybe[Percent] = None


class FailureCount(Contract):
    """How many failures of one category a run had."""

    category: FailureCategory
    count: Positive


class AutopilotState(Contract):
    """The state of a run: the state file, and what is needed to apply further events."""

    state: State
    seq: Positive
    last_event_id: Text
    failures: tuple[FailureCount, ...]
    forced: tuple[PhaseId, ...]
    """Phases that `--force` runs again and that have not ended since."""
    scored: tuple[PhaseId, ...]
    """Phases with a score since they were last started."""


class PathItem(Contract):
    """One improvement in a diagnostic: the file, what is wrong in it, and what fixing it gains."""

    file: RelPath
    deficiency: Text
    impact: Text


class PathProblems(Contract):
    """An unusable item of a diagnostic, with the reasons."""

    item: PathItem
    problems: Annotated[Texts, Field(min_length=1)]
