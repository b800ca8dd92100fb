"""The JSON of `jest --json`: tests by file and full title, files that could not be run."""

from collections import Counter
from typing import Annotated

from pydantic import Field, TypeAdapter

from fairwitness.contracts.verify.results import ItemOutcome
from fairwitness.verify.reports.exits import ReportingTool
from fairwitness.verify.reports.model import (
    InvalidJsonReport,
    JsonReportPart,
    ParsedItem,
    ParsedReport,
    Relative,
    first_line,
    read_json,
)

_STATUS = {
    "passed": ItemOutcome.PASSED,
    "failed": ItemOutcome.FAILED,
    "pending": ItemOutcome.SKIPPED,
    "skipped": ItemOutcome.SKIPPED,
    "disabled": ItemOutcome.SKIPPED,
    "todo": ItemOutcome.SKIPPED,
}
_Count = Annotated[int, Field(ge=0)]


class _Test(JsonReportPart):
    ancestorTitles: tuple[str, ...] = Field(strict=False)  # noqa: N815 - as jest spells it
    title: str
    status: str
    failing: bool | None = None
    failureMessages: tuple[str, ...] | None = Field(default=None, strict=False)  # noqa: N815 - as jest spells it


class _File(JsonReportPart):
    name: str
    status: str
    message: str = ""
    assertionResults: tuple[_Test, ...] = Field(strict=False)  # noqa: N815 - as jest spells it


class _Whole(JsonReportPart):
    success: bool
    numTotalTests: _Count  # noqa: N815 - as jest spells it
    numPassedTests: _Count  # noqa: N815 - as jest spells it
    numFailedTests: _Count  # noqa: N815 - as jest spells it
    wasInterrupted: bool = False  # noqa: N815 - as jest spells it
    testResults: tuple[_File, ...] = Field(strict=False)  # noqa: N815 - as jest spells it


_SHAPE = TypeAdapter(_Whole)


def read_jest(text: str, relative: Relative) -> ParsedReport:
    """Return every test of every file; a file that could not be run stands for all of its tests."""
    parsed = ParsedReport(ReportingTool.JEST)
    try:
        whole = read_json(text, _SHAPE)
    except InvalidJsonReport as error:
        parsed.problems.append(f"the report is not what jest writes: {error}")
        return parsed
    statuses: Counter[str] = Counter()
    for file in whole.testResults:
        path = relative.path(file.name)
        statuses.update(test.status for test in file.assertionResults)
        parsed.items += [_reported_item(path, test) for test in file.assertionResults]
        parsed.problems += [
            f"a test of {path} has the unknown status {test.status!r}"
            for test in file.assertionResults
            if test.status not in _STATUS
        ]
        if file.status == "failed" and not any(test.status == "failed" for test in file.assertionResults):
            parsed.items.append(ParsedItem(path, ItemOutcome.ERROR, path, message=file.message))
    for name, said, counted in (
        ("tests", whole.numTotalTests, statuses.total()),
        ("passed", whole.numPassedTests, statuses["passed"]),
        ("failed", whole.numFailedTests, statuses["failed"]),
    ):
        if said != counted:
            parsed.problems.append(f"the report counts {said} {name}, but contains {counted}")
    if whole.wasInterrupted:
        parsed.problems.append("jest was interrupted")
    red = sum(item.outcome in (ItemOutcome.FAILED, ItemOutcome.ERROR) for item in parsed.items)
    if not whole.testResults:
        parsed.tool = ReportingTool.IDLE
    elif whole.success != (red == 0):
        parsed.problems.append(f"the report says success={str(whole.success).lower()}, but {red} failed")
    return parsed


def _reported_item(path: str, test: _Test) -> ParsedItem:
    outcome = _STATUS.get(test.status, ItemOutcome.ERROR)
    if outcome is ItemOutcome.PASSED and test.failing:
        outcome = ItemOutcome.XFAILED  # `test.failing`: it passes because it fails
    said = first_line(test.failureMessages[0]) if test.failureMessages else ""
    return ParsedItem(f"{path}::{' > '.join((*test.ancestorTitles, test.title))}", outcome, path, message=said)
