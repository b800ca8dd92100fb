"""The text of `cargo test`: several test binaries and doc tests, each with its own count.

With cargo's own lines in the text, which it writes to standard error, ids carry the name of the binary; without them
equal names of two binaries are told apart by their order only.
"""

import re
from dataclasses import dataclass, field

from fairwitness.contracts.verify.results import ITEMS, ItemOutcome
from fairwitness.verify.reports.exits import ReportingTool
from fairwitness.verify.reports.model import TORN, ParsedItem, ParsedReport, Relative, lines, without_colours

_RUNNING = re.compile(r"\s+Running (?:unittests )?(?P<path>\S.*?) \((?P<file>[^()]*)\)")
_DOC_TESTS = re.compile(r"\s+Doc-tests (?P<crate>\S+)")
_BEGIN = re.compile(r"running (?P<count>\d{1,9}) tests?")
_TEST = re.compile(
    r"test (?P<name>.+?) \.\.\. (?P<word>ok|FAILED|ignored|bench:)(?:, (?P<why>.*)|(?<=:) .*)?(?: <\d[\d.]*s>)?"
)
_RESULT = re.compile(
    r"test result: (?P<word>ok|FAILED)\. (?P<passed>\d{1,9}) passed; (?P<failed>\d{1,9}) failed; "
    r"(?P<ignored>\d{1,9}) ignored; (?P<measured>\d{1,9}) measured; \d{1,9} filtered out(?:; finished in .*)?"
)
_DETAIL = re.compile(r"---- (?P<name>.+) stdout ----")
_COMPILE = re.compile(r"error(?:\[E\d+\])?: (?P<text>.*)")
_AFTERWARDS = re.compile(r"error: (?:test failed, to rerun|doctest failed, to rerun|\d+ targets? failed)")
_DOC_LINE = re.compile(r" \(line (?P<line>\d{1,9})\)")
_CRATE = re.compile(r"(?:.*/)?(?P<name>[^/]+?)-[0-9a-f]{16}(?:\.exe)?")
_WORDS = {
    "ok": ItemOutcome.PASSED,
    "FAILED": ItemOutcome.FAILED,
    "ignored": ItemOutcome.SKIPPED,
    "bench:": ItemOutcome.PASSED,
}
_SHOWN = 4
"""Lines of a failing test's output that make its message."""


@dataclass(slots=True)
class _Binary:
    """One test binary that has begun."""

    label: str
    count: int
    tests: dict[str, ParsedItem] = field(default_factory=dict)
    in_details: bool = False
    shown: dict[str, list[str]] = field(default_factory=dict)
    showing: str | None = None

    def kept(self, match: re.Match[str]) -> bool:
        """Return whether a line of totals is this binary's own."""
        outcomes = [test.outcome for test in self.tests.values()]
        passed = int(match["passed"]) + int(match["measured"])
        return (
            outcomes.count(ItemOutcome.PASSED) == passed
            and outcomes.count(ItemOutcome.FAILED) == int(match["failed"])
            and outcomes.count(ItemOutcome.SKIPPED) == int(match["ignored"])
            and (match["word"] == "ok") == (int(match["failed"]) == 0)
        )


class _CargoText:
    def __init__(self) -> None:
        self.parsed = ParsedReport(ReportingTool.CARGO)
        self.label = ""
        self.awaited = False
        self.binary: _Binary | None = None
        self.compile_error: str | None = None
        self.count = 0

    def line(self, line: str) -> None:
        if self.binary is not None:
            self._inside(self.binary, line)
        elif (running := _RUNNING.fullmatch(line)) is not None:
            crate = _CRATE.fullmatch(running["file"])
            self.label = f"{crate['name']}: {running['path']}" if crate else running["path"]
            self.awaited = True
        elif (docs := _DOC_TESTS.fullmatch(line)) is not None:
            self.label, self.awaited = f"{docs['crate']}: doc tests", True
        elif (begin := _BEGIN.fullmatch(line)) is not None:
            self.binary, self.awaited = _Binary(self.label, int(begin["count"])), False
        elif _RESULT.fullmatch(line) is not None:
            self.parsed.problems.append("totals stand twice for one test binary")
        elif _AFTERWARDS.match(line) is None and (error := _COMPILE.match(line)) is not None:
            self.compile_error = self.compile_error or error["text"]

    def _inside(self, binary: _Binary, line: str) -> None:
        result = _RESULT.fullmatch(line)
        if result is not None and binary.kept(result):
            self._end(binary)
        elif binary.in_details:
            _show(binary, line)  # a test printed this line
        elif line == "failures:":
            binary.in_details = True
        elif result is not None:
            self.parsed.problems.append(f"totals do not fit the tests of {binary.label or 'a test binary'}: {line}")
            self.binary = None
        elif _BEGIN.fullmatch(line) is not None or _RUNNING.fullmatch(line) is not None:
            self._lost(binary)
            self.binary = None
            self.line(line)
        elif (test := _TEST.fullmatch(line)) is not None:
            item = _reported_item(test, binary.label)
            name = _plain_name(test["name"])
            if name in binary.tests:
                self.parsed.problems.append(f"{name} ended twice")
            binary.tests[name] = item
            self.count += 1

    def _end(self, binary: _Binary) -> None:
        if len(binary.tests) != binary.count:
            self.parsed.problems.append(
                f"{binary.count} tests were to run in {binary.label or 'a test binary'}, but {len(binary.tests)} ended"
            )
        for name, said in binary.shown.items():
            if name in binary.tests:
                binary.tests[name].message = " ".join(said)
        self._add(binary)
        self.binary = None

    def _lost(self, binary: _Binary) -> None:
        self.parsed.problems.append(f"the tests of {binary.label or 'a test binary'} did not come to their end")
        self._add(binary)

    def _add(self, binary: _Binary) -> None:
        # tests end in any order; doc tests of one item are told apart by theirs
        self.parsed.items += sorted(binary.tests.values(), key=lambda test: (test.id, test.line or 0))

    def end(self) -> ParsedReport:
        if self.count > ITEMS:
            self.parsed.problems.append(f"there are more than the {ITEMS} tests that are read")
        if self.binary is not None:
            self._lost(self.binary)
        if self.awaited:
            self.parsed.problems.append(f"the tests of {self.label} did not begin")
        if self.compile_error is not None:
            self.parsed.problems.append(f"it could not be built: {self.compile_error}")
        return self.parsed


def _show(binary: _Binary, line: str) -> None:
    detail = _DETAIL.fullmatch(line)
    if detail is not None:
        binary.showing = detail["name"]
        binary.shown.setdefault(detail["name"], [])
    elif binary.showing is not None and line.strip():
        shown = binary.shown[binary.showing]
        if line == "failures:" or line.startswith("stack backtrace:"):
            binary.showing = None
        elif len(shown) < _SHOWN:
            shown.append(line.strip())


def _plain_name(name: str) -> str:
    """Return a test's name, without the remark that it should panic."""
    return name.removesuffix(" - should panic")


def _reported_item(test: re.Match[str], label: str) -> ParsedItem:
    name = _plain_name(test["name"])
    place = _DOC_LINE.search(name)
    path, line = None, None
    if place is not None:
        path, line = name[: place.start()].split(" - ", 1)[0], int(place["line"])
        name = name[: place.start()] + name[place.end() :]
    return ParsedItem(f"{label}::{name}" if label else name, _WORDS[test["word"]], path, line, test["why"] or "")


def read_cargo(text: str, relative: Relative) -> ParsedReport:
    """Return the tests of all binaries."""
    reading = _CargoText()
    if not text.endswith("\n"):
        reading.parsed.problems.append(TORN)
    for line in lines(without_colours(text)):
        if reading.count > ITEMS:
            break
        reading.line(line.rstrip())
    return reading.end()
