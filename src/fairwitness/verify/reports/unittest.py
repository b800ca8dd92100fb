"""The verbose text of Python's unittest, as all versions since 3.6 write it to standard error.

A test may print into the middle of it, so a test's outcome is what stands last before the next test begins, and the
list of failures below has the last word; the totals at the end must fit both.
"""

import re
from collections import Counter
from itertools import islice, zip_longest

from fairwitness.contracts.verify.results import ITEMS, RED, ItemOutcome
from fairwitness.verify.reports.exits import ReportingTool
from fairwitness.verify.reports.model import ParsedItem, ParsedReport, Relative, lines, listed, without_colours

_NAME = r"(?P<name>[^\s()]+) \((?P<where>[^\s()]+)\)"
_START = re.compile(rf"(?:^|(?<= \.\.\. )){_NAME}(?= \.\.\. |$)", re.MULTILINE)
_RULE = "=" * 70
_DETAIL = re.compile(rf"^{_RULE}\n(?P<kind>ERROR|FAIL|UNEXPECTED SUCCESS): {_NAME}(?P<sub>.*)$", re.MULTILINE)
_END = re.compile(
    r"^-{70}\nRan (?P<ran>\d{1,9}) tests? in [\d.]+s\n\n(?P<word>OK|FAILED|NO TESTS RAN)(?: \((?P<counts>[^)\n]*)\))?$",
    re.MULTILINE,
)
_COUNT = re.compile(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d{1,9})")
_FIXTURES = frozenset({"setUpClass", "tearDownClass", "setUpModule", "tearDownModule"})
_NOT_LOADED = "unittest.loader._FailedTest"
_WORDS = {
    "ok": ItemOutcome.PASSED,
    "FAIL": ItemOutcome.FAILED,
    "ERROR": ItemOutcome.ERROR,
    "expected failure": ItemOutcome.XFAILED,
    "unexpected success": ItemOutcome.FAILED,
}


def _id(name: str, where: str) -> str:
    """Return the dotted name that unittest itself accepts; newer versions write the method twice."""
    if where == _NOT_LOADED or where.startswith(_NOT_LOADED + "."):
        return name  # a module that cannot be imported
    if name in _FIXTURES:
        return where
    return where if where.endswith("." + name) else f"{where}.{name}"


def read_unittest(text: str, relative: Relative) -> ParsedReport:
    """Return every test that began, and every class or module whose fixture failed."""
    text = without_colours(text)
    ends = list(_END.finditer(text))
    if not ends:
        return ParsedReport(
            ReportingTool.UNITTEST, problems=["the report is truncated: there is no `Ran … tests` at its end"]
        )
    end = ends[-1]
    first = re.search(rf"^{_RULE}$", text[: end.start()], re.MULTILINE)
    began = text[: first.start() if first else end.start()]
    details = [] if first is None else list(_DETAIL.finditer(text[: end.start()], first.start()))
    parsed = ParsedReport(ReportingTool.UNITTEST)
    skipped = _tests(began, parsed)
    _failures(text[: end.start()], details, parsed)
    silent = [item.id for item in parsed.items if item.message == _SILENT]
    if silent:
        parsed.problems.append(f"tests began and did not end: {listed(silent)}")
    _totals(parsed, end, details, skipped)
    return parsed


_SILENT = "it began and did not end"


def _tests(began: str, parsed: ParsedReport) -> int:
    """Add the tests that began; return how many skips there were."""
    starts = list(islice(_START.finditer(began), ITEMS + 1))
    skipped = 0
    for start, following in zip_longest(starts, starts[1:]):
        body = began[start.end() : following.start() if following else len(began)]
        skipped += _skips(body)
        if start["name"] in _FIXTURES:
            continue  # all versions repeat it below
        item = ParsedItem(_id(start["name"], start["where"]), ItemOutcome.ERROR, message=_SILENT)
        ending = _ending(body.rstrip().rpartition("\n")[2])
        if ending is not None:
            item.outcome, item.message = ending
        parsed.items.append(item)
    return skipped


def _skips(body: str) -> int:
    endings = (_ending(line.rstrip()) for line in lines(body))
    return sum(1 for ending in endings if ending is not None and ending[0] is ItemOutcome.SKIPPED)


def _ending(line: str) -> tuple[ItemOutcome, str] | None:
    """Return the outcome a line ends with, and why it was skipped."""
    for word, outcome in _WORDS.items():
        if line.endswith(word):
            return outcome, ""
    at = line.find("skipped ")
    reason = line[at + len("skipped ") :]
    if at >= 0 and len(reason) > 1 and reason[0] == reason[-1] and reason[0] in "'\"":
        return ItemOutcome.SKIPPED, reason[1:-1]
    return None


def _failures(text: str, details: list[re.Match[str]], parsed: ParsedReport) -> None:
    known = {item.id: item for item in parsed.items}
    for detail, following in zip_longest(details, details[1:]):
        id_ = _id(detail["name"], detail["where"])
        outcome = ItemOutcome.ERROR if detail["kind"] == "ERROR" else ItemOutcome.FAILED
        traceback = text[detail.end() : following.start() if following else len(text)].strip().splitlines()
        said = f"{detail['sub'].strip()} {_error_of(traceback) or detail['kind'].lower()}"
        if id_ not in known:
            if detail["name"] not in _FIXTURES:
                parsed.problems.append(f"{id_} failed, but never began")
            known[id_] = ParsedItem(id_, outcome)
            parsed.items.append(known[id_])
            known[id_].message = said
        elif known[id_].message in ("", _SILENT) or known[id_].outcome not in RED:
            known[id_].message = said
        known[id_].outcome = outcome
    listed_ids = {_id(detail["name"], detail["where"]) for detail in details}
    for item in parsed.items:
        if item.outcome in RED and item.id not in listed_ids and item.message != _SILENT:
            # older versions list an unexpected success nowhere
            item.message = item.message or "unexpected success"


def _error_of(traceback: list[str]) -> str:
    """Return the exception that ended a test, with all lines of its message.

    >>> _error_of(["Traceback (most recent call last):", '  File "t.py", line 3', "AssertionError: 1 != 2", "- 1"])
    'AssertionError: 1 != 2\\n- 1'
    """
    last = max((at for at, line in enumerate(traceback) if line.startswith("Traceback ")), default=-1)
    after = traceback[last + 1 :]
    frames = next((at for at, line in enumerate(after) if not line.startswith(" ")), 0)
    return "\n".join(after[frames:])


def _totals(parsed: ParsedReport, end: re.Match[str], details: list[re.Match[str]], skipped: int) -> None:
    said = Counter({name: int(count) for name, count in _COUNT.findall(end["counts"] or "")})
    kinds = Counter(detail["kind"] for detail in details)
    tests = sum(1 for items in parsed.items if items.id not in _fixture_ids(details))
    ran = int(end["ran"])
    # some versions do not count a test that was skipped before it began
    if not tests - skipped <= ran <= tests:
        parsed.problems.append(f"the report says that {ran} tests ran, but {tests} began")
    for name, counted in (("failures", kinds["FAIL"]), ("errors", kinds["ERROR"]), ("skipped", skipped)):
        if said[name] != counted:
            parsed.problems.append(f"the report says {name}={said[name]}, but lists {counted}")
    red = sum(item.outcome in RED for item in parsed.items)
    if (end["word"] == "FAILED") != (red > 0):
        parsed.problems.append(f"the report ends with {end['word']}, but {red} failed")


def _fixture_ids(details: list[re.Match[str]]) -> set[str]:
    return {detail["where"] for detail in details if detail["name"] in _FIXTURES}
