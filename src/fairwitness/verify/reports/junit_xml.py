"""The XML of a JUnit report as suites and cases: expat only, no DOCTYPE, no entity, bounded depth and texts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from fairwitness.contracts.verify.results import ITEMS

DEPTH = 64
TEXT = 20_000
"""Characters that are kept of one failure's text."""
_MARKS = frozenset({"failure", "error", "skipped"})
# some tools write terminal codes as they are; expat would refuse the whole report for one of them
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class BadXml(Exception):
    """A text is not a JUnit report, and why."""


@dataclass(slots=True)
class Mark:
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
class Case:
    """One `testcase`, with the names of the suites around it."""

    attributes: dict[str, str]
    around: tuple[str, ...]
    marks: list[Mark] = field(default_factory=list)

    def get(self, name: str) -> str:
        return self.attributes.get(name, "")

    def count(self, tag: str) -> int:
        """How many marks of a kind it has."""
        return sum(mark.tag == tag for mark in self.marks)


@dataclass(slots=True)
class Suite:
    """One `testsuite`, or the `testsuites` around all."""

    tag: str
    attributes: dict[str, str]
    cases: list[Case] = field(default_factory=list)
    suites: list["Suite"] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")

    def all_suites(self) -> Iterator["Suite"]:
        """Itself and every suite inside, outer ones first."""
        yield self
        for suite in self.suites:
            yield from suite.all_suites()

    def all_cases(self) -> list[Case]:
        """Every case inside."""
        return [case for suite in self.all_suites() for case in suite.cases]


@dataclass(slots=True)
class Document:
    """A whole report; `cases` in the order of the text."""

    root: Suite
    cases: list[Case]
    comments: list[str]


class _Builder:
    def __init__(self) -> None:
        self.root: Suite | None = None
        self.cases: list[Case] = []
        self.comments: list[str] = []
        self._tags: list[str] = []
        self._suites: list[Suite] = []
        self._mark: Mark | None = None
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
            case = Case(attributes, tuple(suite.name for suite in self._suites if suite.tag == "testsuite"))
            if len(self.cases) >= ITEMS:
                raise BadXml(f"it holds more than the {ITEMS} cases that are read")
            self._suites[-1].cases.append(case)
            self.cases.append(case)
        elif tag in _MARKS and above == "testcase":
            self._mark, self._mark_depth = Mark(tag, attributes), len(self._tags)
            self._texts, self._length = [], 0
            self.cases[-1].marks.append(self._mark)

    def _suite(self, tag: str, attributes: dict[str, str], above: str | None) -> None:
        if above not in (None, "testsuites", "testsuite"):
            raise BadXml(f"a suite inside <{above[:40] if above else ''}>")
        self._number += 1
        if self._number > ITEMS:
            raise BadXml(f"it holds more than the {ITEMS} suites that are read")
        suite = Suite(tag, attributes)
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


def read_xml(text: str) -> Document:
    """The suites and cases of a report; `BadXml` with the reason otherwise."""
    builder = _Builder()
    # the text is UTF-8 already, whatever its first line claims
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
    return Document(builder.root, builder.cases, builder.comments)
