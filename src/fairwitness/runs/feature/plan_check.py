"""What is checked of a plan while its planner can still put it right: its documents, and the commands that they name.

The planner that erred is asked again in the same session; neither a new dispatch nor an implementer is paid for it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fairwitness.agents.base import AnswerCheck
from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.common.vocabulary import CompletionStatus
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.rules.criteria import beginnings, unrunnable
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps
from fairwitness.runs.feature.answers import checked_plan
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.shared.agent_calls import Equip
from fairwitness.verify.subject import VerifyDeps
from fairwitness.verify.tree_view import TreeView, checks_at


def with_plan_check(context: FeatureContext, verify_deps: VerifyDeps) -> Equip:
    """Return what lets the harness object to a plan before its dispatch ends."""

    def equip(_brief: Brief, shared: DispatchContext, deps: DispatchDeps) -> tuple[DispatchContext, DispatchDeps]:
        if deps.base_tree is None:
            return shared, deps
        return shared, replace(deps, check=_check(context, verify_deps, deps.worktree, deps.base_tree))

    return equip


def _check(context: FeatureContext, verify_deps: VerifyDeps, folder: Path, base_tree: str) -> AnswerCheck:
    def objections(answer: dict[str, Any]) -> tuple[str, ...]:
        output = PlanOutput.model_validate(answer)
        if output.completion.status is not CompletionStatus.DONE:
            return ()
        tasks, problems = checked_plan(context, output, context.shadow.take(folder, base_tree).tree)
        return (*problems, *_unrunnable(tasks, verify_deps, base_tree))

    return objections


def _unrunnable(tasks: dict[str, TaskDocument], verify_deps: VerifyDeps, base_tree: str) -> tuple[str, ...]:
    """Return a problem for each criterion that names a command or a test which can never be run."""
    checks = checks_at(verify_deps.shadow, base_tree, verify_deps.settings).checks
    planned = {file.path for each in tasks.values() for file in each.task.relevant_context.files_to_modify or ()}
    paths = planned | set(TreeView(verify_deps.shadow, base_tree).paths)
    found = [
        f"tasks/{name}.yaml: task.acceptance_criteria[{index}]: {reason}"
        for name, document in tasks.items()
        for index, criterion in enumerate(document.task.acceptance_criteria)
        for reason in unrunnable(criterion, checks, paths)
    ]
    allowed = ", ".join(f"`{command}`" for command in beginnings(checks))
    return (*found, f"commands may begin with: {allowed}; or state the fact and name no command") if found else ()
