"""The steps verify and judge: the harness runs what it can run, a verifier looks, and a judge doubts both."""

import threading
from collections.abc import Sequence

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import StepFailureCause
from fairwitness.contracts.autopilot.passes import PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_record import AutomatedChecks, JudgeStep, PhaseSteps, VerifyStep
from fairwitness.contracts.autopilot.plan import PlanTask, TaskKind
from fairwitness.contracts.autopilot.returns import JudgeReturn
from fairwitness.contracts.autopilot.trace import TraceAction
from fairwitness.contracts.autopilot.verification import PhaseCriterionStatus, VerifierReturn
from fairwitness.contracts.autopilot.vocabulary import CheckState, FailureCategory, Recommendation, StepName
from fairwitness.contracts.common.base import Contract, Flag, Maybe, Texts
from fairwitness.contracts.common.tools import Role
from fairwitness.ledger.kept import recorded
from fairwitness.rules.run_flags import deferral_rate
from fairwitness.rules.scores import may_defer
from fairwitness.runs.autopilot.context import JUDGEMENT, SEEN, VERIFICATION, AutopilotContext
from fairwitness.runs.autopilot.log import pass_name
from fairwitness.runs.autopilot.pages_judgement import judge_page, verification_page
from fairwitness.runs.autopilot.phase_evidence import settled_checks
from fairwitness.runs.autopilot.step_result import FinishedStep, Span, agent_span, answer, first_line
from fairwitness.runs.dispatch.blocking import run_blocking, run_blocking_stoppable


class HarnessResults(Contract):
    """What the harness saw of a phase at one commit."""

    checks: AutomatedChecks
    executed: tuple[ExecutionResult, ...]
    proven: Texts = ()
    """What the project's own commands said, and its checks when a merge of the run proved this tree."""
    seconds: float
    passed: Flag
    """Whether nothing failed."""


class PhaseVerification(Contract):
    """What the harness saw, and what the verifier said about the same commit."""

    seen: HarnessResults
    said: Maybe[VerifierReturn] = None
    commit: str


async def verify(context: AutopilotContext, phase_pass: PhasePass, number: int) -> FinishedStep:
    """Run checks and criteria at the tip, then call a verifier that knows no claim of an executor."""
    tip = await run_blocking(context.tip)
    seen = await run_blocking_stoppable(lambda stop: _look(context, phase_pass, number, tip, stop))
    plan = await run_blocking(context.plan, phase_pass.phase)
    diff, warned = await run_blocking(diff_of, context, phase_pass, tip), await run_blocking(_warned, context)
    brief = context.briefs.verifier(phase_pass, number, plan, diff, seen.executed, seen.proven, warned=warned)
    done = await context.ask(phase_pass, StepName.VERIFY, number, brief, at=tip)
    found = answer(done, VerifierReturn)
    took = {"verification_duration_seconds": done.outcome.duration_ms / 1000}
    said = None if isinstance(found, StepFailureCause) else found.model_copy(update=took)
    kept = await run_blocking(
        context.keep, VERIFICATION, phase_pass, number, PhaseVerification(seen=seen, said=said, commit=tip)
    )
    spans = (*_ran(kept.seen.executed), agent_span(Role.PHASE_VERIFIER.value, done))
    return await run_blocking(
        _verified, context, phase_pass, number, kept, found if isinstance(found, StepFailureCause) else None, spans
    )


def _warned(context: AutopilotContext) -> str:
    """Return why a phase needs a stricter verification: the scores of many phases before it hardly differ."""
    kinds = ("rubber_stamp_enhanced", "rubber_stamp_critical")
    events = [context.log.ledger.last_event(context.log.run_id, kind) for kind in kinds]
    last = max((event for event in events if event is not None), key=lambda event: event.seq, default=None)
    ended = context.log.ledger.last_event(context.log.run_id, "phase_completed")
    if last is None or ended is None or ended.phase != last.data["phases"][-1]:
        return ""  # a later phase was completed without this warning
    return (
        f"The last {last.data['count']} phases were scored within 0.2 of each other. Run every criterion yourself by "
        "another way than the command that is named, look for a case that fails, and say what you tried."
    )


def _look(
    context: AutopilotContext, phase_pass: PhasePass, number: int, tip: str, stop: threading.Event
) -> HarnessResults:
    name, tree, base = (
        f"verify-{pass_name(phase_pass)}-{number}",
        context.tree(tip),
        context.tree(phase_pass.checkpoint),
    )
    began = context.log.clock()
    proven = context.harness.proven(tree)
    checks = settled_checks(context.harness.checks(name, tree, base, stop=stop), proven.checks)
    executed = context.harness.run_all(name, context.criteria(phase_pass), tree, stop=stop)
    failed = False in (checks.compile, checks.tests, checks.lint, checks.build)
    seen = HarnessResults(
        checks=checks,
        executed=executed,
        proven=(*context.harness.command_lines(name), *proven.lines),
        seconds=round((context.log.clock() - began).total_seconds(), 3),
        passed=not failed and all(each.passed for each in executed),
    )
    return context.keep(SEEN, phase_pass, number, seen)


def diff_of(context: AutopilotContext, phase_pass: PhasePass, tip: str) -> str:
    """Return what the phase changed, or all files if it changed nothing."""
    if context.tree(phase_pass.checkpoint) != context.tree(tip):
        return context.briefs.diff(phase_pass.checkpoint, tip)
    return context.briefs.diff(None, tip)


def _verified(
    context: AutopilotContext,
    phase_pass: PhasePass,
    number: int,
    kept: PhaseVerification,
    error: StepFailureCause | None,
    spans: tuple[Span, ...],
) -> FinishedStep:
    seen, said = kept.seen, kept.said
    issues = _issues(kept)
    passed = seen.passed and said is not None and said.pass_
    path = None
    if said is not None:
        path = context.layout(phase_pass.phase).verification
        page = verification_page(
            context.phase(phase_pass.phase),
            said,
            seen.executed,
            run_id=context.log.run_id,
            commit=kept.commit,
            at=context.log.now(),
            passed=passed,
            checks=seen.checks,
            proven=seen.proven,
        )
        context.put(path, page)
    if error is None and not passed:
        error = StepFailureCause(category=_category(kept), first_line=first_line(issues, "the verification failed"))
    return FinishedStep(
        StepResult(
            step=StepName.VERIFY,
            number=number,
            good=passed,
            defers=passed and said is not None and _defers(context, phase_pass, said),
            issues=issues if issues or passed else ((error.first_line,) if error is not None else ()),
        ),
        steps=PhaseSteps(
            verify=VerifyStep(
                status=CheckState.PASS if passed else CheckState.FAIL,
                automated=seen.checks,
                scope_creep=said.scope_creep if said is not None else (),
            )
        ),
        output=path,
        error=error,
        newly_passing=_newly_passing(context, phase_pass, seen.executed),
        spans=spans,
    )


def _issues(kept: PhaseVerification) -> tuple[str, ...]:
    checks = kept.seen.checks
    pairs = (("compile", checks.compile), ("tests", checks.tests), ("lint", checks.lint), ("build", checks.build))
    found = [f"the check {name} fails" for name, word in pairs if word is False]
    found += [
        f"{each.criterion}: {each.command} is {each.assessment.value}" for each in kept.seen.executed if not each.passed
    ]
    if kept.said is not None:
        found += kept.said.failures
        found += [
            f"{each.criterion}: {each.evidence}"
            for each in kept.said.criteria_results
            if each.status is PhaseCriterionStatus.FAILED
        ]
    return tuple(dict.fromkeys(found))


def _category(kept: PhaseVerification) -> FailureCategory:
    checks = kept.seen.checks
    if checks.compile is False:
        return FailureCategory.COMPILATION_FAILURE
    if checks.build is False:
        return FailureCategory.BUILD_FAILURE
    if checks.lint is False:
        return FailureCategory.LINT_FAILURE
    return FailureCategory.ACCEPTANCE_CRITERIA_UNMET


def _newly_passing(context: AutopilotContext, phase_pass: PhasePass, executed: Sequence[ExecutionResult]) -> int:
    """Return how many criteria hold that did not hold at the last look at this phase."""
    rows = [row for row in context.log.ledger.observations(context.log.run_id, SEEN) if row.subject == phase_pass.phase]
    earlier = (
        recorded(HarnessResults, rows[-2], "document").executed if len(rows) > 1 else ()
    )  # the last row is this look
    before = {(run.criterion, run.command) for run in earlier if run.passed}
    return sum(run.passed and (run.criterion, run.command) not in before for run in executed)


def human_tasks(context: AutopilotContext, phase_id: str) -> tuple[PlanTask, ...]:
    """Return the tasks of a plan that only a person can decide."""
    plan = context.plan(phase_id)
    return () if plan is None else tuple(task for task in plan.tasks if task.kind is TaskKind.HUMAN_VERIFY)


def _defers(context: AutopilotContext, phase_pass: PhasePass, said: VerifierReturn) -> bool:
    """Return whether the phase is deferred: the plan must ask for a person, and the verifier must be unsure after
    trying.
    """
    confidence = said.autonomous_confidence
    if not human_tasks(context, phase_pass.phase) or confidence is None or not said.deferral_evidence:
        return False
    return may_defer(confidence, deferral_rate(context.log.state().state.meta).limit)


def _ran(executed: Sequence[ExecutionResult]) -> tuple[Span, ...]:
    return tuple(
        Span(
            TraceAction.COMMAND_RUN,
            run.command,
            run.stdout_truncated or run.assessment.value,
            run.duration_ms,
            run.passed,
        )
        for run in executed
    )


async def judge(context: AutopilotContext, phase_pass: PhasePass, number: int) -> FinishedStep:
    """Get a second opinion; without a readable one, nothing passes."""
    tip = await run_blocking(context.tip)
    known = await run_blocking(context.latest, VERIFICATION, phase_pass.phase, PhaseVerification)
    plan = await run_blocking(context.plan, phase_pass.phase)
    said = None if known is None else known.said
    if known is None or said is None:
        nothing = "there is no verification to be judged"
        error = StepFailureCause(category=FailureCategory.COORDINATION_FAILURE, first_line=nothing)
        return FinishedStep(StepResult(step=StepName.JUDGE, number=number, good=False, issues=(nothing,)), error=error)
    diff = await run_blocking(diff_of, context, phase_pass, tip)
    brief = context.briefs.judge(phase_pass, number, plan, diff, said, known.seen.executed, known.seen.proven)
    done = await context.ask(phase_pass, StepName.JUDGE, number, brief, at=tip)
    found = answer(done, JudgeReturn)
    spans = (agent_span(Role.JUDGE.value, done),)
    if isinstance(found, StepFailureCause):
        result = StepResult(step=StepName.JUDGE, number=number, good=False, issues=(found.first_line,))
        return FinishedStep(result, error=found, spans=spans)
    kept = await run_blocking(context.keep, JUDGEMENT, phase_pass, number, found)
    path = context.layout(phase_pass.phase).judge_report
    await run_blocking(context.put, path, judge_page(context.phase(phase_pass.phase), kept, said))
    wanted = () if kept.recommendation is Recommendation.PROCEED else (*kept.missing_requirements, *kept.concerns)
    return FinishedStep(
        StepResult(step=StepName.JUDGE, number=number, good=True, recommendation=kept.recommendation, issues=wanted),
        steps=PhaseSteps(judge=JudgeStep(recommendation=kept.recommendation, concerns=kept.concerns)),
        output=path,
        spans=spans,
    )
