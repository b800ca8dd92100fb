"""The facts a decision of the feature pipeline is taken from: plain values, read from the ledger and the events.

No field has a default, so that nothing that was not looked up can pass for something that was seen.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import Contract, Count, Flag, Integer, Positive, Text, Texts
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import Tally, Tree
from fairwitness.contracts.common.ids import RelPath, SafeName
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.vocabulary import Risk, Severity, Size
from fairwitness.contracts.feature.events import Degradation, DispatchStatus
from fairwitness.contracts.feature.review import ReviewScope


class Step(StrEnum):
    """The steps of a feature run, in their order."""

    SETUP = "step-0"
    RESEARCH = "step-1"
    RESEARCH_GATE = "step-1a"
    SPEC = "step-2"
    DESIGN = "step-3"
    DESIGN_REVIEW = "step-3b"
    PLAN = "step-4"
    PLAN_GATE = "step-4a"
    IMPLEMENT = "step-5"
    VERIFY = "step-6"
    CODE_REVIEW = "step-7"
    KNOWLEDGE = "step-8"
    EVIDENCE = "step-8b"
    COMMIT = "step-9"


class HumanGate(StrEnum):
    """The four questions that may wait for a person."""

    REQUEST_PUSHBACK = "gate-pushback-request"
    RESEARCH = "gate-post-research"
    SPEC_PUSHBACK = "gate-pushback-spec"
    PLAN = "gate-post-planning"


class GateChoice(StrEnum):
    """Every option of every gate."""

    PROCEED = "proceed"
    APPROVE = "approve"
    MODIFY = "modify"
    EXPAND = "expand"
    REVISE = "revise"
    OTHER = "other"
    ABANDON = "abandon"
    ABORT = "abort"


OPTIONS: Mapping[HumanGate, tuple[GateChoice, ...]] = {
    HumanGate.REQUEST_PUSHBACK: (GateChoice.PROCEED, GateChoice.MODIFY, GateChoice.ABANDON, GateChoice.OTHER),
    HumanGate.RESEARCH: (GateChoice.PROCEED, GateChoice.EXPAND, GateChoice.ABORT, GateChoice.OTHER),
    HumanGate.SPEC_PUSHBACK: (GateChoice.PROCEED, GateChoice.MODIFY, GateChoice.ABANDON, GateChoice.OTHER),
    HumanGate.PLAN: (GateChoice.APPROVE, GateChoice.REVISE, GateChoice.ABORT),
}
"""What a person may answer; the first is what an autonomous run selects by itself."""


class ChangeKind(StrEnum):
    """What became of a file."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ChangedFile(Contract):
    """A file of a task, and what became of it."""

    path: RelPath
    change: ChangeKind


class CallFacts(Contract):
    """The latest try of one call of the step at hand; a status of None is still running."""

    instance: Text
    attempts: Positive
    status: DispatchStatus | None
    cause: ErrorCause | None

    @model_validator(mode="after")
    def _a_failure_has_its_cause(self) -> Self:
        failed = self.status in (DispatchStatus.ERROR, DispatchStatus.TIMEOUT)
        refusals = []
        if failed != (self.cause is not None):
            refusals.append(FieldRefusal(("cause",), "a cause exactly when the call failed", self.cause))
        if (self.status is DispatchStatus.TIMEOUT) != (self.cause is ErrorCause.TIMEOUT):
            refusals.append(FieldRefusal(("cause",), "timeout exactly when the status is TIMEOUT", self.cause))
        refuse_if_any("CallFacts", refusals)
        return self


class Approval(Contract):
    """Where the question of the step at hand stands."""

    gate: HumanGate
    asked: Flag
    selected: GateChoice | None
    spent: tuple[GateChoice, ...]
    """The options that have sent work back at this gate before, each as often as it did."""

    @model_validator(mode="after")
    def _an_answer_fits_its_question(self) -> Self:
        refusals = []
        if self.selected is not None and not self.asked:
            refusals.append(FieldRefusal(("selected",), "nothing, since nobody was asked", self.selected))
        if self.selected is not None and self.selected not in OPTIONS[self.gate]:
            refusals.append(FieldRefusal(("selected",), f"an option of {self.gate.value}", self.selected))
        refuse_if_any("Approval", refusals)
        return self


class ReviewFacts(Contract):
    """One round of one review: its rows, and the calls that were to bring them."""

    scope: ReviewScope
    round: Annotated[Integer, Field(ge=1, le=2)]
    tally: Tally
    reviewers: tuple[CallFacts, ...]


class TaskFacts(Contract):
    """What is known about the evidence of one task, or of the whole change."""

    task: SafeName
    size: Size
    risk: Risk
    """As planned; what was really changed may raise it."""
    files: tuple[ChangedFile, ...]
    iteration: Annotated[Integer, Field(ge=1, le=3)]
    """The iteration in which this task was last implemented."""
    round: Positive
    """Under which its rows of that iteration stand: the number of its attempt."""
    baseline: Tally
    after: Tally
    tree: Tree | None
    """The tree whose evidence is asked for; None asks for none in particular."""
    required: Texts
    """Checks that the task declared: its criteria (`ac-1`), its readiness checks."""
    ready: Flag
    """Whether everything it depends on is merged; a task that is not is never begun, and fails with its iteration."""
    check_runs: Count
    """How often its checks were run in this iteration."""
    baseline_runs: Count


class FixFacts(Contract):
    """A fix between two rounds of code review, and the evidence about it on the merged tree."""

    call: CallFacts
    checks: TaskFacts | None


class CanStart(StrEnum):
    """Whether budgets and breaker let something new begin."""

    YES = "yes"
    NOT_NOW = "not_now"
    NEVER = "never"


class FeatureFacts(Contract):
    """Everything `decide` looks at."""

    mode: ApprovalMode
    step: Step | None
    """The step that was last begun; None before the first."""
    calls: tuple[CallFacts, ...]
    """Of the step at hand; reviewers and fixes stand in their own facts."""
    concerns: Severity | None
    """The worst concern that the step's pushback raised."""
    approval: Approval | None
    iteration: Annotated[Integer, Field(ge=1, le=3)]
    tasks: tuple[TaskFacts, ...]
    whole: TaskFacts | None
    """The whole change on the tree that would be committed; None until its checks ran."""
    design_review: ReviewFacts | None
    code_review: ReviewFacts | None
    fix: FixFacts | None
    degradations: tuple[Degradation, ...]
    can_start: CanStart
    held_by: Text | None
    """Which budget or breaker holds the run."""

    @model_validator(mode="after")
    def _a_hold_names_itself(self) -> Self:
        if (self.can_start is CanStart.YES) != (self.held_by is None):
            refuse_if_any(
                "FeatureFacts", [FieldRefusal(("held_by",), "a reason exactly when nothing may start", self.held_by)]
            )
        return self


class ConfidenceFacts(Contract):
    """What a run's confidence is computed from."""

    unverified: Texts
    """Tasks whose gates stayed shut."""
    whole_verified: Flag
    regressions: Texts
    red_before_too: Texts
    """Checks that fail now as they failed before."""
    approvals: Annotated[Integer, Field(ge=0, le=3)]
    open_findings: tuple[Severity, ...]
    """Of the last round of code review."""
    degradations: tuple[Degradation, ...]
