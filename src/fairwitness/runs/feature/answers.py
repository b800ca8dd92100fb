"""The answers of agents, stored as files and ledger rows that we render from the validated answer.

Each answer is stored once: an observation notes it in the same record as the rows.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.common.evidence import Claim
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import CategoryVerdict, CompletionStatus, Severity, worst_severity
from fairwitness.contracts.feature.design import DesignOutput
from fairwitness.contracts.feature.evaluation import ArtifactEvaluation
from fairwitness.contracts.feature.events import ReviewSubmitted
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.knowledge import KnowledgeOutput
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.contracts.feature.research import ResearchOutput
from fairwitness.contracts.feature.review import Category, ReviewReturn
from fairwitness.contracts.feature.spec import SpecOutput
from fairwitness.errors import BadDocument
from fairwitness.kit import yaml_text
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.record import Record
from fairwitness.rules.feature_plan import binds, plan_against_tasks, plan_problems, task_problems
from fairwitness.rules.gates import check_names
from fairwitness.rules.review import category_verdict
from fairwitness.runs.dispatch.model import Dispatched
from fairwitness.runs.feature.companions import design_page, feature_page, findings_page, plan_page, verdict_page
from fairwitness.runs.feature.context import FeatureContext, write_events
from fairwitness.runs.feature.facts import REFUSED, review_subject
from fairwitness.runs.feature.knowledge import learn
from fairwitness.runs.feature.tasks import FIX_NODE, iteration_of, plan_of, task_of

STORED = "stored"


def store(context: FeatureContext, role: Role, instance: str, done: Dispatched) -> None:
    """Store an answer, or refuse it and record why."""
    dispatch_id, answer = done.dispatch_id, done.outcome.answer
    if done.outcome.status is not OutcomeStatus.OK or answer is None or _is_given_up(context, role, answer):
        return
    if context.ledger.observation(context.run_id, f"{STORED}:{dispatch_id}") is not None:
        return
    if context.ledger.observation(context.run_id, f"{REFUSED}:{dispatch_id}") is not None:
        return
    problems = _PUT[role](context, answer, done) if role in _PUT else ()
    if problems:
        _refuse(context, dispatch_id, problems)
        return

    def write(record: Record) -> None:
        record.observation(context.observation(f"{STORED}:{dispatch_id}", STORED, dispatch_id, {"role": role.value}))
        for evaluation in _evaluations(answer):
            record.evaluation(evaluation, agent=role.value, instance=instance)
        if role is Role.REVIEWER:
            _reviewed(context, record, ReviewReturn.model_validate(answer), dispatch_id)

    context.write(write)
    killpoint("feature.answer")


def _is_given_up(context: FeatureContext, role: Role, answer: Mapping[str, Any]) -> bool:
    """Return whether the agent itself says that it failed; only an implementer's report of a failure is kept.

    A first plan that asks for a revision counts as a failure too, so nothing of it is stored.
    """
    completion = answer.get("completion")
    said = completion.get("status") if isinstance(completion, dict) else None
    if role is Role.PLANNER and said == CompletionStatus.NEEDS_REVISION.value:
        return iteration_of(context.state()) == 1
    return role is not Role.IMPLEMENTER and said == CompletionStatus.ERROR.value


def _refuse(context: FeatureContext, dispatch_id: str, problems: tuple[str, ...]) -> None:
    detail: dict[str, object] = {"problems": list(problems)}
    seen = context.observation(f"{REFUSED}:{dispatch_id}", REFUSED, dispatch_id, detail, holds=False)
    context.write(lambda record: record.observation(seen))
    killpoint("feature.refused")


def refusals(context: FeatureContext, dispatch_id: str) -> tuple[str, ...]:
    """Return why an answer was refused; empty if it was not."""
    row = context.ledger.observation(context.run_id, f"{REFUSED}:{dispatch_id}")
    return () if row is None else tuple(map(str, row.detail["problems"]))


def _evaluations(answer: Mapping[str, Any]) -> tuple[ArtifactEvaluation, ...]:
    payload = answer.get("agent_output", {}).get("payload", answer)
    return tuple(ArtifactEvaluation.model_validate(each) for each in payload.get("artifact_evaluations") or ())


def _research(context: FeatureContext, answer: Mapping[str, Any], _done: Dispatched) -> tuple[str, ...]:
    output = ResearchOutput.model_validate(answer)
    context.put_document(context.layout.research(output.agent_output.payload.focus.value), output)
    return ()


def _spec(context: FeatureContext, answer: Mapping[str, Any], _done: Dispatched) -> tuple[str, ...]:
    output = SpecOutput.model_validate(answer)
    context.put_document(context.layout.spec, output)
    context.put(context.layout.spec_companion, feature_page(output))
    return ()


def _design(context: FeatureContext, answer: Mapping[str, Any], _done: Dispatched) -> tuple[str, ...]:
    output = DesignOutput.model_validate(answer)
    context.put_document(context.layout.design, output)
    context.put(context.layout.design_companion, design_page(output))
    return ()


def _plan(context: FeatureContext, answer: Mapping[str, Any], done: Dispatched) -> tuple[str, ...]:
    """Store a plan with all its task documents, or nothing of it."""
    output = PlanOutput.model_validate(answer)
    tasks, problems = checked_plan(context, output, done.tree)
    if problems:
        return problems
    for name, document in tasks.items():
        context.put_document(context.layout.task(name), document)
    context.put_document(context.layout.plan, output)
    context.put(context.layout.plan_companion, plan_page(output, tasks))
    return ()


def checked_plan(
    context: FeatureContext, output: PlanOutput, tree: str | None
) -> tuple[dict[str, TaskDocument], tuple[str, ...]]:
    """Return the task documents of a plan, and every problem; `tree` is the planner's worktree."""
    tasks, wrong = _task_documents(context, output, tree)
    problems = [*wrong, *_told("plan-output.yaml", plan_problems(output))]
    if not wrong:
        problems += _told("plan-output.yaml", plan_against_tasks(output, tasks))
    for name, document in tasks.items():
        problems += _named_otherwise(name, document)
        problems += _told(f"tasks/{name}.yaml", task_problems(document))
    problems += _changed_after_merging(context, tasks)
    if not problems:
        problems += _failed_before(context, tasks)
    return tasks, tuple(problems)


def _failed_before(context: FeatureContext, tasks: Mapping[str, TaskDocument]) -> list[str]:
    """Return a problem if a new plan leaves every task as it was that failed: it would fail the same way."""
    replans, before = context.state().replans, plan_of(context)
    if not replans or before is None or {task.id for task in before.agent_output.payload.tasks} != set(tasks):
        return []
    failing = [name for name in replans[-1].failing if name in tasks]
    if not failing or any(tasks[name] != task_of(context, name) for name in failing):
        return []
    return [f"tasks/{failing[0]}.yaml: expected another document than the one that failed, or other tasks, found it"]


def _changed_after_merging(context: FeatureContext, tasks: Mapping[str, TaskDocument]) -> list[str]:
    """Return a problem for each merged task that a new plan changes: its evidence was gathered for the old document."""
    merged = [name for name, task in context.state().tasks.items() if task.merged is not None and name != FIX_NODE]
    return [
        f"tasks/{name}.yaml: expected the document of a task that is merged, as it was; found another or none"
        for name in merged
        if name not in tasks or tasks[name] != task_of(context, name)
    ]


def _task_documents(
    context: FeatureContext, plan: PlanOutput, tree: str | None
) -> tuple[dict[str, TaskDocument], tuple[str, ...]]:
    """Return the task documents that the planner wrote in its worktree; one that it did not write again stays the
    same."""
    found: dict[str, TaskDocument] = {}
    wrong: list[str] = []
    state = context.state()
    tasks = plan.agent_output.payload.tasks
    paths = [context.layout.task(task.id) for task in tasks]
    written = {} if tree is None else dict(context.shadow.read_each(tree, paths))
    for task, path in zip(tasks, paths, strict=True):
        data = written.get(path)
        if data is None and path in state.artifacts:
            data = context.get(path)
        if data is None:
            wrong.append(f"tasks/{task.id}.yaml: expected a task document, found none")
            continue
        try:
            found[task.id] = TaskDocument.model_validate(yaml_text.parse(data.decode()))
        except (BadDocument, UnicodeDecodeError) as error:
            wrong.append(f"tasks/{task.id}.yaml: {error}")
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            wrong.append(f"tasks/{task.id}.yaml: {spell_path(first['loc'])}: {first['msg']}")
    return found, tuple(wrong)


def _named_otherwise(name: str, document: TaskDocument) -> list[str]:
    if name == FIX_NODE:
        return [f"tasks/{name}.yaml: task.id: expected task-01 or a later one, found {name}"]
    found = document.task.id
    return [] if found == name else [f"tasks/{name}.yaml: task.id: expected {name}, found {found}"]


def _told(where: str, problems: tuple[Problem, ...]) -> list[str]:
    return [
        f"{where}: {spell_path(problem.where)}: expected {problem.expected}, found {problem.found}"
        for problem in problems
        if binds(problem)
    ]


def _review(context: FeatureContext, answer: Mapping[str, Any], _done: Dispatched) -> tuple[str, ...]:
    review = ReviewReturn.model_validate(answer)
    scope, perspective = review.scope.value, review.reviewer_perspective.value
    context.put(context.layout.review_findings(scope, perspective), findings_page(review))
    context.put(context.layout.review_verdict(scope, perspective), verdict_page(review))
    return ()


def _reviewed(context: FeatureContext, record: Record, review: ReviewReturn, dispatch_id: str) -> None:
    """Record three rows for a reviewer, as claims, and the event of the review."""
    claim = Claim(
        run_id=context.run_id,
        task_id=review_subject(context, review.scope),
        key=f"review:{dispatch_id}",
        agent=Role.REVIEWER.value,
        instance=review.reviewer_perspective.value,
        kind="review",
        body=review.plain(),
        claimed_at=context.now(),
    )
    names = check_names(review.scope)
    verdicts = {names[category]: _verdict(review, category) for category in Category}
    record.reviewed(claim, verdicts=verdicts, round_=review.round, summary=review.summary)
    said = {category: category_verdict(review, category) for category in Category}
    event = ReviewSubmitted(
        scope=review.scope, round=review.round, perspective=review.reviewer_perspective, verdicts=said
    )
    write_events(record, (event,), context.now())


def _verdict(review: ReviewReturn, category: Category) -> tuple[CategoryVerdict, Severity | None]:
    found = [finding.severity for finding in review.findings if finding.category is category]
    return category_verdict(review, category), worst_severity(found)


def _implementation(context: FeatureContext, answer: Mapping[str, Any], _done: Dispatched) -> tuple[str, ...]:
    report = ImplementationReport.model_validate(answer)
    context.put_document(context.layout.implementation_report(report.agent_output.payload.task_id), report)
    return ()


def _knowledge(context: FeatureContext, answer: Mapping[str, Any], _done: Dispatched) -> tuple[str, ...]:
    learn(context, KnowledgeOutput.model_validate(answer))
    return ()


_Put = Callable[[FeatureContext, Mapping[str, Any], Dispatched], tuple[str, ...]]
_PUT: Mapping[Role, _Put] = {
    Role.RESEARCHER: _research,
    Role.SPEC: _spec,
    Role.DESIGNER: _design,
    Role.PLANNER: _plan,
    Role.REVIEWER: _review,
    Role.IMPLEMENTER: _implementation,
    Role.KNOWLEDGE: _knowledge,
}
"""Intake and verifier have no document of their own: their answers are part of the request's and the task's
documents."""
