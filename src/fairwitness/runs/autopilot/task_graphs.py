"""The graphs that carry out the tasks of a phase: how they start, and what became of each task.

Graphs are numbered through the run. A node is named after its phase, and its attempts have the number of the graph
within the phase, so that no branch and no row is used twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fairwitness.contracts.autopilot.audit import GapDetail
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.phase_record import TaskStatus
from fairwitness.contracts.autopilot.plan import PlanCriterion, PlanTask
from fairwitness.contracts.autopilot.returns import TaskEvidence
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn
from fairwitness.contracts.autopilot.vocabulary import Complexity, FailureCategory
from fairwitness.contracts.common.base import Amount, Contract, Count, Flag, Maybe, Positive, Texts
from fairwitness.contracts.common.evidence import Tree
from fairwitness.contracts.common.ids import NodeId, RelPath
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag, DagMetadata, DagNode, NodeState, NodeType
from fairwitness.contracts.forge.status import NodeStatus
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.errors import InternalError
from fairwitness.kit.killpoints import killpoint
from fairwitness.runs.autopilot.log import AutopilotLog, pass_name
from fairwitness.runs.autopilot.pages_phase import LoggedTask
from fairwitness.runs.graph.log import GRAPH, GraphLog, plain_graph

ATTEMPT = "attempt"
_ESTIMATES = {Complexity.SIMPLE: 1, Complexity.MEDIUM: 2, Complexity.COMPLEX: 3}
_STATUSES = {
    NodeState.PENDING: TaskStatus.NOT_STARTED,
    NodeState.MERGED: TaskStatus.COMPLETED,
    NodeState.FAILED: TaskStatus.FAILED,
    NodeState.STALE: TaskStatus.FAILED,
}
"""The status of a task by the state of its node; any other state means in progress."""


class TaskNode(Contract):
    """The work of one node: a task of the plan, the items of a cycle, or problems for a debugger."""

    id: NodeId
    role: Role
    task: Maybe[PlanTask] = None
    items: tuple[PathItem, ...] = ()
    problems: Texts = ()
    criteria: tuple[PlanCriterion, ...] = ()
    """The criteria of the phase, which still hold after a cycle."""
    wave: Positive = 1
    gap: Maybe[GapDetail] = None
    """A gap that the self-audit found."""
    writes: Texts = ()
    """Globs of what it may write beside the files of its task."""

    @property
    def name(self) -> str:
        """Its name in the state file and the execution log."""
        return self.id if self.task is None else self.task.id

    @property
    def scope(self) -> tuple[str, ...] | None:
        """What it may write, or None if nothing limits it."""
        if self.task is None:
            return self.writes or None
        return tuple(dict.fromkeys((*self.task.files, *self.writes)))

    @property
    def about(self) -> str:
        """What is to be done, in one line."""
        if self.task is not None:
            return " ".join(self.task.action.split())
        gap = () if self.gap is None else (self.gap.gap_description,)
        said = (*(item.deficiency for item in self.items), *gap, *self.problems)
        return " ".join("; ".join(said).split()) or self.id


class PlannedGraph(NamedTuple):
    """One graph of a run, as it was planned."""

    number: int
    phase: str | None
    """The phase of the roadmap; None if the graph belongs to none."""
    pass_: str | None
    purpose: str
    life: int
    """How often the run had been resumed when the graph was started."""
    attempt: int
    """The number of each of its attempts."""
    nodes: tuple[TaskNode, ...]

    def node(self, node_id: str) -> TaskNode:
        """Return one of its nodes."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise InternalError(f"graph {self.number} has no node {node_id}")


class NodeAttempt(Contract):
    """The result of the work on a node before commit and proof; a halted attempt leaves none."""

    node: NodeId
    attempt: Positive
    done: Flag
    tree: Maybe[Tree] = None
    """The tree that was checked."""
    files: tuple[RelPath, ...]
    evidence: Maybe[TaskEvidence] = None
    """What the executor claims."""
    deviations: Texts = ()
    check: Maybe[MiniVerifierReturn] = None
    """The last mini-verification."""
    debug_attempts: Count = 0
    problems: Texts = ()
    """Why it is not done."""
    category: Maybe[FailureCategory] = None
    seconds: Amount = 0.0
    """The time of agents and commands together."""


def graphs_of(log: AutopilotLog) -> tuple[PlannedGraph, ...]:
    """Return every graph that was started, in order."""
    return tuple(sorted(_graph(row.detail) for row in log.ledger.observations(log.run_id, GRAPH)))


def graph_of(log: AutopilotLog, number: int) -> PlannedGraph:
    """Return one graph."""
    row = log.ledger.observation(log.run_id, f"{GRAPH}:{number}")
    if row is None:
        raise InternalError(f"run {log.run_id} has no graph {number}")
    return _graph(row.detail)


def _graph(detail: Mapping[str, Any]) -> PlannedGraph:
    about, options = detail["settings"], detail["options"]
    nodes = tuple(TaskNode.model_validate(node) for node in about["nodes"])
    return PlannedGraph(
        int(options["phase"]),
        about["phase"],
        about["pass"],
        str(about["purpose"]),
        int(about["life"]),
        int(options["first_attempt"]),
        nodes,
    )


def begin_graph(
    log: AutopilotLog, phase_pass: PhasePass | None, purpose: str, nodes: Sequence[TaskNode], base_commit: str
) -> int:
    """Record a graph and return its number; the same purpose of the same pass finds the existing graph.

    If the run was resumed since and no node of it is running, nodes that were halted or never started get a new graph.
    """
    known = graphs_of(log)
    of, phase = (None, None) if phase_pass is None else (pass_name(phase_pass), phase_pass.phase)
    life = sum(event.type == "run_resumed" for event in log.ledger.events(log.run_id))
    same = [graph for graph in known if (graph.pass_, graph.purpose) == (of, purpose)]
    if same:
        open_ = _halted(log, same) if same[-1].life != life else ()
        if not open_:
            return same[-1].number
        nodes = open_
    number = len(known) + 1
    attempt = 1 + sum(graph.phase == phase for graph in known)
    order, now = log.order(), log.now()
    options = GraphOptions(
        target=order.target,
        cap=order.limits.cap,
        first_attempt=attempt,
        max_attempts=attempt,
        phase=str(number),
        look_s=0.5,
    )
    dag = Dag(
        version=1,
        runId=log.run_id,
        nodes=tuple(_dag_nodes(nodes)),
        metadata=DagMetadata(createdAt=now, createdBy="captain", totalTasks=len(nodes), totalRefineries=0),
    )
    about = {"phase": phase, "pass": of, "purpose": purpose, "life": life, "nodes": [node.plain() for node in nodes]}
    detail = plain_graph(dag, options, base_commit, {}, about)
    seen = log.observation(f"{GRAPH}:{number}", GRAPH, log.run_id, detail, now)
    log.ledger.record(log.run_id, lambda record: record.observation(seen))
    killpoint("autopilot.graph")
    return number


def _dag_nodes(nodes: Sequence[TaskNode]) -> Iterable[DagNode]:
    """Yield the nodes; each depends on all nodes of the wave before."""
    waves = sorted({node.wave for node in nodes})
    before = {wave: tuple(node.id for node in nodes if node.wave == waves[at - 1]) for at, wave in enumerate(waves)}
    for node in nodes:
        about: dict[str, Any] = {} if node.scope is None else {"writes": list(node.scope)}
        if node.task is not None:
            about["estimate"] = _ESTIMATES[node.task.complexity]
        yield DagNode(
            id=node.id,
            type=NodeType.TASK,
            agentType=2,
            dependencies=() if node.wave == waves[0] else before[node.wave],
            status=NodeState.PENDING,
            metadata=about,
        )


def rest_of(log: AutopilotLog, number: int) -> tuple[TaskNode, ...]:
    """Return the nodes that never started because an earlier wave had a failure, to be started without it.

    Empty if the graph did not come to its own end.
    """
    states, nodes = (
        {name: each.status for name, each in statuses_of(log, number).items()},
        graph_of(log, number).nodes,
    )
    if not set(states.values()) <= _STATUSES.keys():
        return ()
    failed = [node.wave for node in nodes if _STATUSES[states[node.id]] is TaskStatus.FAILED]
    rest = tuple(node for node in nodes if states[node.id] is NodeState.PENDING)
    return rest if all(min(failed, default=node.wave) < node.wave for node in rest) else ()


def _halted(log: AutopilotLog, graphs: Sequence[PlannedGraph]) -> tuple[TaskNode, ...]:
    """Return the nodes to start again after a resume: none while a node is running, else those that never ended."""
    found: dict[str, TaskNode] = {}
    for graph in graphs:
        states = statuses_of(log, graph.number)
        for node in graph.nodes:
            found.pop(node.id, None)
            match states[node.id].status:
                case NodeState.PENDING:
                    found[node.id] = node
                case NodeState.FAILED | NodeState.STALE:
                    if attempted(log, node.id, graph.attempt) is None:
                        found[node.id] = node
                case NodeState.MERGED:
                    pass
                case _:
                    return ()
    return tuple(found.values())


def statuses_of(log: AutopilotLog, number: int) -> Mapping[str, NodeStatus]:
    """Return the states of a graph's nodes."""
    graph = GraphLog(log.ledger, log.run_id, workflow=Workflow.AUTOPILOT, phase=str(number), clock=log.clock)
    return graph.run().nodes


def attempted(log: AutopilotLog, node: str, attempt: int) -> NodeAttempt | None:
    """Return the result of an attempt, or None if it is running or was halted."""
    return log.kept(f"{ATTEMPT}:{node}:{attempt}", NodeAttempt)


def commit_of(log: AutopilotLog, node: str, attempt: int) -> str | None:
    """Return the verified commit of an attempt; None if there is none or nothing had to change."""
    done = attempted(log, node, attempt)
    if done is None or not done.files:
        return None
    verified = [
        str(event.data["commit"])
        for event in log.ledger.events(log.run_id)
        if event.type == "task.verified" and (event.data["nodeId"], event.data["attemptId"]) == (node, attempt)
    ]
    return verified[-1] if verified else None


def logged(log: AutopilotLog, *numbers: int) -> tuple[LoggedTask, ...]:
    """Return what became of each node of these graphs; for a node in several graphs, the last result."""
    found: dict[str, LoggedTask] = {}
    for number in numbers:
        graph, states = graph_of(log, number), statuses_of(log, number)
        for node in graph.nodes:
            found[node.id] = _logged(log, graph, node, states[node.id])
    return tuple(found.values())


def _logged(log: AutopilotLog, graph: PlannedGraph, node: TaskNode, state: NodeStatus) -> LoggedTask:
    done, status = attempted(log, node.id, graph.attempt), _STATUSES.get(state.status, TaskStatus.IN_PROGRESS)
    why = " ".join((state.lastError or "").split()) if status is TaskStatus.FAILED else ""
    return LoggedTask(
        id=node.name,
        description=node.about,
        status=status,
        reason=why or None,
        commit=commit_of(log, node.id, graph.attempt) if status is TaskStatus.COMPLETED else None,
        files=() if done is None else done.files,
        evidence=None if done is None else done.evidence,
        confidence=None,  # executors are not asked how sure they are
        check=None if done is None else done.check,
        debug_attempts=0 if done is None else done.debug_attempts,
        duration_seconds=None if done is None else done.seconds,
    )


def deviations(log: AutopilotLog, *numbers: int) -> tuple[str, ...]:
    """Return where executors say they deviated from the plan, with the task."""
    nodes = [(graph.attempt, node) for graph in (graph_of(log, each) for each in numbers) for node in graph.nodes]
    ends = [(node, attempted(log, node.id, attempt)) for attempt, node in nodes]
    return tuple(f"{node.name}: {said}" for node, done in ends if done is not None for said in done.deviations)
