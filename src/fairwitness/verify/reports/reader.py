"""Reads one report of one run: size and encoding first, then the format's own reader, then whether all of it agrees."""

from collections.abc import Callable, Mapping

from fairwitness.contracts.verify.checks import TEST_FORMATS, ReportFormat
from fairwitness.contracts.verify.results import ITEMS, RED, Item, Outcome, Report
from fairwitness.verify.reports.cargo import read_cargo
from fairwitness.verify.reports.exits import CONVENTIONS, NO_TESTS, exit_problem
from fairwitness.verify.reports.found import Parsed, Relative
from fairwitness.verify.reports.gotest import read_go_test
from fairwitness.verify.reports.jest import read_jest
from fairwitness.verify.reports.json_diagnostics import read_eslint, read_pyright, read_ruff
from fairwitness.verify.reports.junit import read_junit
from fairwitness.verify.reports.settle import sentences, settled
from fairwitness.verify.reports.tap import read_tap
from fairwitness.verify.reports.text_diagnostics import read_compiler, read_flake8, read_mypy, read_tsc
from fairwitness.verify.reports.unittest import read_unittest

BYTES = 64 << 20
"""The largest report that is read."""
_BOM = "\ufeff"
_NOT_STARTED = frozenset({126, 127})

Reader = Callable[[str, Relative], Parsed]
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
    """What a run reported: its items, and every reason not to believe them.

    `root` is the project's folder as the tool saw it. `tests` says whether the things are tests, of which there must
    be at least one; None leaves that to the format.
    """
    if format is ReportFormat.EXIT:
        return _exit_only(exit_code)
    relative = Relative(root)
    text = _text(content, format)
    if isinstance(text, _Unreadable):
        return Report(items=(), problems=sentences([f"{text.why} ({_ended(exit_code)})"], relative))
    parsed = READERS[format](text, relative)
    _judge_warnings(parsed, exit_code)
    problems = list(parsed.problems)
    if len(parsed.found) > ITEMS:
        problems.append(f"the report holds more than the {ITEMS} things that are read")
        return Report(items=(), problems=sentences(problems, relative))
    items = settled(parsed.found, relative)
    are_tests = format in TEST_FORMATS if tests is None else tests
    disagrees = exit_problem(parsed.tool, exit_code, red=sum(item.outcome in RED for item in items))
    none_ran = disagrees is not None and disagrees.endswith(NO_TESTS)
    if disagrees is not None and not none_ran:
        problems.append(disagrees)
    if none_ran or (are_tests and not parsed.found):
        # last: only a report with no other problem is one of a project that simply has no tests
        problems.append(NO_TESTS)
    return Report(items=items, problems=sentences(problems, relative))


class _Unreadable:
    def __init__(self, why: str) -> None:
        self.why = why


def _text(content: bytes | None, format: ReportFormat) -> str | _Unreadable:
    if content is None:
        return _Unreadable("the report is missing")
    if len(content) > BYTES:
        return _Unreadable(f"the report has {len(content)} bytes, more than the {BYTES} that are read")
    try:
        text = content.decode("utf-8").removeprefix(_BOM).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return _Unreadable(f"the report is not UTF-8 from byte {error.start} on")
    if not text.strip() and format not in SILENT_WHEN_CLEAN:
        return _Unreadable("the report is empty")
    return text


def _ended(exit_code: int | None) -> str:
    return "the command did not end by itself" if exit_code is None else f"exit code {exit_code}"


def _judge_warnings(parsed: Parsed, exit_code: int | None) -> None:
    """Warnings are what failed if the tool failed, can be told to fail on them, and found nothing worse."""
    if not exit_code or not CONVENTIONS[parsed.tool].warnings_may_fail:
        return
    if not any(found.outcome in RED for found in parsed.found):
        for found in parsed.found:
            if found.tolerated:
                found.outcome = Outcome.FAILED


def _exit_only(exit_code: int | None) -> Report:
    if exit_code is None:
        return Report(items=(), problems=("the command did not end by itself",))
    if exit_code in _NOT_STARTED:
        return Report(items=(), problems=(f"exit code {exit_code}: a program it needs could not be started",))
    outcome = Outcome.FAILED if exit_code else Outcome.PASSED
    return Report(items=(Item(id="exit", outcome=outcome, message=f"exit code {exit_code}" if exit_code else ""),))
