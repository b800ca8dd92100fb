"""What a pass returns. The harness fills it in from what it observed; agents write none of it."""

from fairwitness.contracts.autopilot.passes import PassMove, PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_record import TaskStatus
from fairwitness.contracts.autopilot.phase_return import (
    AutomatedWords,
    HumanVerifyClaim,
    JudgedStatus,
    JudgedStep,
    PhaseEvidence,
    PhaseOutcome,
    PhaseReturn,
    PipelineSteps,
    PlanCheckedStep,
    RatedStep,
    SplitDetails,
    SubPhase,
    TriagedStatus,
    TriagedStep,
    WorkedStatus,
    WorkedStep,
)
from fairwitness.contracts.autopilot.rating import band_of
from fairwitness.contracts.autopilot.returns import PlanCheckerReturn
from fairwitness.contracts.autopilot.triage import Triage
from fairwitness.contracts.autopilot.vocabulary import Complexity, StepName, TriageRoute
from fairwitness.git.repository import Repository
from fairwitness.rules.integrity_evidence import places
from fairwitness.rules.phase_plan import parts_of
from fairwitness.runs.autopilot.context import PLAN_CHECK, RATING, SEEN, TRIAGE, VERIFICATION, AutopilotContext
from fairwitness.runs.autopilot.lineage import results_of
from fairwitness.runs.autopilot.rating import PhaseRating
from fairwitness.runs.autopilot.verification import HarnessResults, PhaseVerification, human_tasks

_FILES, _SUMMARY = 50, 400


def phase_return(context: AutopilotContext, phase_pass: PhasePass, move: PassMove) -> PhaseReturn:
    """Return the result of a pass that ends with this move."""
    assert move.outcome is not None
    assert move.recommendation is not None
    results = results_of(context.log, phase_pass)
    tip = context.tip()
    seen = context.latest(SEEN, phase_pass.phase, HarnessResults) if _ran(results, StepName.VERIFY) else None
    done, failed, total = task_counts(context, phase_pass)
    score = _score(context, phase_pass, results) if move.outcome is PhaseOutcome.COMPLETED else None
    changed = context.shadow.diff(context.tree(phase_pass.checkpoint), context.tree(tip))
    executed = () if seen is None else seen.executed
    return PhaseReturn(
        phase=phase_pass.phase,
        status=move.outcome,
        alignment_score=score,
        tasks_completed=f"{done}/{total}",
        tasks_failed=f"{failed}/{total}",
        commit_shas=commits_since(context, phase_pass.checkpoint, tip),
        automated_checks=AutomatedWords(
            compile="n/a" if seen is None else seen.checks.compile,
            build="n/a" if seen is None or seen.checks.build is None else seen.checks.build,
            lint="n/a" if seen is None else seen.checks.lint,
        ),
        issues=tuple(results[-1].issues) if results else (),
        debug_attempts=_count(results, StepName.DEBUG),
        replan_attempts=max(0, _count(results, StepName.RESEARCH) - 1),
        recommendation=move.recommendation,
        summary=(move.because or "the pass has ended")[:_SUMMARY],
        checkpoint_sha=phase_pass.checkpoint,
        verification_duration_seconds=None if seen is None else seen.seconds,
        evidence=PhaseEvidence(
            files_checked=_files(context, phase_pass, results, tuple(change.path for change in changed))[:_FILES],
            commands_run=tuple(f"{run.command} -> {run.assessment.value}" for run in executed),
            git_diff_summary=f"{len(changed)} files changed",
        ),
        human_verify_justification=_justification(context, phase_pass, done, total)
        if move.outcome is PhaseOutcome.NEEDS_HUMAN_VERIFICATION
        else None,
        split_details=_split(context, phase_pass) if move.outcome is PhaseOutcome.SPLIT_REQUEST else None,
        pipeline_steps=_pipeline(context, phase_pass, results, score),
    )


def task_counts(context: AutopilotContext, phase_pass: PhasePass) -> tuple[int, int, int]:
    """Return the numbers of completed, failed and all tasks of a pass."""
    record = context.log.state().state.phases.get(phase_pass.phase)
    known = {} if record is None or record.steps.execute is None else record.steps.execute.tasks
    total = len({*known, *(task.id for task in context.tasks(phase_pass))})
    done = sum(task.status is TaskStatus.COMPLETED for task in known.values())
    return done, sum(task.status is TaskStatus.FAILED for task in known.values()), total


def paths_at(repository: Repository, commit: str) -> frozenset[str]:
    """Return every file of a commit."""
    said = repository.git.run("ls-tree", "-r", "-z", "--name-only", commit).decode(errors="replace")
    return frozenset(filter(None, said.split("\0")))


def commits_since(context: AutopilotContext, start: str, tip: str) -> tuple[str, ...]:
    """Return the commits between two, oldest first."""
    said = context.repository.git.run("rev-list", "--reverse", f"{start}..{tip}")
    return tuple(said.decode().split())


def _ran(results: tuple[StepResult, ...], step: StepName) -> bool:
    return any(result.step is step for result in results)


def _count(results: tuple[StepResult, ...], step: StepName) -> int:
    return sum(result.step is step for result in results)


def _files(
    context: AutopilotContext, phase_pass: PhasePass, results: tuple[StepResult, ...], changed: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the files a phase is about: those it changed, or else those its verifier points at."""
    known = (
        context.latest(VERIFICATION, phase_pass.phase, PhaseVerification) if _ran(results, StepName.VERIFY) else None
    )
    if changed or known is None or known.said is None:
        return changed
    there = paths_at(context.repository, known.commit)
    named = [path for each in known.said.criteria_results for path in places(each.evidence)]
    return tuple(path for path in dict.fromkeys(named) if path in there)


def _score(context: AutopilotContext, phase_pass: PhasePass, results: tuple[StepResult, ...]) -> float | None:
    rated = context.latest(RATING, phase_pass.phase, PhaseRating) if _ran(results, StepName.RATE) else None
    return None if rated is None else rated.settled.score


def _justification(context: AutopilotContext, phase_pass: PhasePass, done: int, total: int) -> HumanVerifyClaim:
    task = human_tasks(context, phase_pass.phase)[0]  # a pass defers only if the plan has such a task
    return HumanVerifyClaim(
        checkpoint_task_id=task.id,
        task_description=f"{task.action} ({task.criteria[0].criterion})",
        auto_tasks_passed=done,
        auto_tasks_total=total,
    )


def _split(context: AutopilotContext, phase_pass: PhasePass) -> SplitDetails:
    plan = context.plan(phase_pass.phase)
    assert plan is not None
    parts = parts_of(plan)
    return SplitDetails(
        reason="the plan is too large for one phase",
        recommended_sub_phases=tuple(
            SubPhase(
                sub_phase_id=f"{phase_pass.phase}{chr(ord('a') + index)}",
                name=f"{context.phase(phase_pass.phase).name}, part {index + 1}",
                scope=", ".join(task.id for task in part),
                issues=(),
                estimated_complexity=max((task.complexity for task in part), key=tuple(Complexity).index),
            )
            for index, part in enumerate(parts)
        ),
        total_sub_phases=len(parts),
        original_issue_count=0,
    )


def _pipeline(
    context: AutopilotContext, phase_pass: PhasePass, results: tuple[StepResult, ...], score: float | None
) -> PipelineSteps:
    last = {result.step: result for result in results}
    triage = context.latest(TRIAGE, phase_pass.phase, Triage) if StepName.TRIAGE in last else None
    checked = context.latest(PLAN_CHECK, phase_pass.phase, PlanCheckerReturn) if StepName.PLAN_CHECK in last else None
    only = triage is not None and triage.routing_decision is TriageRoute.VERIFY_ONLY
    reason = "triage: it is there already" if only else f"this pass is a {phase_pass.kind.value}"

    def judged(step: StepName, *, agent: bool = True) -> dict[str, object]:
        result = last.get(step)
        if result is None:
            return {"status": JudgedStatus.SKIPPED, "agent_spawned": False}
        return {"status": JudgedStatus.PASS if result.good else JudgedStatus.FAIL, "agent_spawned": agent}

    def worked(step: StepName) -> WorkedStep:
        result = last.get(step)
        if result is None:
            return WorkedStep(status=WorkedStatus.SKIPPED, agent_spawned=False, skip_reason=reason)
        status = WorkedStatus.COMPLETED if result.good else WorkedStatus.FAILED
        return WorkedStep(status=status, agent_spawned=True)

    return PipelineSteps(
        preflight=JudgedStep.model_validate(judged(StepName.PREFLIGHT, agent=False)),
        triage=TriagedStep(
            status=TriagedStatus.SKIPPED if triage is None else TriagedStatus(triage.routing_decision.value),
            agent_spawned=False,
            pass_ratio=None if triage is None else triage.pass_ratio,
        ),
        research=worked(StepName.RESEARCH),
        plan=worked(StepName.PLAN),
        plan_check=PlanCheckedStep.model_validate(
            judged(StepName.PLAN_CHECK) | {"confidence": None if checked is None else checked.confidence}
        ),
        execute=worked(StepName.EXECUTE),
        verify=JudgedStep.model_validate(judged(StepName.VERIFY)),
        judge=JudgedStep.model_validate(judged(StepName.JUDGE)),
        rate=RatedStep.model_validate(
            judged(StepName.RATE) | ({} if score is None else {"alignment_score": score, "score_band": band_of(score)})
        ),
    )
