"""The Markdown roadmap: read into phases or into all its problems with their lines, and the template of a new one.

Each phase appears twice: its list line has the number, the name and whether it is done; the heading of the same number
describes it. Both are required.
"""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.roadmap import (
    DEFAULT_SPEC_PATHS,
    CommandKind,
    CommandsSource,
    DetailedPhase,
    LineProblem,
    ProjectConfig,
    ProjectSettings,
    Roadmap,
    at_line,
    phase_number,
)
from fairwitness.contracts.autopilot.vocabulary import PhaseType
from fairwitness.contracts.common.problems import Problem, ProblemLevel
from fairwitness.rules.markdown_lines import Heading, MarkdownLine, heading_of, item_of, said_lines
from fairwitness.rules.phases import roadmap_problems
from fairwitness.rules.problem_words import cut
from fairwitness.rules.project_commands import Detected
from fairwitness.rules.roadmap_fields import (
    RoadmapField,
    criteria,
    dependencies,
    paragraph,
    phase_id_of,
    plain,
    requirements,
    type_of,
)

GOAL, TYPE, DEPENDS_ON, REQUIREMENTS, CRITERIA, PLANS = LABELS = (
    "goal",
    "type",
    "depends on",
    "requirements",
    "success criteria",
    "plans",
)
NEEDED = {GOAL: "**Goal**", DEPENDS_ON: "**Depends on**", CRITERIA: "**Success Criteria**"}
"""The required fields of a phase; a phase without dependencies must say so."""


class RoadmapReading(NamedTuple):
    """The roadmap, or None if a problem is more than a warning."""

    roadmap: Roadmap | None
    problems: tuple[Problem, ...]


class _Listed(NamedTuple):
    line: int
    phase_id: str
    name: str
    done: bool


class _Title(NamedTuple):
    """The title of a phase in a list line: its box, its name and whether it is bold."""

    text: str
    box: str | None
    is_bold: bool


class _Open(NamedTuple):
    """A phase's heading with the fields below it, while they are gathered: label, line, value and lines below."""

    line: int
    level: int
    phase_id: str
    name: str
    fields: list[tuple[str, int, str, list[MarkdownLine]]]


class _Gathered:
    """The data gathered while walking over the lines."""

    def __init__(self) -> None:
        self.listed: dict[str, _Listed] = {}
        self.headed: dict[str, _Open] = {}
        self.problems: list[LineProblem] = []
        self._section: _Open | None = None
        self._below: list[MarkdownLine] | None = None

    def take(self, line: MarkdownLine) -> None:
        """Classify a line and store it."""
        heading = heading_of(line)
        if heading is not None:
            self._below = None
            self._take_heading(line, heading)
        elif (title := _list_title(line, is_open=self._section is not None)) is not None:
            self._below = None
            self._take_listed(line, title)
        elif self._section is not None and (label := _label(line)) is not None:
            self._below = []
            self._section.fields.append((label[0], line.number, label[1], self._below))
        elif self._below is not None:
            self._below.append(line)

    def _take_heading(self, line: MarkdownLine, heading: Heading) -> None:
        title = heading.title.removeprefix("**").removesuffix("**")
        if not _is_phase(title):
            if self._section is not None and heading.level <= self._section.level:
                self._section = None
            return
        phase_id, name = self._titled(line, title)
        self._section = _Open(line.number, heading.level, phase_id, name, [])
        if phase_id and self._is_new(line, phase_id, self.headed, "one heading"):
            self.headed[phase_id] = self._section

    def _take_listed(self, line: MarkdownLine, title: _Title) -> None:
        phase_id, name = self._titled(line, title.text)
        if title.box not in (" ", "x", "X"):
            self.problems.append(at_line(line.number, "a box, [ ] or [x], before the phase's name", line.text))
        if not title.is_bold:
            self.problems.append(at_line(line.number, 'bold letters: "**Phase 6: name**"', line.text))
        if phase_id and self._is_new(line, phase_id, self.listed, "one line"):
            self.listed[phase_id] = _Listed(line.number, phase_id, name, title.box in ("x", "X"))

    def _titled(self, line: MarkdownLine, title: str) -> tuple[str, str]:
        """Return the id and the name in a title; the id is empty after a problem."""
        number, _, name = title.partition(":")
        phase_id = phase_id_of(plain(number)[len("phase") :].strip())
        if phase_id is None or not plain(name):
            self.problems.append(at_line(line.number, '"Phase 6: name" or "Phase 6.1: name"', title))
            return "", ""
        return phase_id, plain(name)

    def _is_new(self, line: MarkdownLine, phase_id: str, known: Mapping[str, _Listed | _Open], what: str) -> bool:
        if phase_id in known:
            said = f"another after line {known[phase_id].line}"
            self.problems.append(at_line(line.number, f"{what} for phase {phase_id}", said))
        return phase_id not in known


def _is_phase(title: str) -> bool:
    """Return True if a title seems to name a phase, even with errors."""
    word, _, rest = plain(title).partition(" ")
    return word.casefold() == "phase" and (":" in rest or any(sign.isnumeric() for sign in rest.partition(" ")[0]))


def _list_title(line: MarkdownLine, *, is_open: bool) -> _Title | None:
    """Return the title of a list line that names a phase, even with errors."""
    item = item_of(line.text)
    if item is None:
        return None
    box: str | None = None
    if item.startswith("[") and "]" in item[:4]:
        box, _, item = item[1:].partition("]")
        item = item.strip()
    if item.startswith("**"):
        text, closed, _ = item[2:].partition("**")
        is_named = _is_phase(text) or (box is not None and text.casefold().startswith("phase "))
        return _Title(text, box, bool(closed)) if is_named else None
    # Without bold letters it may be anything inside a phase; outside of one it was meant to name one.
    return _Title(item, box, False) if box is not None and not is_open and _is_phase(item) else None


def _label(line: MarkdownLine) -> tuple[str, str] | None:
    """Return the field that a line opens, and the text after the colon."""
    item = item_of(line.text)
    text = item if item is not None and item.startswith("**") else line.text
    head, colon, value = text.partition(":")
    name = plain(head.partition("(")[0]).strip("*_ ").casefold()
    if not colon or name not in LABELS:
        return None
    return name, (value.lstrip().removeprefix("**") if head.count("**") % 2 else value).strip()


def read_roadmap(text: str) -> RoadmapReading:
    """Return the phases that a text describes, ordered by number."""
    lines = said_lines(text)
    if lines.problems:
        return RoadmapReading(None, lines.problems)  # other problems would only follow from these
    gathered = _Gathered()
    for line in lines.said:
        gathered.take(line)
    problems = [*gathered.problems, *_unpaired(gathered)]
    if not (gathered.listed or gathered.headed or problems):
        problems.append(at_line(1, "at least one phase: - [ ] **Phase 1: name**", "none"))
    read = {phase_id: _phase(section, gathered.listed.get(phase_id)) for phase_id, section in gathered.headed.items()}
    problems += [problem for reading in read.values() for problem in reading.problems]
    problems += _disordered(gathered, read)
    problems.sort(key=lambda problem: problem.line)
    refused = any(problem.level is ProblemLevel.ERROR for problem in problems)
    phases = [reading.phase for reading in read.values() if reading.phase is not None]
    roadmap = None if refused else Roadmap(phases=tuple(sorted(phases, key=lambda phase: phase_number(phase.id))))
    return RoadmapReading(roadmap, cut(list(problems), len(problems)))


def _unpaired(gathered: _Gathered) -> Iterable[LineProblem]:
    for phase_id, listed in gathered.listed.items():
        if phase_id not in gathered.headed:
            yield at_line(listed.line, f'a heading "### Phase {phase_id}: {listed.name}" with its details', "none")
    for phase_id, section in gathered.headed.items():
        if phase_id not in gathered.listed:
            expected = f'a list line "- [ ] **Phase {phase_id}: {section.name}**"'
            yield at_line(section.line, expected, "none")
        elif _core(section.name) != _core(gathered.listed[phase_id].name):
            expected = f"the name of line {gathered.listed[phase_id].line}, {gathered.listed[phase_id].name}"
            yield at_line(section.line, expected, section.name, ProblemLevel.WARNING)


def _core(name: str) -> str:
    """Return a name without the note that marks an inserted phase."""
    return name.casefold().removesuffix("(inserted)").strip()


class _PhaseReading(NamedTuple):
    phase: DetailedPhase | None
    depends_on: tuple[str, ...]
    line: int
    """The line of its dependencies."""
    problems: tuple[LineProblem, ...]


def _phase(section: _Open, listed: _Listed | None) -> _PhaseReading:
    problems: list[LineProblem] = []
    fields: dict[str, RoadmapField] = {}
    for label, line, value, below in section.fields:
        if label not in fields:
            fields[label] = RoadmapField(line, value, tuple(below))
        elif label != PLANS:
            problems.append(at_line(line, f'"{label}" once in a phase', f"another after line {fields[label].line}"))
    for label, spelled in NEEDED.items():
        if label not in fields:
            problems.append(at_line(section.line, f"a line {spelled}: under the heading", "none"))
    absent = RoadmapField(section.line, "", ())
    phase_type, wrong = type_of(fields[TYPE]) if TYPE in fields else (PhaseType.MIXED, ())
    depends_on, unclear = dependencies(fields[DEPENDS_ON]) if DEPENDS_ON in fields else ((), ())
    required, unnamed = requirements(fields.get(REQUIREMENTS, absent))
    demanded, unsaid = criteria(fields[CRITERIA]) if CRITERIA in fields else ((), ())
    problems += [*wrong, *unclear, *unnamed, *unsaid]
    goal = paragraph(fields.get(GOAL, absent))
    if GOAL in fields and not goal:
        problems.append(at_line(fields[GOAL].line, "what the phase is for", ""))
    where = fields.get(DEPENDS_ON, absent).line
    if listed is None or phase_type is None or any(problem.level is ProblemLevel.ERROR for problem in problems):
        return _PhaseReading(None, depends_on, where, tuple(problems))
    if section.phase_id in depends_on:
        return _PhaseReading(None, depends_on, where, tuple(problems))  # a ring, and told as one
    phase = DetailedPhase(
        id=section.phase_id,
        name=listed.name,
        type=phase_type,
        depends_on=depends_on,
        goal=goal,
        requirements=required,
        criteria=demanded,
        done=listed.done,
    )
    return _PhaseReading(phase, depends_on, where, tuple(problems))


def _disordered(gathered: _Gathered, read: Mapping[str, _PhaseReading]) -> Iterable[LineProblem]:
    """Dependencies on no phase, and rings; looked for even where other things are wrong, so that all is said."""
    known = sorted({*gathered.listed, *gathered.headed}, key=phase_number)
    lines = {phase_id: read[phase_id].line for phase_id in known if phase_id in read}
    outline = tuple(
        RoadmapPhase(
            id=phase_id,
            name="-",
            type=PhaseType.MIXED,
            depends_on=read[phase_id].depends_on if phase_id in read else (),
        )
        for phase_id in known
    )
    for problem in roadmap_problems(outline):
        match problem.where:
            case (_, int() as index, *_):
                yield at_line(lines[known[index]], problem.expected, f"Phase {problem.found}")
            case _:
                yield at_line(lines[problem.found.split(" ")[0]], problem.expected, problem.found)


ROADMAP_TEMPLATE = """\
# Roadmap

<!--
Fair Witness reads this file and never writes it. Each phase appears twice: as a line of the list, and under a heading
with its details. Do not change this file during a run.

Numbers:          6 for a planned phase, 6.1 for one that was inserted after it.
Type:             ui, protocol, data or mixed; mixed if the line is left out.
Depends on:       phases such as "Phase 1, Phase 2.1 (uses its tables)", or "Nothing".
Success Criteria: what can be seen when the phase is done. A criterion that ends in "verified by" and a command in
                  backticks is decided by that command.
-->

## Phases

- [ ] **Phase 1: First slice** - the smallest thing that works from end to end
- [ ] **Phase 2: Second slice** - what comes next

## Phase Details

### Phase 1: First slice

**Goal**: TBD: one sentence that says what is true for a user when this phase is done.
**Type**: mixed
**Depends on**: Nothing
**Requirements**: REQ-01
**Success Criteria**:

1. The README says how to start it, verified by `grep -qi start README.md`
2. Somebody who has never seen it can use it

**Plans**: made by the run

### Phase 2: Second slice

**Goal**: TBD: one sentence that says what is true for a user when this phase is done.
**Type**: mixed
**Depends on**: Phase 1 (builds on it)
**Requirements**: REQ-02
**Success Criteria**:

1. What phase 1 did is still true, verified by `grep -qi start README.md`

**Plans**: made by the run
"""


def config_template(detected: Detected) -> str:
    """Return the settings file of a project of which only the manifests are known.

    A command that was not detected is left out rather than null, because only a person sets null.
    """
    project = ProjectSettings(
        type=detected.type,
        manifest=detected.manifest,
        commands={kind: detected.commands[kind] for kind in CommandKind if kind in detected.commands},
        commands_source=CommandsSource.AUTO_DETECTED,
        spec_paths=DEFAULT_SPEC_PATHS,
    )
    return json.dumps(ProjectConfig(project=project).plain(), indent=2, ensure_ascii=False) + "\n"
