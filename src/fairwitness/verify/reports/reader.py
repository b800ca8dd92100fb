"""Read the report of a run: check size and encoding, parse the format, and check that report and exit code agree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256

from fairwitness.contracts.verify.checks import TEST_FORMATS, ReportFormat
from fairwitness.contracts.verify.results import ITEMS, RED, ItemOutcome, Report, ReportItem
from fairwitness.kit.redaction import redact_forms
from fairwitness.verify.reports.cargo import read_cargo
from fairwitness.verify.reports.diagnostics import (
    read_compiler,
    read_eslint,
    read_flake8,
    read_mypy,
    read_pyright,
    read_ruff,
    read_tsc,
)
from fairwitness.verify.reports.exits import CONVENTIONS, NO_TESTS, exit_problem
from fairwitness.verify.reports.gotest import read_go_test
from fairwitness.verify.reports.jest import read_jest
from fairwitness.verify.reports.junit import read_junit
from fairwitness.verify.reports.model import ParsedItem, ParsedReport, Relative, message, spelled
from fairwitness.verify.reports.tap import read_tap
from fairwitness.verify.reports.unittest import read_unittest

PROBLEMS = 20
_PROBLEM_LENGTH = 400
_MOST_LINES = 2**31


def final_items(reported: Sequence[ParsedItem], relative: Relative) -> tuple[ReportItem, ...]:
    """Return the items of a report; equal names are numbered in the order of the report."""
    taken: set[str] = set()
    turns: dict[str, int] = {}
    return tuple(_item(each, relative, taken, turns) for each in reported)


def _item(reported: ParsedItem, relative: Relative, taken: set[str], turns: dict[str, int]) -> ReportItem:
    name = spelled(_without_secrets(relative(reported.id))) or "(without a name)"
    path = spelled(redact_forms(relative.path(reported.path))) if reported.path else ""
    line = reported.line
    return ReportItem(
        id=_unique(name, taken, turns),
        outcome=reported.outcome,
        path=path or None,
        line=line if line is not None and 0 < line < _MOST_LINES else None,
        message=message(relative(reported.message)),
    )


def _without_secrets(name: str) -> str:
    """Return the name of an item without secrets; a hash keeps names apart that differ only in them."""
    redacted = redact_forms(name)
    if redacted == name:
        return name
    return f"{redacted}~{sha256(name.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def _unique(name: str, taken: set[str], turns: dict[str, int]) -> str:
    unique, turn = name, turns.get(name, 1)
    while unique in taken:
        turn += 1
        unique = f"{name}#{turn}"
    turns[name] = turn
    taken.add(unique)
    return unique


def sentences(problems: Iterable[str], relative: Relative) -> tuple[str, ...]:
    """Return problems that are safe to show, each once, in their order."""
    told = dict.fromkeys(message(relative(problem))[:_PROBLEM_LENGTH] for problem in problems)
    return tuple(problem for problem in told if problem)[:PROBLEMS]


BYTES = 64 << 20
"""The largest report that is read."""
_BOM = "\ufeff"
_NOT_STARTED = frozenset({126, 127})

Reader = Callable[[str, Relative], ParsedReport]
READERS: Mapping[ReportFormat, Reader] = {
    ReportFormat.JUNIT: read_junit,
    ReportFormat.GO_TEST: read_go_test,
    ReportFormat.TAP: read_tap,
    ReportFormat.CARGO: read_cargo,
    ReportFormat.UNITTEST: read_unittest,
    ReportFormat.JEST: read_jest,
    ReportFormat.RUFF: read_ruff,
    ReportFormat.FLAKE8: read_flake8,
    ReportFormat.MYPY: read_mypy,
    ReportFormat.PYRIGHT: read_pyright,
    ReportFormat.ESLINT: read_eslint,
    ReportFormat.TSC: read_tsc,
    ReportFormat.COMPILER: read_compiler,
}
"""Every format but `exit`, which has no report."""

SILENT_WHEN_CLEAN = frozenset({ReportFormat.FLAKE8, ReportFormat.TSC, ReportFormat.COMPILER})
"""Tools that print nothing at all when they find nothing."""


def read_report(
    format: ReportFormat, content: bytes | None, *, exit_code: int | None, root: str, tests: bool | None = None
) -> Report:
    """Return the items that a run reported, and every reason not to believe them.

    `root` is the project's folder as the tool saw it. `tests` says whether the things are tests, of which there must
    be at least one; None leaves that to the format.
    """
    if format is ReportFormat.EXIT:
        return _exit_only(exit_code)
    relative = Relative(root)
    text = _text(content, format)
    if isinstance(text, _UnreadableReport):
        return Report(items=(), problems=sentences([f"{text.why} ({_ended(exit_code)})"], relative))
    parsed = READERS[format](text, relative)
    _judge_warnings(parsed, exit_code)
    problems = list(parsed.problems)
    if len(parsed.items) > ITEMS:
        problems.append(f"the report holds more than the {ITEMS} things that are read")
        return Report(items=(), problems=sentences(problems, relative))
    items = final_items(parsed.items, relative)
    are_tests = format in TEST_FORMATS if tests is None else tests
    disagrees = exit_problem(parsed.tool, exit_code, red=sum(item.outcome in RED for item in items))
    none_ran = disagrees is not None and disagrees.endswith(NO_TESTS)
    if disagrees is not None and not none_ran:
        problems.append(disagrees)
    if none_ran or (are_tests and not parsed.items):
        # last, because only without other problems does it mean that the project has no tests
        problems.append(NO_TESTS)
    return Report(items=items, problems=sentences(problems, relative))


class _UnreadableReport:
    def __init__(self, why: str) -> None:
        self.why = why


def _text(content: bytes | None, format: ReportFormat) -> str | _UnreadableReport:
    if content is None:
        return _UnreadableReport("the report is missing")
    if len(content) > BYTES:
        return _UnreadableReport(f"the report has {len(content)} bytes, more than the {BYTES} that are read")
    try:
        text = content.decode("utf-8").removeprefix(_BOM).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return _UnreadableReport(f"the report is not UTF-8 from byte {error.start} on")
    if not text.strip() and format not in SILENT_WHEN_CLEAN:
        return _UnreadableReport("the report is empty")
    return text


def _ended(exit_code: int | None) -> str:
    return "the command did not end by itself" if exit_code is None else f"exit code {exit_code}"


def _judge_warnings(parsed: ParsedReport, exit_code: int | None) -> None:
    """Count warnings as failures if the tool failed, can fail on warnings, and reported nothing worse."""
    if not exit_code or not CONVENTIONS[parsed.tool].warnings_may_fail:
        return
    if not any(item.outcome in RED for item in parsed.items):
        for item in parsed.items:
            if item.tolerated:
                item.outcome = ItemOutcome.FAILED


def _exit_only(exit_code: int | None) -> Report:
    if exit_code is None:
        return Report(items=(), problems=("the command did not end by itself",))
    if exit_code in _NOT_STARTED:
        return Report(items=(), problems=(f"exit code {exit_code}: a program it needs could not be started",))
    outcome = ItemOutcome.FAILED if exit_code else ItemOutcome.PASSED
    return Report(
        items=(ReportItem(id="exit", outcome=outcome, message=f"exit code {exit_code}" if exit_code else ""),)
    )
