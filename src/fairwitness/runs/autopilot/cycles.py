"""The improvement loops over a completed phase: when another cycle starts, and what follows from one that returned."""

from dataclasses import dataclass

from fairwitness.contracts.autopilot import events_phase as of_phase
from fairwitness.contracts.autopilot import events_quality as of_quality
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.order import EarlierPhase
from fairwitness.contracts.autopilot.passes import AfterPass, PassKind, PhasePass
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome, PhaseReturn
from fairwitness.contracts.autopilot.rating import band_of
from fairwitness.contracts.autopilot.vocabulary import ImprovementLoop, Recommendation
from fairwitness.rules.diagnostics import CycleResult, LoopFacts, LoopMove, after_cycle, after_loop, usable_paths
from fairwitness.rules.rating import improvement_paths
from fairwitness.rules.run_flags import LoopPlan, run_mode
from fairwitness.rules.scores import in_order_of_gap, tenths
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.integrity_inputs import (
    PassReview,
    files_of,
    paths_of,
    with_current_rating,
    write_diagnostic,
)
from fairwitness.runs.autopilot.lineage import origin, passes_of, revert_key
from fairwitness.runs.autopilot.log import LoggedEvent, new_event
from fairwitness.runs.autopilot.rating import PhaseRating
from fairwitness.runs.autopilot.revert import take_back


@dataclass(frozen=True, slots=True)
class CycleDecision:
    """What follows a pass: the word for it, the next pass if there is one, and the events."""

    after: AfterPass
    because: str
    next: PhasePass | None
    events: tuple[LoggedEvent, ...]


def first_cycle(context: AutopilotContext, review: PassReview) -> CycleDecision | None:
    """Return the first cycle over a completed phase that is below a loop's target, or None if none is due."""
    score = review.returned.alignment_score
    if score is None:
        return None
    for plan in loops_of(context):
        if tenths(score) < plan.target_tenths:
            items = _taken_up(plan, items_left(context, review.phase_pass, plan, review.rated))
            if items:
                return _begun(context, review.phase_pass, plan, tenths(score), items, "it is below the target", cycle=1)
    return None


def nothing_to_raise(context: AutopilotContext, review: PassReview) -> tuple[LoggedEvent, ...]:
    """Return the events for a completed phase below a target for which no improvement is named."""
    score = review.returned.alignment_score
    short = () if score is None else tuple(plan for plan in loops_of(context) if tenths(score) < plan.target_tenths)
    events = (
        _exhausted(context, review, plan, tenths(score or 0.0))
        for plan in short
        if plan.loop is not ImprovementLoop.REMEDIATION
    )
    return tuple(each for some in events for each in some)


def loops_of(context: AutopilotContext) -> tuple[LoopPlan, ...]:
    """Return the loops of this run, limited to the number of cycles that the user asked for."""
    order = context.order
    plans = run_mode(frozenset(order.flags)).loops
    most = order.cycles
    if most is None:
        return plans
    return tuple(
        plan if plan.loop is ImprovementLoop.REMEDIATION else plan.model_copy(update={"cycles": min(plan.cycles, most)})
        for plan in plans
    )


def items_left(
    context: AutopilotContext, phase_pass: PhasePass, plan: LoopPlan, rated: PhaseRating | None
) -> tuple[PathItem, ...]:
    """Return what can be improved, widest gap first; the gaps loop leaves out what it tried before."""
    known = paths_of(context, phase_pass)
    if rated is None:  # this run has no rating, so the items of the earlier run still apply
        usable = earlier_items(context.order.earlier.get(phase_pass.phase))
    else:
        usable = usable_paths(
            improvement_paths(rated.settled.rating, files_of(context, phase_pass), known, plan.target_tenths), known
        ).usable
    if plan.loop is not ImprovementLoop.GAPS:
        return usable
    tried = {
        item.deficiency
        for each in passes_of(context.log, phase_pass.phase)
        for item in each.items
        if each.loop is ImprovementLoop.GAPS
    }
    return tuple(item for item in usable if item.deficiency not in tried)


def earlier_items(earlier: EarlierPhase | None) -> tuple[PathItem, ...]:
    """Return what an earlier run left to improve, widest gap first."""
    gaps = () if earlier is None else in_order_of_gap(earlier.deficiencies)
    return tuple(PathItem(file=gap.target_file, deficiency=gap.deficiency, impact=gap.expected_impact) for gap in gaps)


def _taken_up(plan: LoopPlan, left: tuple[PathItem, ...]) -> tuple[PathItem, ...]:
    """Return what one cycle works on: everything, or a single gap in the gaps loop."""
    return left[:1] if plan.loop is ImprovementLoop.GAPS else left


def _begun(
    context: AutopilotContext,
    phase_pass: PhasePass,
    plan: LoopPlan,
    score: int,
    items: tuple[PathItem, ...],
    because: str,
    *,
    cycle: int,
) -> CycleDecision:
    following = PhasePass(
        phase=phase_pass.phase,
        number=phase_pass.number + 1,
        kind=PassKind.CYCLE,
        start=context.tip(),
        checkpoint=phase_pass.checkpoint,
        loop=plan.loop,
        before_tenths=score,
        items=items,
    )
    return CycleDecision(AfterPass.ONCE_MORE, because, following, started(context, following, plan, cycle))


def started(context: AutopilotContext, following: PhasePass, plan: LoopPlan, cycle: int) -> tuple[LoggedEvent, ...]:
    """Return the event that starts a cycle."""
    now, phase = context.log.now(), following.phase
    score = (following.before_tenths or 0) / 10
    match plan.loop:
        case ImprovementLoop.REMEDIATION:
            event = new_event(
                of_quality.RemediationStarted,
                now,
                phase=phase,
                phase_id=phase,
                cycle=cycle,
                current_score=score,
                pass_threshold=plan.target_tenths / 10,
                feedback_items=len(following.items),
            )
            return (LoggedEvent(event),)
        case ImprovementLoop.QUALITY:
            target = plan.target_tenths / 10
            quality = new_event(
                of_quality.QualityRemediationStarted,
                now,
                phase=phase,
                cycle=cycle,
                current_score=score,
                target=target,
            )
            return (LoggedEvent(quality),)
        case ImprovementLoop.GAPS:
            gap = new_event(
                of_quality.GapsIterationStarted,
                now,
                phase=phase,
                iteration=cycle,
                deficiency=following.items[0].deficiency,
                current_score=score,
            )
            return (LoggedEvent(gap),)


def cycle_result(context: AutopilotContext, review: PassReview, failed: str | None) -> CycleResult:
    """Return the result of a returned cycle; `failed` names the integrity check that it failed, if any."""
    before = origin(context.log, review.phase_pass).before_tenths
    assert before is not None
    return after_cycle(before, None if failed is not None else _new(review.returned))


def _new(returned: PhaseReturn) -> int | None:
    """Return the score of a cycle in tenths, or None if the phase has no valid score."""
    counts = returned.status is PhaseOutcome.COMPLETED and returned.recommendation is Recommendation.PROCEED
    score = returned.alignment_score if counts else None
    return None if score is None else tenths(score)


def after_cycle_pass(context: AutopilotContext, review: PassReview, *, failed: str | None) -> CycleDecision:
    """Return what follows a cycle; a cycle that lowered the score, or has none, is reverted."""
    phase_pass, cycle = review.phase_pass, origin(context.log, review.phase_pass)
    assert cycle.loop is not None
    result, new = cycle_result(context, review, failed), None if failed is not None else _new(review.returned)
    if result.revert:
        why = failed or ("a cycle made the score worse" if new is not None else _said(review.returned))
        take_back(context.log, context.repo, phase_pass.phase, to=cycle.start, why=why, key=revert_key(phase_pass))
    plan = next((each for each in loops_of(context) if each.loop is cycle.loop), None)
    assert plan is not None  # a cycle is one of the run's loops
    current = with_current_rating(context, review)
    left = items_left(context, phase_pass, plan, current.rated)
    items = _taken_up(plan, left)
    ended = _ended(review, cycle, context.log.now(), result, new, plan, len(left))
    facts = LoopFacts(
        loop=plan.loop,
        target_tenths=plan.target_tenths,
        score_tenths=result.score_tenths,
        cycles=review.cycles,
        gained=result.gained,
        remaining=len(items),
    )
    answer = after_loop(facts)
    spent = review.cycles >= plan.cycles or not items
    if answer.move is LoopMove.AGAIN and not spent:
        following = _begun(
            context, phase_pass, plan, result.score_tenths, items, answer.because, cycle=review.cycles + 1
        )
        return CycleDecision(following.after, following.because, following.next, (*ended, *following.events))
    more = () if answer.move is LoopMove.REACHED else _exhausted(context, current, plan, result.score_tenths)
    further = _further(context, current, plan, result.score_tenths)
    if further is not None:
        return CycleDecision(further.after, further.because, further.next, (*ended, *more, *further.events))
    done = new_event(
        of_phase.PhaseCompleted,
        context.log.now(),
        phase=phase_pass.phase,
        alignment_score=result.score_tenths / 10,
        score_band=band_of(result.score_tenths / 10),
        checkpoint_sha=context.tip(),
    )
    return CycleDecision(AfterPass.SETTLED, answer.because, None, (*ended, *more, LoggedEvent(done)))


def _said(returned: PhaseReturn) -> str:
    return f"a cycle failed: {returned.summary}"


def _further(context: AutopilotContext, review: PassReview, plan: LoopPlan, score: int) -> CycleDecision | None:
    """Return the first cycle of the next loop: the gaps loop continues beyond the quality target."""
    plans = loops_of(context)
    for other in plans[plans.index(plan) + 1 :]:
        left = items_left(context, review.phase_pass, other, review.rated) if score < other.target_tenths else ()
        items = _taken_up(other, left)
        if items:
            return _begun(context, review.phase_pass, other, score, items, "the next loop aims higher", cycle=1)
    return None


def _ended(
    review: PassReview, cycle: PhasePass, now: str, result: CycleResult, new: int | None, plan: LoopPlan, left: int
) -> tuple[LoggedEvent, ...]:
    """Return the event that ends a cycle; without a score of its own it names only the score before it."""
    phase, before = cycle.phase, cycle.before_tenths or 0
    number = review.cycles
    match plan.loop:
        case ImprovementLoop.REMEDIATION:
            event = new_event(
                of_quality.RemediationCompleted,
                now,
                phase=phase,
                phase_id=phase,
                cycle=number,
                improved=result.gained,
                reached_threshold=result.score_tenths >= plan.target_tenths,
                old_score=before / 10,
                new_score=None if new is None else new / 10,
            )
            return (LoggedEvent(event),)
        case ImprovementLoop.QUALITY:
            target = plan.target_tenths / 10
            quality = new_event(
                of_quality.QualityRemediationCompleted,
                now,
                phase=phase,
                cycle=number,
                target=target,
                old_score=before / 10,
                new_score=None if new is None else new / 10,
            )
            return (LoggedEvent(quality),)
        case ImprovementLoop.GAPS:
            gap = new_event(
                of_quality.GapsIterationCompleted,
                now,
                phase=phase,
                iteration=number,
                deficiency_addressed=cycle.items[0].deficiency,
                remaining_deficiencies=left,
                old_score=before / 10,
                new_score=None if new is None else new / 10,
            )
            return (LoggedEvent(gap),)


def _exhausted(context: AutopilotContext, review: PassReview, plan: LoopPlan, score: int) -> tuple[LoggedEvent, ...]:
    """Return the events for a phase whose loop ended below its target; it passes, and the events say how."""
    now, phase, count = context.log.now(), review.phase_pass.phase, review.cycles
    final, target = score / 10, plan.target_tenths / 10
    match plan.loop:
        case ImprovementLoop.REMEDIATION:
            path = write_diagnostic(context, review, force_incomplete=True)
            if path is None:
                return ()
            marked = new_event(
                of_quality.ForceIncompleteMarked,
                now,
                phase=phase,
                phase_id=phase,
                final_score=final,
                pass_threshold=target,
                remediation_cycles=count,
                diagnostic_path=path,
            )
            return (LoggedEvent(marked),)
        case ImprovementLoop.QUALITY:
            spent = new_event(
                of_quality.QualityExhausted, now, phase=phase, cycles=count or None, final_score=final, target=target
            )
            return (LoggedEvent(spent),)
        case ImprovementLoop.GAPS:
            gaps = new_event(
                of_quality.GapsExhausted, now, phase=phase, iterations=count or None, final_score=final, target=target
            )
            return (LoggedEvent(gaps),)
