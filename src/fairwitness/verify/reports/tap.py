"""TAP 13 and 14: test points, subtests by indentation or braces, directives, plans that must be kept."""

import re
from dataclasses import dataclass, field

from fairwitness.contracts.verify.results import ITEMS, ItemOutcome
from fairwitness.verify.reports.exits import ReportingTool
from fairwitness.verify.reports.model import TORN, ParsedItem, ParsedReport, Relative, lines, spelled, without_colours

DEPTH = 32
_INDENT = 4
_POINT = re.compile(r"(?P<not>not )?ok\b(?: +(?P<number>\d+))?(?: +- +| +-$| +|$)(?P<rest>.*)")
_PLAN = re.compile(r"1\.\.(?P<last>\d{1,9})(?: *#\s*(?:skip\S*)?\s*(?P<why>.*))?\s*", re.IGNORECASE)
_DIRECTIVE = re.compile(r"(?:^|\s)#\s*(?P<word>skip\S*|todo)\b:?\s*(?P<why>.*)$", re.IGNORECASE)
_TOTAL = re.compile(r"# (tests|suites) (\d{1,9})")
_TIME = re.compile(r"\s# time=[\d.]+m?s$")
_ESCAPED = re.compile(r"\\([\\#])")
_LOCATION = re.compile(r"location: '(?P<path>.+):(?P<line>\d{1,9}):\d+'")


@dataclass(slots=True)
class _Point:
    name: str
    outcome: ItemOutcome
    why: str = ""
    path: str | None = None
    line: int | None = None
    children: list["_Point"] = field(default_factory=list)


@dataclass(slots=True)
class _Level:
    """The points at one indentation since the last point above it."""

    points: list[_Point] = field(default_factory=list)
    plan: int | None = None
    skipped: str | None = None


class _Stream:
    def __init__(self) -> None:
        self.levels: list[_Level] = [_Level()]
        self.opened: list[tuple[int, _Point]] = []
        self.problems: list[str] = []
        self.last: tuple[int, _Point] | None = None
        self.count = 0

    def level(self, depth: int) -> _Level:
        while len(self.levels) <= depth:
            self.levels.append(_Level())
        return self.levels[depth]

    def point(self, depth: int, match: re.Match[str]) -> None:
        point = _point(match)
        self.count += 1
        self.last = depth, point
        if match["rest"].rstrip().endswith("{") and not match["rest"].rstrip().endswith("\\{"):
            point.name = point.name.rstrip().removesuffix("{").rstrip()
            self.opened.append((depth, point))
        else:
            point.children = self.close(depth + 1, point.name)
        self.level(depth).points.append(point)

    def brace(self, depth: int) -> None:
        if self.opened and self.opened[-1][0] == depth:
            _, point = self.opened.pop()
            point.children = self.close(depth + 1, point.name)

    def close(self, depth: int, name: str) -> list[_Point]:
        """End the subtests at a depth and return them; their plan must fit."""
        for deeper in range(len(self.levels) - 1, depth, -1):
            if self.levels[deeper].points:
                self.problems.append(f"subtests of {name!r} belong to no test")
        if len(self.levels) <= depth:
            return []
        level = self.levels[depth]
        del self.levels[depth:]
        self.problems += _plan_problems(level, f"the subtests of {name!r}")
        return level.points

    def plan(self, depth: int, match: re.Match[str]) -> None:
        level = self.level(depth)
        if level.plan is not None:
            self.problems.append("a plan appears twice")
        level.plan = int(match["last"])
        level.skipped = match["why"] or None


def _point(match: re.Match[str]) -> _Point:
    rest, bad = _TIME.sub("", match["rest"].rstrip()), match["not"] is not None
    directive = _DIRECTIVE.search(rest)
    name = _ESCAPED.sub(r"\1", rest[: directive.start()] if directive else rest).strip()
    name = name or f"(test {match['number'] or 'without a number'})"
    if directive is None:
        return _Point(name, ItemOutcome.FAILED if bad else ItemOutcome.PASSED)
    if directive["word"].lower() == "todo":
        # a todo test may pass or fail, so neither counts
        return _Point(name, ItemOutcome.XFAILED if bad else ItemOutcome.SKIPPED, directive["why"] or "todo")
    return _Point(name, ItemOutcome.FAILED if bad else ItemOutcome.SKIPPED, directive["why"])


def _plan_problems(level: _Level, what: str) -> list[str]:
    if level.plan is None:
        return [f"{what}: there is no plan, so nobody knows whether all of them are there"] if level.points else []
    if level.plan != len(level.points):
        return [f"{what}: the plan is {level.plan}, but there are {len(level.points)}"]
    return []


def read_tap(text: str, relative: Relative) -> ParsedReport:
    """Return every test point, subtests under the names of their parents."""
    stream = _Stream()
    totals: dict[str, int] = {}
    yaml_until: str | None = None
    if not text.endswith("\n"):
        stream.problems.append(TORN)
    for line in lines(without_colours(text)):
        if stream.count > ITEMS:
            break
        if yaml_until is not None:
            if line == yaml_until:
                yaml_until = None
            elif stream.last is not None:
                _locate(stream.last[1], line)
            continue
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if body == "---" and stream.last is not None and indent % _INDENT == 2:
            yaml_until = " " * indent + "..."
            continue
        depth = indent // _INDENT
        total = _TOTAL.fullmatch(line)
        if total is not None:
            totals[total[1]] = int(total[2])
        if indent % _INDENT or depth > DEPTH:
            continue
        if body.startswith("Bail out!"):
            stream.problems.append(f"the run was given up: {body.removeprefix('Bail out!').strip() or 'no reason'}")
        elif body.rstrip() == "}":
            stream.brace(depth)
        elif (plan := _PLAN.fullmatch(body)) is not None:
            stream.plan(depth, plan)
        elif (point := _POINT.fullmatch(body)) is not None:
            stream.point(depth, point)
    return _told(stream, totals, torn=yaml_until is not None, relative=relative)


def _locate(point: _Point, line: str) -> None:
    place = _LOCATION.fullmatch(line.strip())
    if place is not None and point.path is None:
        point.path, point.line = place["path"], int(place["line"])
    elif line.strip().startswith("error: ") and not point.why:
        point.why = line.strip().removeprefix("error: ").strip("'\"")


def _told(stream: _Stream, totals: dict[str, int], *, torn: bool, relative: Relative) -> ParsedReport:
    top = stream.levels[0]
    problems = stream.problems
    if torn or stream.opened:
        problems.append("the report is truncated: a block in it has no end")
    if any(level.points for level in stream.levels[1:]):
        problems.append("the report is truncated: there are subtests whose test is not there")
    if top.plan is None and not top.points:
        problems.append("there is no TAP in the report")
    problems += _plan_problems(top, "the tests")
    if top.plan == 0 and top.skipped:
        problems.append(f"all tests are skipped: {top.skipped.strip()}")
    if totals.keys() == {"tests", "suites"} and sum(totals.values()) != stream.count:
        problems.append(
            f"the report counts {totals['tests']} tests and {totals['suites']} suites, but contains {stream.count}"
        )
    parsed = ParsedReport(ReportingTool.RUNNER, problems=problems)
    for point in top.points:
        _add(parsed.items, point, "", relative)
    return parsed


def _add(items: list[ParsedItem], point: _Point, above: str, relative: Relative) -> None:
    outcome, name, path = point.outcome, point.name, point.path
    if not above and outcome is ItemOutcome.FAILED and name.startswith("/") and relative(name) != name:
        outcome, path = ItemOutcome.ERROR, name  # the file represents all its tests: it could not be loaded
    id_ = spelled(relative(f"{above} > {name}" if above else name))
    for child in point.children:
        _add(items, child, id_, relative)
    items.append(ParsedItem(id_, outcome, path, point.line, point.why))
