"""Roadmaps for tests: a writer of the format, small texts around one field, and strategies for whole roadmaps."""

from hypothesis import strategies as st

from fairwitness.contracts.autopilot.roadmap import Criterion, DetailedPhase, Requirement, Roadmap, phase_number
from fairwitness.contracts.autopilot.vocabulary import PhaseType


def phase_text(
    number: str = "1",
    *,
    goal: str = "**Goal**: it works",
    depends: str = "**Depends on**: Nothing",
    criteria: str = "**Success Criteria**:\n1. it runs",
    more: str = "",
) -> str:
    """The details of one phase, each field as its whole lines."""
    return "\n".join((f"### Phase {number}: name {number}", goal, depends, criteria, more, ""))


def listed(*numbers: str) -> str:
    """List lines of phases."""
    return "".join(f"- [ ] **Phase {number}: name {number}**\n" for number in numbers)


def chained(**depends: str) -> str:
    """A whole roadmap of phases that only differ in what they wait for; `p1_5` is phase 1.5."""
    ids = {name.removeprefix("p").replace("_", "."): said for name, said in depends.items()}
    return listed(*ids) + "\n".join(
        phase_text(number, depends=f"**Depends on**: {said}") for number, said in ids.items()
    )


def written(roadmap: Roadmap) -> str:
    """A roadmap as a person would write it; reading it gives the same roadmap."""
    lines = ["# Roadmap", "", "## Phases", ""]
    for phase in roadmap.phases:
        lines.append(f"- [{'x' if phase.done else ' '}] **Phase {phase.id}: {phase.name}** - what for")
    lines += ["", "## Phase Details", ""]
    for phase in reversed(roadmap.phases):
        lines += _details(phase)
    return "\n".join([*lines, "## Progress", "", "| Phase | Status |", "|---|---|", "| 1 | done |", ""])


def _details(phase: DetailedPhase) -> list[str]:
    waits = ", ".join(f"Phase {other}" for other in phase.depends_on) or "Nothing"
    lines = [f"### Phase {phase.id}: {phase.name}", "", f"**Goal**: {phase.goal}", f"**Type**: {phase.type}"]
    lines += [f"**Depends on**: {waits}", "**Requirements**:"]
    lines += [f"- {one.id}" + ("" if one.text is None else f": {one.text}") for one in phase.requirements]
    lines += ["**Success Criteria** (what must be true):", ""]
    for number, criterion in enumerate(phase.criteria, start=1):
        command = criterion.command
        end = "" if command is None else f", verified by {_span(command)}"
        lines.append(f"  {number}. {criterion.text}{end}")
    return [*lines, "", "**Plans**: 1 plan", "", "Plans:", f"- [ ] {phase.id}-01: first", ""]


def _span(command: str) -> str:
    ticks = "`"
    while ticks in command:
        ticks += "`"
    return f"{ticks} {command} {ticks}"


_PLAIN = st.sampled_from(["it", "works", "登录", "Überall", "Phase", "7", "x-1", "C3PO"])
_ODD = st.sampled_from(
    ["(note)", "[x]", "`code`", "a:b", "1.", "-", "#", "*so*", "|", "–", "verified", "by", "<b>", "$5;"]
)
_WORDS = st.builds(
    lambda first, middle, last: " ".join((first, *middle, last)), _PLAIN, st.lists(_PLAIN | _ODD, max_size=3), _PLAIN
)
"""Texts that begin and end with a word, with anything between."""
COMMANDS = st.lists(
    st.sampled_from(["make", "test", "a  b", "`date`", "``", "| grep", "-q", "'x'", "; ls", "verified by"]),
    min_size=1,
    max_size=4,
).map(" ".join)
CRITERIA = st.builds(lambda text, command: Criterion(text=text, command=command), _WORDS, st.none() | COMMANDS)
REQUIREMENTS = st.lists(
    st.builds(
        lambda number, text: Requirement(id=f"REQ-{number:02}", text=text),
        st.integers(0, 99),
        st.none() | _WORDS,
    ),
    max_size=3,
    unique_by=lambda requirement: requirement.id,
)
IDS = st.builds(
    lambda whole, part: str(whole) if part is None else f"{whole}.{part}",
    st.integers(0, 30),
    st.none() | st.integers(0, 12),
)


@st.composite
def roadmaps(draw: st.DrawFn) -> Roadmap:
    """Any roadmap without a ring: a phase waits for phases that were drawn before it, whatever their numbers."""
    ids = draw(st.lists(IDS, min_size=1, max_size=6, unique=True))
    phases = []
    for place, phase_id in enumerate(ids):
        before = draw(st.lists(st.sampled_from(ids[:place]), unique=True, max_size=3)) if place else []
        phases.append(
            DetailedPhase(
                id=phase_id,
                name=draw(_WORDS),
                type=draw(st.sampled_from(PhaseType)),
                depends_on=tuple(before),
                goal=draw(_WORDS),
                requirements=tuple(draw(REQUIREMENTS)),
                criteria=tuple(draw(st.lists(CRITERIA, min_size=1, max_size=3))),
                done=draw(st.booleans()),
            )
        )
    return Roadmap(phases=tuple(sorted(phases, key=lambda phase: phase_number(phase.id))))
