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
from fairwitness.contracts.common.policy import OnPath, RunPath
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
    """The four approval gates of a feature run."""

    REQUEST_PUSHBACK = "gate-pushback-request"
    RESEARCH = "gate-post-research"
    SPEC_PUSHBACK = "gate-pushback-spec"
    PLAN = "gate-post-planning"


class GateChoice(StrEnum):
    """All options of the approval gates."""

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
"""The options of each gate; an autonomous run selects the first."""


class ChangeKind(StrEnum):
    """How a file changed."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ChangedFile(Contract):
    """A changed file of a task."""

    path: RelPath
    change: ChangeKind


class CallFacts(Contract):
    """The latest try of one call of the current step; it is running if the status is null."""

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
    """The state of the current step's question."""

    gate: HumanGate
    asked: Flag
    selected: GateChoice | None
    spent: tuple[GateChoice, ...]
    """The options that returned work at this gate before, once for each time."""

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
    """One round of a review: its evidence rows and calls."""

    scope: ReviewScope
    round: Annotated[Integer, Field(ge=1, le=2)]
    tally: Tally
    reviewers: tuple[CallFacts, ...]
    path: OnPath = RunPath.FULL
    """The path that says who reviews."""


def _is_empty(paths: tuple[str, ...]) -> bool:
    return not paths


class TaskFacts(Contract):
    """The evidence facts of one task, or of the whole change."""

    task: SafeName
    size: Size
    risk: Risk
    """The planned risk; the actual changes may raise it."""
    files: tuple[ChangedFile, ...]
    iteration: Annotated[Integer, Field(ge=1, le=3)]
    """The iteration in which this task was last implemented."""
    round: Positive
    """The round of its evidence rows: the number of its attempt."""
    baseline: Tally
    after: Tally
    tree: Tree | None
    """The tree that the evidence must be about; null for any."""
    required: Texts
    """The checks that the task declared: criteria (`ac-1`) and readiness checks."""
    ready: Flag
    """Whether all its dependencies are merged; otherwise it never starts and fails with its iteration."""
    check_runs: Count
    """How often its checks were run in this iteration."""
    baseline_runs: Count
    failing: tuple[tuple[str, Text], ...] = ()
    """Checks that failed, each with why: the first failing test with its error; no rule decides by it.

    Empty also in facts that were recorded before there was this field.
    """
    planned: Annotated[tuple[RelPath, ...], Field(exclude_if=_is_empty)] = ()
    """The files that the plan names; read on the light path only."""


class FixFacts(Contract):
    """A fix between two rounds of code review, and the evidence about it on the merged tree."""

    call: CallFacts
    checks: TaskFacts | None


class CanStart(StrEnum):
    """Whether budgets and the circuit breaker allow new work."""

    YES = "yes"
    NOT_NOW = "not_now"
    NEVER = "never"


class FeatureFacts(Contract):
    """All facts that a decision of the feature pipeline uses."""

    mode: ApprovalMode
    path: OnPath = RunPath.FULL
    step: Step | None
    """The current step; null before the first."""
    calls: tuple[CallFacts, ...]
    """The calls of the current step; reviewers and fixes have their own facts."""
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
    """Tasks whose gates are blocked."""
    whole_verified: Flag
    regressions: Texts
    red_before_too: Texts
    """Checks that failed before the change and still fail."""
    reviewers: Annotated[Integer, Field(ge=1, le=3)]
    """How many reviewers the code has."""
    approvals: Annotated[Integer, Field(ge=0, le=3)] | None
    """How many reviewers approve the code; None if it was not reviewed."""
    open_findings: tuple[Severity, ...]
    """The open findings of the last code review round."""
    degradations: tuple[Degradation, ...]
