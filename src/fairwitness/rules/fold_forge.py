"""Fold the events of a forge run into `run-state.json` and `dag-status.json`.

Only `node.changed` moves a node; the other events of a task add who, where and why. Counts are updated with the same
table that counts a whole graph, so they cannot differ. The cost of an event depends only on what it changes: the nodes
are copied once for a stream, and the initial state is not modified.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from pydantic import TypeAdapter

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge import events as happened
from fairwitness.contracts.forge.dag import Dag, NodeState
from fairwitness.contracts.forge.events import ForgeEvent
from fairwitness.contracts.forge.status import DagStatus, ForgeRunStatus, NodeStatus, RunPhase, RunState
from fairwitness.contracts.graph.orders import DEFAULT_ATTEMPTS
from fairwitness.rules.dag import COUNTED, Changes, node_after, reopened
from fairwitness.rules.fold import UPCASTERS, Upcasters, at, fold, next_event

_SHAPE: TypeAdapter[ForgeEvent] = TypeAdapter(ForgeEvent)


class ForgeState(NamedTuple):
    """The state of a forge run after its events."""

    run: RunState
    dag: DagStatus


RUN_MOVES: Mapping[tuple[str, ForgeRunStatus], tuple[ForgeRunStatus, RunPhase | None]] = {
    ("plan.proposed", ForgeRunStatus.PLANNING): (ForgeRunStatus.PLAN_REVIEW, RunPhase.PLAN_REVIEW),
    ("plan.proposed", ForgeRunStatus.PLAN_REVIEW): (ForgeRunStatus.PLAN_REVIEW, RunPhase.PLAN_REVIEW),
    ("plan.approved", ForgeRunStatus.PLAN_REVIEW): (ForgeRunStatus.PLAN_REVIEW, RunPhase.PLAN_REVIEW),
    ("plan.returned", ForgeRunStatus.PLAN_REVIEW): (ForgeRunStatus.PLANNING, RunPhase.CAPTAIN_INTERVIEW),
    ("run.started", ForgeRunStatus.PLAN_REVIEW): (ForgeRunStatus.EXECUTING, RunPhase.EXECUTION),
    ("run.paused", ForgeRunStatus.EXECUTING): (ForgeRunStatus.PAUSED, RunPhase.PAUSED),
    ("run.resumed", ForgeRunStatus.PAUSED): (ForgeRunStatus.EXECUTING, RunPhase.EXECUTION),
    ("run.resumed", ForgeRunStatus.EXECUTING): (ForgeRunStatus.EXECUTING, RunPhase.EXECUTION),
    ("run.resumed", ForgeRunStatus.FAILED): (ForgeRunStatus.EXECUTING, RunPhase.EXECUTION),
    ("run.completed", ForgeRunStatus.EXECUTING): (ForgeRunStatus.COMPLETED, RunPhase.COMPLETED),
    ("run.failed", ForgeRunStatus.PLANNING): (ForgeRunStatus.FAILED, None),
    ("run.failed", ForgeRunStatus.PLAN_REVIEW): (ForgeRunStatus.FAILED, None),
    ("run.failed", ForgeRunStatus.EXECUTING): (ForgeRunStatus.FAILED, None),
    ("run.failed", ForgeRunStatus.PAUSED): (ForgeRunStatus.FAILED, None),
}
"""The phase after each event; missing entries are illegal. None keeps the phase: a failed run shows where it failed."""

UNSTARTED: Mapping[RunPhase, ForgeRunStatus] = {
    RunPhase.CAPTAIN_INTERVIEW: ForgeRunStatus.PLANNING,
    RunPhase.PLAN_REVIEW: ForgeRunStatus.PLAN_REVIEW,
}
"""The phase in which a run continues that failed before execution; from every other phase it executes."""


def fold_forge(
    envelopes: Iterable[Envelope],
    dag: Dag | None,
    *,
    max_attempts: int = DEFAULT_ATTEMPTS,
    onto: ForgeState | None = None,
    upcasters: Upcasters = UPCASTERS[Workflow.FORGE],
) -> ForgeState | Problem:
    """Return the run after these events; `dag` is the base graph, which exists once the plan is proposed."""
    begun = None if onto is None else _Folding(onto)
    folded = fold(envelopes, begun, lambda so_far, envelope: _apply(so_far, envelope, dag, max_attempts, upcasters))
    return folded if isinstance(folded, Problem) else folded.state()


class _Folding:
    """The mutable state while events are folded."""

    def __init__(self, onto: ForgeState) -> None:
        self.run = onto.run
        """Its counts are updated only at the end."""
        self.nodes = dict(onto.dag.nodes)
        self._dag = onto.dag
        self._counts: dict[str, int] = {name: getattr(onto.run, name) for name in COUNTED}
        self._updated_at = onto.dag.updatedAt

    @property
    def is_merged(self) -> bool:
        return 0 < self._counts["totalTasks"] == self._counts["completedTasks"]

    def forget_nodes(self) -> None:
        self.nodes = {}
        self._counts = dict.fromkeys(COUNTED, 0)

    def set(self, node: NodeStatus) -> None:
        before = self.nodes.get(node.taskId)
        self.nodes[node.taskId] = node
        for name, counts in COUNTED.items():
            self._counts[name] += counts(node) - (before is not None and counts(before))

    def seen(self, envelope: Envelope, changes: Changes) -> None:
        last = {"lastEventId": envelope.event_id, "lastEventSeq": envelope.seq}
        self.run = self.run.model_copy(update={**changes, **last})
        self._updated_at = envelope.timestamp

    def state(self) -> ForgeState:
        run = self.run.model_copy(update=self._counts)
        return ForgeState(run, self._dag.model_copy(update={"updatedAt": self._updated_at, "nodes": self.nodes}))


def _apply(
    folding: _Folding | None, envelope: Envelope, dag: Dag | None, max_attempts: int, upcasters: Upcasters
) -> _Folding | Problem:
    event = next_event(
        envelope,
        Workflow.FORGE,
        _SHAPE,
        upcasters,
        last_seq=folding.run.lastEventSeq if folding is not None else 0,
        run_id=folding.run.runId if folding is not None else None,
    )
    if isinstance(event, Problem):
        return event
    if folding is None:
        return _begun(envelope, event)
    run = _run_changes(folding.run, envelope, event)
    if isinstance(run, Problem):
        return run
    nodes = _node_changes(folding.nodes, envelope, event, dag, max_attempts)
    if isinstance(nodes, Problem):
        return nodes
    if isinstance(event, happened.ForgeRunCompleted) and not folding.is_merged:
        unmerged = [name for name, node in folding.nodes.items() if node.status is not NodeState.MERGED]
        return at(envelope, ("type",), "a graph with every node MERGED", ", ".join(unmerged) or "no graph")
    if isinstance(event, happened.PlanProposed):
        folding.forget_nodes()
    for node in nodes:
        folding.set(node)
    folding.seen(envelope, run)
    return folding


def _begun(envelope: Envelope, event: ForgeEvent) -> _Folding | Problem:
    if not isinstance(event, happened.RunCreated):
        return at(envelope, ("type",), "run.created as the first event", envelope.type)
    status = DagStatus(runId=envelope.run_id, updatedAt=envelope.timestamp, nodes={})
    run = RunState(
        runId=envelope.run_id,
        repoUrl=event.repoUrl,
        status=ForgeRunStatus.PLANNING,
        createdAt=envelope.timestamp,
        currentPhase=RunPhase.CAPTAIN_INTERVIEW,
        model=event.model,
        totalTasks=0,
        completedTasks=0,
        failedTasks=0,
        runningTasks=0,
        activeCRs=(),
        lastEventId=envelope.event_id,
        lastEventSeq=envelope.seq,
    )
    return _Folding(ForgeState(run, status))


def _run_changes(run: RunState, envelope: Envelope, event: ForgeEvent) -> Changes | Problem:
    match event:
        case happened.RunCreated():
            return at(envelope, ("type",), "run.created once", "a second one")
        case happened.ChangeRequestEmitted():
            return {"activeCRs": tuple(dict.fromkeys((*run.activeCRs, event.crId)))}
        case happened.ChangeRequestRejected() | happened.OverlayApplied():
            return {"activeCRs": tuple(active for active in run.activeCRs if active != event.crId)}
        case (
            happened.PlanProposed()
            | happened.PlanApproved()
            | happened.PlanReturned()
            | happened.ForgeRunStarted()
            | happened.RunPaused()
            | happened.ForgeRunResumed()
            | happened.ForgeRunCompleted()
            | happened.RunFailed()
        ):
            return _run_move(run, envelope)
        case _:
            return {}  # messages, approvals, refusals and what concerns single nodes


def _run_move(run: RunState, envelope: Envelope) -> Changes | Problem:
    move = RUN_MOVES.get((envelope.type, run.status))
    if move is None:
        legal = [before.value for event, before in RUN_MOVES if event == envelope.type]
        return at(envelope, ("type",), f"a run that is {' or '.join(legal)}", run.status.value)
    status, phase = move
    if envelope.type == "run.resumed" and run.currentPhase in UNSTARTED:
        status, phase = UNSTARTED[run.currentPhase], None
    ended = status in (ForgeRunStatus.COMPLETED, ForgeRunStatus.FAILED)
    began = run.startedAt is None and status is ForgeRunStatus.EXECUTING
    return {
        "status": status,
        "currentPhase": run.currentPhase if phase is None else phase,
        "startedAt": envelope.timestamp if began else run.startedAt,
        "completedAt": envelope.timestamp if ended else None,
    }


def _node_changes(
    nodes: Mapping[str, NodeStatus], envelope: Envelope, event: ForgeEvent, dag: Dag | None, max_attempts: int
) -> tuple[NodeStatus, ...] | Problem:
    """Return the nodes that the event changes or adds, as they are after it."""
    match event:
        case happened.PlanProposed():
            if dag is None:
                return at(envelope, ("type",), "a graph behind the plan", "none")
            return tuple(_pending(node.id, max_attempts) for node in dag.nodes)
        case happened.OverlayApplied():
            taken = [name for name in event.addedNodes if name in nodes]
            if taken:
                return at(envelope, ("data", "addedNodes"), "nodes that are new", ", ".join(taken))
            return tuple(_pending(name, max_attempts) for name in event.addedNodes)
        case happened.NodeChanged():
            return _moved(nodes, envelope, event.nodeId, lambda node: node_after(node, event))
        case happened.TaskStarted():
            return _told(nodes, envelope, event.nodeId, {"assignedAgent": event.agent})
        case happened.TaskExhausted():
            return _told(nodes, envelope, event.nodeId, {"lastError": event.lastError})
        case happened.NodeRetried():
            return _told(nodes, envelope, event.nodeId, {"lastError": event.reason})
        case happened.TaskReopened():
            return _moved(nodes, envelope, event.nodeId, lambda node: reopened(node, event))
        case happened.TaskStale():
            return _told(nodes, envelope, event.nodeId, {"lastError": f"no heartbeat since {event.lastHeartbeat}"})
        case _:
            return ()  # the run as a whole, planning, and how attempts are merged


def _pending(name: str, max_attempts: int) -> NodeStatus:
    return NodeStatus(taskId=name, status=NodeState.PENDING, currentAttempt=1, maxAttempts=max_attempts)


def _told(
    nodes: Mapping[str, NodeStatus], envelope: Envelope, name: str, told: Changes
) -> tuple[NodeStatus, ...] | Problem:
    if name not in nodes:
        return at(envelope, ("data", "nodeId"), "a node of the graph", name)
    return (nodes[name].model_copy(update=told),)


def _moved(
    nodes: Mapping[str, NodeStatus], envelope: Envelope, name: str, move: Callable[[NodeStatus], NodeStatus | Problem]
) -> tuple[NodeStatus, ...] | Problem:
    if name not in nodes:
        return at(envelope, ("data", "nodeId"), "a node of the graph", name)
    after = move(nodes[name])
    if isinstance(after, Problem):
        return at(envelope, ("data", *after.where), after.expected, after.found)
    return (after,)
