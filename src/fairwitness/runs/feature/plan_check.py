"""What is checked of a plan while its planner can still put it right: its documents, and the commands that they name.

The planner that erred is asked again in the same session; neither a new dispatch nor an implementer is paid for it.
"""

from dataclasses import replace
from pathlib import Path

from fairwitness.agents.base import AnswerCheck
from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.common.vocabulary import CompletionStatus
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.rules.criteria import beginnings, files_of_tests, unrunnable
from fairwitness.rules.globs import covers
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps
from fairwitness.runs.feature.answers import checked_plan
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.tasks import writes_of
from fairwitness.runs.shared.agent_calls import Equip, check_of
from fairwitness.runs.shared.sections import list_section
from fairwitness.verify.subject import VerifyDeps
from fairwitness.verify.tree_view import TreeView, checks_at


def allowed_commands(verify_deps: VerifyDeps, tree: str) -> tuple[PromptSection, ...]:
    """Return what a planner is told about the commands that criteria may name."""
    checks = checks_at(verify_deps.shadow, tree, verify_deps.settings).checks
    title = "How a command that a criterion names may begin; a path or test id may follow"
    return list_section(title, beginnings(checks))


def with_plan_check(context: FeatureContext, verify_deps: VerifyDeps) -> Equip:
    """Return what lets the harness object to a plan before its dispatch ends."""

    def equip(_brief: Brief, shared: DispatchContext, deps: DispatchDeps) -> tuple[DispatchContext, DispatchDeps]:
        if deps.base_tree is None:
            return shared, deps
        return shared, replace(deps, check=_check(context, verify_deps, deps.worktree, deps.base_tree))

    return equip


def _check(context: FeatureContext, verify_deps: VerifyDeps, folder: Path, base_tree: str) -> AnswerCheck:
    def objections(output: PlanOutput) -> tuple[str, ...]:
        if output.completion.status is not CompletionStatus.DONE:
            return ()
        tasks, problems = checked_plan(context, output, context.shadow.take(folder, base_tree).tree)
        return (*problems, *_unrunnable(tasks, verify_deps, base_tree))

    return check_of(PlanOutput, objections)


def _coming(document: TaskDocument) -> set[str]:
    """Return the files of tests that a task names and may write."""
    writes = writes_of(document)
    named = {path for text in document.task.acceptance_criteria for path in files_of_tests(text)}
    return {path for path in named if any(covers(glob.split("/"), path.split("/")) for glob in writes)}


def _unrunnable(tasks: dict[str, TaskDocument], verify_deps: VerifyDeps, base_tree: str) -> tuple[str, ...]:
    """Return a problem for each criterion that names a command or a test which can never be run."""
    checks = checks_at(verify_deps.shadow, base_tree, verify_deps.settings).checks
    paths = frozenset(TreeView(verify_deps.shadow, base_tree).paths).union(*map(_coming, tasks.values()))
    found = [
        f"tasks/{name}.yaml: task.acceptance_criteria[{index}]: {reason}"
        for name, document in tasks.items()
        for index, criterion in enumerate(document.task.acceptance_criteria)
        for reason in unrunnable(criterion, checks, paths)
    ]
    allowed = ", ".join(f"`{command}`" for command in beginnings(checks))
    return (*found, f"commands may begin with: {allowed}; or state the fact and name no command") if found else ()
