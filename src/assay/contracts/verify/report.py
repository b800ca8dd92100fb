"""What the gate of `assay verify` is asked, and the report a person or a machine reads."""

from typing import Annotated

from pydantic import Field

from assay.contracts.common.base import Contract, Count, Flag, Maybe, Positive, SchemaVersion, Text, Texts
from assay.contracts.common.evidence import SandboxTier, Tree
from assay.contracts.common.gates import GateAnswer
from assay.contracts.common.ids import RunId
from assay.contracts.common.sandbox import Warned
from assay.contracts.verify.checks import CheckId
from assay.contracts.verify.results import Evidence, Move, Moved

CHANGE = "change"
"""The task id under which the rows of a verified change stand."""
LISTED = 50
"""How many things of one check a report lists; the counts are always whole."""


class Wanted(Contract):
    """A check by its name in the ledger and, where there are several of that name, which."""

    name: Text
    instance: CheckId | None


class Silent(Contract):
    """A check that gave no evidence, and whether that may be overlooked."""

    name: Text
    instance: CheckId | None
    reason: Text
    excused: Flag


class Asked(Contract):
    """What the evidence of one change must answer."""

    tree: Tree
    required: tuple[Wanted, ...]
    silent: tuple[Silent, ...]


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
    counts: dict[Move, Count] = Field(default_factory=dict)
    moved: Annotated[tuple[Moved, ...], Field(max_length=LISTED)] = ()
    duration_ms: Count = 0
    cached: Flag = False
    execution: Maybe[Positive] = None
    """The row of the ledger that holds the whole output: `assay evidence show ID`."""
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
    """The answer of `assay verify`."""

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
