"""The results of a check: tests and diagnostics under ids that stay the same from tree to tree."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Text, Texts
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.verify.checks import CheckId

ITEMS = 200_000
"""The maximum number of items in one report."""


class ItemOutcome(StrEnum):
    """The outcome of one test or diagnostic."""

    PASSED = "passed"
    FAILED = "failed"
    """A failed test, or a diagnostic that a linter reports."""
    ERROR = "error"
    """A test that could not run, for example because its file does not load or a fixture fails."""
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    """Expected to fail, and did."""


RED = frozenset({ItemOutcome.FAILED, ItemOutcome.ERROR})


class ReportItem(Contract):
    """One test or one diagnostic.

    The id is stable: a test's file and name, or a diagnostic's file, code, message and its number among equal ones in
    that file. Line numbers change, so they are not part of the id.
    """

    id: Text
    outcome: ItemOutcome
    path: Maybe[Text] = None
    """Relative to the project's root."""
    line: Maybe[Positive] = None
    message: Annotated[str, Field(max_length=2000)] = ""


class Report(Contract):
    """The content of the report of one run of a check."""

    items: Annotated[tuple[ReportItem, ...], Field(max_length=ITEMS)]
    problems: Texts = ()
    """Why the report is not reliable: it is missing, truncated, duplicated, or its counts disagree."""


class Evidence(StrEnum):
    """The evidence that a check gives; `no evidence` counts as missing."""

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
    """Whether the reason is the machine (a missing tool, no network) and not the tree."""
    next_step: Maybe[Text] = None
    """What the user can do about it."""
    assessment: Assessment | None
    exit_code: Maybe[int] = None
    items: tuple[ReportItem, ...] = ()
    execution: Maybe[Positive] = None
    """The id of its row in the ledger."""
    stdout: Maybe[Text] = None
    """The end of its output with control characters escaped, at most 8,000 characters."""
    stderr: Maybe[Text] = None
    duration_ms: Count = 0
    cached: Flag = False
    beside: Maybe[str] = None
    """Additional output that the command was asked to write next to its report."""


class ItemChange(StrEnum):
    """How one test or diagnostic changed between the baseline and the change."""

    PASSING = "passing"
    FIXED = "fixed"
    BROKEN = "broken"
    STILL_BROKEN = "still broken"
    NEW_PASSING = "new"
    NEW_FAILING = "new and failing"
    VANISHED = "vanished"
    """It ran in the baseline and is missing now."""
    SILENCED = "silenced"
    """It ran in the baseline and is now skipped or expected to fail."""
    SKIPPED = "skipped"
    """Skipped before and after, or new and skipped."""
    FLAKY = "flaky"


BAD = frozenset({ItemChange.BROKEN, ItemChange.NEW_FAILING, ItemChange.VANISHED, ItemChange.SILENCED})
"""The changes that block: everything that got worse."""


class Moved(Contract):
    """One item and how it changed."""

    id: Text
    move: ItemChange
    message: Annotated[str, Field(max_length=2000)] = ""


class Comparison(Contract):
    """How the items of one check changed; `passing` and `skipped` ones are only counted."""

    counts: dict[ItemChange, Count]
    moved: tuple[Moved, ...]


class RedProof(Contract):
    """One new test and its outcome on the code of the base."""

    id: Text
    reason: Text


class RedBefore(Contract):
    """Which new tests fail without the change, and which prove nothing."""

    red: tuple[RedProof, ...]
    not_red: tuple[RedProof, ...]
