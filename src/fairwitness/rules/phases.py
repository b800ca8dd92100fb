"""The phases of a roadmap: their order, the selection by a range such as `3-7`, which can run now, and which are
blocked.
"""

from collections.abc import Mapping, Sequence, Set
from enum import StrEnum
from heapq import heappop, heappush
from typing import NamedTuple

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.phase_return import PhaseReturn
from fairwitness.contracts.autopilot.roadmap import PhaseSelection, Roadmap, phase_number
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, SkipReason
from fairwitness.contracts.common.base import Contract, Maybe
from fairwitness.contracts.common.ids import PhaseId
from fairwitness.contracts.common.problems import Problem
from fairwitness.rules.graph import find_cycle
from fairwitness.rules.roadmap_fields import phase_id_of
from fairwitness.rules.scores import PhaseGateAnswer, PhaseGateFacts, phase_gate, tenths


def roadmap_problems(phases: Sequence[RoadmapPhase]) -> tuple[Problem, ...]:
    """Return everything that keeps a roadmap from having an order."""
    problems = []
    known: set[str] = set()
    for index, phase in enumerate(phases):
        if phase.id in known:
            problems.append(Problem(where=("phases", index, "id"), expected="an id of its own", found=phase.id))
        known.add(phase.id)
    for index, phase in enumerate(phases):
        problems += [
            Problem(where=("phases", index, "depends_on", place), expected="a phase of the roadmap", found=other)
            for place, other in enumerate(phase.depends_on)
            if other not in known
        ]
    ring = find_cycle({phase.id: phase.depends_on for phase in phases})
    if ring:
        found = " → ".join((*ring, ring[0]))
        problems.append(
            Problem(where=("phases",), expected="phases that do not wait for each other in a ring", found=found)
        )
    return tuple(problems)


def phase_order(phases: Sequence[RoadmapPhase]) -> tuple[str, ...]:
    """Return the phases ordered by their dependencies and otherwise as in the roadmap."""
    place = {phase.id: index for index, phase in enumerate(phases)}
    waits = {phase.id: len(set(phase.depends_on)) for phase in phases}
    dependents = _dependents(phases)
    free: list[int] = []
    for phase in phases:
        if waits[phase.id] == 0:
            heappush(free, place[phase.id])
    order: list[str] = []
    while free:
        done = phases[heappop(free)].id
        order.append(done)
        for other in dependents[done]:
            waits[other] -= 1
            if waits[other] == 0:
                heappush(free, place[other])
    return tuple(order)


def _dependents(phases: Sequence[RoadmapPhase]) -> dict[str, list[str]]:
    dependents: dict[str, list[str]] = {phase.id: [] for phase in phases}
    for phase in phases:
        for other in dict.fromkeys(phase.depends_on):
            dependents[other].append(phase.id)
    return dependents


def has_dependents(phases: Sequence[RoadmapPhase], phase_id: str) -> bool:
    """Return True if another phase depends on this one."""
    return any(phase_id in phase.depends_on for phase in phases)


class PhasePlace(StrEnum):
    """The position of a phase in the remaining work."""

    RUN = "run"
    RUNNING = "running"
    WAIT = "wait"
    DONE = "done"
    FAILED = "failed"
    DEFERRED = "deferred"
    BLOCKED = "blocked"


class PhasePosition(Contract):
    """One phase with its position, and the reason if it is not run."""

    id: PhaseId
    place: PhasePlace
    reason: Maybe[SkipReason] = None


_OWN_PLACE: Mapping[PhaseStatus, PhasePlace | None] = {
    PhaseStatus.NOT_STARTED: None,
    PhaseStatus.IN_PROGRESS: PhasePlace.RUNNING,
    PhaseStatus.COMPLETED: PhasePlace.DONE,
    PhaseStatus.FAILED: PhasePlace.FAILED,
    PhaseStatus.NEEDS_HUMAN_VERIFICATION: PhasePlace.DEFERRED,
    PhaseStatus.SKIPPED: None,
}
"""The position that follows from a phase's own status; None if its dependencies decide."""


def roadmap_plan(
    phases: Sequence[RoadmapPhase], statuses: Mapping[str, PhaseStatus], *, done_before: frozenset[str] = frozenset()
) -> tuple[PhasePosition, ...]:
    """Return what `--complete` does with each phase, in the order they run.

    Finished phases are skipped, including those of earlier runs (`done_before`); a failure blocks its dependents, and
    dependents of a deferred phase wait. A phase without a status has not started.
    """
    depends_on = {phase.id: phase.depends_on for phase in phases}
    plans: dict[str, PhasePosition] = {}
    for phase_id in phase_order(phases):
        own = _OWN_PLACE[statuses.get(phase_id, PhaseStatus.NOT_STARTED)]
        if own is None and phase_id in done_before:
            own = PhasePlace.DONE
        before = [plans[other] for other in depends_on[phase_id]]
        plans[phase_id] = _plan(phase_id, own, before)
    return tuple(plans.values())


def _plan(phase_id: str, own: PhasePlace | None, before: Sequence[PhasePosition]) -> PhasePosition:
    if own is PhasePlace.DONE:
        return PhasePosition(id=phase_id, place=own, reason="already_completed")
    if own is not None:
        return PhasePosition(id=phase_id, place=own)
    for other in before:
        if other.place is PhasePlace.FAILED:
            return PhasePosition(id=phase_id, place=PhasePlace.BLOCKED, reason=f"blocked_by_phase_{other.id}")
        if other.place is PhasePlace.BLOCKED:
            return PhasePosition(id=phase_id, place=PhasePlace.BLOCKED, reason=other.reason)
    if all(other.place is PhasePlace.DONE for other in before):
        return PhasePosition(id=phase_id, place=PhasePlace.RUN)
    return PhasePosition(id=phase_id, place=PhasePlace.WAIT)


def next_phases(plans: Sequence[PhasePosition]) -> tuple[str, ...]:
    """Return the phases that can run now, in order."""
    return tuple(plan.id for plan in plans if plan.place is PhasePlace.RUN)


class RoadmapEnd(StrEnum):
    """Whether the roadmap is finished."""

    GOING = "going"
    WAITS_FOR_A_PERSON = "waits_for_a_person"
    COMPLETED = "completed"
    FAILED = "failed"


def roadmap_end(plans: Sequence[PhasePosition]) -> RoadmapEnd:
    """Return the state of a run: deferred phases keep it from ending, a failed one keeps it from being completed."""
    places = {plan.place for plan in plans}
    if places & {PhasePlace.RUN, PhasePlace.RUNNING}:
        return RoadmapEnd.GOING
    if PhasePlace.DEFERRED in places:
        return RoadmapEnd.WAITS_FOR_A_PERSON
    return RoadmapEnd.COMPLETED if places == {PhasePlace.DONE} else RoadmapEnd.FAILED


def gate_of(
    phases: Sequence[RoadmapPhase],
    returned: PhaseReturn,
    *,
    threshold_tenths: int,
    cycles: int,
    gained: bool,
    quality: bool,
    complete: bool,
) -> PhaseGateAnswer:
    """Return what happens to a returned phase, given its roadmap."""
    score = returned.alignment_score
    return phase_gate(
        PhaseGateFacts(
            outcome=returned.status,
            recommendation=returned.recommendation,
            score_tenths=None if score is None else tenths(score),
            threshold_tenths=threshold_tenths,
            cycles=cycles,
            gained=gained,
            quality=quality,
            has_dependents=has_dependents(phases, returned.phase),
            complete=complete,
        )
    )


ALL, NEXT = "all", "next"
MOST_SIGNS = 1000
"""The maximum length of a range."""
_FORMS = "phases such as 3-7, 3,5,8 or 6.1, or one of the words all and next"


class RangeReading(NamedTuple):
    """The selected phases, or the problems of the range."""

    selection: PhaseSelection | None
    problems: tuple[Problem, ...]


def read_range(text: str, roadmap: Roadmap, finished: Set[str]) -> RangeReading:
    """Return the phases of a range in the order of their dependencies, with finished phases listed separately.

    A range includes the phases inserted between its ends: `3-7` includes `6.1`, but not `7.1`.
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
    """Read one number, or a range of two numbers."""
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
    """Select the first unfinished phase; everything it depends on precedes it and is therefore finished."""
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
