"""What a schema cannot say about forge's task graph, its overlays, and the counts a run reports about them."""

from collections.abc import Iterator

from assay.contracts.common.problems import Problem
from assay.contracts.forge.dag import Dag, DagMetadata, DagNode, DagOverlay, NodeState, NodeType
from assay.contracts.forge.status import DagStatus, RunState
from assay.rules.graph import find_cycle


def dag_problems(dag: Dag) -> tuple[Problem, ...]:
    """Everything wrong inside one graph."""
    return tuple(_dag_problems(dag))


def _dag_problems(dag: Dag) -> Iterator[Problem]:
    known = {node.id for node in dag.nodes}
    for index, node in enumerate(dag.nodes):
        yield from _node_problems(node, index, known)
    ring = find_cycle({node.id: [other for other in node.dependencies if other != node.id] for node in dag.nodes})
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


def _node_problems(node: DagNode, index: int, known: set[str]) -> Iterator[Problem]:
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


def overlay_problems(dag: Dag, overlay: DagOverlay) -> tuple[Problem, ...]:
    """Everything that keeps an overlay from fitting a graph; if anything does, nothing of it may be applied."""
    return tuple(_overlay_problems(dag, overlay))


def _overlay_problems(dag: Dag, overlay: DagOverlay) -> Iterator[Problem]:
    known = {node.id for node in dag.nodes}
    fits = True
    for index, node in enumerate(overlay.addedNodes):
        if node.id in known:
            fits = False
            yield Problem(where=("addedNodes", index, "id"), expected="an id that is not taken", found=node.id)
        known.add(node.id)
    for index, edge in enumerate(overlay.addedEdges):
        for end, name in (("from", edge.from_), ("to", edge.to)):
            if name not in known:
                fits = False
                yield Problem(
                    where=("addedEdges", index, end), expected="a node of the graph or of this overlay", found=name
                )
    if fits:
        # Problems of the grown graph are placed by their own paths; those the base had already are not the overlay's.
        before = set(dag_problems(dag))
        for problem in dag_problems(apply_overlay(dag, overlay)):
            if problem not in before:
                yield Problem(where=("addedEdges",), expected=problem.expected, found=problem.found)


def apply_overlay(dag: Dag, overlay: DagOverlay) -> Dag:
    """The graph with an overlay that fits it added; edges that stand already are not doubled."""
    incoming: dict[str, list[str]] = {}
    for edge in overlay.addedEdges:
        incoming.setdefault(edge.to, []).append(edge.from_)
    nodes = tuple(
        node.model_copy(update={"dependencies": tuple(dict.fromkeys((*node.dependencies, *incoming.get(node.id, ()))))})
        for node in (*dag.nodes, *overlay.addedNodes)
    )
    tasks, refineries = _sizes(nodes)
    metadata = DagMetadata(
        createdAt=dag.metadata.createdAt,
        createdBy=dag.metadata.createdBy,
        totalTasks=tasks,
        totalRefineries=refineries,
    )
    return dag.model_copy(update={"nodes": nodes, "metadata": metadata})


def run_count_problems(run: RunState, status: DagStatus) -> tuple[Problem, ...]:
    """Every count of a run that is not the one its graph shows."""
    nodes = status.nodes.values()
    counts = {
        "totalTasks": len(nodes),
        "completedTasks": sum(node.status is NodeState.MERGED for node in nodes),
        "failedTasks": sum(
            node.status is NodeState.FAILED and node.currentAttempt == node.maxAttempts for node in nodes
        ),
        "runningTasks": sum(node.status is NodeState.RUNNING for node in nodes),
    }
    return tuple(
        Problem(where=(name,), expected=f"the count of the graph, {counted}", found=str(getattr(run, name)))
        for name, counted in counts.items()
        if getattr(run, name) != counted
    )
