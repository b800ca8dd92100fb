"""The events that record what happened to a node of a task graph.

All events of one case are written in one ledger record, so that a crash leaves either all of them or none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.forge import events as happened
from fairwitness.contracts.forge.dag import DagNode, NodeState
from fairwitness.contracts.forge.status import NodeStatus
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptResult, LandedMember, MergeMember, MergeResult
from fairwitness.rules.graph_run import GraphRun, taken_in
from fairwitness.rules.schedule import NextTry, after_failure

RED_MERGE = "red on the merged tree: "
"""How the reason of an attempt begins whose merge made checks fail."""


def started(status: NodeStatus, node: DagNode, order: AttemptOrder, now: str) -> tuple[EventData, ...]:
    """Return the events of an attempt that starts."""
    return (
        _change(status, NodeState.RUNNING, now),
        happened.TaskStarted(nodeId=node.id, attemptId=order.attempt, branch=order.branch, agent=node.worker),
    )


def attempt_ended(status: NodeStatus, result: AttemptResult, *, is_collected: bool, now: str) -> tuple[EventData, ...]:
    """Return the events of an attempt, or of its conflict helper, that ended."""
    if not result.verified:
        return failed(status, result.reason or "it failed", now)
    assert result.commit is not None
    assert result.tree is not None
    verified = happened.TaskVerified(
        nodeId=status.taskId, attemptId=status.currentAttempt, commit=result.commit, tree=result.tree
    )
    if not is_collected:
        return (verified,)
    return (
        verified,
        _change(status, NodeState.DONE, now),
        _change(status, NodeState.MERGE_READY, now, before=NodeState.DONE),
    )


def failed(status: NodeStatus, reason: str, now: str) -> tuple[EventData, ...]:
    """Return the events of a failed attempt: the node returns to the queue or is out of attempts."""
    return (_change(status, NodeState.FAILED, now, reason=reason), *_again(status, NodeState.FAILED, reason, now))


def lost(status: NodeStatus, last_heartbeat: str, now: str) -> tuple[EventData, ...]:
    """Return the events of an attempt whose worker stopped sending heartbeats."""
    reason = f"its worker gave no sign of life since {last_heartbeat}"
    stale = happened.TaskStale(nodeId=status.taskId, attemptId=status.currentAttempt, lastHeartbeat=last_heartbeat)
    return (
        _change(status, NodeState.STALE, now, reason=reason),
        stale,
        *_again(status, NodeState.STALE, reason, now),
    )


def _again(status: NodeStatus, state: NodeState, reason: str, now: str) -> Iterator[EventData]:
    following = after_failure(status)
    if isinstance(following, NextTry):
        yield happened.NodeRetried(nodeId=status.taskId, nextAttempt=following.attempt, reason=reason)
        yield _change(status, NodeState.PENDING, now, before=state, attempt=following.attempt)
    else:
        yield happened.TaskExhausted(nodeId=status.taskId, attempts=following.attempts, lastError=reason)


def reopened(status: NodeStatus, more: int, actor: str, now: str) -> tuple[EventData, ...]:
    """Return the events that give a node without attempts more of them and return it to the queue."""
    following = status.currentAttempt + 1
    return (
        happened.TaskReopened(nodeId=status.taskId, maxAttempts=status.maxAttempts + more, actor=actor),
        happened.NodeRetried(
            nodeId=status.taskId, nextAttempt=following, reason=status.lastError or "it had failed before"
        ),
        _change(status, NodeState.PENDING, now, attempt=following),
    )


def abandoned(run: GraphRun, reason: str, tip: str, now: str) -> tuple[EventData, ...]:
    """Return the events that end a run with attempts under way: each attempt fails, and a started merge batch is
    closed.

    Verified attempts that wait on their own branch for a refinery keep their state.
    """
    ends = tuple(event for name in run.running() for event in failed(run.nodes[name], reason, now))
    if run.batch is None:
        return ends
    nothing = happened.MergeFinished(batch=run.batch.number, tip=tip, landed=(), conflicting=(), left=(), checks=0)
    return (*ends, nothing)


def merge_started(batch: int, members: Sequence[MergeMember]) -> tuple[EventData, ...]:
    """Return the event of a merge batch that starts."""
    return (happened.MergeStarted(batch=batch, nodes=tuple(member.node for member in members)),)


def merge_ended(
    run: GraphRun,
    dependencies: Mapping[str, tuple[str, ...]],
    target: str,
    result: MergeResult,
    now: str,
) -> tuple[EventData, ...]:
    """Return the events of a finished merge batch: landed members are merged, the culprit retries, the rest is queued
    again.
    """
    assert run.batch is not None
    if result.moved is not None:
        moved: tuple[EventData, ...] = (
            happened.TargetBranchMoved(target=target, expected=result.moved.expected, found=result.moved.found),
        )
    else:
        moved = ()
    told = {
        *(landed.node for landed in result.landed),
        *(clash.node for clash in result.clashes),
        *(() if result.culprit is None else (result.culprit.node,)),
    }
    finished = happened.MergeFinished(
        batch=run.batch.number,
        tip=result.tip,
        landed=tuple(landed.node for landed in result.landed),
        culprit=None if result.culprit is None else result.culprit.node,
        conflicting=tuple(clash.node for clash in result.clashes),
        left=tuple(name for name in run.batch.nodes if name not in told),
        checks=result.checks,
    )
    return (
        *moved,
        *_landed(run, dependencies, result.landed, now),
        *_clashing(run, result, now),
        *_red(run, result, now),
        finished,
    )


def _landed(
    run: GraphRun, dependencies: Mapping[str, tuple[str, ...]], landed: Iterable[LandedMember], now: str
) -> Iterator[EventData]:
    merged: set[str] = set()
    for each in landed:
        status = run.nodes[each.node]
        for name in taken_in(run, dependencies, each.node):
            if name not in merged:
                merged.add(name)
                yield happened.BranchMerged(refineryId=each.node, nodeId=name, commit=each.commit)
                yield _change(run.nodes[name], NodeState.MERGED, now)
        yield happened.BranchMerged(nodeId=each.node, commit=each.commit)
        yield _change(status, NodeState.DONE, now)
        yield _change(status, NodeState.MERGE_READY, now, before=NodeState.DONE)
        yield _change(status, NodeState.MERGED, now, before=NodeState.MERGE_READY)


def _clashing(run: GraphRun, result: MergeResult, now: str) -> Iterator[EventData]:
    for clash in result.clashes:
        work, status = run.work[clash.node], run.nodes[clash.node]
        paths = ", ".join(clash.paths[:3]) + (f" and {len(clash.paths) - 3} more" if len(clash.paths) > 3 else "")
        if work.collision is None:
            yield happened.ConflictFound(nodeId=clash.node, attemptId=work.attempt, onto=result.tip, paths=clash.paths)
        else:
            yield from failed(status, f"it conflicts again with what was merged: {paths}", now)


def _red(run: GraphRun, result: MergeResult, now: str) -> Iterator[EventData]:
    if result.culprit is not None:
        status = run.nodes[result.culprit.node]
        yield from failed(status, f"{RED_MERGE}{'; '.join(result.culprit.reasons)}", now)


def _change(
    status: NodeStatus,
    after: NodeState,
    now: str,
    *,
    before: NodeState | None = None,
    attempt: int | None = None,
    reason: str | None = None,
) -> happened.NodeChanged:
    return happened.NodeChanged(
        nodeId=status.taskId,
        previousStatus=before or status.status,
        newStatus=after,
        timestamp=now,
        attemptId=attempt or status.currentAttempt,
        reason=reason,
    )
