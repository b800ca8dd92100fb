"""Forge's task graph: consistency rules, overlays that extend it, node state transitions, and the counts of a run.

`schedule` decides which node starts next.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from fairwitness.contracts.common.base import instant
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.forge.dag import Dag, DagMetadata, DagNode, DagOverlay, NodeState, NodeType
from fairwitness.contracts.forge.events import NodeChanged, TaskReopened
from fairwitness.contracts.forge.status import DagStatus, NodeStatus
from fairwitness.rules.graph import find_cycle


def dag_problems(dag: Dag) -> tuple[Problem, ...]:
    """Return all problems of one graph."""
    return tuple(_dag_problems(dag))


def _dag_problems(dag: Dag) -> Iterator[Problem]:
    known = {node.id for node in dag.nodes}
    for index, node in enumerate(dag.nodes):
        yield from _node_problems(node, index, known)
    ring = _ring(dag.nodes)
    if ring:
        yield Problem(
            where=("nodes",),
            expected="nodes that do not wait for each other in a ring",
            found=" → ".join((*ring, ring[0])),
        )
    tasks, refineries = _sizes(dag.nodes)
    for name, said, counted in (
        ("totalTasks", dag.metadata.totalTasks, tasks),
        ("totalRefineries", dag.metadata.totalRefineries, refineries),
    ):
        if said != counted:
            yield Problem(where=("metadata", name), expected=f"the number of nodes, {counted}", found=str(said))


def _ring(nodes: Iterable[DagNode]) -> tuple[str, ...]:
    return find_cycle({node.id: [other for other in node.dependencies if other != node.id] for node in nodes})


def _node_problems(node: DagNode, index: int, known: Collection[str]) -> Iterator[Problem]:
    for position, other in enumerate(node.dependencies):
        where = ("nodes", index, "dependencies", position)
        if other == node.id:
            yield Problem(where=where, expected="another node than itself", found=other)
        elif other not in known:
            yield Problem(where=where, expected="a node of this graph", found=other)
    if node.type is NodeType.REFINERY and not node.dependencies:
        yield Problem(where=("nodes", index, "dependencies"), expected="something to refine", found="nothing")
    if (node.type is NodeType.REFINERY) != (node.agentType == "refinery"):
        yield Problem(
            where=("nodes", index, "agentType"), expected=f"an agent for a {node.type.value}", found=str(node.agentType)
        )


def _sizes(nodes: tuple[DagNode, ...]) -> tuple[int, int]:
    refineries = sum(node.type is NodeType.REFINERY for node in nodes)
    return len(nodes) - refineries, refineries


def overlay_problems(dag: Dag, overlay: DagOverlay, status: DagStatus | None = None) -> tuple[Problem, ...]:
    """Return everything that keeps an overlay from fitting a graph; with any problem, no part of it may be applied.

    With the live status, an edge to a node that is no longer pending is refused too, because it would come too late.
    """
    late = () if status is None else _late_edges(overlay, status)
    return (*_overlay_problems(dag, overlay), *late)


def _late_edges(overlay: DagOverlay, status: DagStatus) -> Iterator[Problem]:
    for index, edge in enumerate(overlay.addedEdges):
        node = status.nodes.get(edge.to)
        if node is not None and node.status is not NodeState.PENDING:
            yield Problem(
                where=("addedEdges", index, "to"), expected="a node that is PENDING", found=f"{edge.to}, {node.status}"
            )


def _overlay_problems(dag: Dag, overlay: DagOverlay) -> Iterator[Problem]:
    unfit = tuple(_parts_that_do_not_fit({node.id for node in dag.nodes}, overlay))
    yield from unfit
    if not unfit and _grown_at_once(dag, [overlay]) is None:
        # Problems of the grown graph are placed by their own paths; those the base had already are not the overlay's.
        before = set(dag_problems(dag))
        for problem in dag_problems(apply_overlay(dag, overlay)):
            if problem not in before:
                yield Problem(where=("addedEdges",), expected=problem.expected, found=problem.found)


def _parts_that_do_not_fit(known: Collection[str], overlay: DagOverlay) -> Iterator[Problem]:
    added: set[str] = set()
    for index, node in enumerate(overlay.addedNodes):
        if node.id in known or node.id in added:
            yield Problem(where=("addedNodes", index, "id"), expected="an id that is not taken", found=node.id)
        if node.status is not NodeState.PENDING:
            yield Problem(where=("addedNodes", index, "status"), expected=NodeState.PENDING, found=node.status)
        added.add(node.id)
    for index, edge in enumerate(overlay.addedEdges):
        for end, name in (("from", edge.from_), ("to", edge.to)):
            if name not in known and name not in added:
                yield Problem(
                    where=("addedEdges", index, end), expected="a node of the graph or of this overlay", found=name
                )


def apply_overlay(dag: Dag, overlay: DagOverlay) -> Dag:
    """Return the graph with a valid overlay added; existing edges are not duplicated."""
    nodes = {node.id: node for node in dag.nodes}
    _add(nodes, overlay)
    return _with_nodes(dag, tuple(nodes.values()))


def _add(nodes: dict[str, DagNode], overlay: DagOverlay) -> tuple[str, ...]:
    """Adds an overlay to the nodes of a graph, by id; the answer is which of them are new or wait for more."""
    nodes.update({node.id: node for node in overlay.addedNodes})
    touched: dict[str, list[str]] = {node.id: [] for node in overlay.addedNodes}
    for edge in overlay.addedEdges:
        touched.setdefault(edge.to, []).append(edge.from_)
    for name, others in touched.items():
        node = nodes[name]
        nodes[name] = node.model_copy(update={"dependencies": tuple(dict.fromkeys((*node.dependencies, *others)))})
    return tuple(touched)


def _with_nodes(dag: Dag, nodes: tuple[DagNode, ...]) -> Dag:
    tasks, refineries = _sizes(nodes)
    metadata = DagMetadata(
        createdAt=dag.metadata.createdAt,
        createdBy=dag.metadata.createdBy,
        totalTasks=tasks,
        totalRefineries=refineries,
    )
    return dag.model_copy(update={"nodes": nodes, "metadata": metadata})


def effective_dag(base: Dag, overlays: Iterable[DagOverlay]) -> Dag | tuple[Problem, ...]:
    """Return the graph with all overlays added, ordered by time and then by number; each change request counts once.

    All or nothing: if one overlay does not fit, return its problems instead of a graph.
    """
    once: dict[str, DagOverlay] = {}
    for overlay in sorted(overlays, key=_by_time_and_number):
        if once.setdefault(overlay.crId, overlay) != overlay:
            found = "two that differ"
            return (Problem(where=("overlays", overlay.crId), expected="one overlay per change request", found=found),)
    if not once:
        return base
    grown = _grown_at_once(base, once.values())
    return _grown_one_by_one(base, once.values()) if grown is None else grown


def _grown_at_once(base: Dag, overlays: Iterable[DagOverlay]) -> Dag | None:
    """The graph with all overlays added, for the price of what they add and one search for a ring.

    None if anything is amiss, be it only in the base; what it is, and whose, is then found one overlay at a time. The
    search may wait for the end, since a ring does not go away by adding to it; whatever a later overlay could cure is
    looked at before it.
    """
    nodes = {node.id: node for node in base.nodes}
    for overlay in overlays:
        if any(_parts_that_do_not_fit(nodes.keys(), overlay)):
            return None
        touched = _add(nodes, overlay)
        if any(True for name in touched for _ in _node_problems(nodes[name], 0, nodes.keys())):
            return None
    return None if _ring(nodes.values()) else _with_nodes(base, tuple(nodes.values()))


def _grown_one_by_one(base: Dag, overlays: Iterable[DagOverlay]) -> Dag | tuple[Problem, ...]:
    dag = base
    for overlay in overlays:
        problems = overlay_problems(dag, overlay)
        if problems:
            return tuple(
                problem.model_copy(update={"where": ("overlays", overlay.crId, *problem.where)}) for problem in problems
            )
        dag = apply_overlay(dag, overlay)
    return dag


def _by_time_and_number(overlay: DagOverlay) -> tuple[float, int, str]:
    return instant(overlay.appliedAt).timestamp(), int(overlay.crId.removeprefix("cr-")), overlay.crId


def grown_dag(dag: Dag, overlay: DagOverlay, status: DagStatus) -> Dag | tuple[Problem, ...]:
    """Return a running graph with a new overlay added, or everything that forbids it."""
    return overlay_problems(dag, overlay, status) or apply_overlay(dag, overlay)


class TransitionKind(StrEnum):
    """Whether a transition of a node is legal, has no effect, or is illegal."""

    LEGAL = "legal"
    NOTHING = "nothing"
    ILLEGAL = "illegal"


_NEXT: Mapping[NodeState, tuple[NodeState, ...]] = {
    NodeState.PENDING: (NodeState.RUNNING,),
    NodeState.RUNNING: (NodeState.DONE, NodeState.FAILED, NodeState.STALE),
    NodeState.DONE: (NodeState.MERGE_READY,),
    NodeState.MERGE_READY: (NodeState.MERGED,),
    NodeState.MERGED: (),
    NodeState.FAILED: (NodeState.PENDING,),
    NodeState.STALE: (NodeState.PENDING,),
}

TRANSITIONS: Mapping[tuple[NodeState, NodeState], TransitionKind] = {
    (before, after): TransitionKind.NOTHING
    if before is after
    else TransitionKind.LEGAL
    if after in _NEXT[before]
    else TransitionKind.ILLEGAL
    for before in NodeState
    for after in NodeState
}
"""All transitions: repeating a state has no effect, and a new attempt always goes through PENDING."""


def is_exhausted(node: NodeStatus) -> bool:
    """Return True if a node failed or lost its worker in its last attempt."""
    return node.status in (NodeState.FAILED, NodeState.STALE) and node.currentAttempt >= node.maxAttempts


def moved(node: NodeStatus, after: NodeState) -> NodeStatus | Problem:
    """Return a node after a transition; returning to PENDING begins the next attempt, if there is one.

    >>> moved(NodeStatus(taskId="t-1", status="MERGED", currentAttempt=1, maxAttempts=3), NodeState.RUNNING).expected
    'no change any more'
    """
    move = TRANSITIONS[node.status, after]
    if move is TransitionKind.NOTHING:
        return node
    where = ("nodes", node.taskId, "status")
    if move is TransitionKind.ILLEGAL:
        expected = " or ".join(state.value for state in _NEXT[node.status]) or "no change any more"
        return Problem(where=where, expected=expected, found=f"{node.status.value} → {after.value}")
    if after is not NodeState.PENDING:
        return node.model_copy(update={"status": after})
    if is_exhausted(node):
        return Problem(where=where, expected=f"at most {node.maxAttempts} attempts", found="one more")
    return node.model_copy(update={"status": after, "currentAttempt": node.currentAttempt + 1})


COUNTED: Mapping[str, Callable[[NodeStatus], bool]] = {
    "totalTasks": lambda node: True,
    "completedTasks": lambda node: node.status is NodeState.MERGED,
    "failedTasks": is_exhausted,
    "runningTasks": lambda node: node.status is NodeState.RUNNING,
}
"""The counts of a run: all nodes, merged nodes, nodes that failed for good, running nodes."""


def run_counts(status: DagStatus) -> dict[str, int]:
    """Return the counts of a run, computed from its whole graph."""
    return {name: sum(map(counts, status.nodes.values())) for name, counts in COUNTED.items()}


Changes: TypeAlias = dict[str, Any]


def node_after(node: NodeStatus, event: NodeChanged) -> NodeStatus | Problem:
    """Return the node after the event: unchanged if it has that state already, or a problem if the transition is
    illegal.
    """
    if TRANSITIONS[node.status, event.newStatus] is TransitionKind.NOTHING:
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
    """Return the node with more attempts; a problem unless it has none left."""
    if not is_exhausted(node) or event.maxAttempts <= node.maxAttempts:
        return Problem(
            where=("maxAttempts",),
            expected=f"a node without attempts, and more than its {node.maxAttempts}",
            found=f"{node.status.value}, {event.maxAttempts}",
        )
    return node.model_copy(update={"maxAttempts": event.maxAttempts})
