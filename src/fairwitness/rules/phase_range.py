"""Which phases a person asks for: `3-7`, `3,5,8`, `6.1`, `all` or `next`, held against the roadmap."""

from collections.abc import Set
from typing import NamedTuple

from fairwitness.contracts.autopilot.roadmap import PhaseSelection, Roadmap, phase_number
from fairwitness.contracts.common.problems import Problem
from fairwitness.rules.phases import phase_order
from fairwitness.rules.roadmap_fields import phase_id_of

ALL, NEXT = "all", "next"
MOST_SIGNS = 1000
"""How long a range may be."""
_FORMS = "phases such as 3-7, 3,5,8 or 6.1, or one of the words all and next"


class RangeReading(NamedTuple):
    """The phases that were asked for, unless there is a problem."""

    selection: PhaseSelection | None
    problems: tuple[Problem, ...]


def read_range(text: str, roadmap: Roadmap, finished: Set[str]) -> RangeReading:
    """The phases of a range, each after those it depends on; what is finished is told apart.

    A range of numbers holds the phases that were inserted between its ends: `3-7` holds `6.1`, but not `7.1`.
    """
    word = text.strip()
    if len(word) > MOST_SIGNS:
        return _refused((_problem(f"at most {MOST_SIGNS} characters", f"{len(word)} characters"),))
    if word.casefold() == ALL:
        return _selected({phase.id for phase in roadmap.phases}, roadmap, finished)
    if word.casefold() == NEXT:
        return _next(roadmap, finished)
    return _listed(word, roadmap, finished)


def _listed(word: str, roadmap: Roadmap, finished: Set[str]) -> RangeReading:
    chosen: set[str] = set()
    problems: list[Problem] = []
    for part in word.split(","):
        found, wrong = _part(part.strip(), roadmap)
        chosen |= found
        problems += wrong
    return _refused(tuple(problems)) if problems else _selected(chosen, roadmap, finished)


def _part(part: str, roadmap: Roadmap) -> tuple[set[str], list[Problem]]:
    """One number, or two with all between them."""
    first, dash, last = part.partition("-")
    ends = [phase_id_of(end.strip()) for end in ((first, last) if dash else (first,))]
    known = {phase.id for phase in roadmap.phases}
    problems = [_problem("a phase of the roadmap", end) for end in ends if end is not None and end not in known]
    if None in ends:
        return set(), [_problem(_FORMS, part)]
    numbers = [phase_number(end) for end in ends if end is not None]
    if numbers[0] > numbers[-1]:
        problems.append(_problem("a range from the lower to the higher phase", part))
    return {phase_id for phase_id in known if numbers[0] <= phase_number(phase_id) <= numbers[-1]}, problems


def _next(roadmap: Roadmap, finished: Set[str]) -> RangeReading:
    """The first phase that is not finished; all that it waits for comes before it, so that is finished."""
    left = next((phase_id for phase_id in phase_order(roadmap.phases) if phase_id not in finished), None)
    if left is None:
        return _refused((_problem("a phase that is left to do", "all phases are finished"),))
    return RangeReading(PhaseSelection(open=(left,), finished=()), ())


def _selected(chosen: Set[str], roadmap: Roadmap, finished: Set[str]) -> RangeReading:
    order = [phase_id for phase_id in phase_order(roadmap.phases) if phase_id in chosen]
    selection = PhaseSelection(
        open=tuple(phase_id for phase_id in order if phase_id not in finished),
        finished=tuple(phase_id for phase_id in order if phase_id in finished),
    )
    return RangeReading(selection, ())


def _problem(expected: str, found: str) -> Problem:
    shown = " ".join(found.split())
    shown = f"{shown[:117]}..." if len(shown) > 120 else shown
    return Problem(where=("range",), expected=expected, found=shown or "nothing")


def _refused(problems: tuple[Problem, ...]) -> RangeReading:
    return RangeReading(None, problems)
