"""The brief of each call of a decision."""

from collections.abc import Iterator, Mapping

from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus, PromptSection
from fairwitness.contracts.common.policy import RunPath
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.contracts.feature.state import AttemptState, FeatureState
from fairwitness.errors import InternalError
from fairwitness.ledger.queries import BY_NAME
from fairwitness.rules.feature_events import PlannedCall
from fairwitness.rules.review import STEP_OF
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.feature.answers import refusals
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.failed_attempts import FailedAttempt
from fairwitness.runs.feature.findings import findings_section, fix_answers, open_design_findings, open_findings
from fairwitness.runs.feature.ledger_queries import answers
from fairwitness.runs.feature.questions import intake_return, said_at_intake
from fairwitness.runs.shared.agent_calls import failure_sections
from fairwitness.runs.shared.sections import change_text, text_section

SCOPES = {step: scope for scope, step in STEP_OF.items()}


def brief_of(context: FeatureContext, briefs: FeatureBriefs, call: PlannedCall, tip: str) -> Brief:
    """Return the brief of an agent's call, with why the try before it failed; `tip` is the target's commit."""
    brief = _brief(context, briefs, call, tip)
    before = call.dispatch_id.removesuffix(f"-{call.number}") + f"-{call.number - 1}"
    done = ended(context.ledger, context.run_id, before)
    if done is None or done.outcome.status is OutcomeStatus.OK:
        return brief
    return brief.model_copy(update={"inputs": (*brief.inputs, *failure_sections(done))})


def _brief(context: FeatureContext, briefs: FeatureBriefs, call: PlannedCall, tip: str) -> Brief:
    id_, said = call.dispatch_id, said_so_far(context)
    match call.step:
        case Step.SETUP:
            return briefs.intake(id_, said=said)
        case Step.RESEARCH:
            return briefs.researcher(id_, Focus(call.instance), said=said)
        case Step.SPEC:
            return briefs.spec(id_, mode=context.order.mode, said=said, concerns=_concerns(context))
        case Step.DESIGN:
            found = open_findings(context, ReviewScope.DESIGN)
            return briefs.designer(id_, findings=findings_section("Findings", found), said=said)
        case Step.PLAN:
            return _plan(context, briefs, call, said)
        case Step.DESIGN_REVIEW | Step.CODE_REVIEW:
            return _review(context, briefs, call, tip)
        case Step.KNOWLEDGE:
            return _knowledge(context, briefs, id_)
        case _:
            raise InternalError(f"no agent is called in {call.step.value}")


def said_so_far(context: FeatureContext) -> str | None:
    """Return everything that people wrote at the gates, in order."""
    told = [
        f"At {answer.gate} ({answer.option}): {answer.said}"
        for answer in answers(context.ledger.database, context.run_id)
        if answer.said
    ]
    return "\n\n".join(told) or None


def _left_open(context: FeatureContext) -> tuple[PromptSection, ...]:
    answers = fix_answers(context)
    return tuple(
        section
        for scope in ReviewScope
        for section in findings_section(
            f"Findings of the {scope.value} review that stay open", open_findings(context, scope), answers
        )
    )


def _plan(context: FeatureContext, briefs: FeatureBriefs, call: PlannedCall, said: str | None) -> Brief:
    state = context.state()
    before = call._replace(number=call.number - 1)
    refused = refusals(context, f"{call.step.value}-{call.visit}-planner-{before.number}")
    failing: Mapping[str, tuple[PromptSection, ...]] = {}
    if state.replans:
        failing = {name: _failure(context, state, name) for name in state.replans[-1].failing}
    return briefs.planner(
        call.dispatch_id,
        mode="replan" if state.replans else "initial",
        findings=open_design_findings(context),
        refused=refused,
        failing=failing,
        said=said,
        understood=_understood(context) if state.path is RunPath.LIGHT else None,
    )


def _understood(context: FeatureContext) -> tuple[PromptSection, ...]:
    """Return what the intake agent said about the request."""
    return text_section("What the intake agent said", "\n".join(said_at_intake(context)))


def _failure(context: FeatureContext, state: FeatureState, task: str) -> tuple[PromptSection, ...]:
    known = state.tasks.get(task)
    if known is None or not known.attempts:
        return text_section("why", "It was never started, because something that it depends on failed.")
    told = FailedAttempt(context, task, known.attempts[-1].attempt).sections()
    return told or text_section("why", "No reason is recorded.")


def _review(context: FeatureContext, briefs: FeatureBriefs, call: PlannedCall, tip: str) -> Brief:
    scope, perspective = SCOPES[call.step], Perspective(call.instance)
    earlier = open_design_findings(context) if scope is ReviewScope.CODE else ()
    if call.visit > 1:
        before = open_findings(context, scope, before=f"{call.step.value}-{call.visit}-")
        title = "Findings of the round before, of all reviewers"
        earlier = (*earlier, *findings_section(title, before, fix_answers(context)))
    return briefs.reviewer(
        call.dispatch_id,
        perspective,
        scope,
        min(call.visit, 2),
        change=_change(context, tip) if scope is ReviewScope.CODE else None,
        earlier=earlier,
    )


def _change(context: FeatureContext, tip: str) -> str:
    trees = context.repository.tree_of(context.order.base_commit), context.repository.tree_of(tip)
    return change_text(context.shadow, *trees)


def _concerns(context: FeatureContext) -> tuple[str, ...]:
    """Return the concerns that the intake agent raised about the request."""
    intake = intake_return(context)
    return tuple(
        f"{each.severity.value}: {each.title}. {each.description} Recommended: {each.recommendation}"
        for each in (intake.concerns if intake is not None else ())
    )


_COUNTS = ("retries", "failed-steps", "evaluations", "missing-information")


def _knowledge(context: FeatureContext, briefs: FeatureBriefs, dispatch_id: str) -> Brief:
    state = context.state()
    failed = {name: [each.attempt for each in task.attempts if each.reason] for name, task in state.tasks.items()}
    return briefs.knowledge(
        dispatch_id,
        summary=summary_of(state),
        findings=_left_open(context),
        failing={name: FailedAttempt(context, name, last[-1]).sections() for name, last in failed.items() if last},
        counts="\n\n".join(_counts(context)),
    )


def _counts(context: FeatureContext) -> Iterator[str]:
    """Yield what the ledger says about the calls of a run, one paragraph for each query that finds something."""
    for query in (BY_NAME[name] for name in _COUNTS):
        rows = context.ledger.database.read(query.sql, [context.run_id])
        lines = (
            "- " + ", ".join(f"{name} {cell}" for name, cell in zip(query.columns, row, strict=True)) for row in rows
        )
        if rows:
            yield "\n".join((f"{query.about}:", *lines))


def summary_of(state: FeatureState) -> str:
    """Return a summary of the run in a few lines, for the knowledge agent."""
    lines = [f"Run {state.run_id}, feature {state.slug}, {state.mode.value}."]
    for name, step in state.steps.items():
        told = step.outcome.value if step.outcome else "under way"
        lines.append(f"{name}: {told}, begun {step.runs} times{f': {step.reason}' if step.reason else ''}")
    for name, task in state.tasks.items():
        ends = ", ".join(f"attempt {attempt.attempt} {_ended(attempt)}" for attempt in task.attempts)
        lines.append(f"{name}: {ends}; {'merged' if task.merged else 'not merged'}")
    for review in state.reviews:
        said = ", ".join(f"{category.value} {verdict.value}" for category, verdict in review.verdicts.items())
        lines.append(f"{review.scope.value} review, round {review.round}, {review.perspective.value}: {said}")
    lines += [f"continued with less: {each.kind.value}: {each.detail}" for each in state.degradations]
    return "\n".join(lines)


def _ended(attempt: AttemptState) -> str:
    if attempt.verified is None:
        return "under way"
    return "verified" if attempt.verified else f"failed: {attempt.reason or 'no reason was given'}"
