"""What one `node.changed` makes of a node's status: the one place where an event moves a node."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.events import NodeChanged, TaskReopened
from fairwitness.contracts.forge.status import NodeStatus
from fairwitness.rules.dag import MOVES, Move, is_exhausted, moved

Changes: TypeAlias = dict[str, Any]


def node_after(node: NodeStatus, event: NodeChanged) -> NodeStatus | Problem:
    """The node after the event: the very same if it stands there already, and a problem if it cannot get there."""
    if MOVES[node.status, event.newStatus] is Move.NOTHING:
        return node
    if node.status is not event.previousStatus:
        return Problem(where=("previousStatus",), expected=node.status.value, found=event.previousStatus.value)
    after = moved(node, event.newStatus)
    if isinstance(after, Problem):
        return Problem(where=("newStatus",), expected=after.expected, found=after.found)
    if event.attemptId is not None and event.attemptId != after.currentAttempt:
        return Problem(where=("attemptId",), expected=f"attempt {after.currentAttempt}", found=str(event.attemptId))
    told: Mapping[NodeState, Changes] = {
        NodeState.PENDING: {"assignedAgent": None, "startedAt": None},
        NodeState.RUNNING: {"startedAt": event.timestamp},
        NodeState.DONE: {},
        NodeState.MERGE_READY: {},
        NodeState.MERGED: {"completedAt": event.timestamp},
        NodeState.FAILED: {"lastError": event.reason or node.lastError},
        NodeState.STALE: {"lastError": event.reason or node.lastError},
    }
    return after.model_copy(update=told[event.newStatus])


def reopened(node: NodeStatus, event: TaskReopened) -> NodeStatus | Problem:
    """The node with more attempts; only one that has none left needs them."""
    if not is_exhausted(node) or event.maxAttempts <= node.maxAttempts:
        return Problem(
            where=("maxAttempts",),
            expected=f"a node without attempts, and more than its {node.maxAttempts}",
            found=f"{node.status.value}, {event.maxAttempts}",
        )
    return node.model_copy(update={"maxAttempts": event.maxAttempts})
