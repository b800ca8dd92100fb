"""JUnit XML of pytest, node, ctest, vitest, surefire and their kin: one item per case, totals checked.

There is no one JUnit: each writer puts the name of a test together in its own way and counts in its own way. What they
share is the tree of suites and cases; the rest is told apart by `Flavour`.
"""

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from xml.parsers import expat

from fairwitness.contracts.verify.results import ITEMS, RED, ItemOutcome
from fairwitness.verify.reports.exits import ReportingTool
from fairwitness.verify.reports.model import ParsedItem, ParsedReport, Relative, first_line, whole_number

_PARTS = 100
"""Maximum depth of nested classes; a deeper name is not split."""


def _modules(file: str) -> tuple[str, ...]:
    """Return how pytest may spell a file: without its ending if that is `.py`, else whole."""
    dotted = file.replace("/", ".")
    return (dotted.removesuffix(".py"),) if dotted.endswith(".py") else (dotted,)


class PytestIds:
    """Builds the node ids of one report.

    A case names its class with dots and, in the older of its two formats, the file that the function was written in.
    That is the test's own file, unless the test was inherited or decorated elsewhere; then the other cases' files, or
    the case of the letters, tell where the module ends and the class begins.
    """

    def __init__(self, cases: Iterable[tuple[str, str]]) -> None:
        self._files: dict[str, str] = {}
        for classname, file in cases:
            for module in _modules(file) if file else ():
                if not classname or classname == module or classname.startswith(module + "."):
                    self._files[module] = file

    def node_id(self, classname: str, name: str, file: str) -> str:
        """Return the id that pytest itself would accept for a case."""
        if not file:  # the newer format omits files
            return f"{classname}::{name}" if classname else name
        if not classname:  # the file itself: it could not be collected, or was skipped as a whole
            return file if name in _modules(file) else name
        path, classes = self._split(classname)
        return "::".join((path, *classes, name))

    def _split(self, classname: str) -> tuple[str, list[str]]:
        parts = classname.split(".")
        if len(parts) > _PARTS:
            return classname, []
        for length in range(len(parts), 0, -1):
            known = self._files.get(".".join(parts[:length]))
            if known is not None:
                return known, parts[length:]
        # no case of the report names that file: classes begin with a capital letter
        length = next((index for index, part in enumerate(parts) if index and part[:1].isupper()), len(parts))
        return "/".join(parts[:length]) + ".py", parts[length:]


DEPTH = 64
TEXT = 20_000
"""Characters that are kept of one failure's text."""
_MARKS = frozenset({"failure", "error", "skipped"})
# some tools write raw terminal codes, for which expat rejects the whole report
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class BadXml(Exception):
    """A text is not a JUnit report, and why."""


@dataclass(slots=True)
class JUnitMark:
    """A `failure`, `error` or `skipped` of a case."""

    tag: str
    attributes: dict[str, str]
    text: str = ""

    @property
    def message(self) -> str:
        return self.attributes.get("message", "")

    @property
    def type(self) -> str:
        return self.attributes.get("type", "")


@dataclass(slots=True)
class JUnitCase:
    """One `testcase`, with the names of the suites around it."""

    attributes: dict[str, str]
    around: tuple[str, ...]
    marks: list[JUnitMark] = field(default_factory=list)

    def get(self, name: str) -> str:
        return self.attributes.get(name, "")

    def count(self, tag: str) -> int:
        """Return how many marks of a kind it has."""
        return sum(mark.tag == tag for mark in self.marks)


@dataclass(slots=True)
class JUnitSuite:
    """One `testsuite`, or the `testsuites` around all."""

    tag: str
    attributes: dict[str, str]
    cases: list[JUnitCase] = field(default_factory=list)
    suites: list["JUnitSuite"] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")

    def all_suites(self) -> Iterator["JUnitSuite"]:
        """Itself and every suite inside, outer ones first."""
        yield self
        for suite in self.suites:
            yield from suite.all_suites()

    def all_cases(self) -> list[JUnitCase]:
        """Return every case inside."""
        return [case for suite in self.all_suites() for case in suite.cases]


@dataclass(slots=True)
class JUnitDocument:
    """A whole report; `cases` in the order of the text."""

    root: JUnitSuite
    cases: list[JUnitCase]
    comments: list[str]


class _Builder:
    def __init__(self) -> None:
        self.root: JUnitSuite | None = None
        self.cases: list[JUnitCase] = []
        self.comments: list[str] = []
        self._tags: list[str] = []
        self._suites: list[JUnitSuite] = []
        self._mark: JUnitMark | None = None
        self._mark_depth = 0
        self._texts: list[str] = []
        self._length = 0
        self._number = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._tags) >= DEPTH:
            raise BadXml(f"elements are nested deeper than {DEPTH} levels")
        above = self._tags[-1] if self._tags else None
        self._tags.append(tag)
        if above is None and tag not in ("testsuites", "testsuite"):
            raise BadXml(f"not a JUnit report: it begins with <{tag[:40]}>")
        if tag in ("testsuites", "testsuite"):
            self._suite(tag, attributes, above)
        elif tag == "testcase":
            if above not in ("testsuites", "testsuite"):
                raise BadXml("a testcase that stands in no suite")
            case = JUnitCase(attributes, tuple(suite.name for suite in self._suites if suite.tag == "testsuite"))
            if len(self.cases) >= ITEMS:
                raise BadXml(f"it holds more than the {ITEMS} cases that are read")
            self._suites[-1].cases.append(case)
            self.cases.append(case)
        elif tag in _MARKS and above == "testcase":
            self._mark, self._mark_depth = JUnitMark(tag, attributes), len(self._tags)
            self._texts, self._length = [], 0
            self.cases[-1].marks.append(self._mark)

    def _suite(self, tag: str, attributes: dict[str, str], above: str | None) -> None:
        if above not in (None, "testsuites", "testsuite"):
            raise BadXml(f"a suite inside <{above[:40] if above else ''}>")
        self._number += 1
        if self._number > ITEMS:
            raise BadXml(f"it holds more than the {ITEMS} suites that are read")
        suite = JUnitSuite(tag, attributes)
        if self._suites:
            self._suites[-1].suites.append(suite)
        else:
            self.root = suite
        self._suites.append(suite)

    def end(self, tag: str) -> None:
        if self._mark is not None and len(self._tags) == self._mark_depth:
            self._mark.text = "".join(self._texts)
            self._mark = None
        self._tags.pop()
        if tag in ("testsuites", "testsuite"):
            self._suites.pop()

    def characters(self, text: str) -> None:
        if self._mark is not None and self._length < TEXT:
            self._texts.append(text[: TEXT - self._length])
            self._length += len(text)

    def comment(self, text: str) -> None:
        self.comments.append(text[:200])


def _refuse_doctype(*_: object) -> None:
    raise BadXml("a DOCTYPE is refused")


def read_xml(text: str) -> JUnitDocument:
    """Return the suites and cases of a report; `BadXml` with the reason otherwise."""
    builder = _Builder()
    # the text is already decoded, whatever encoding its first line names
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.CommentHandler = builder.comment
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.EntityDeclHandler = _refuse_doctype
    try:
        parser.Parse(_NOT_XML.sub("", text).encode(), True)
    except expat.ExpatError as error:
        raise BadXml(f"torn or not XML: {expat.ErrorString(error.code)} in line {error.lineno}") from None
    if builder.root is None:
        raise BadXml("not a JUnit report: it holds no suite")
    return JUnitDocument(builder.root, builder.cases, builder.comments)


_VAGUE = frozenset({"", "collection failure", "collection skipped", "test failed"})
_TEARDOWN = "failed on teardown"
_UNEXPECTED = "xfail-marked test passes unexpectedly"
_NODE_TOTAL = re.compile(r" ?(tests|suites|fail|cancelled) (\d{1,9}) ?")
_COUNTED = {"tests": None, "failures": "failure", "errors": "error", "skipped": "skipped"}
_ANY_COUNT = 10**12
_CTEST = frozenset({"run", "fail", "notrun", "disabled"})


class Flavour(StrEnum):
    """The tool that wrote a JUnit report."""

    PYTEST = "pytest"
    NODE = "node"
    CTEST = "ctest"
    VITEST = "vitest"
    MOCHA = "mocha"
    OTHER = "other"


_TOOLS = {Flavour.PYTEST: ReportingTool.PYTEST, Flavour.MOCHA: ReportingTool.MOCHA}


def read_junit(text: str, relative: Relative) -> ParsedReport:
    """Return the cases of a JUnit report."""
    try:
        document = read_xml(text)
    except BadXml as error:
        return ParsedReport(ReportingTool.RUNNER, problems=[f"the report cannot be read: {error}"])
    flavour = _flavour(document)
    parsed = ParsedReport(_TOOLS.get(flavour, ReportingTool.RUNNER))
    if flavour is Flavour.PYTEST:
        doubled = _pytest(document, parsed, relative)
        parsed.problems += _pytest_totals(document, doubled)
    else:
        for case in document.cases:
            parsed.items.append(_reported_item(case, flavour, relative))
            if not case.get("name").strip():
                parsed.problems.append("a test has no name")
        parsed.problems += _mocha_totals(document) if flavour is Flavour.MOCHA else _totals(document.root)
        if not document.cases:
            parsed.tool = ReportingTool.IDLE
        if flavour is Flavour.NODE:
            parsed.problems += _node_totals(document, parsed.items)
    return parsed


def _flavour(document: JUnitDocument) -> Flavour:
    if document.root.name == "pytest tests" or any(suite.name == "pytest" for suite in document.root.all_suites()):
        return Flavour.PYTEST
    if any(case.get("file").endswith(".py") and case.get("line") for case in document.cases):
        return Flavour.PYTEST  # its suite can be renamed by configuration
    if {"tests", "suites"} <= _node_comments(document).keys():
        return Flavour.NODE
    if document.root.name == "vitest tests":
        return Flavour.VITEST
    if document.root.name == "Mocha Tests":
        return Flavour.MOCHA
    if document.root.tag == "testsuite" and any(case.get("status") in _CTEST for case in document.cases):
        return Flavour.CTEST
    return Flavour.OTHER


def _pytest(document: JUnitDocument, parsed: ParsedReport, relative: Relative) -> int:
    """Add pytest's cases; return how many only repeat a failed case because its teardown also failed."""
    ids = PytestIds((case.get("classname"), relative.path(case.get("file"))) for case in document.cases)
    seen: dict[str, ParsedItem] = {}
    doubled = 0
    for case in document.cases:
        file, line = relative.path(case.get("file")), whole_number(case.get("line"))
        name = ids.node_id(case.get("classname"), case.get("name"), file)
        earlier = seen.get(name)
        if earlier is not None and earlier.outcome in RED and _only_teardown(case):
            doubled += 1
            continue
        path = name.split("::", 1)[0] if file else None
        item = ParsedItem(name, _outcome(case), path, message=_message(case))
        if line is not None and path == file:
            item.line = line + 1
        seen[name] = item
        parsed.items.append(item)
        if not name:
            parsed.problems.append("a test has no name")
    return doubled


def _only_teardown(case: JUnitCase) -> bool:
    return len(case.marks) == 1 and case.marks[0].tag == "error" and case.marks[0].message.startswith(_TEARDOWN)


def _pytest_totals(document: JUnitDocument, doubled: int) -> list[str]:
    problems = []
    for suite in document.root.all_suites():
        cases = suite.all_cases()
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            counted = sum(case.count(tag) for case in cases)
            problems += _compared(suite, attribute, {counted}, counted)
        # a passing subtest is counted but has no case; every case is counted, except a doubled one
        problems += _compared(suite, "tests", range(len(cases) - doubled, _ANY_COUNT), len(cases))
    return problems


def _compared(suite: JUnitSuite, attribute: str, fitting: Container[int], counted: int) -> list[str]:
    text = suite.attributes.get(attribute)
    if text is None:
        return []
    said = whole_number(text.strip())
    if said is not None and said in fitting:
        return []
    return [f"the report says {attribute}={text!r} for the suite {suite.name!r}, but contains {counted}"]


def _reported_item(case: JUnitCase, flavour: Flavour, relative: Relative) -> ParsedItem:
    name, file = case.get("name"), relative.path(case.get("file"))
    place = relative.path(case.get("classname"))
    outcome = _outcome(case)
    match flavour:
        case Flavour.NODE:
            place, name = file, " > ".join((*case.around, name))
            if not file and _is_below(case.get("name"), relative):
                file = place = name = relative.path(case.get("name"))
        case Flavour.VITEST:
            file = file or place
        case _:
            place = "::".join(filter(None, (file if file != place else "", place)))
    if flavour is not Flavour.CTEST and name == place == file and outcome in RED:
        outcome = ItemOutcome.ERROR  # the file represents all its tests: it could not be loaded
    id_ = name if not place or name == place else f"{place}::{name}"
    return ParsedItem(id_, outcome, file or None, whole_number(case.get("line")), _message(case))


def _is_below(path: str, relative: Relative) -> bool:
    return path.startswith("/") and relative(path) != path


def _outcome(case: JUnitCase) -> ItemOutcome:
    failed, error = case.count("failure") > 0, case.count("error") > 0
    skips = [mark for mark in case.marks if mark.tag == "skipped"]
    status = case.get("status").lower()
    if any(mark.message == _UNEXPECTED for mark in skips):
        return ItemOutcome.FAILED
    if failed and any(mark.type == "todo" for mark in skips):
        return ItemOutcome.XFAILED
    if failed or error:
        return ItemOutcome.FAILED if failed else ItemOutcome.ERROR
    if any(mark.type == "pytest.xfail" for mark in skips):
        return ItemOutcome.XFAILED
    if status == "notrun" and not any(mark.message.startswith("SKIP_") for mark in skips):
        return ItemOutcome.ERROR  # ctest: no such program, or a fixture that failed
    if skips or status == "disabled":
        return ItemOutcome.SKIPPED
    return ItemOutcome.FAILED if status in ("fail", "failed", "error") else ItemOutcome.PASSED


def _message(case: JUnitCase) -> str:
    return "; ".join(dict.fromkeys(filter(None, (_telling(mark) for mark in case.marks[:3]))))


def _telling(mark: JUnitMark) -> str:
    if mark.message not in _VAGUE:
        return mark.message
    # pytest marks the lines of an error itself with E; the last one names it
    marked = [line[1:].strip() for line in mark.text.splitlines() if line.startswith("E  ")]
    return ": ".join(filter(None, (mark.message, marked[-1] if marked else first_line(mark.text))))


def _totals(root: JUnitSuite) -> list[str]:
    """Return wrong totals; tools count a suite's cases, its children, or all cases below it: one of these must fit."""
    problems = []
    for suite in root.all_suites():
        below = suite.all_cases()
        for attribute, tag in _COUNTED.items():
            every, own = _number(below, tag), _number(suite.cases, tag)
            inside = sum(1 for child in suite.suites if tag is None or _number(child.all_cases(), tag))
            problems += _compared(suite, attribute, {every, own, own + inside}, every)
    return problems


def _number(cases: list[JUnitCase], tag: str | None) -> int:
    """Return how many cases have a mark of a kind; all of them for none."""
    return len(cases) if tag is None else sum(case.count(tag) > 0 for case in cases)


def _mocha_totals(document: JUnitDocument) -> list[str]:
    """Return wrong totals of mocha, which calls failures errors, counts no hooks, and computes the skipped tests."""
    failed = _number(document.cases, "failure") + _number(document.cases, "error")
    least = len(document.cases) - failed
    return [
        *_compared(document.root, "errors", {failed}, failed),
        *_compared(document.root, "tests", range(least, len(document.cases) + 1), len(document.cases)),
    ]


def _node_comments(document: JUnitDocument) -> dict[str, int]:
    totals = [_NODE_TOTAL.fullmatch(comment) for comment in document.comments]
    return {total[1]: int(total[2]) for total in totals if total is not None}


def _node_totals(document: JUnitDocument, items: list[ParsedItem]) -> list[str]:
    """Return wrong totals of node, which counts in final comments and counts a test with subtests as a test."""
    said = _node_comments(document)
    things = len(document.cases) + sum(suite.tag == "testsuite" for suite in document.root.all_suites())
    problems = []
    if said["tests"] + said["suites"] != things:
        problems.append(f"the report counts {said['tests']} tests and {said['suites']} suites, but contains {things}")
    failed = said.get("fail", 0) + said.get("cancelled", 0)
    red = sum(each.outcome in RED for each in items)
    if red > failed or (failed and not red):
        problems.append(f"the report counts {failed} failed tests, but contains {red}")
    return problems
