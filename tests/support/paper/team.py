"""What the agents of a paper run answer: the demo's recorded team, bent as far as a script asks for it."""

from collections.abc import Mapping
from typing import Any

from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.review import Category, ReviewScope
from fairwitness.demo.sessions import RecordedSession
from fairwitness.kit import yaml_text
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.tasks import FIX_NODE
from support import demo_feature as demo
from support.paper.script import Ending, How

_FINDING: Mapping[str, Any] = demo.DESIGN_REVIEWS[0].answer["findings"][0]
_REVIEW: Mapping[str, Any] = demo.DESIGN_REVIEWS[1].answer


def answer_of(context: FeatureContext, brief: Brief, step: str, visit: int, ending: Ending) -> demo.Document:
    """What the agent of a brief answers."""
    match brief.role:
        case Role.INTAKE:
            return _intake(ending)
        case Role.SPEC:
            return _spec(context, ending)
        case Role.PLANNER:
            return _plan(context, ending)
        case Role.REVIEWER:
            scope = ReviewScope.DESIGN if step == "step-3b" else ReviewScope.CODE
            return _review(brief.instance, scope, min(visit, 2), ending)
        case Role.IMPLEMENTER:
            return _implemented(brief.instance)
        case Role.VERIFIER:
            return _verified(brief.instance, ending)
        case _:
            return _recorded(brief.role, brief.instance).answer


def _recorded(role: Role, instance: str) -> RecordedSession:
    return next(session for session in demo.HONEST_TEAM if (session.role, session.instance) == (role, instance))


def _concern(number: int, severity: Severity) -> demo.Document:
    told = {"title": f"Worry {number}", "description": "It may go wrong.", "recommendation": "Think again."}
    return {"severity": severity.value, **told}


def _intake(ending: Ending) -> demo.Document:
    is_impossible = Severity.BLOCKER in ending.concerns
    return {
        **_recorded(Role.INTAKE, "intake").answer,
        "concerns": [_concern(number, severity) for number, severity in enumerate(ending.concerns, start=1)],
        "infeasible": is_impossible,
        "infeasible_because": "There is no way." if is_impossible else None,
    }


def _spec(context: FeatureContext, ending: Ending) -> demo.Document:
    recorded = _recorded(Role.SPEC, "spec").answer
    log = {
        "concerns_identified": len(ending.concerns),
        "mode": context.order.mode.value,
        "auto_selected": False,
        "selected_option": "proceed",
        "concerns": [_concern(number, severity) for number, severity in enumerate(ending.concerns, start=1)],
    }
    return _with_payload(recorded, {"pushback_log": log})


def _with_payload(document: demo.Document, changes: demo.Document) -> demo.Document:
    header = document["agent_output"]
    return {**document, "agent_output": {**header, "payload": {**header["payload"], **changes}}}


def _plan(context: FeatureContext, ending: Ending) -> demo.Document:
    """The plan; its task documents are `files_of` the planner."""
    state = context.state()
    session = demo.replanned(len(state.replans) + 1) if state.replans else demo.PLANNED
    if ending.how is How.UNUSABLE:
        tasks = [
            {**task, "id": f"task-9{number}"}
            for number, task in enumerate(session.answer["agent_output"]["payload"]["tasks"])
        ]
        return _with_payload(session.answer, {"tasks": tasks})
    return session.answer


def files_of(context: FeatureContext, brief: Brief, ending: Ending) -> dict[str, bytes]:
    """What the agent of a brief writes in its worktree: a planner its task documents, others nothing.

    A planner that is asked again changes the documents of the tasks that failed.
    """
    if brief.role is not Role.PLANNER or ending.how is How.UNUSABLE:
        return {}
    replans = context.state().replans
    files = {}
    for task in demo.TASKS_AGAIN if replans else demo.TASKS:
        document = task.document()
        if replans and task.id in replans[-1].failing:
            again = f"{document['task']['description']} Plan {len(replans) + 1}."
            document = {**document, "task": {**document["task"], "description": again}}
        files[context.layout.task(task.id)] = yaml_text.render(document).encode()
    return files


def _review(perspective: str, scope: ReviewScope, round_: int, ending: Ending) -> demo.Document:
    found = [
        {**_FINDING, "id": f"F-{number}", "category": category.value, "severity": severity.value}
        for number, (category, severity) in enumerate(ending.findings, start=1)
    ]
    touched = {category for category, _ in ending.findings}
    return {
        **_REVIEW,
        "reviewer_perspective": perspective,
        "scope": scope.value,
        "round": round_,
        "findings": found,
        "clean_categories": [category.value for category in Category if category not in touched],
    }


def _implemented(task: str) -> demo.Document:
    recorded = _recorded(Role.IMPLEMENTER, "task-01" if task == FIX_NODE else task)
    return _with_payload(recorded.answer, {"task_id": task})


def _verified(task: str, ending: Ending) -> demo.Document:
    answer = _recorded(Role.VERIFIER, task).answer
    if ending.how is not How.REVISION:
        return answer
    return {**answer, "completion": {**answer["completion"], "status": "NEEDS_REVISION"}}
