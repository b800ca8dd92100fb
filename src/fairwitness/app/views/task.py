"""The view of one task of a forge run: its document, attempts, walkthroughs and subtasks."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairwitness.app.run_records.forge import ForgeRunRecord, open_forge_run
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.forge.dag import DagNode
from fairwitness.errors import NotStored, UsageError
from fairwitness.kit.text import visible


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
    max_attempts: int
    dependencies: tuple[str, ...]
    document: str
    attempts: list[AttemptView]
    subtasks: dict[str, str]
    """The status and title of each subtask by id."""

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**vars(self), "attempts": [vars(each) for each in self.attempts]}


def read_task(root: Path, run_id: str, task: str) -> TaskView:
    """Return the current state of a task."""
    with open_forge_run(root, run_id) as context:
        if not context.log.course().is_approved:
            raise UsageError(f"the plan of {run_id} is not approved yet", next_step=f"fairwitness plan show {run_id}")
        node = _node(context, task)
        status = context.log.run().nodes[task]
        attempts: dict[int, AttemptView] = {}
        subtasks: dict[str, str] = {}
        for envelope in context.log.ledger.events(run_id):
            if envelope.data.get("nodeId") == task:
                _apply(attempts, subtasks, envelope)
        return TaskView(
            run_id=run_id,
            id=task,
            type=node.worker,
            state=status.status.value,
            attempt=status.currentAttempt,
            max_attempts=status.maxAttempts,
            dependencies=node.dependencies,
            document=_document(context, task),
            attempts=list(attempts.values()),
            subtasks=subtasks,
        )


def _node(context: ForgeRunRecord, task: str) -> DagNode:
    nodes = {node.id: node for node in context.log.effective()[1].nodes}
    if task not in nodes:
        listed = ", ".join(list(nodes)[:8])
        raise UsageError(
            f"there is no task {visible(task)!r} in {context.log.run_id}", next_step=f"choose one of {listed}"
        )
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
        attempts[number] = AttemptView(number, branch=str(data["branch"]))
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
