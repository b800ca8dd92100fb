"""What an autopilot run was begun with, and what a person may set about such runs in `fairwitness.toml`."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from fairwitness.contracts.autopilot.breaker import BreakerSettings
from fairwitness.contracts.autopilot.facts import RunSetup
from fairwitness.contracts.autopilot.rating import Deficiency
from fairwitness.contracts.autopilot.roadmap import ROADMAP_PATH, CommandKind, Roadmap, UiFiles
from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, RunFlag
from fairwitness.contracts.common.base import AlignmentScore, Contract, Count, Flag, Fraction, Maybe, Positive, Text
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.ids import Commit, GitRef, PhaseId, RelPath, Sha256
from fairwitness.contracts.common.problems import expect
from fairwitness.contracts.graph.orders import DEFAULT_CAP


class AutopilotTable(Contract):
    """`[autopilot]`."""

    cap: Positive = DEFAULT_CAP
    """How many tasks of a phase are worked on at a time."""
    kept_events: Positive = 50
    """How many of the last events the state file holds; the archive holds all."""
    deferral_rate: Fraction = 0.05
    """The share of phases that may be put to a person before it is worth a warning."""
    command_seconds: Positive = 60
    """How long a command of a criterion may take."""
    quick_phase_seconds: Count = 300
    """Several tasks that took less than this are worth a warning."""
    minimum_verification_seconds: Count = 0
    """What is too quick for a verification; the harness's own may be as quick as it is."""
    audit: Flag = True
    """Whether the run holds what it built against the specification before it ends."""
    breaker: BreakerSettings = BreakerSettings()


class AutopilotSettings(Contract):
    """The tables of `fairwitness.toml` that an autopilot run reads."""

    autopilot: AutopilotTable = AutopilotTable()
    budget: BudgetTable = BudgetTable()


class EarlierPhase(Contract):
    """A phase that an earlier run finished, as that run left it."""

    status: PhaseStatus
    alignment_score: AlignmentScore | None
    deficiencies: tuple[Deficiency, ...]
    completed_at: Maybe[Text] = None


class AutopilotOrder(Contract):
    """One run, as a person asked for it and as the machine stood then."""

    roadmap: Roadmap
    phases: tuple[PhaseId, ...]
    """Those that this run takes up, in the order they run."""
    earlier: Mapping[PhaseId, EarlierPhase]
    """What earlier runs finished, by phase."""
    flags: tuple[RunFlag, ...]
    cycles: Maybe[Positive] = None
    """How often `--quality` or `--gaps` may go round, where a person said so."""
    pause_after: Maybe[Positive] = None
    """After so many phases the run pauses (`--checkpoint-every`)."""
    base_commit: Commit
    target: GitRef
    commands: Mapping[CommandKind, Text | None]
    ui: Maybe[UiFiles] = None
    specs: tuple[SpecLock, ...]
    """The first is the run's own specification."""
    spec_paths: tuple[RelPath, ...] = ()
    """Every path that may hold one; what stands there later and was not locked stops the next phase."""
    limits: AutopilotTable = AutopilotTable()
    budget: BudgetTable = BudgetTable()
    verify: dict[str, Any]
    """The person's settings of the checks."""
    settings_hash: Sha256
    agents: Maybe[Text] = None
    """The agent that was asked for on the command line; None for what each role's settings say."""
    cassettes: Maybe[Text] = None
    started_by: Text

    @model_validator(mode="after")
    def _of_one_roadmap(self) -> Self:
        known = {phase.id for phase in self.roadmap.phases}
        expect(self, known.issuperset(self.phases), "phases of the roadmap", "phases")
        expect(self, len(set(self.phases)) == len(self.phases) > 0, "each phase once, and at least one", "phases")
        expect(self, bool(self.specs), "at least one specification", "specs")
        return self

    def setup(self, kept_events: int | None) -> RunSetup:
        """What the fold of the run's events begins with; None keeps all events in its state."""
        return RunSetup(
            roadmap_path=ROADMAP_PATH,
            phases=self.roadmap.outline,
            spec=self.specs[0],
            specs=self.specs,
            deferral_threshold=self.limits.deferral_rate,
            kept_events=kept_events,
        )
