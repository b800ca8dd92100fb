"""A pass through the steps of a phase: its kind, the result of each step, and the decision after it returns.

The first pass of a phase is the whole pipeline. Later passes are improvement cycles after a rating, parts of a phase
that was split, or repetitions of steps that an integrity check requires.
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
    """The kinds of passes."""

    WHOLE = "whole"
    CYCLE = "cycle"
    PART = "part"
    AGAIN = "again"


class PhasePass(Contract):
    """The description of a pass when it starts."""

    phase: PhaseId
    number: Positive
    """The number of the pass within its phase and run."""
    kind: PassKind
    start: Commit
    """The target's commit at the start of the pass; later commits are the work of the pass."""
    checkpoint: Commit
    """The target's commit before the phase; a failed phase is reset to it."""
    loop: Maybe[ImprovementLoop] = None
    """The loop that a cycle belongs to."""
    before_tenths: Maybe[Annotated[int, Field(ge=0, le=100)]] = None
    """The score before a cycle."""
    items: tuple[PathItem, ...] = ()
    """The deficiencies that a cycle works on."""
    tasks: tuple[SafeName, ...] = ()
    """The tasks of the plan that a part executes."""
    again: tuple[StepName, ...] = ()
    """The steps to repeat."""

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
    """The result of one step of a pass, as far as later steps depend on it."""

    step: StepName
    number: Positive
    """The number of the step's execution in this pass."""
    good: Flag
    route: Maybe[TriageRoute] = None
    """The decision of triage."""
    recommendation: Maybe[Recommendation] = None
    """The recommendation of the judge."""
    score_tenths: Maybe[Annotated[int, Field(ge=0, le=100)]] = None
    """The final score of the rating, after deductions."""
    defers: Flag = False
    """Whether the verification needs a person's decision."""
    splits: Flag = False
    """Whether the plan is too large for one phase."""
    unchanged: Flag = False
    """Whether a cycle or a repair left the files as they were verified before."""
    issues: Texts = ()
    """The remaining issues."""
    halt: Maybe[Text] = None
    """Why the run must not start further work."""


class PassMoveKind(StrEnum):
    """What a pass does next."""

    STEP = "step"
    RETURN = "return"


class PassMove(Contract):
    """The next step, or how and why the pass ends."""

    kind: PassMoveKind
    step: Maybe[StepName] = None
    number: Maybe[Positive] = None
    outcome: Maybe[PhaseOutcome] = None
    recommendation: Maybe[Recommendation] = None
    because: Maybe[Text] = None
    halt: Maybe[Text] = None


class AfterPass(StrEnum):
    """What the run does with a phase after a pass."""

    SETTLED = "settled"
    ONCE_MORE = "once_more"
    DEFERRED = "deferred"
    SPLIT = "split"
    HALTED = "halted"


class PassDecision(Contract):
    """The decision after a pass: the findings of the integrity checks, and the next pass if there is one."""

    phase: PhaseId
    number: Positive
    after: AfterPass
    because: Text
    findings: tuple[IntegrityFinding, ...] = ()
    next: Maybe[PhasePass] = None
    parts: tuple[PhasePass, ...] = ()
    """The passes of the parts into which the phase was split."""
    cycles: Count = 0
    """Improvement cycles run so far."""

    @model_validator(mode="after")
    def _once_more_means_another(self) -> Self:
        another = self.next is not None
        expect(self, another == (self.after is AfterPass.ONCE_MORE), "the next pass exactly if there is one", "next")
        expect(self, bool(self.parts) == (self.after is AfterPass.SPLIT), "the parts of a split phase", "parts")
        return self
