"""A pass through the steps of a phase: what it is for, how each step ended, and what followed from its return.

The first pass of a phase is the whole pipeline. Later ones are cycles over what a rating left, the parts of a phase
that was split, or the steps that an integrity check wants to see done again.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.integrity import IntegrityFinding
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome
from fairwitness.contracts.autopilot.vocabulary import ImprovementLoop, Recommendation, StepName, TriageRoute
from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Text, Texts
from fairwitness.contracts.common.ids import Commit, PhaseId, SafeName
from fairwitness.contracts.common.problems import expect


class PassKind(StrEnum):
    """What a pass is for."""

    WHOLE = "whole"
    CYCLE = "cycle"
    PART = "part"
    AGAIN = "again"


class PhasePass(Contract):
    """One pass, as it is begun."""

    phase: PhaseId
    number: Positive
    """Counts the passes of a phase in a run."""
    kind: PassKind
    start: Commit
    """Where the target stood; what the pass changed is what came since."""
    checkpoint: Commit
    """Where the target stood before the phase; a phase that fails goes back to it."""
    loop: Maybe[ImprovementLoop] = None
    """Which loop a cycle is one of."""
    before_tenths: Maybe[Annotated[int, Field(ge=0, le=100)]] = None
    """The score that stood before a cycle."""
    items: tuple[PathItem, ...] = ()
    """What a cycle is to mend."""
    tasks: tuple[SafeName, ...] = ()
    """The tasks of the plan that a part has to carry out."""
    again: tuple[StepName, ...] = ()
    """The steps that are to be done again."""

    @model_validator(mode="after")
    def _says_what_it_is_for(self) -> Self:
        cycle = self.kind is PassKind.CYCLE
        expect(self, (self.loop is not None) == cycle, "the loop of a cycle, or none", "loop")
        expect(self, (self.before_tenths is not None) == cycle, "the score before a cycle, or none", "before_tenths")
        expect(self, bool(self.items) == cycle, "items of a cycle, and of no other", "items")
        expect(self, bool(self.tasks) == (self.kind is PassKind.PART), "tasks of a part, and of no other", "tasks")
        expect(
            self, bool(self.again) == (self.kind is PassKind.AGAIN), "steps to be done again, and of no other", "again"
        )
        return self


class StepResult(Contract):
    """How one step of a pass ended, as far as the way on depends on it."""

    step: StepName
    number: Positive
    """How often the step was done in this pass."""
    good: Flag
    route: Maybe[TriageRoute] = None
    """What triage decided."""
    recommendation: Maybe[Recommendation] = None
    """What the judge asked for."""
    score_tenths: Maybe[Annotated[int, Field(ge=0, le=100)]] = None
    """What the rating came to, after everything that cost points."""
    defers: Flag = False
    """Whether the verification ended at what only a person can decide."""
    splits: Flag = False
    """Whether the plan is too large for one phase."""
    issues: Texts = ()
    """What is left to be mended."""
    halt: Maybe[Text] = None
    """Why nothing more may be started in this run."""


class PassMoveKind(StrEnum):
    """What a pass does next."""

    STEP = "step"
    RETURN = "return"


class PassMove(Contract):
    """The next step, or how the pass ends and why."""

    kind: PassMoveKind
    step: Maybe[StepName] = None
    number: Maybe[Positive] = None
    outcome: Maybe[PhaseOutcome] = None
    recommendation: Maybe[Recommendation] = None
    because: Maybe[Text] = None
    halt: Maybe[Text] = None


class AfterPass(StrEnum):
    """What the run does with a phase whose pass returned."""

    SETTLED = "settled"
    ONCE_MORE = "once_more"
    DEFERRED = "deferred"
    SPLIT = "split"
    HALTED = "halted"


class PassDecision(Contract):
    """What followed from a pass: the findings of the integrity checks, and the next pass if there is one."""

    phase: PhaseId
    number: Positive
    after: AfterPass
    because: Text
    findings: tuple[IntegrityFinding, ...] = ()
    next: Maybe[PhasePass] = None
    parts: tuple[PhasePass, ...] = ()
    """The passes of the parts into which the phase was split."""
    cycles: Count = 0
    """Cycles that have been run over the phase."""

    @model_validator(mode="after")
    def _once_more_means_another(self) -> Self:
        another = self.next is not None
        expect(self, another == (self.after is AfterPass.ONCE_MORE), "the next pass exactly if there is one", "next")
        expect(self, bool(self.parts) == (self.after is AfterPass.SPLIT), "the parts of a split phase", "parts")
        return self
