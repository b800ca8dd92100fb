"""The loops over a completed phase: when another cycle is begun, and what became of one that returned."""

from dataclasses import dataclass

from assay.contracts.autopilot import events_phase as of_phase
from assay.contracts.autopilot import events_quality as of_quality
from assay.contracts.autopilot.facts import PathItem
from assay.contracts.autopilot.passes import AfterPass, PassKind, PhasePass
from assay.contracts.autopilot.phase_return import PhaseOutcome
from assay.contracts.autopilot.score import band_of
from assay.contracts.autopilot.words import Loop, Recommendation
from assay.rules.diagnostics import LoopFacts, LoopMove, after_cycle, after_loop, way_up
from assay.rules.flags import LoopPlan, course
from assay.rules.scoring import tenths
from assay.rules.ways_up import ways_up
from assay.steps.autopilot.book import Told, happened
from assay.steps.autopilot.lineage import origin, passes_of
from assay.steps.autopilot.rating import Rated
from assay.steps.autopilot.reverting import take_back
from assay.steps.autopilot.room import Room
from assay.steps.autopilot.weighing import Weighed, files_of, paths_of, write_diagnostic


@dataclass(frozen=True, slots=True)
class Following:
    """What comes after a pass: its word, the pass that follows if any, and the events."""

    after: AfterPass
    because: str
    next: PhasePass | None
    told: tuple[Told, ...]


def first_cycle(room: Room, weighed: Weighed) -> Following | None:
    """The first cycle over a phase that is completed and falls short of a loop's target; None if none is due."""
    score = weighed.returned.alignment_score
    if score is None:
        return None
    for plan in loops_of(room):
        if tenths(score) < plan.target_tenths:
            items = items_for(room, weighed.asked, plan, weighed.rated)
            if items:
                return _begun(room, weighed.asked, plan, tenths(score), items, "it is below the target", cycle=1)
    return None


def loops_of(room: Room) -> tuple[LoopPlan, ...]:
    """The loops of this run, with as many cycles as a person asked for at most."""
    order = room.order
    plans = course(frozenset(order.flags)).loops
    most = order.cycles
    if most is None:
        return plans
    return tuple(
        plan if plan.loop is Loop.REMEDIATION else plan.model_copy(update={"cycles": min(plan.cycles, most)})
        for plan in plans
    )


def items_for(room: Room, asked: PhasePass, plan: LoopPlan, rated: Rated | None) -> tuple[PathItem, ...]:
    """What the next cycle works on: everything that can be raised, and for gaps the widest that was not yet tried."""
    if rated is None:
        return ()
    known = paths_of(room, asked)
    usable = way_up(ways_up(rated.settled.rating, files_of(room, asked), known, plan.target_tenths), known).usable
    if plan.loop is not Loop.GAPS:
        return usable
    tried = {
        item.deficiency for each in passes_of(room.book, asked.phase) for item in each.items if each.loop is Loop.GAPS
    }
    return tuple(item for item in usable if item.deficiency not in tried)[:1]


def _begun(
    room: Room, asked: PhasePass, plan: LoopPlan, score: int, items: tuple[PathItem, ...], because: str, *, cycle: int
) -> Following:
    following = PhasePass(
        phase=asked.phase,
        number=asked.number + 1,
        kind=PassKind.CYCLE,
        start=room.tip(),
        checkpoint=asked.checkpoint,
        loop=plan.loop,
        before_tenths=score,
        items=items,
    )
    return Following(AfterPass.ONCE_MORE, because, following, started(room, following, plan, cycle))


def started(room: Room, following: PhasePass, plan: LoopPlan, cycle: int) -> tuple[Told, ...]:
    """The event by which a cycle is begun."""
    now, phase = room.book.now(), following.phase
    score = (following.before_tenths or 0) / 10
    match plan.loop:
        case Loop.REMEDIATION:
            event = happened(
                of_quality.RemediationStarted,
                now,
                phase=phase,
                phase_id=phase,
                cycle=cycle,
                current_score=score,
                pass_threshold=plan.target_tenths / 10,
                feedback_items=len(following.items),
            )
            return (Told(event),)
        case Loop.QUALITY:
            target = plan.target_tenths / 10
            quality = happened(
                of_quality.QualityRemediationStarted,
                now,
                phase=phase,
                cycle=cycle,
                current_score=score,
                target=target,
            )
            return (Told(quality),)
        case Loop.GAPS:
            gap = happened(
                of_quality.GapsIterationStarted,
                now,
                phase=phase,
                iteration=cycle,
                deficiency=following.items[0].deficiency,
                current_score=score,
            )
            return (Told(gap),)


def after_cycle_pass(room: Room, weighed: Weighed, diagnostic: str | None, *, failed: str | None) -> Following:
    """What follows a cycle; one that made the score worse, or came to none, is taken back."""
    asked, cycle = weighed.asked, origin(room.book, weighed.asked)
    assert cycle.loop is not None
    assert cycle.before_tenths is not None
    returned = weighed.returned
    counts = failed is None and returned.status is PhaseOutcome.COMPLETED
    counts = counts and returned.recommendation is Recommendation.PROCEED
    score = returned.alignment_score if counts else None
    result = after_cycle(cycle.before_tenths, None if score is None else tenths(score))
    if result.revert:
        why = failed or "a cycle made the score worse"
        take_back(
            room.book, room.world, asked.phase, to=cycle.start, why=why, key=f"reverted:{asked.phase}-{asked.number}"
        )
    plan = next((each for each in loops_of(room) if each.loop is cycle.loop), None)
    assert plan is not None  # a cycle is one of the run's loops
    ended = _ended(
        room, weighed, cycle, tenths(score) if score is not None else cycle.before_tenths, result.score_tenths, plan
    )
    rated = None if result.revert else weighed.rated
    items = items_for(room, asked, plan, rated or _before(room, asked))
    facts = LoopFacts(
        loop=plan.loop,
        target_tenths=plan.target_tenths,
        score_tenths=result.score_tenths,
        cycles=weighed.cycles,
        gained=result.gained,
        remaining=len(items),
    )
    answer = after_loop(facts)
    spent = weighed.cycles >= plan.cycles or not items
    if answer.move is LoopMove.AGAIN and not spent:
        following = _begun(room, asked, plan, result.score_tenths, items, answer.because, cycle=weighed.cycles + 1)
        return Following(following.after, following.because, following.next, (*ended, *following.told))
    more = () if answer.move is LoopMove.REACHED else _exhausted(room, weighed, plan, result.score_tenths, diagnostic)
    further = _further(room, weighed, plan, result.score_tenths, rated)
    if further is not None:
        return Following(further.after, further.because, further.next, (*ended, *more, *further.told))
    done = happened(
        of_phase.PhaseCompleted,
        room.book.now(),
        phase=asked.phase,
        alignment_score=result.score_tenths / 10,
        score_band=band_of(result.score_tenths / 10),
        checkpoint_sha=room.tip(),
    )
    return Following(AfterPass.SETTLED, answer.because, None, (*ended, *more, Told(done)))


def _before(room: Room, asked: PhasePass) -> Rated | None:
    """The rating that stands when the last one is taken back."""
    rated = [
        Rated.model_validate(row.detail["document"])
        for row in room.book.ledger.observations(room.book.run_id, "rating")
        if row.subject == asked.phase
    ]
    return rated[-2] if len(rated) > 1 else None


def _further(room: Room, weighed: Weighed, plan: LoopPlan, score: int, rated: Rated | None) -> Following | None:
    """The first cycle of the loop after this one: gaps go on beyond the quality that was reached."""
    plans = loops_of(room)
    for other in plans[plans.index(plan) + 1 :]:
        items = items_for(room, weighed.asked, other, rated) if score < other.target_tenths else ()
        if items:
            return _begun(room, weighed.asked, other, score, items, "the next loop aims higher", cycle=1)
    return None


def _ended(room: Room, weighed: Weighed, cycle: PhasePass, new: int, kept: int, plan: LoopPlan) -> tuple[Told, ...]:
    """The event by which a cycle ends."""
    now, phase, before = room.book.now(), cycle.phase, cycle.before_tenths or 0
    number = weighed.cycles
    match plan.loop:
        case Loop.REMEDIATION:
            event = happened(
                of_quality.RemediationCompleted,
                now,
                phase=phase,
                phase_id=phase,
                cycle=number,
                improved=new > before,
                reached_threshold=kept >= plan.target_tenths,
                old_score=before / 10,
                new_score=new / 10,
            )
            return (Told(event),)
        case Loop.QUALITY:
            target = plan.target_tenths / 10
            quality = happened(
                of_quality.QualityRemediationCompleted,
                now,
                phase=phase,
                cycle=number,
                target=target,
                old_score=before / 10,
                new_score=new / 10,
            )
            return (Told(quality),)
        case Loop.GAPS:
            left = max(0, len(weighed.way.usable) - 1)
            gap = happened(
                of_quality.GapsIterationCompleted,
                now,
                phase=phase,
                iteration=number,
                deficiency_addressed=cycle.items[0].deficiency,
                remaining_deficiencies=left,
                old_score=before / 10,
                new_score=new / 10,
            )
            return (Told(gap),)


def _exhausted(room: Room, weighed: Weighed, plan: LoopPlan, score: int, diagnostic: str | None) -> tuple[Told, ...]:
    """What is said of a phase whose loop is spent below its target; it passes, and everybody can see how."""
    now, phase, count = room.book.now(), weighed.asked.phase, weighed.cycles
    final, target = score / 10, plan.target_tenths / 10
    match plan.loop:
        case Loop.REMEDIATION:
            path = write_diagnostic(room, weighed, force_incomplete=True) or diagnostic
            if path is None:
                return ()
            marked = happened(
                of_quality.ForceIncompleteMarked,
                now,
                phase=phase,
                phase_id=phase,
                final_score=final,
                pass_threshold=target,
                remediation_cycles=count,
                diagnostic_path=path,
            )
            return (Told(marked),)
        case Loop.QUALITY:
            spent = happened(
                of_quality.QualityExhausted, now, phase=phase, cycles=count, final_score=final, target=target
            )
            return (Told(spent),)
        case Loop.GAPS:
            gaps = happened(
                of_quality.GapsExhausted, now, phase=phase, iterations=count, final_score=final, target=target
            )
            return (Told(gaps),)
