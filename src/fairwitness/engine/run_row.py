"""A run as the library stores it, in the engine's own types, and the queue that it waits in."""

from dataclasses import dataclass
from typing import Any

from fairwitness.engine.base import ExecutionStatus, Json
from fairwitness.engine.json_values import RecordedError

RUNS, CHILDREN = "fairwitness-runs", "fairwitness-children"
"""The names of the queues.

Runs wait for their children and for people, so their queue has no limit. Children may wait for children of their own,
so each generation has its own queue with the cap: no child takes the room of those it waits for.
"""

_STATUS = {
    "ENQUEUED": ExecutionStatus.QUEUED,
    "DELAYED": ExecutionStatus.QUEUED,
    "PENDING": ExecutionStatus.RUNNING,
    "SUCCESS": ExecutionStatus.DONE,
    "ERROR": ExecutionStatus.FAILED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": ExecutionStatus.FAILED,
    "CANCELLED": ExecutionStatus.CANCELLED,
}
OPEN_STATUSES = ["ENQUEUED", "DELAYED", "PENDING"]
ENDED_STATUSES = [status for status in _STATUS if status not in OPEN_STATUSES]
"""The library's statuses of runs that have ended; `OPEN_STATUSES` are those of the others."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the library stores it."""

    id: str
    flow: str
    status: ExecutionStatus
    version: str
    executor: str | None
    parent: str | None
    generation: int
    """0 for a run, 1 for its children, 2 for their children."""
    value: Json = None
    error: RecordedError | None = None


def queue_of(generation: int) -> str:
    """Return the name of the queue of a generation."""
    return RUNS if generation == 0 else CHILDREN if generation == 1 else f"{CHILDREN}-{generation}"


def run_row(status: Any) -> RunRow:
    """Return a run from the library's status."""
    error, attributes = status.error, status.attributes or {}
    parent = attributes.get("parent")
    if status.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        error = RecordedError("EngineError", "it was begun too often")
    return RunRow(
        id=status.workflow_id,
        flow=status.name,
        status=_STATUS[status.status],
        version=status.app_version or "",
        executor=status.executor_id,
        parent=parent,
        generation=attributes.get("generation", 0 if parent is None else 1),
        value=status.output,
        error=error if error is None or isinstance(error, RecordedError) else RecordedError("EngineError", str(error)),
    )
