"""From the events of a forge run to `run-state.json` and `dag-status.json`.

Only `node.changed` moves a node; the other events of a task add who, where and why. Counts are taken from the nodes
after every event, so that they cannot differ from the graph's.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from pydantic import TypeAdapter

from assay.contracts.common.events import Envelope
from assay.contracts.common.problems import Problem
from assay.contracts.common.words import Workflow
from assay.contracts.forge import events as happened
from assay.contracts.forge.dag import Dag, NodeState
from assay.contracts.forge.events import ForgeEvent
from assay.contracts.forge.status import DagStatus, NodeStatus, RunPhase, RunState, RunStatus
from assay.rules.dag import MOVES, Move, moved, run_counts
from assay.rules.fold import UPCASTERS, Upcasters, at, fold, next_event

Nodes: TypeAlias = dict[str, NodeStatus]
Changes: TypeAlias = dict[str, Any]

DEFAULT_ATTEMPTS = 3
_SHAPE: TypeAdapter[ForgeEvent] = TypeAdapter(ForgeEvent)


class ForgeState(NamedTuple):
    """A folded forge run."""

    run: RunState
    dag: DagStatus


RUN_MOVES: Mapping[tuple[str, RunStatus], tuple[RunStatus, RunPhase | None]] = {
    ("plan.proposed", RunStatus.PLANNING): (RunStatus.PLAN_REVIEW, RunPhase.PLAN_REVIEW),
    ("plan.approved", RunStatus.PLAN_REVIEW): (RunStatus.PLAN_REVIEW, RunPhase.PLAN_REVIEW),
    ("plan.returned", RunStatus.PLAN_REVIEW): (RunStatus.PLANNING, RunPhase.CAPTAIN_INTERVIEW),
    ("run.started", RunStatus.PLAN_REVIEW): (RunStatus.EXECUTING, RunPhase.EXECUTION),
    ("run.paused", RunStatus.EXECUTING): (RunStatus.PAUSED, RunPhase.PAUSED),
    ("run.resumed", RunStatus.PAUSED): (RunStatus.EXECUTING, RunPhase.EXECUTION),
    ("run.resumed", RunStatus.EXECUTING): (RunStatus.EXECUTING, RunPhase.EXECUTION),
    ("run.resumed", RunStatus.FAILED): (RunStatus.EXECUTING, RunPhase.EXECUTION),
    ("run.completed", RunStatus.EXECUTING): (RunStatus.COMPLETED, RunPhase.COMPLETED),
    ("run.failed", RunStatus.PLANNING): (RunStatus.FAILED, None),
    ("run.failed", RunStatus.PLAN_REVIEW): (RunStatus.FAILED, None),
    ("run.failed", RunStatus.EXECUTING): (RunStatus.FAILED, None),
    ("run.failed", RunStatus.PAUSED): (RunStatus.FAILED, None),
}
"""How events move a run; what is missing is illegal. None keeps the phase: a failed run tells where it failed."""


def fold_forge(
    envelopes: Iterable[Envelope],
    dag: Dag | None,
    *,
    max_attempts: int = DEFAULT_ATTEMPTS,
    onto: ForgeState | None = None,
    upcasters: Upcasters = UPCASTERS[Workflow.FORGE],
) -> ForgeState | Problem:
    """The run after these events; `dag` is the base graph, which a run has once its plan is proposed."""
    return fold(envelopes, onto, lambda state, envelope: _apply(state, envelope, dag, max_attempts, upcasters))


def _apply(
    state: ForgeState | None, envelope: Envelope, dag: Dag | None, max_attempts: int, upcasters: Upcasters
) -> ForgeState | Problem:
    event = next_event(
        envelope,
        Workflow.FORGE,
        _SHAPE,
        upcasters,
        last_seq=state.run.lastEventSeq if state is not None else 0,
        run_id=state.run.runId if state is not None else None,
    )
    if isinstance(event, Problem):
        return event
    if state is None:
        return _begun(envelope, event)
    run = _run_changes(state, envelope, event)
    if isinstance(run, Problem):
        return run
    nodes = _node_changes(dict(state.dag.nodes), envelope, event, dag, max_attempts)
    if isinstance(nodes, Problem):
        return nodes
    status = state.dag.model_copy(update={"updatedAt": envelope.timestamp, "nodes": nodes})
    unmerged = [name for name, node in nodes.items() if node.status is not NodeState.MERGED]
    if isinstance(event, happened.RunCompleted) and (unmerged or not nodes):
        return at(envelope, ("type",), "a graph with every node MERGED", ", ".join(unmerged) or "no graph")
    seen = {"lastEventId": envelope.event_id, "lastEventSeq": envelope.seq}
    return ForgeState(run=state.run.model_copy(update={**run, **run_counts(status), **seen}), dag=status)


def _begun(envelope: Envelope, event: ForgeEvent) -> ForgeState | Problem:
    if not isinstance(event, happened.RunCreated):
        return at(envelope, ("type",), "run.created as the first event", envelope.type)
    status = DagStatus(runId=envelope.run_id, updatedAt=envelope.timestamp, nodes={})
    run = RunState(
        runId=envelope.run_id,
        repoUrl=event.repoUrl,
        status=RunStatus.PLANNING,
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
    return ForgeState(run=run, dag=status)


def _run_changes(state: ForgeState, envelope: Envelope, event: ForgeEvent) -> Changes | Problem:
    run = state.run
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
            | happened.RunStarted()
            | happened.RunPaused()
            | happened.RunResumed()
            | happened.RunCompleted()
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
    ended = status in (RunStatus.COMPLETED, RunStatus.FAILED)
    began = run.startedAt is None and status is RunStatus.EXECUTING
    return {
        "status": status,
        "currentPhase": run.currentPhase if phase is None else phase,
        "startedAt": envelope.timestamp if began else run.startedAt,
        "completedAt": envelope.timestamp if ended else None,
    }


def _node_changes(
    nodes: Nodes, envelope: Envelope, event: ForgeEvent, dag: Dag | None, max_attempts: int
) -> Nodes | Problem:
    match event:
        case happened.PlanProposed():
            if dag is None:
                return at(envelope, ("type",), "a graph behind the plan", "none")
            return {node.id: _pending(node.id, max_attempts) for node in dag.nodes}
        case happened.OverlayApplied():
            taken = [name for name in event.addedNodes if name in nodes]
            if taken:
                return at(envelope, ("data", "addedNodes"), "nodes that are new", ", ".join(taken))
            return {**nodes, **{name: _pending(name, max_attempts) for name in event.addedNodes}}
        case happened.NodeChanged():
            return _changed(nodes, envelope, event)
        case happened.TaskStarted():
            return _told(nodes, envelope, event.nodeId, {"assignedAgent": event.agent})
        case happened.TaskExhausted():
            return _told(nodes, envelope, event.nodeId, {"lastError": event.lastError})
        case happened.TaskRetried():
            return _told(nodes, envelope, event.nodeId, {"lastError": event.reason})
        case happened.TaskStale():
            return _told(nodes, envelope, event.nodeId, {"lastError": f"no heartbeat since {event.lastHeartbeat}"})
        case _:
            return nodes


def _pending(name: str, max_attempts: int) -> NodeStatus:
    return NodeStatus(taskId=name, status=NodeState.PENDING, currentAttempt=1, maxAttempts=max_attempts)


def _told(nodes: Nodes, envelope: Envelope, name: str, told: Changes) -> Nodes | Problem:
    if name not in nodes:
        return at(envelope, ("data", "nodeId"), "a node of the graph", name)
    return {**nodes, name: nodes[name].model_copy(update=told)}


def _changed(nodes: Nodes, envelope: Envelope, event: happened.NodeChanged) -> Nodes | Problem:
    node = nodes.get(event.nodeId)
    if node is None:
        return at(envelope, ("data", "nodeId"), "a node of the graph", event.nodeId)
    if MOVES[node.status, event.newStatus] is Move.NOTHING:
        return nodes
    if node.status is not event.previousStatus:
        return at(envelope, ("data", "previousStatus"), node.status.value, event.previousStatus.value)
    after = moved(node, event.newStatus)
    if isinstance(after, Problem):
        return at(envelope, ("data", "newStatus"), after.expected, after.found)
    if event.attemptId is not None and event.attemptId != after.currentAttempt:
        return at(envelope, ("data", "attemptId"), f"attempt {after.currentAttempt}", str(event.attemptId))
    told: Mapping[NodeState, Changes] = {
        NodeState.PENDING: {"assignedAgent": None, "startedAt": None},
        NodeState.RUNNING: {"startedAt": event.timestamp},
        NodeState.DONE: {},
        NodeState.MERGE_READY: {},
        NodeState.MERGED: {"completedAt": event.timestamp},
        NodeState.FAILED: {"lastError": event.reason or node.lastError},
        NodeState.STALE: {"lastError": event.reason or node.lastError},
    }
    return {**nodes, node.taskId: after.model_copy(update=told[event.newStatus])}
