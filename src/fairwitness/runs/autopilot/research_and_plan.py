"""The steps research, plan and plan check: three read-only agents, and a plan that is checked before it is used."""

from fairwitness.contracts.autopilot.facts import StepFailureCause
from fairwitness.contracts.autopilot.passes import PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_record import DocumentStep, PhaseSteps, PlanCheckStep, PlanStep
from fairwitness.contracts.autopilot.plan import PhasePlan
from fairwitness.contracts.autopilot.returns import PlanCheckerReturn, PlanIssue, PlanIssueSeverity, ResearcherReturn
from fairwitness.contracts.autopilot.vocabulary import CheckState, FailureCategory, StepName, WorkState
from fairwitness.contracts.common.tools import Role
from fairwitness.rules.next_pass_step import PLAN_CONFIDENCE
from fairwitness.rules.phase_plan import is_too_large, plan_problems, scope_problems
from fairwitness.runs.autopilot.context import PLAN, PLAN_CHECK, RESEARCH, AutopilotContext
from fairwitness.runs.autopilot.failed_work import failed_work
from fairwitness.runs.autopilot.pages_phase import plan_page, research_page
from fairwitness.runs.autopilot.step_result import FinishedStep, Span, agent_span, answer
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.store.layout.autopilot import PLANNING, RUNTIME


async def research(context: AutopilotContext, phase_pass: PhasePass, number: int) -> FinishedStep:
    """Research what the plan needs to know; after a low rating, with its findings."""
    before = await run_blocking(failed_work(context).phase, phase_pass)
    brief = context.briefs.researcher(phase_pass, number, before)
    done = await context.ask(phase_pass, StepName.RESEARCH, number, brief, at=await run_blocking(context.tip))
    found = answer(done, ResearcherReturn)
    spans = (agent_span(Role.PHASE_RESEARCHER.value, done),)
    if isinstance(found, StepFailureCause):
        steps = PhaseSteps(research=DocumentStep(status=WorkState.FAILED))
        return FinishedStep(_bad(StepName.RESEARCH, number, found), steps=steps, error=found, spans=spans)
    kept = await run_blocking(context.keep, RESEARCH, phase_pass, number, found)
    path = context.layout(phase_pass.phase).research
    digest = await run_blocking(context.put, path, research_page(context.phase(phase_pass.phase), kept))
    return FinishedStep(
        StepResult(step=StepName.RESEARCH, number=number, good=True),
        steps=PhaseSteps(research=DocumentStep(status=WorkState.COMPLETED, output=path, hash=digest)),
        output=path,
        spans=spans,
    )


async def plan(context: AutopilotContext, phase_pass: PhasePass, number: int) -> FinishedStep:
    """Make the plan, or a new one with the reasons why the last was refused."""
    known = await run_blocking(context.latest, RESEARCH, phase_pass.phase, ResearcherReturn)
    assert known is not None  # without research the pass ends before this step
    refused = await run_blocking(failed_work(context).plan, phase_pass)
    last = await run_blocking(context.plan, phase_pass.phase) if refused else None
    before = (*refused, *await run_blocking(failed_work(context).phase, phase_pass))
    brief = context.briefs.planner(phase_pass, number, known, last=last, before=before)
    done = await context.ask(phase_pass, StepName.PLAN, number, brief, at=await run_blocking(context.tip))
    found = answer(done, PhasePlan)
    spans = (agent_span(Role.PHASE_PLANNER.value, done),)
    if isinstance(found, StepFailureCause):
        steps = PhaseSteps(plan=PlanStep(status=WorkState.FAILED, validation_rounds=number))
        return FinishedStep(_bad(StepName.PLAN, number, found), steps=steps, error=found, spans=spans)
    kept = await run_blocking(context.keep, PLAN, phase_pass, number, found)
    path, digest = await run_blocking(_write_plan, context, phase_pass, kept)
    return FinishedStep(
        StepResult(step=StepName.PLAN, number=number, good=True, splits=is_too_large(kept)),
        steps=PhaseSteps(plan=PlanStep(status=WorkState.COMPLETED, output=path, hash=digest, validation_rounds=number)),
        output=path,
        spans=spans,
    )


def _write_plan(context: AutopilotContext, phase_pass: PhasePass, kept: PhasePlan) -> tuple[str, str]:
    phase, layout = context.phase(phase_pass.phase), context.layout(phase_pass.phase)
    for task in kept.tasks:
        if task.script is not None:
            context.put(layout.test_script(task.id), task.script)
    wanted = (*(each.id for each in phase.requirements), *(each.text for each in phase.criteria))
    return layout.plan, context.put(layout.plan, plan_page(phase, wanted, kept.tasks, kept))


async def plan_check(context: AutopilotContext, phase_pass: PhasePass, number: int) -> FinishedStep:
    """Check a plan first by rules; then ask the checker, which must be confident enough."""
    known = await run_blocking(context.plan, phase_pass.phase)
    assert known is not None
    shut = (PLANNING, RUNTIME, *(lock.path for lock in context.order.specs))
    problems = (*plan_problems(context.phase(phase_pass.phase), known), *scope_problems(known, shut))
    blockers = tuple(issue.description for issue in problems)
    if blockers:
        return _checked(number, None, blockers, ())
    before = await run_blocking(failed_work(context).plan, phase_pass)
    brief = context.briefs.plan_checker(phase_pass, number, known, before=before)
    done = await context.ask(phase_pass, StepName.PLAN_CHECK, number, brief, at=await run_blocking(context.tip))
    found = answer(done, PlanCheckerReturn)
    spans = (agent_span(Role.PLAN_CHECKER.value, done),)
    if isinstance(found, StepFailureCause):
        steps = PhaseSteps(plan_check=PlanCheckStep(status=CheckState.FAIL))
        return FinishedStep(_bad(StepName.PLAN_CHECK, number, found), steps=steps, error=found, spans=spans)
    kept = await run_blocking(context.keep, PLAN_CHECK, phase_pass, number, found)
    said = tuple(with_hint(issue) for issue in kept.issues if issue.severity is not PlanIssueSeverity.INFO)
    good = kept.pass_ and kept.confidence >= PLAN_CONFIDENCE
    unsure = () if kept.confidence >= PLAN_CONFIDENCE else (f"the checker is sure to {kept.confidence:g} of 10",)
    issues = () if good else (*said, *unsure) or ("the checker refuses it and does not say why",)
    return _checked(number, kept.confidence, issues, spans)


def with_hint(issue: PlanIssue) -> str:
    """Return an issue as the planner reads it in the next round: with the checker's hint.

    >>> with_hint(PlanIssue(severity="blocker", description="It has no test.", fix_hint="Add one."))
    'It has no test. Hint: Add one.'
    """
    return issue.description if issue.fix_hint is None else f"{issue.description} Hint: {issue.fix_hint}"


def _checked(number: int, confidence: float | None, issues: tuple[str, ...], spans: tuple[Span, ...]) -> FinishedStep:
    good = not issues
    error = None
    if not good:
        # no executor has begun: something was lost between the roadmap, the planner and the checker
        error = StepFailureCause(category=FailureCategory.COORDINATION_FAILURE, first_line=issues[0])
    return FinishedStep(
        StepResult(step=StepName.PLAN_CHECK, number=number, good=good, issues=issues),
        steps=PhaseSteps(
            plan_check=PlanCheckStep(status=CheckState.PASS if good else CheckState.FAIL, confidence=confidence)
        ),
        error=error,
        spans=spans,
    )


def _bad(step: StepName, number: int, error: StepFailureCause) -> StepResult:
    return StepResult(step=step, number=number, good=False, issues=(error.first_line,))
