"""Where an autopilot run goes next: a pass of a phase, a decision about one that returned, a person, or its end."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.order import AutopilotOrder
from fairwitness.contracts.autopilot.passes import PassDecision, PhasePass
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus, SkipReason
from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Text
from fairwitness.contracts.common.ids import PhaseId
from fairwitness.rules.phases import PhasePlace, PhasePosition, RoadmapEnd, next_phases, roadmap_end, roadmap_plan
from fairwitness.rules.run_flags import Takes, run_mode


class RunMoveKind(StrEnum):
    """What a run does next."""

    BEGIN = "begin"
    """Write down the first pass of a phase."""
    PASS = "pass"
    """Go through a pass that was written down."""
    DECIDE = "decide"
    """Decide about a pass that returned, or about a phase whose parts have all returned."""
    SKIP = "skip"
    REPORT = "report"
    """Say how things stand before a person is waited for."""
    WAIT = "wait"
    PAUSE = "pause"
    FINISH = "finish"
    END = "end"


class RunMove(Contract):
    """The move, and what it is about."""

    kind: RunMoveKind
    phase: Maybe[PhaseId] = None
    number: Maybe[Positive] = None
    gate: Maybe[Text] = None
    reason: Maybe[SkipReason] = None


class RunFacts(Contract):
    """What a run's ledger says of its passes."""

    status: AutopilotRunStatus
    statuses: Mapping[PhaseId, PhaseStatus]
    begun: tuple[PhasePass, ...]
    """Every pass that was written down, in order."""
    returned: tuple[tuple[PhaseId, Positive], ...]
    verdicts: tuple[PassDecision, ...]
    processed: Count
    """Phases that ended since the run was begun or resumed last."""
    reported: Flag
    """Whether it was said how things stand since the last phase ended."""


def verdict_gate(phase: str) -> str:
    """The gate at which a run waits for the verdict about a phase."""
    return f"verdict:{phase}"


def next_move(order: AutopilotOrder, facts: RunFacts) -> RunMove:
    """The next move of a run."""
    if facts.status is not AutopilotRunStatus.RUNNING:
        return RunMove(kind=RunMoveKind.END)
    under_way = _under_way(facts)
    if under_way is not None:
        return under_way
    plans = _plans(order, facts.statuses)
    skipped = _skipped(plans, facts.statuses)
    if skipped is not None:
        return skipped
    # a phase that was started and has no pass under way was left in between, or is to be tried again
    started = tuple(plan.id for plan in plans if plan.place is PhasePlace.RUNNING)
    ready = started or next_phases(plans)
    if ready and not started and order.pause_after is not None and facts.processed >= order.pause_after:
        return RunMove(kind=RunMoveKind.PAUSE)
    if ready:
        first = next(phase for phase in order.phases if phase in ready)
        return RunMove(kind=RunMoveKind.BEGIN, phase=first, number=_next_number(facts, first))
    if waits_for_a_person(order, facts.statuses):
        if not facts.reported:
            return RunMove(kind=RunMoveKind.REPORT)
        asked = next(plan.id for plan in plans if plan.place is PhasePlace.DEFERRED)
        return RunMove(kind=RunMoveKind.WAIT, phase=asked, gate=verdict_gate(asked))
    return RunMove(kind=RunMoveKind.FINISH)


def waits_for_a_person(order: AutopilotOrder, statuses: Mapping[str, PhaseStatus]) -> bool:
    """Whether nothing is left that a run could do before a person has said something."""
    plans = _plans(order, statuses)
    return roadmap_end(plans) is RoadmapEnd.WAITS_FOR_A_PERSON


def is_at_its_end(order: AutopilotOrder, statuses: Mapping[str, PhaseStatus]) -> bool:
    """Whether every phase that a run takes up has ended, or cannot be begun because of one that failed."""
    return roadmap_end(_plans(order, statuses)) in (RoadmapEnd.COMPLETED, RoadmapEnd.FAILED)


def _under_way(facts: RunFacts) -> RunMove | None:
    """What a pass that was begun asks for, the latest first: a part of a phase comes before the phase."""
    returned = set(facts.returned)
    decided = {(verdict.phase, verdict.number): verdict for verdict in facts.verdicts}
    for begun in reversed(facts.begun):
        key = (begun.phase, begun.number)
        if key not in returned:
            return RunMove(kind=RunMoveKind.PASS, phase=begun.phase, number=begun.number)
        if key not in decided:
            return RunMove(kind=RunMoveKind.DECIDE, phase=begun.phase, number=begun.number)
    known = {(begun.phase, begun.number) for begun in facts.begun}
    for verdict in reversed(facts.verdicts):
        parts = [part.phase for part in verdict.parts if (part.phase, part.number) in known]
        has_failed = any(facts.statuses.get(part) is PhaseStatus.FAILED for part in parts)
        if verdict.parts and (has_failed or (verdict.phase, verdict.number + 1) in decided):
            continue  # without one part the whole phase has failed, so its others are not begun
        for another in (*verdict.parts, *(() if verdict.next is None else (verdict.next,))):
            if (another.phase, another.number) not in known:
                return RunMove(kind=RunMoveKind.BEGIN, phase=another.phase, number=another.number)
    for verdict in facts.verdicts:  # only now: a part may have been wanted once more
        if verdict.parts and (verdict.phase, verdict.number + 1) not in decided:
            return RunMove(kind=RunMoveKind.DECIDE, phase=verdict.phase, number=verdict.number + 1)
    return None


def _next_number(facts: RunFacts, phase: str) -> int:
    """The number of the next pass of a phase; the decision about a split phase has a number too, and no pass."""
    passes = [begun.number for begun in facts.begun if begun.phase == phase]
    return 1 + max((*passes, *(verdict.number for verdict in facts.verdicts if verdict.phase == phase)), default=0)


def _plans(order: AutopilotOrder, statuses: Mapping[str, PhaseStatus]) -> tuple[PhasePosition, ...]:
    """What is left to do of the phases that this run takes up; what others need is for the preflight to see."""
    taken = set(order.phases)
    phases = [
        RoadmapPhase(
            id=phase.id,
            name=phase.name,
            type=phase.type,
            depends_on=tuple(other for other in phase.depends_on if other in taken),
        )
        for phase in order.roadmap.phases
        if phase.id in taken
    ]
    done = frozenset(left_alone(order))
    while True:
        plans = roadmap_plan(phases, statuses, done_before=done)
        # taken up, found finished by an earlier run, and told so: nothing more is to be done about it
        ready = [phase for phase in next_phases(plans) if statuses.get(phase) is PhaseStatus.SKIPPED]
        finished = {phase for phase in ready if is_finished(order, phase)}
        if not finished:
            return plans
        done |= finished


def left_alone(order: AutopilotOrder) -> Collection[str]:
    """The phases that an earlier run completed and that this one does not touch."""
    if run_mode(frozenset(order.flags)).takes is not Takes.UNFINISHED:
        return ()
    return [phase for phase in order.earlier if is_finished(order, phase)]


def is_finished(order: AutopilotOrder, phase: str) -> bool:
    """Whether an earlier run completed a phase."""
    return phase in order.earlier and order.earlier[phase].status is PhaseStatus.COMPLETED


def _skipped(plans: Sequence[PhasePosition], statuses: Mapping[str, PhaseStatus]) -> RunMove | None:
    """A phase that is not run, as long as nobody has said so."""
    for plan in plans:
        untold = statuses.get(plan.id) is PhaseStatus.NOT_STARTED
        if untold and plan.place in (PhasePlace.BLOCKED, PhasePlace.DONE):
            return RunMove(kind=RunMoveKind.SKIP, phase=plan.id, reason=plan.reason)
    return None
