"""JUnit XML of pytest, node, ctest, vitest, surefire and their kin: one item per case, totals checked.

There is no one JUnit: each writer puts the name of a test together in its own way and counts in its own way. What they
share is the tree of suites and cases; the rest is told apart by `Flavour`.
"""

import re
from collections.abc import Container
from enum import StrEnum

from fairwitness.contracts.verify.results import RED, Outcome
from fairwitness.verify.reports.exits import Tool
from fairwitness.verify.reports.found import Found, Parsed, Relative, first_line, whole_number
from fairwitness.verify.reports.junit_xml import BadXml, Case, Document, Mark, Suite, read_xml
from fairwitness.verify.reports.pytest_ids import PytestIds

_VAGUE = frozenset({"", "collection failure", "collection skipped", "test failed"})
_TEARDOWN = "failed on teardown"
_UNEXPECTED = "xfail-marked test passes unexpectedly"
_NODE_TOTAL = re.compile(r" ?(tests|suites|fail|cancelled) (\d{1,9}) ?")
_COUNTED = {"tests": None, "failures": "failure", "errors": "error", "skipped": "skipped"}
_ANY_COUNT = 10**12
_CTEST = frozenset({"run", "fail", "notrun", "disabled"})


class Flavour(StrEnum):
    """Who wrote a JUnit report."""

    PYTEST = "pytest"
    NODE = "node"
    CTEST = "ctest"
    VITEST = "vitest"
    MOCHA = "mocha"
    OTHER = "other"


_TOOLS = {Flavour.PYTEST: Tool.PYTEST, Flavour.MOCHA: Tool.MOCHA}


def read_junit(text: str, relative: Relative) -> Parsed:
    """The cases of a JUnit report."""
    try:
        document = read_xml(text)
    except BadXml as error:
        return Parsed(Tool.RUNNER, problems=[f"the report cannot be read: {error}"])
    flavour = _flavour(document)
    parsed = Parsed(_TOOLS.get(flavour, Tool.RUNNER))
    if flavour is Flavour.PYTEST:
        doubled = _pytest(document, parsed, relative)
        parsed.problems += _pytest_totals(document, doubled)
    else:
        for case in document.cases:
            parsed.found.append(_found(case, flavour, relative))
            if not case.get("name").strip():
                parsed.problems.append("a test has no name")
        parsed.problems += _mocha_totals(document) if flavour is Flavour.MOCHA else _totals(document.root)
        if not document.cases:
            parsed.tool = Tool.IDLE
        if flavour is Flavour.NODE:
            parsed.problems += _node_totals(document, parsed.found)
    return parsed


def _flavour(document: Document) -> Flavour:
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


def _pytest(document: Document, parsed: Parsed, relative: Relative) -> int:
    """Adds pytest's cases; returns how many only repeat a failed one because its teardown broke as well."""
    ids = PytestIds((case.get("classname"), relative.path(case.get("file"))) for case in document.cases)
    seen: dict[str, Found] = {}
    doubled = 0
    for case in document.cases:
        file, line = relative.path(case.get("file")), whole_number(case.get("line"))
        name = ids.node_id(case.get("classname"), case.get("name"), file)
        earlier = seen.get(name)
        if earlier is not None and earlier.outcome in RED and _only_teardown(case):
            doubled += 1
            continue
        path = name.split("::", 1)[0] if file else None
        found = Found(name, _outcome(case), path, message=_message(case))
        if line is not None and path == file:
            found.line = line + 1
        seen[name] = found
        parsed.found.append(found)
        if not name:
            parsed.problems.append("a test has no name")
    return doubled


def _only_teardown(case: Case) -> bool:
    return len(case.marks) == 1 and case.marks[0].tag == "error" and case.marks[0].message.startswith(_TEARDOWN)


def _pytest_totals(document: Document, doubled: int) -> list[str]:
    problems = []
    for suite in document.root.all_suites():
        cases = suite.all_cases()
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            counted = sum(case.count(tag) for case in cases)
            problems += _compared(suite, attribute, {counted}, counted)
        # a passing subtest is counted and leaves no case; a case is never left uncounted, except a doubled one
        problems += _compared(suite, "tests", range(len(cases) - doubled, _ANY_COUNT), len(cases))
    return problems


def _compared(suite: Suite, attribute: str, fitting: Container[int], counted: int) -> list[str]:
    text = suite.attributes.get(attribute)
    if text is None:
        return []
    said = whole_number(text.strip())
    if said is not None and said in fitting:
        return []
    return [f"the report says {attribute}={text!r} for the suite {suite.name!r}, but holds {counted}"]


def _found(case: Case, flavour: Flavour, relative: Relative) -> Found:
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
        outcome = Outcome.ERROR  # the file stands for all its tests: it could not be loaded
    id_ = name if not place or name == place else f"{place}::{name}"
    return Found(id_, outcome, file or None, whole_number(case.get("line")), _message(case))


def _is_below(path: str, relative: Relative) -> bool:
    return path.startswith("/") and relative(path) != path


def _outcome(case: Case) -> Outcome:
    failed, error = case.count("failure") > 0, case.count("error") > 0
    skips = [mark for mark in case.marks if mark.tag == "skipped"]
    status = case.get("status").lower()
    if any(mark.message == _UNEXPECTED for mark in skips):
        return Outcome.FAILED
    if failed and any(mark.type == "todo" for mark in skips):
        return Outcome.XFAILED
    if failed or error:
        return Outcome.FAILED if failed else Outcome.ERROR
    if any(mark.type == "pytest.xfail" for mark in skips):
        return Outcome.XFAILED
    if status == "notrun" and not any(mark.message.startswith("SKIP_") for mark in skips):
        return Outcome.ERROR  # ctest: no such program, or a fixture that failed
    if skips or status == "disabled":
        return Outcome.SKIPPED
    return Outcome.FAILED if status in ("fail", "failed", "error") else Outcome.PASSED


def _message(case: Case) -> str:
    return "; ".join(dict.fromkeys(filter(None, (_telling(mark) for mark in case.marks[:3]))))


def _telling(mark: Mark) -> str:
    if mark.message not in _VAGUE:
        return mark.message
    # pytest marks the lines of an error itself with E; the last one names it
    marked = [line[1:].strip() for line in mark.text.splitlines() if line.startswith("E  ")]
    return ": ".join(filter(None, (mark.message, marked[-1] if marked else first_line(mark.text))))


def _totals(root: Suite) -> list[str]:
    """Writers count the cases of a suite, or its children, or all cases below it: one of these must fit."""
    problems = []
    for suite in root.all_suites():
        below = suite.all_cases()
        for attribute, tag in _COUNTED.items():
            every, own = _number(below, tag), _number(suite.cases, tag)
            inside = sum(1 for child in suite.suites if tag is None or _number(child.all_cases(), tag))
            problems += _compared(suite, attribute, {every, own, own + inside}, every)
    return problems


def _number(cases: list[Case], tag: str | None) -> int:
    """How many cases have a mark of a kind; all of them for none."""
    return len(cases) if tag is None else sum(case.count(tag) > 0 for case in cases)


def _mocha_totals(document: Document) -> list[str]:
    """Mocha calls every failure an error, counts no hooks, and gets the skipped ones from there by subtraction."""
    failed = _number(document.cases, "failure") + _number(document.cases, "error")
    least = len(document.cases) - failed
    return [
        *_compared(document.root, "errors", {failed}, failed),
        *_compared(document.root, "tests", range(least, len(document.cases) + 1), len(document.cases)),
    ]


def _node_comments(document: Document) -> dict[str, int]:
    totals = [_NODE_TOTAL.fullmatch(comment) for comment in document.comments]
    return {total[1]: int(total[2]) for total in totals if total is not None}


def _node_totals(document: Document, found: list[Found]) -> list[str]:
    """Node counts in comments at the end; a test with subtests is a suite to the XML and a test to the count."""
    said = _node_comments(document)
    things = len(document.cases) + sum(suite.tag == "testsuite" for suite in document.root.all_suites())
    problems = []
    if said["tests"] + said["suites"] != things:
        problems.append(f"the report counts {said['tests']} tests and {said['suites']} suites, but holds {things}")
    failed = said.get("fail", 0) + said.get("cancelled", 0)
    red = sum(each.outcome in RED for each in found)
    if red > failed or (failed and not red):
        problems.append(f"the report counts {failed} failed tests, but holds {red}")
    return problems
