"""What a check found, thing by thing: tests and diagnostics under ids that stay the same from tree to tree."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Text, Texts
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.verify.checks import CheckId

ITEMS = 200_000
"""How many things one report may hold."""


class ItemOutcome(StrEnum):
    """What one test or diagnostic says."""

    PASSED = "passed"
    FAILED = "failed"
    """A test that failed; for a linter, a diagnostic that is there."""
    ERROR = "error"
    """A test that could not be run: its file does not load, its fixture breaks."""
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    """Expected to fail, and did."""


RED = frozenset({ItemOutcome.FAILED, ItemOutcome.ERROR})


class ReportItem(Contract):
    """One test or one diagnostic.

    The id is stable: a test's file and name, or a diagnostic's file, code, message and how many equal ones came
    before it in that file. Lines move, so they stand beside it.
    """

    id: Text
    outcome: ItemOutcome
    path: Maybe[Text] = None
    """Relative to the project's root."""
    line: Maybe[Positive] = None
    message: Annotated[str, Field(max_length=2000)] = ""


class Report(Contract):
    """What one run of a check reported, read from its report and nowhere else."""

    items: Annotated[tuple[ReportItem, ...], Field(max_length=ITEMS)]
    problems: Texts = ()
    """Why the report cannot be believed: it is missing, torn, doubled, or its own counts disagree."""


class Evidence(StrEnum):
    """The three outcomes of a check; the third counts as missing."""

    PASSED = "passed"
    FAILED = "failed"
    NONE = "no evidence"


class Ran(Contract):
    """One run of a check at one tree."""

    check: CheckId
    evidence: Evidence
    reason: Maybe[Text] = None
    """Why there is no evidence, in one clause."""
    environmental: Flag = False
    """Whether that reason lies in the machine (a missing tool, no network) and not in the tree."""
    next_step: Maybe[Text] = None
    """What a person may do about it."""
    assessment: Assessment | None
    exit_code: Maybe[int] = None
    items: tuple[ReportItem, ...] = ()
    execution: Maybe[Positive] = None
    """The row of the ledger."""
    stdout: Maybe[Text] = None
    """The tail of what it printed, made visible, at most 8,000 characters."""
    stderr: Maybe[Text] = None
    duration_ms: Count = 0
    cached: Flag = False
    beside: Maybe[str] = None
    """What the command wrote beside its report, where it was asked to."""


class ItemChange(StrEnum):
    """What became of one thing between the baseline and the change."""

    PASSING = "passing"
    FIXED = "fixed"
    BROKEN = "broken"
    STILL_BROKEN = "still broken"
    NEW_PASSING = "new"
    NEW_FAILING = "new and failing"
    VANISHED = "vanished"
    """It ran before, and is not there any more."""
    SILENCED = "silenced"
    """It ran before, and is skipped or expected to fail now."""
    SKIPPED = "skipped"
    """Skipped before and after, or new and skipped."""
    FLAKY = "flaky"


BAD = frozenset({ItemChange.BROKEN, ItemChange.NEW_FAILING, ItemChange.VANISHED, ItemChange.SILENCED})
"""What blocks: everything that got worse."""


class Moved(Contract):
    """One thing and what became of it."""

    id: Text
    move: ItemChange
    message: Annotated[str, Field(max_length=2000)] = ""


class Comparison(Contract):
    """What became of every thing of one check; `passing` and `skipped` ones are only counted."""

    counts: dict[ItemChange, Count]
    moved: tuple[Moved, ...]


class RedProof(Contract):
    """One new test and what it said on the code of the base."""

    id: Text
    reason: Text


class RedBefore(Contract):
    """Which new tests are red without the change, and which prove nothing."""

    red: tuple[RedProof, ...]
    not_red: tuple[RedProof, ...]
