"""The view of one task of a run: its document and attempts; in a forge run also walkthroughs and subtasks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairwitness.app.run_records.autopilot import open_autopilot_run
from fairwitness.app.run_records.feature import open_feature_run
from fairwitness.app.run_records.forge import ForgeRunRecord, open_forge_run
from fairwitness.app.views.detail import FEATURE, FORGE, LAST, open_database, resolve_run, resolve_run_at
from fairwitness.app.views.inbox import workflow_of
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.forge.dag import DagNode
from fairwitness.errors import NotStored, UsageError
from fairwitness.kit import yaml_text
from fairwitness.kit.text import visible
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.run_summary import AUTOPILOT, NodeSummary, RunSummary
from fairwitness.ledger.summary import run_summaries, summary_of
from fairwitness.runs.graph.log import GRAPH


@dataclass
class AttemptView:
    """An attempt at a task."""

    number: int
    branch: str = ""
    state: str = "RUNNING"
    reason: str | None = None
    walkthrough: str | None = None
    """The path of the walkthrough."""
    says: str | None = None
    """The result that the worker claims: completed, partial or failed."""
    confidence: float | None = None
    disputed: list[str] = field(default_factory=list)
    """The differences between the worker's claims and what the harness saw."""
    helpers: list[str] = field(default_factory=list)


@dataclass
class TaskView:
    """A task with its attempts."""

    run_id: str
    id: str
    type: str
    state: str
    attempt: int
    max_attempts: int | None
    """How many attempts it may have; None if its workflow counts iterations of the whole plan instead."""
    dependencies: tuple[str, ...]
    document: str
    attempts: list[AttemptView]
    subtasks: dict[str, str]
    """The status and title of each subtask by id."""

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**vars(self), "attempts": [vars(each) for each in self.attempts]}


def run_with_task(root: Path, wanted: str, task: str) -> str:
    """Return the id of a run; `last` is the latest run that began this task, or else the latest forge run."""
    if wanted != LAST:
        return resolve_run_at(root, wanted)
    with open_database(root) as database:
        runs = run_summaries(database, RunSummary)
        having = [run for run in runs if task in run.nodes] or [run for run in runs if run.workflow == FORGE] or runs
        if not having:
            return resolve_run(database, wanted)
        return max(having, key=lambda run: (run.began or "", run.run_id)).run_id


def read_task(root: Path, run_id: str, task: str) -> TaskView:
    """Return the current state of a task of any workflow."""
    workflow = workflow_of(root, run_id)
    if workflow == FEATURE:
        with open_feature_run(root, run_id) as feature:
            return _of_graphs(feature.ledger, run_id, task, lambda: feature.get(feature.layout.task(task)))
    if workflow == AUTOPILOT:
        with open_autopilot_run(root, run_id) as autopilot:
            return _of_graphs(autopilot.log.ledger, run_id, task)
    return _of_forge(root, run_id, task)


def _of_graphs(ledger: Ledger, run_id: str, task: str, stored: Callable[[], bytes | None] = lambda: None) -> TaskView:
    """Return a task of a run that starts one graph after another; `stored` reads its document."""
    nodes: dict[str, DagNode] = {}
    document = ""
    for row in ledger.observations(run_id, GRAPH):
        for plain in row.detail["dag"]["nodes"]:
            nodes[str(plain["id"])] = DagNode.model_validate(plain)
        for told in row.detail["settings"].get("nodes") or ():
            if told.get("id") == task:
                document = yaml_text.render(told.get("task") or {})
    node = _one_of(nodes, run_id, task)
    status = summary_of(ledger.database, run_id, RunSummary).nodes.get(task) or NodeSummary(task)
    attempts, subtasks = _attempts(ledger, run_id, task)
    return TaskView(
        run_id=run_id,
        id=task,
        type=node.worker,
        state=status.state,
        attempt=status.attempt,
        max_attempts=None,
        dependencies=node.dependencies,
        document=document or (stored() or b"").decode(errors="replace"),
        attempts=attempts,
        subtasks=subtasks,
    )


def _attempts(ledger: Ledger, run_id: str, task: str) -> tuple[list[AttemptView], dict[str, str]]:
    attempts: dict[int, AttemptView] = {}
    subtasks: dict[str, str] = {}
    for envelope in ledger.events(run_id):
        if envelope.data.get("nodeId") == task:
            _apply(attempts, subtasks, envelope)
    return list(attempts.values()), subtasks


def _of_forge(root: Path, run_id: str, task: str) -> TaskView:
    with open_forge_run(root, run_id) as context:
        if not context.log.course().is_approved:
            raise UsageError(f"the plan of {run_id} is not approved yet", next_step=f"fairwitness plan show {run_id}")
        node = _one_of({node.id: node for node in context.log.effective()[1].nodes}, run_id, task)
        status = context.log.run().nodes[task]
        attempts, subtasks = _attempts(context.log.ledger, run_id, task)
        return TaskView(
            run_id=run_id,
            id=task,
            type=node.worker,
            state=status.status.value,
            attempt=status.currentAttempt,
            max_attempts=status.maxAttempts,
            dependencies=node.dependencies,
            document=_document(context, task),
            attempts=attempts,
            subtasks=subtasks,
        )


def _one_of(nodes: Mapping[str, DagNode], run_id: str, task: str) -> DagNode:
    if task not in nodes:
        listed = ", ".join(list(nodes)[:8])
        next_step = f"choose one of {listed}" if nodes else f"fairwitness status {run_id}"
        raise UsageError(f"there is no task {visible(task)!r} in {run_id}", next_step=next_step)
    return nodes[task]


def _document(context: ForgeRunRecord, task: str) -> str:
    try:
        return context.log.document(task)
    except (UsageError, NotStored):
        return ""  # a refinery needs none


def _apply(attempts: dict[int, AttemptView], subtasks: dict[str, str], envelope: Envelope) -> None:
    data = envelope.data
    if envelope.type == "subtask.written":
        subtasks[str(data["subtaskId"])] = f"pending  {data['title']}"
    elif envelope.type == "subtask.changed":
        name = str(data["subtaskId"])
        subtasks[name] = f"{data['status']}  {subtasks[name].partition('  ')[2]}"
    elif envelope.type == "task.started":
        number = int(data["attemptId"])
        attempts.setdefault(number, AttemptView(number)).branch = str(data["branch"])
    elif envelope.type == "node.changed" and data["newStatus"] == "RUNNING":
        attempts.setdefault(int(data["attemptId"]), AttemptView(int(data["attemptId"])))
    elif data.get("attemptId") in attempts:
        _of_attempt(attempts[data["attemptId"]], envelope)


def _of_attempt(attempt: AttemptView, envelope: Envelope) -> None:
    data = envelope.data
    match envelope.type:
        case "node.changed":
            attempt.state, attempt.reason = str(data["newStatus"]), data.get("reason", attempt.reason)
        case "walkthrough.written":
            attempt.walkthrough, attempt.says = str(data["path"]), str(data["status"])
            attempt.confidence = float(data["confidence"])
        case "walkthrough.disputed":
            attempt.disputed += map(str, data["differences"])
        case "helper.started":
            attempt.helpers.append(f"{data['agent']}: {data['task']}")
        case _:
            pass
