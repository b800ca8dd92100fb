"""What the gate of `fairwitness verify` requires, and the report that people and machines read."""

from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import (
    Contract,
    Count,
    Flag,
    Integer,
    Maybe,
    Positive,
    SchemaVersion,
    Text,
    Texts,
)
from fairwitness.contracts.common.evidence import ROUNDS, SandboxTier, Tree
from fairwitness.contracts.common.gates import GateAnswer
from fairwitness.contracts.common.ids import RunId, SafeName
from fairwitness.contracts.common.sandbox import Warned
from fairwitness.contracts.verify.checks import CheckId
from fairwitness.contracts.verify.results import Evidence, ItemChange, Moved

CHANGE = "change"
"""The task id of the evidence rows of a verified change."""
LISTED = 50
"""The maximum number of items that a report lists for one check; counts are always complete."""


class VerifySubject(Contract):
    """The subject of a verification: one round of a task or merge, or the change given to `fairwitness verify`."""

    task_id: SafeName = CHANGE
    round: Annotated[Integer, Field(ge=1, le=ROUNDS)] = 1

    @property
    def name(self) -> str:
        """Return task id and round in one text.

        >>> VerifySubject(task_id="task-03", round=2).name
        'task-03:2'
        """
        return f"{self.task_id}:{self.round}"

    @property
    def is_the_change(self) -> bool:
        """Return True for the change given to `fairwitness verify`; its ledger keys have no subject in them."""
        return self == VerifySubject()

    @property
    def baseline_round(self) -> int:
        """Return the round of its baseline, which no other round shares."""
        return self.round - 1

    def key(self, what: str) -> str:
        """Return the ledger key of a fact about this subject.

        >>> VerifySubject().key("asked"), VerifySubject(task_id="task-03", round=2).key("asked")
        ('asked', 'asked:task-03:2')
        """
        return what if self.is_the_change else f"{what}:{self.name}"


class RequiredCheck(Contract):
    """A required check: its name in the ledger and, if there are several of that name, its instance."""

    name: Text
    instance: CheckId | None


class CheckWithoutEvidence(Contract):
    """A check that gave no evidence, and whether the gate excuses it."""

    name: Text
    instance: CheckId | None
    reason: Text
    excused: Flag


class ChangeRequirements(Contract):
    """The tree and the checks that the evidence for a change must cover."""

    tree: Tree
    required: tuple[RequiredCheck, ...]
    silent: tuple[CheckWithoutEvidence, ...]


class Side(Contract):
    """One side of a comparison."""

    ref: Text
    """The revision as given by the user, or `the index`, `the working tree`."""
    commit: Text | None
    tree: Tree


class CheckLine(Contract):
    """The result of one check, before and after the change."""

    id: CheckId
    name: Text
    tool: Text
    tier: Annotated[int, Field(ge=1, le=4)]
    required: Flag
    baseline: Evidence
    after: Evidence
    reason: Maybe[Text] = None
    """Why there is no evidence, or which items got worse."""
    excused: Flag = False
    counts: dict[ItemChange, Count] = Field(default_factory=dict)
    moved: Annotated[tuple[Moved, ...], Field(max_length=LISTED)] = ()
    duration_ms: Count = 0
    cached: Flag = False
    execution: Maybe[Positive] = None
    """The ledger row with the complete output: `fairwitness evidence show ID`."""
    output: Texts = ()
    """The last ten lines of a failing check."""
    output_from: Maybe[Text] = None
    """The run that printed them, if it was not the check itself."""


class FindingLine(Contract):
    """An inspection finding about the change, and whether it blocks."""

    check: Text
    """The check in the ledger that the finding belongs to."""
    rule: Text
    path: Text
    line: Maybe[Positive] = None
    text: Text
    blocks: Flag
    subject: Maybe[Text] = None
    """The name by which `--accept` accepts it."""
    accepted: Maybe[Text] = None
    """The reason given for accepting it."""


class ExpectationLine(Contract):
    """An existing test that expects something else now: in its old form it fails with the new code."""

    id: Text
    """The name by which `--accept` accepts it, from the root of the repository on."""
    message: str = ""
    """How its old form fails."""
    before: Texts = ()
    """Its lines that the change removes."""
    after: Texts = ()
    """Its lines that the change adds; none if it was deleted, or if only a file that it loads changed."""


class MissingLine(Contract):
    """A check without evidence."""

    check: Text
    reason: Text
    excused: Flag
    next_step: str = ""


class VerifyReport(Contract):
    """The answer of `fairwitness verify`."""

    schema_version: SchemaVersion = "1.0"
    run_id: RunId
    base: Side
    head: Side
    sandbox: SandboxTier
    warnings: tuple[Warned, ...]
    answer: GateAnswer
    checks: tuple[CheckLine, ...]
    findings: tuple[FindingLine, ...]
    expectations: Annotated[tuple[ExpectationLine, ...], Field(max_length=LISTED)] = ()
    missing: tuple[MissingLine, ...]
    notes: Texts
    changed: Count
    """How many files the change touches."""
    duration_ms: Count
    ledger_head: Text
    """The last anchor of the ledger after this run: a person who holds it can check the ledger against it."""
    anchored: Text
    """Where that anchor is kept."""
    next: str
