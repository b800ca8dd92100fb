"""The order of an autopilot run, and the settings of autopilot in `fairwitness.toml`."""

from collections.abc import Mapping
from typing import Self

from pydantic import Field, model_validator

from fairwitness.contracts.autopilot.breaker import BreakerSettings
from fairwitness.contracts.autopilot.facts import RunSetup
from fairwitness.contracts.autopilot.rating import Deficiency
from fairwitness.contracts.autopilot.roadmap import ROADMAP_PATH, CommandKind, RequirementId, Roadmap, UiFiles
from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, RunFlag
from fairwitness.contracts.common.base import (
    AlignmentScore,
    Contract,
    Count,
    Flag,
    Fraction,
    Maybe,
    OneLine,
    Positive,
    Text,
)
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.ids import Commit, GitRef, PhaseId, RelPath
from fairwitness.contracts.common.policy import Policy, RetryPolicy
from fairwitness.contracts.common.problems import expect
from fairwitness.contracts.graph.orders import DEFAULT_CAP
from fairwitness.contracts.verify.run_settings import RunSettings


class AutopilotTable(Contract):
    """The `[autopilot]` table of the settings."""

    cap: Positive = DEFAULT_CAP
    """The maximum number of concurrent tasks of a phase."""
    kept_events: Positive = 50
    """How many of the last events the state file holds; the archive holds all."""
    deferral_rate: Fraction = 0.05
    """The share of deferred phases above which a warning is given."""
    command_seconds: Positive = 60
    """The time limit of a criterion's command, in seconds."""
    quick_phase_seconds: Count = 300
    """A phase with several tasks that took less than this gets a warning."""
    minimum_verification_seconds: Count = 0
    """The minimum duration of an agent's verification, in seconds."""
    audit: Flag = True
    """Whether the run audits its work against the specification before it ends."""
    breaker: BreakerSettings = BreakerSettings()


class AutopilotSettings(Contract):
    """The settings of an autopilot run in `fairwitness.toml`."""

    autopilot: AutopilotTable = AutopilotTable()
    policy: Policy = Policy()
    budget: BudgetTable = BudgetTable()


class EarlierPhase(Contract):
    """A phase that an earlier run finished, with its state at the end of that run."""

    status: PhaseStatus
    alignment_score: AlignmentScore | None
    deficiencies: tuple[Deficiency, ...]
    completed_at: Maybe[Text] = None


class AutopilotOrder(RunSettings):
    """The order of an autopilot run: the request, and the repository and settings when it was given."""

    roadmap: Roadmap
    phases: tuple[PhaseId, ...]
    """The phases selected for this run, in order."""
    earlier: Mapping[PhaseId, EarlierPhase]
    """The phases finished by earlier runs."""
    flags: tuple[RunFlag, ...]
    cycles: Maybe[Positive] = None
    """The maximum number of `--quality` or `--gaps` cycles, if the user set it."""
    pause_after: Maybe[Positive] = None
    """The number of phases after which the run pauses (`--checkpoint-every`)."""
    base_commit: Commit
    target: GitRef
    commands: Mapping[CommandKind, Text | None]
    ui: Maybe[UiFiles] = None
    specs: tuple[SpecLock, ...]
    """The first is the run's own specification."""
    spec_paths: tuple[RelPath, ...] = ()
    """All paths of specifications; a new file at one of them stops the next phase."""
    requirements: Mapping[RequirementId, OneLine] = Field(default_factory=dict)
    """The texts of requirements that only a specification describes."""
    limits: AutopilotTable = AutopilotTable()
    retry: RetryPolicy = RetryPolicy()
    budget: BudgetTable = BudgetTable()
    started_by: Text

    @model_validator(mode="after")
    def _of_one_roadmap(self) -> Self:
        known = {phase.id for phase in self.roadmap.phases}
        expect(self, known.issuperset(self.phases), "phases of the roadmap", "phases")
        expect(self, len(set(self.phases)) == len(self.phases) > 0, "each phase once, and at least one", "phases")
        expect(self, bool(self.specs), "at least one specification", "specs")
        return self

    def setup(self, kept_events: int | None) -> RunSetup:
        """Return the setup for folding the run's events; None keeps all events in the state."""
        return RunSetup(
            roadmap_path=ROADMAP_PATH,
            phases=self.roadmap.outline,
            spec=self.specs[0],
            specs=self.specs,
            deferral_threshold=self.limits.deferral_rate,
            kept_events=kept_events,
        )
