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
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.cycles import earlier_items, loops_of, started
from fairwitness.runs.autopilot.log import PASS, Told, happened, pass_name


def begin(context: AutopilotContext, phase: str, number: int) -> None:
    """Writes down a pass: the one that a verdict asked for, or the first of a phase; again it changes nothing."""
    log = context.log
    if any((each.phase, each.number) == (phase, number) for each in log.passes()):
        return
    for verdict in log.verdicts():
        for wanted in (*verdict.parts, *(() if verdict.next is None else (verdict.next,))):
            if (wanted.phase, wanted.number) == (phase, number):
                _begin_wanted(context, wanted)
                return
    earlier = context.order.earlier.get(phase)
    is_finished = earlier is not None and earlier.status is PhaseStatus.COMPLETED
    if earlier is not None and is_finished and not course(frozenset(context.order.flags)).fresh:
        _begin_finished(context, phase, number, earlier)
        return
    told = _started(context, phase)
    if earlier is not None and is_finished:
        again = happened(
            of_quality.ForceReexecutionStarted,
            log.now(),
            phase=phase,
            previous_score=earlier.alignment_score,
            previous_status=earlier.status,
        )
        told = (Told(again), *told)
    tip = context.tip()
    _write(context, PhasePass(phase=phase, number=number, kind=PassKind.WHOLE, start=tip, checkpoint=tip), told)


def _begin_wanted(context: AutopilotContext, wanted: PhasePass) -> None:
    """A pass that a verdict asked for; a part of a phase begins where the part before it left the branch."""
    if wanted.kind is not PassKind.PART:
        _write(context, wanted, ())
        return
    tip = context.tip()
    _write(context, wanted.model_copy(update={"start": tip, "checkpoint": tip}), _started(context, wanted.phase))


def _started(context: AutopilotContext, phase: str) -> tuple[Told, ...]:
    about = context.phase(phase)
    plan = context.plan(phase)
    tasks = None if plan is None else [task.complexity for task in plan.tasks]
    event = happened(
        of_phase.PhaseStarted,
        context.log.now(),
        phase=phase,
        phase_name=about.name,
        phase_type=about.type,
        estimated_tokens=estimated_tokens(CostEstimation(), about.type, tasks),
    )
    return (Told(event),)


def _begin_finished(context: AutopilotContext, phase: str, number: int, earlier: EarlierPhase) -> None:
    """A phase that an earlier run completed gets a cycle of the loop that was asked for, or is left as it is."""
    chosen = _loop_for(context, earlier)
    if chosen is None:
        skip(context, phase, "already_completed")
        return
    plan, items, score = chosen
    tip = context.tip()
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
    _write(context, cycle, (*_started(context, phase), *started(context, cycle, plan, 1)))


def _loop_for(context: AutopilotContext, earlier: EarlierPhase) -> tuple[LoopPlan, tuple[PathItem, ...], int] | None:
    if earlier.alignment_score is None:
        return None
    score = tenths(earlier.alignment_score)
    items = earlier_items(earlier)
    for plan in loops_of(context):
        if score >= plan.target_tenths or not items or (plan.loop is Loop.GAPS and not worth_gaps(score)):
            continue
        return plan, items[:1] if plan.loop is Loop.GAPS else items, score
    return None


def skip(context: AutopilotContext, phase: str, reason: str) -> None:
    """Says once that a phase is not run, and why."""
    record = context.log.state().state.phases.get(phase)
    if record is None or record.status is not PhaseStatus.NOT_STARTED:
        return
    earlier = context.order.earlier.get(phase)
    blocker = reason.removeprefix("blocked_by_phase_") if reason.startswith("blocked_by_phase_") else None
    event = happened(
        of_phase.PhaseSkipped,
        context.log.now(),
        phase=phase,
        phase_id=phase,
        reason=reason,
        original_run_timestamp=None if earlier is None or blocker is not None else earlier.completed_at,
        blocking_phase=blocker,
    )
    context.log.tell(Told(event))


def _write(context: AutopilotContext, asked: PhasePass, told: tuple[Told, ...]) -> None:
    context.log.keep(f"{PASS}:{pass_name(asked)}", PASS, asked.phase, asked, lambda _now: told)
