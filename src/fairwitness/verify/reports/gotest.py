"""The events of `go test -json`, one JSON object per line: tests by package and name, packages that did not build."""

import re
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from fairwitness.contracts.verify.results import ITEMS, ItemOutcome
from fairwitness.verify.reports.exits import ReportingTool
from fairwitness.verify.reports.model import (
    MESSAGE_LENGTH,
    TORN,
    InvalidJsonReport,
    JsonReportPart,
    ParsedItem,
    ParsedReport,
    Relative,
    lines,
    listed,
    read_json,
)

_ENDS = {
    "pass": ItemOutcome.PASSED,
    "bench": ItemOutcome.PASSED,
    "fail": ItemOutcome.FAILED,
    "skip": ItemOutcome.SKIPPED,
}
_ACTIONS = frozenset({"start", "run", "pause", "cont", "output", "attr", "artifacts", "build-output", "build-fail"})
# older versions print this as plain text among the events
_PLAIN_FAILURE = re.compile(r"FAIL\t(\S+) \[(build|setup) failed\]")
_FRAME = re.compile(r"=== |\s*--- |PASS$|FAIL$|ok  \t|FAIL\t|exit status ")


class _Event(JsonReportPart):
    Action: str
    Package: str = ""
    ImportPath: str = ""
    Test: str = ""
    Output: str = ""


_SHAPE = TypeAdapter(_Event)


@dataclass(slots=True)
class _Thing:
    """A test, or a package under the empty name."""

    package: str
    test: str
    outcome: ItemOutcome | None = None
    output: list[str] = field(default_factory=list)
    length: int = 0

    def say(self, text: str) -> None:
        if text and self.length < MESSAGE_LENGTH and not _FRAME.match(text):
            self.output.append(text)
            self.length += len(text)


class _GoTestRun:
    def __init__(self) -> None:
        self.things: dict[tuple[str, str], _Thing] = {}
        self.problems: list[str] = []

    def thing(self, package: str, test: str) -> _Thing:
        return self.things.setdefault((package, test), _Thing(package, test))

    def hear(self, event: _Event) -> None:
        if event.Action.startswith("build-"):
            # these name what was built: `package [package.test]`
            package = event.ImportPath.split(" ", 1)[0].removesuffix(".test").removesuffix("_test")
            thing = self.thing(package, "")
            thing.say(event.Output)
            if event.Action == "build-fail":
                thing.outcome = ItemOutcome.FAILED
            return
        if not event.Package:
            self.problems.append(f"an event {event.Action!r} names no package")
            return
        thing = self.thing(event.Package, event.Test)
        if event.Action in _ENDS:
            if event.Test and thing.outcome is not None:
                self.problems.append(f"{event.Package} {event.Test} ended twice")
            thing.outcome = _ENDS[event.Action]
        elif event.Action in _ACTIONS:
            thing.say(event.Output)
        else:
            self.problems.append(f"an event of the unknown kind {event.Action!r}")


def read_go_test(text: str, relative: Relative) -> ParsedReport:
    """Return the tests of every package, and each package that failed as a whole."""
    run = _GoTestRun()
    if not text.endswith("\n"):
        run.problems.append(TORN)
    for number, line in enumerate(lines(text), start=1):
        if len(run.things) > ITEMS:
            break
        plain = _PLAIN_FAILURE.fullmatch(line)
        if plain is not None:
            run.thing(plain[1], "").outcome = ItemOutcome.FAILED
        elif line.strip():
            try:
                run.hear(read_json(line, _SHAPE))
            except InvalidJsonReport as error:
                run.problems.append(f"line {number} is no event of go test: {error}")
                break
    return _told(run)


def _told(run: _GoTestRun) -> ParsedReport:
    parsed = ParsedReport(ReportingTool.GO, problems=run.problems)
    ended = {thing.package: thing.outcome for thing in run.things.values() if not thing.test}
    failing = {thing.package for thing in run.things.values() if thing.test and thing.outcome is ItemOutcome.FAILED}
    unfinished = []
    for thing in run.things.values():
        package_outcome = ended.get(thing.package)
        said = " ".join(thing.output)
        if not thing.test:
            if package_outcome is None:
                parsed.problems.append(f"the report is truncated: the package {thing.package} has no end")
            elif package_outcome is ItemOutcome.FAILED and thing.package not in failing:
                parsed.items.append(ParsedItem(thing.package, ItemOutcome.ERROR, message=said or "the package failed"))
            continue
        if thing.outcome is None:
            unfinished.append(thing.test)
        elif thing.outcome is ItemOutcome.FAILED and package_outcome is not ItemOutcome.FAILED:
            parsed.problems.append(f"{thing.test} failed, but its package {thing.package} did not")
        id_ = f"{thing.package}::{thing.test}"
        message = said if thing.outcome is not ItemOutcome.PASSED else ""
        parsed.items.append(ParsedItem(id_, thing.outcome or ItemOutcome.ERROR, message=message))
        if thing.package not in ended:
            parsed.problems.append(f"the report is truncated: the package {thing.package} has no end")
    if unfinished and not failing and ItemOutcome.FAILED not in ended.values():
        parsed.problems.append(f"tests began and did not end: {listed(unfinished)}")
    return parsed
