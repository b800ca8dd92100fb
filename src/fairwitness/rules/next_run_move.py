"""The next move of an autopilot run: a pass of a phase, a decision about a returned pass, a question, or the end."""

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
    """The kinds of moves of an autopilot run."""

    BEGIN = "begin"
    """Record a new pass of a phase."""
    PASS = "pass"
    """Execute a recorded pass."""
    DECIDE = "decide"
    """Decide about a pass that returned, or about a phase whose parts have all returned."""
    SKIP = "skip"
    REPORT = "report"
    """Report the state of the run before it waits for a person."""
    WAIT = "wait"
    PAUSE = "pause"
    FINISH = "finish"
    END = "end"


class RunMove(Contract):
    """The next move and its subject."""

    kind: RunMoveKind
    phase: Maybe[PhaseId] = None
    number: Maybe[Positive] = None
    gate: Maybe[Text] = None
    reason: Maybe[SkipReason] = None


class RunFacts(Contract):
    """The facts about a run's passes, from its ledger."""

    status: AutopilotRunStatus
    statuses: Mapping[PhaseId, PhaseStatus]
    begun: tuple[PhasePass, ...]
    """Every recorded pass, in order."""
    returned: tuple[tuple[PhaseId, Positive], ...]
    verdicts: tuple[PassDecision, ...]
    processed: Count
    """Phases that ended since the run last started or resumed."""
    reported: Flag
    """Whether the state was reported since the last phase ended."""


def verdict_gate(phase: str) -> str:
    """Return the gate at which a run waits for the verdict on a phase."""
    return f"verdict:{phase}"


def next_move(order: AutopilotOrder, facts: RunFacts) -> RunMove:
    """Return the next move of a run."""
    if facts.status is not AutopilotRunStatus.RUNNING:
        return RunMove(kind=RunMoveKind.END)
    under_way = _under_way(facts)
    if under_way is not None:
        return under_way
    plans = _plans(order, facts.statuses)
    skipped = _skipped(plans, facts.statuses)
    if skipped is not None:
        return skipped
    # a started phase without a running pass was interrupted between passes, or is to be retried
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
    """Return True if the run can do nothing more until a person answers."""
    plans = _plans(order, statuses)
    return roadmap_end(plans) is RoadmapEnd.WAITS_FOR_A_PERSON


def is_at_its_end(order: AutopilotOrder, statuses: Mapping[str, PhaseStatus]) -> bool:
    """Return True if every selected phase has ended or is blocked by a failed one."""
    return roadmap_end(_plans(order, statuses)) in (RoadmapEnd.COMPLETED, RoadmapEnd.FAILED)


def _under_way(facts: RunFacts) -> RunMove | None:
    """Return the move that a recorded pass needs, latest first: a part of a phase comes before the phase."""
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
            continue  # a failed part fails the whole phase, so its other parts are not started
        for another in (*verdict.parts, *(() if verdict.next is None else (verdict.next,))):
            if (another.phase, another.number) not in known:
                return RunMove(kind=RunMoveKind.BEGIN, phase=another.phase, number=another.number)
    for verdict in facts.verdicts:  # only now, because a part may need another pass
        if verdict.parts and (verdict.phase, verdict.number + 1) not in decided:
            return RunMove(kind=RunMoveKind.DECIDE, phase=verdict.phase, number=verdict.number + 1)
    return None


def _next_number(facts: RunFacts, phase: str) -> int:
    """Return the number of the next pass of a phase; the decision about a split phase uses a number without a pass."""
    passes = [begun.number for begun in facts.begun if begun.phase == phase]
    return 1 + max((*passes, *(verdict.number for verdict in facts.verdicts if verdict.phase == phase)), default=0)


def _plans(order: AutopilotOrder, statuses: Mapping[str, PhaseStatus]) -> tuple[PhasePosition, ...]:
    """Return the positions of the selected phases; the preflight checks dependencies on others."""
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
        # selected, but finished by an earlier run and recorded as skipped: nothing is left to do
        ready = [phase for phase in next_phases(plans) if statuses.get(phase) is PhaseStatus.SKIPPED]
        finished = {phase for phase in ready if is_finished(order, phase)}
        if not finished:
            return plans
        done |= finished


def left_alone(order: AutopilotOrder) -> Collection[str]:
    """Return the phases that an earlier run completed and that this run leaves unchanged."""
    if run_mode(frozenset(order.flags)).takes is not Takes.UNFINISHED:
        return ()
    return [phase for phase in order.earlier if is_finished(order, phase)]


def is_finished(order: AutopilotOrder, phase: str) -> bool:
    """Return True if an earlier run completed a phase."""
    return phase in order.earlier and order.earlier[phase].status is PhaseStatus.COMPLETED


def _skipped(plans: Sequence[PhasePosition], statuses: Mapping[str, PhaseStatus]) -> RunMove | None:
    """Return the move that records a skipped phase, or None if all are recorded."""
    for plan in plans:
        untold = statuses.get(plan.id) is PhaseStatus.NOT_STARTED
        if untold and plan.place in (PhasePlace.BLOCKED, PhasePlace.DONE):
            return RunMove(kind=RunMoveKind.SKIP, phase=plan.id, reason=plan.reason)
    return None
