"""What the gate of `fairwitness verify` is asked, and the report a person or a machine reads."""

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
"""The task id under which the rows of a verified change stand."""
LISTED = 50
"""How many things of one check a report lists; the counts are always whole."""


class VerifySubject(Contract):
    """What is verified within a run: one round of a task or of a merge, or the one change of `fairwitness verify`."""

    task_id: SafeName = CHANGE
    round: Annotated[Integer, Field(ge=1, le=ROUNDS)] = 1

    @property
    def name(self) -> str:
        """Both in one text.

        >>> VerifySubject(task_id="task-03", round=2).name
        'task-03:2'
        """
        return f"{self.task_id}:{self.round}"

    @property
    def is_the_change(self) -> bool:
        """True for what `fairwitness verify` proves; its keys are older than subjects, and stay as they were."""
        return self == VerifySubject()

    @property
    def baseline_round(self) -> int:
        """Where its baseline stands, so that no round takes another's base for its own."""
        return self.round - 1

    def key(self, what: str) -> str:
        """Under which key something about it stands in the ledger.

        >>> VerifySubject().key("asked"), VerifySubject(task_id="task-03", round=2).key("asked")
        ('asked', 'asked:task-03:2')
        """
        return what if self.is_the_change else f"{what}:{self.name}"


class RequiredCheck(Contract):
    """A check by its name in the ledger and, where there are several of that name, which."""

    name: Text
    instance: CheckId | None


class CheckWithoutEvidence(Contract):
    """A check that gave no evidence, and whether that may be overlooked."""

    name: Text
    instance: CheckId | None
    reason: Text
    excused: Flag


class ChangeRequirements(Contract):
    """What the evidence of one change must answer."""

    tree: Tree
    required: tuple[RequiredCheck, ...]
    silent: tuple[CheckWithoutEvidence, ...]


class Side(Contract):
    """One side of a comparison."""

    ref: Text
    """As the person said it, or `the index`, `the working tree`."""
    commit: Text | None
    tree: Tree


class CheckLine(Contract):
    """One check, before and after."""

    id: CheckId
    name: Text
    tool: Text
    tier: Annotated[int, Field(ge=1, le=4)]
    required: Flag
    baseline: Evidence
    after: Evidence
    reason: Maybe[Text] = None
    """Why there is no evidence, or what got worse."""
    excused: Flag = False
    counts: dict[ItemChange, Count] = Field(default_factory=dict)
    moved: Annotated[tuple[Moved, ...], Field(max_length=LISTED)] = ()
    duration_ms: Count = 0
    cached: Flag = False
    execution: Maybe[Positive] = None
    """The row of the ledger that holds the whole output: `fairwitness evidence show ID`."""
    output: Texts = ()
    """The last ten lines of a failing check."""
    output_from: Maybe[Text] = None
    """Which run printed them, if it is not the check itself."""


class FindingLine(Contract):
    """Something the change does that a person should know, and whether it blocks."""

    check: Text
    """The ledger check it counts under."""
    rule: Text
    path: Text
    line: Maybe[Positive] = None
    text: Text
    blocks: Flag
    subject: Maybe[Text] = None
    """What `--accept` may name."""
    accepted: Maybe[Text] = None
    """The reason a person gave."""


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
    missing: tuple[MissingLine, ...]
    notes: Texts
    changed: Count
    """How many files the change touches."""
    duration_ms: Count
    next: str
