"""The facts about a returned pass: the inputs of the integrity checks, and the diagnostic of a score below nine."""

from dataclasses import dataclass, replace

from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.integrity import (
    HarnessFacts,
    IntegrityFacts,
    IntegritySettings,
    Opinions,
    PhaseStanding,
    PlannedTasks,
    StepRun,
)
from fairwitness.contracts.autopilot.passes import PassKind, PhasePass
from fairwitness.contracts.autopilot.phase_record import AutomatedChecks
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome, PhaseReturn
from fairwitness.contracts.autopilot.returns import JudgeReturn
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, PhaseStatus, StepName
from fairwitness.ledger.kept import recorded
from fairwitness.rules.diagnostics import ImprovementPaths, needs_diagnostic, usable_paths
from fairwitness.rules.rating import improvement_paths
from fairwitness.rules.run_flags import CYCLES, deferral_rate, run_mode
from fairwitness.rules.scores import tenths
from fairwitness.runs.autopilot.context import JUDGEMENT, RATING, SEEN, VERIFICATION, AutopilotContext
from fairwitness.runs.autopilot.lineage import current_rating, lineage, origin, passes_of
from fairwitness.runs.autopilot.log import STEP, pass_name
from fairwitness.runs.autopilot.pages_judgement import (
    ConfidenceDiagnostic,
    RemediationCycle,
    confidence_page,
    judge_page,
)
from fairwitness.runs.autopilot.rating import PhaseRating
from fairwitness.runs.autopilot.returns import commits_since, paths_at, task_counts
from fairwitness.runs.autopilot.usage import seconds_of
from fairwitness.runs.autopilot.verification import HarnessResults, PhaseVerification, human_tasks
from fairwitness.runs.dispatch.budget_account import ENDED
from fairwitness.store.layout.autopilot import phase_confidence

_CYCLE_ENDS = ("remediation_completed", "quality_remediation_completed", "gaps_iteration_completed")
_HARNESS = (StepName.PREFLIGHT, StepName.TRIAGE)
_UNKNOWN = AutomatedChecks(compile="n/a", tests="n/a", lint="n/a")


@dataclass(frozen=True, slots=True)
class PassReview:
    """A returned pass, with everything on record about it."""

    phase_pass: PhasePass
    returned: PhaseReturn
    verified: PhaseVerification | None
    judged: JudgeReturn | None
    rated: PhaseRating | None
    way: ImprovementPaths
    cycles: int
    """How many cycles of its loop have run, including this one."""


def review_pass(context: AutopilotContext, phase_pass: PhasePass, returned: PhaseReturn) -> PassReview:
    """Collect what is on record about a returned pass."""
    rated = context.latest(RATING, phase_pass.phase, PhaseRating) if returned.status is PhaseOutcome.COMPLETED else None
    return PassReview(
        phase_pass,
        returned,
        context.latest(VERIFICATION, phase_pass.phase, PhaseVerification),
        context.latest(JUDGEMENT, phase_pass.phase, JudgeReturn),
        rated,
        _way(context, phase_pass, rated),
        len(
            [
                each
                for each in passes_of(context.log, phase_pass.phase)
                if each.kind is PassKind.CYCLE and each.loop is origin(context.log, phase_pass).loop
            ]
        ),
    )


def with_current_rating(context: AutopilotContext, review: PassReview) -> PassReview:
    """Return the review with the rating that counts: if a cycle was reverted, the one before it."""
    row = current_rating(context.log, review.phase_pass.phase)
    rated = None if row is None else recorded(PhaseRating, row, "document")
    return replace(review, rated=rated, way=_way(context, review.phase_pass, rated))


def _way(context: AutopilotContext, phase_pass: PhasePass, rated: PhaseRating | None) -> ImprovementPaths:
    if rated is None:
        return ImprovementPaths(usable=(), refused=())
    known = paths_of(context, phase_pass)
    return usable_paths(improvement_paths(rated.settled.rating, files_of(context, phase_pass), known), known)


def files_of(context: AutopilotContext, phase_pass: PhasePass) -> dict[str, str]:
    """Return the first file of the task that serves each criterion."""
    plan = context.plan(phase_pass.phase)
    return {
        named: task.files[0]
        for task in reversed(() if plan is None else plan.tasks)
        if task.files
        for named in (*(each.criterion for each in task.criteria), *task.requirements)
    }


def paths_of(context: AutopilotContext, phase_pass: PhasePass) -> frozenset[str]:
    """Return every file that an improvement may name: files that exist, and files that the plan creates."""
    plan = context.plan(phase_pass.phase)
    planned = {path for task in (() if plan is None else plan.tasks) for path in task.files}
    return paths_at(context.repository, context.tip()) | planned


def integrity_facts(context: AutopilotContext, review: PassReview) -> IntegrityFacts:
    """Return the inputs of the integrity checks."""
    phase_pass, returned, order = review.phase_pass, review.returned, context.order
    state = context.log.state().state
    seen = (
        context.latest(SEEN, phase_pass.phase, HarnessResults)
        if returned.verification_duration_seconds is not None
        else None
    )
    said = None if review.verified is None else review.verified.said
    done, _, total = task_counts(context, phase_pass)
    loops = run_mode(frozenset(order.flags)).loops
    origin_loop = origin(context.log, phase_pass).loop
    limit = max((CYCLES[plan.loop] for plan in loops), default=0) if origin_loop is None else CYCLES[origin_loop]
    report = None if review.judged is None else judge_page(context.phase(phase_pass.phase), review.judged, said)
    return IntegrityFacts(
        returned=returned,
        phase_type=context.phase(phase_pass.phase).type,
        seen=HarnessFacts(
            ran=_ran(context, phase_pass),
            phase_seconds=round(seconds_of(context.log, phase_pass.phase), 3),
            verification_seconds=returned.verification_duration_seconds,
            commits=commits_since(context, phase_pass.checkpoint, context.tip()),
            checks=_UNKNOWN if seen is None else seen.checks,
            executions=() if seen is None else seen.executed,
        ),
        said=Opinions(
            verification=said,
            judgement=review.judged,
            judge_report=report,
            written_score=None if review.rated is None else review.rated.written,
        ),
        planned=PlannedTasks(
            checkpoints=tuple(task.id for task in human_tasks(context, phase_pass.phase)),
            auto_passed=done,
            auto_total=total,
        ),
        standing=PhaseStanding(
            earlier_tenths=tuple(tenths(score) for _, score in scores_before(context, phase_pass.phase)),
            threshold_tenths=run_mode(frozenset(order.flags)).threshold_tenths,
            cycles=min(review.cycles, limit),
            cycle_limit=limit,
            deferral_limit=deferral_rate(state.meta).limit,
            category=category_of(context, phase_pass),
            way_up=_named(review),
            paths=paths_of(context, phase_pass),
            enforced=phase_pass.kind is PassKind.AGAIN,
        ),
        settings=IntegritySettings(
            quick_phase_seconds=order.limits.quick_phase_seconds,
            minimum_verification_seconds=order.limits.minimum_verification_seconds,
        ),
    )


def _named(review: PassReview) -> tuple[PathItem, ...] | None:
    """Return the usable improvements; if there are none, the refused ones, so that the checks can say why."""
    if review.rated is None:
        return None
    return review.way.usable or tuple(refused.item for refused in review.way.refused)


def _ran(context: AutopilotContext, phase_pass: PhasePass) -> tuple[StepRun, ...]:
    """Return which session did which step, by the recorded dispatches; steps without an agent belong to the harness."""
    runs = []
    names = {pass_name(each) for each in lineage(context.log, phase_pass)}
    ended = {row.subject for row in context.log.ledger.observations(context.log.run_id, ENDED)}
    for row in context.log.ledger.observations(context.log.run_id, STEP):
        if row.subject not in names:
            continue
        step = StepName(row.detail["document"]["step"])
        name = f"{step.value}-{row.subject}-{row.detail['document']['number']}"
        sessions = sorted(each for each in ended if each == name or each.startswith(f"{name}-"))
        if sessions and step not in _HARNESS:
            runs += [StepRun(step=step, session=session) for session in sessions]
        else:
            runs.append(StepRun(step=step, session=None if step in _HARNESS else name))
    return tuple(runs)


def scores_before(context: AutopilotContext, phase: str) -> tuple[tuple[str, float], ...]:
    """Return the phases completed before this one with their scores, in order."""
    done = [
        (record.completed_at or "", other, record.steps.rate.alignment_score)
        for other, record in context.log.state().state.phases.items()
        if other != phase
        and record.status is PhaseStatus.COMPLETED
        and record.steps.rate is not None
        and record.steps.rate.alignment_score is not None
    ]
    return tuple((other, score) for _, other, score in sorted(done))


def category_of(context: AutopilotContext, phase_pass: PhasePass) -> FailureCategory | None:
    """Return the failure category of the last failed step or task of a phase."""
    for envelope in reversed(tuple(context.log.ledger.events(context.log.run_id))):
        if envelope.phase == phase_pass.phase and envelope.type in ("step_failed", "task_failed"):
            said = envelope.data.get("category")
            return None if said is None else FailureCategory(said)
    return None


def write_diagnostic(context: AutopilotContext, review: PassReview, *, force_incomplete: bool) -> str | None:
    """Write the diagnostic of a phase below nine; return its path, or None if it needs none."""
    rated = review.rated
    if rated is None or not needs_diagnostic(tenths(rated.settled.score)):
        return None
    phase = review.phase_pass.phase
    threshold = run_mode(frozenset(context.order.flags)).threshold_tenths / 10
    doubted = ConfidenceDiagnostic(
        score=rated.settled.score,
        threshold=threshold,
        force_incomplete=force_incomplete,
        judge=review.judged,
        verifier=None if review.verified is None else review.verified.said,
        rating=rated.settled.rating,
        usable=review.way.usable,
        refused=review.way.refused,
        cycles=_history(context, phase),
    )
    path = phase_confidence(phase)
    context.put(path, confidence_page(context.phase(phase), doubted))
    return path


def _history(context: AutopilotContext, phase: str) -> tuple[RemediationCycle, ...]:
    """Return the scores before all cycles, and each cycle that ended; its score is None if it was not rated."""
    log = context.log
    record = log.state().state.phases.get(phase)
    first = [] if record is None else [entry.score for entry in record.score_history if entry.cycle == 0]
    ended = [event for event in log.ledger.events(log.run_id) if event.phase == phase and event.type in _CYCLE_ENDS]
    cycles = [each for each in passes_of(log, phase) if each.kind is PassKind.CYCLE]
    return (
        *(RemediationCycle(number=0, score=score, changes=(), remaining=()) for score in first),
        *(
            RemediationCycle(
                number=number,
                score=event.data.get("new_score"),
                changes=tuple(item.file for item in cycle.items),
                remaining=(),
            )
            for number, (event, cycle) in enumerate(zip(ended, cycles, strict=False), start=1)
        ),
    )
