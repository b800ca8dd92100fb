"""The view of a run's task graph: each node with its state and what it waits for, and the critical path."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from fairwitness.app.text import safe_line, seconds_between
from fairwitness.app.views.detail import FORGE, open_database, read_detail, resolve_run
from fairwitness.app.views.run import NodeStage, RunView
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.forge.dag import Dag, DagNode, NodeState, NodeType
from fairwitness.errors import EventsBroken
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.run_summary import NodeSummary
from fairwitness.ledger.summary import doubtful_tasks
from fairwitness.rules.fold_forge import fold_forge
from fairwitness.rules.schedule import GOOD_ENOUGH, ways_to_the_end
from fairwitness.runs.graph.log import GraphLog

_LISTED = 3


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node of the graph; its texts are safe for a terminal."""

    name: str
    type: str
    state: str
    attempt: str
    waits_for: str
    is_critical: bool
    seconds: float | None
    """How long it has been worked on; None if it is not."""
    doubt: float | None = None
    """The confidence of its worker, if it is so low that a person should review the work."""


@dataclass(frozen=True, slots=True)
class GraphView:
    """The whole graph of a run."""

    run_id: str
    status: str
    counts: dict[str, int]
    lines: tuple[NodeLine, ...]
    critical: tuple[str, ...]
    """The critical path of the nodes that are not merged yet."""
    edges: tuple[tuple[str, str], ...]


def graph_view(root: Path, wanted: str) -> GraphView:
    """Return the current graph of a run."""
    with open_database(root) as database:
        log = GraphLog(Ledger(database), resolve_run(database, wanted, workflow=FORGE))
        _, dag = _effective(log)
        detail = read_detail(database, log.run_id)
        return _graph_view(dag, detail.view, detail.now, detail.doubtful)


def plain_graph(root: Path, wanted: str) -> dict[str, Any]:
    """Return the graph as the documents that forge writes: graph, node status, and run state."""
    with open_database(root) as database:
        log = GraphLog(Ledger(database), resolve_run(database, wanted, workflow=FORGE))
        base, dag = _effective(log)
        state = fold_forge(log.ledger.events(log.run_id), base, max_attempts=log.begun().options.max_attempts)
        doubtful = doubtful_tasks(database, log.run_id)
    if isinstance(state, Problem):
        raise EventsBroken(
            f"run {log.run_id}: {spell_path(state.where)}: expected {state.expected}; found {safe_line(state.found)}",
            next_step="fairwitness ledger verify",
        )
    return {"dag": dag.plain(), "status": state.dag.plain(), "run": state.run.plain(), "reviews": doubtful}


def _effective(log: GraphLog) -> tuple[Dag, Dag]:
    try:
        return log.effective()
    except (KeyError, TypeError, ValueError):  # not JSON, or not a graph
        raise EventsBroken(
            f"run {log.run_id}: its graph cannot be read", next_step="fairwitness ledger verify"
        ) from None


def _graph_view(dag: Dag, view: RunView, now: datetime, doubtful: Mapping[str, float]) -> GraphView:
    untouched = NodeSummary("")
    nodes = {node.id: view.nodes.get(node.id, untouched) for node in dag.nodes}
    types = {node.id: node.type for node in dag.nodes}
    critical = critical_path({node.id: node for node in dag.nodes if nodes[node.id].state != NodeState.MERGED})
    marked = frozenset(critical)
    return GraphView(
        run_id=view.run_id,
        status=view.word,
        counts=view.counts(),
        lines=tuple(
            NodeLine(
                name=safe_line(node.id, 128),
                type=node.type.value,
                state=nodes[node.id].state,
                attempt=view.tries(nodes[node.id]),
                waits_for=_waits_for(node, nodes, types, view),
                is_critical=node.id in marked,
                seconds=_at_work(nodes[node.id], view, now),
                doubt=doubtful.get(node.id),
            )
            for node in dag.nodes
        ),
        critical=tuple(safe_line(name, 128) for name in critical),
        edges=tuple(
            (safe_line(other, 128), safe_line(node.id, 128)) for node in dag.nodes for other in node.dependencies
        ),
    )


def critical_path(nodes: Mapping[str, DagNode]) -> tuple[str, ...]:
    """Return the longest chain of dependent nodes; dependencies outside `nodes` are ignored."""
    waiting = {name: [other for other in node.dependencies if other in nodes] for name, node in nodes.items()}
    said = {name: (node.metadata or {}).get("estimate") for name, node in nodes.items()}
    estimates = {name: value for name, value in said.items() if isinstance(value, int) and value > 0}
    ways = ways_to_the_end(waiting, estimates)
    dependents: dict[str, list[str]] = {name: [] for name in nodes}
    for name, others in waiting.items():
        for other in others:
            dependents[other].append(name)
    path: list[str] = []
    following = list(nodes)
    while following:
        path.append(max(following, key=lambda name: ways[name]))
        following = dependents[path[-1]]
    return tuple(path)


_AT_STAGE = {
    NodeStage.QUEUED: "to be merged",
    NodeStage.MERGING: "being merged",
    NodeStage.HELPING: "a helper solves its conflict",
}


def _at_work(node: NodeSummary, view: RunView, now: datetime) -> float | None:
    return seconds_between(node.since, now) if view.stage(node) in (NodeStage.WORKING, NodeStage.HELPING) else None


def _waits_for(node: DagNode, nodes: Mapping[str, NodeSummary], types: Mapping[str, NodeType], view: RunView) -> str:
    it = nodes[node.id]
    match it.state:
        case "PENDING":
            unmet = [
                other for other in node.dependencies if nodes[other].state not in GOOD_ENOUGH[types[other], node.type]
            ]
            if not unmet:
                return "ready"
            more = f" and {len(unmet) - _LISTED} more" if len(unmet) > _LISTED else ""
            return ", ".join(safe_line(other, 128) for other in unmet[:_LISTED]) + more
        case "RUNNING":
            return _AT_STAGE.get(view.stage(it), "")
        case "DONE" | "MERGE_READY":
            return "what takes it in"
        case "FAILED" | "STALE":
            return safe_line(it.error or "no reason is known", 120)
        case _:
            return ""
