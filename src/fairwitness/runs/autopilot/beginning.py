"""How a pass is begun: written down with its events before anything of it is done."""

from fairwitness.contracts.autopilot import events_phase as of_phase
from fairwitness.contracts.autopilot import events_quality as of_quality
from fairwitness.contracts.autopilot.cost import CostEstimation
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.order import EarlierPhase
from fairwitness.contracts.autopilot.passes import PassKind, PhasePass
from fairwitness.contracts.autopilot.words import Loop, PhaseStatus
from fairwitness.rules.cost import estimated_tokens
from fairwitness.rules.flags import LoopPlan, course
from fairwitness.rules.scoring import tenths, worth_gaps
from fairwitness.runs.autopilot.book import PASS, Told, happened, pass_name
from fairwitness.runs.autopilot.cycles import earlier_items, loops_of, started
from fairwitness.runs.autopilot.room import Room


def begin(room: Room, phase: str, number: int) -> None:
    """Writes down a pass: the one that a verdict asked for, or the first of a phase; again it changes nothing."""
    book = room.book
    if any((each.phase, each.number) == (phase, number) for each in book.passes()):
        return
    for verdict in book.verdicts():
        for wanted in (*verdict.parts, *(() if verdict.next is None else (verdict.next,))):
            if (wanted.phase, wanted.number) == (phase, number):
                _begin_wanted(room, wanted)
                return
    earlier = room.order.earlier.get(phase)
    is_finished = earlier is not None and earlier.status is PhaseStatus.COMPLETED
    if earlier is not None and is_finished and not course(frozenset(room.order.flags)).fresh:
        _begin_finished(room, phase, number, earlier)
        return
    told = _started(room, phase)
    if earlier is not None and is_finished:
        again = happened(
            of_quality.ForceReexecutionStarted,
            book.now(),
            phase=phase,
            previous_score=earlier.alignment_score,
            previous_status=earlier.status,
        )
        told = (Told(again), *told)
    tip = room.tip()
    _write(room, PhasePass(phase=phase, number=number, kind=PassKind.WHOLE, start=tip, checkpoint=tip), told)


def _begin_wanted(room: Room, wanted: PhasePass) -> None:
    """A pass that a verdict asked for; a part of a phase begins where the part before it left the branch."""
    if wanted.kind is not PassKind.PART:
        _write(room, wanted, ())
        return
    tip = room.tip()
    _write(room, wanted.model_copy(update={"start": tip, "checkpoint": tip}), _started(room, wanted.phase))


def _started(room: Room, phase: str) -> tuple[Told, ...]:
    about = room.phase(phase)
    plan = room.plan(phase)
    tasks = None if plan is None else [task.complexity for task in plan.tasks]
    event = happened(
        of_phase.PhaseStarted,
        room.book.now(),
        phase=phase,
        phase_name=about.name,
        phase_type=about.type,
        estimated_tokens=estimated_tokens(CostEstimation(), about.type, tasks),
    )
    return (Told(event),)


def _begin_finished(room: Room, phase: str, number: int, earlier: EarlierPhase) -> None:
    """A phase that an earlier run completed gets a cycle of the loop that was asked for, or is left as it is."""
    chosen = _loop_for(room, earlier)
    if chosen is None:
        skip(room, phase, "already_completed")
        return
    plan, items, score = chosen
    tip = room.tip()
    cycle = PhasePass(
        phase=phase,
        number=number,
        kind=PassKind.CYCLE,
        start=tip,
        checkpoint=tip,
        loop=plan.loop,
        before_tenths=score,
        items=items,
    )
    _write(room, cycle, (*_started(room, phase), *started(room, cycle, plan, 1)))


def _loop_for(room: Room, earlier: EarlierPhase) -> tuple[LoopPlan, tuple[PathItem, ...], int] | None:
    if earlier.alignment_score is None:
        return None
    score = tenths(earlier.alignment_score)
    items = earlier_items(earlier)
    for plan in loops_of(room):
        if score >= plan.target_tenths or not items or (plan.loop is Loop.GAPS and not worth_gaps(score)):
            continue
        return plan, items[:1] if plan.loop is Loop.GAPS else items, score
    return None


def skip(room: Room, phase: str, reason: str) -> None:
    """Says once that a phase is not run, and why."""
    record = room.book.state().state.phases.get(phase)
    if record is None or record.status is not PhaseStatus.NOT_STARTED:
        return
    earlier = room.order.earlier.get(phase)
    blocker = reason.removeprefix("blocked_by_phase_") if reason.startswith("blocked_by_phase_") else None
    event = happened(
        of_phase.PhaseSkipped,
        room.book.now(),
        phase=phase,
        phase_id=phase,
        reason=reason,
        original_run_timestamp=None if earlier is None or blocker is not None else earlier.completed_at,
        blocking_phase=blocker,
    )
    room.book.tell(Told(event))


def _write(room: Room, asked: PhasePass, told: tuple[Told, ...]) -> None:
    room.book.keep(f"{PASS}:{pass_name(asked)}", PASS, asked.phase, asked, lambda _now: told)
