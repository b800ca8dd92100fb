"""Plans of forge runs: show, edit, approve."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from fairwitness.app.run_records.forge import ForgeRunRecord, open_forge_run
from fairwitness.app.views.detail import resolve_run_at
from fairwitness.app.views.workers import worker_on
from fairwitness.contracts.forge.dag import DagNode, DagOverlay
from fairwitness.contracts.graph.forge_order import ForgePlan
from fairwitness.errors import FairWitnessError, UsageError
from fairwitness.kit.files import read_given
from fairwitness.kit.text import visible
from fairwitness.ledger.kept import recorded
from fairwitness.rules.next_forge_move import INTERVIEW, REVIEW
from fairwitness.runs.forge.plan_files import read_plan
from fairwitness.runs.forge.questions import APPROVE, open_question
from fairwitness.runs.graph.log import OVERLAY

GRAPH = "dag.json"
SEALED = "specs and graph are sealed; file a change request"
_PART = re.compile(r"dag\.json|(specs|tasks)/[^/]+\.md")
_LARGEST = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node of a plan with the content of its document."""

    node: DagNode
    title: str
    complexity: str | None
    """None if it has no document; refineries may have none."""
    criteria: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan with its state and the next command."""

    run_id: str
    request: str
    plan: ForgePlan
    nodes: tuple[PlannedNode, ...]
    """In topological order."""
    folder: Path
    is_sealed: bool
    problem: str | None
    """Why its files cannot be approved; the plan is then shown as the captain proposed it."""
    grown: tuple[str, ...]
    """Additions by change requests, in a few words each; `plan` is the sealed plan without them."""
    following: str

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "run_id": self.run_id,
            "request": self.request,
            "is_sealed": self.is_sealed,
            "folder": str(self.folder),
            "problem": self.problem,
            "order": [view.node.id for view in self.nodes],
            "plan": self.plan.plain(),
            "grown": list(self.grown),
            "next": self.following,
        }


def read_plan_view(root: Path, wanted: str | None) -> PlanView:
    """Return the current plan of a run: the sealed one, or the one in its files."""
    with open_forge_run(root, resolve_run_at(root, wanted)) as context:
        log, order = context.log, context.log.order()
        proposal = log.proposal()
        if order is None or proposal is None:
            raise _no_plan(context)
        is_sealed = log.course().is_approved
        plan, problem = proposal, None
        if not is_sealed and log.course().is_proposed:
            try:
                plan = read_plan(context.files, context.layout, proposal)
            except FairWitnessError as error:
                problem = error.what
        return PlanView(
            run_id=log.run_id,
            request=order.request,
            plan=plan,
            nodes=_nodes(plan),
            folder=context.files.root / context.layout.folder,
            is_sealed=is_sealed,
            problem=problem,
            grown=tuple(_grown(context)),
            following=_following(context, problem),
        )


def _nodes(plan: ForgePlan) -> tuple[PlannedNode, ...]:
    tasks = {task.id: task for task in plan.tasks}
    nodes = {node.id: node for node in plan.dag.nodes}
    views = []
    for name in TopologicalSorter({node.id: node.dependencies for node in plan.dag.nodes}).static_order():
        node, task = nodes[name], tasks.get(name)
        if task is None:
            views.append(PlannedNode(node, "", None, ()))
        else:
            views.append(PlannedNode(node, task.title, task.estimated_complexity.value, task.acceptance_criteria))
    return tuple(views)


def _grown(context: ForgeRunRecord) -> Iterator[str]:
    for row in context.log.ledger.observations(context.log.run_id, OVERLAY):
        names = [node.id for node in recorded(DagOverlay, row).addedNodes]
        yield f"{row.subject} added {', '.join(names) or 'edges'}"


def _following(context: ForgeRunRecord, problem: str | None) -> str:
    run_id, question = context.log.run_id, open_question(context.log)
    gate = "" if question is None else question.gate_id
    if gate.startswith(f"{REVIEW}."):
        return f"fairwitness plan edit {run_id}" if problem is not None else f"fairwitness plan approve {run_id}"
    if gate.startswith(f"{INTERVIEW}."):
        return "fairwitness inbox"
    return f"fairwitness status {run_id}"


def edit_plan(root: Path, wanted: str, file: str, given: Path | None) -> Path:
    """Edit a file of a plan that is not sealed, in the person's editor or by a given file.

    The plan is checked afterwards: `UsageError` names the first problem. The file keeps its edits.
    """
    with open_forge_run(root, resolve_run_at(root, wanted)) as context:
        proposal = context.log.proposal()
        course = context.log.course()
        if course.is_approved:
            raise UsageError(SEALED, next_step=f"fairwitness cr list {context.log.run_id}")
        if proposal is None or not course.is_proposed or course.is_over:
            raise _no_plan(context)
        path = _part(context, file)
        if given is not None:
            context.files.put(path, read_given(given, limit=_LARGEST))
        else:
            context.files.exists(path)  # does not follow links
            _edit_here(context.files.root / path)
        if context.log.course() != course:
            raise UsageError(
                f"the plan was approved or returned meanwhile, without your change of {path}",
                next_step=f"fairwitness plan show {context.log.run_id}",
            )
        read_plan(context.files, context.layout, proposal)
        return context.files.root / path


def _part(context: ForgeRunRecord, file: str) -> str:
    """Return the path of a plan's file, given relative to the run's folder or to the repository."""
    name = file.removeprefix("./").removeprefix(f"{context.layout.folder}/")
    if _PART.fullmatch(name) is None:
        raise UsageError(
            f"{visible(file)!r} is not a file of a plan", next_step=f"name {GRAPH}, specs/NAME.md or tasks/ID.md"
        )
    return f"{context.layout.folder}/{name}"


def _edit_here(path: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise UsageError("no editor is set", next_step="set EDITOR, or pass a file with --with PATH")
    path.parent.mkdir(exist_ok=True)
    try:
        code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode  # configured by the person
    except (OSError, ValueError) as error:
        raise UsageError(f"the editor {visible(editor)!r} does not start: {error}", next_step="set EDITOR") from None
    if code != 0:
        raise UsageError(f"the editor ended with {code}", next_step="the file is as the editor left it")


def approve_plan(root: Path, wanted: str | None) -> tuple[str, bool]:
    """Seal the plan of a run in the name of the person; return its id and whether a worker executes it."""
    run_id = resolve_run_at(root, wanted)
    with open_forge_run(root, run_id) as context:
        question = open_question(context.log)
        if question is None or not question.gate_id.startswith(f"{REVIEW}."):
            raise _not_reviewed(context, None if question is None else question.gate_id)
    from fairwitness.app.runs.answer import answer  # imported late: reading needs no engine

    answer(root, run_id, APPROVE, None)
    return run_id, worker_on(root, run_id) is not None


def _no_plan(context: ForgeRunRecord) -> UsageError:
    run_id = context.log.run_id
    if context.log.course().is_over:
        return UsageError(f"{run_id} has ended", next_step=f"fairwitness status {run_id}")
    return UsageError(f"the captain of {run_id} has no plan to show yet", next_step=f"fairwitness watch {run_id}")


def _not_reviewed(context: ForgeRunRecord, gate: str | None) -> UsageError:
    run_id = context.log.run_id
    if gate is not None:
        return UsageError(f"{run_id} waits for something else, {gate}", next_step="fairwitness inbox")
    if context.log.course().is_approved:
        return UsageError(f"the plan of {run_id} is approved", next_step=f"fairwitness status {run_id}")
    return _no_plan(context)
