"""Events that cannot have happened are refused by the executor's fold, and change nothing."""

import pytest

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.events import (
    ConflictFound,
    MergeFinished,
    MergeStarted,
    NodeChanged,
    OverlayApplied,
    RunPaused,
    TaskVerified,
)
from fairwitness.rules.graph_run import GraphRun
from support.graph.team import MOMENT, RUN, Task, dag_of

COMMIT = "b" * 40


def change(node: str, before: NodeState, after: NodeState, attempt: int = 1) -> NodeChanged:
    return NodeChanged(nodeId=node, previousStatus=before, newStatus=after, timestamp=MOMENT, attemptId=attempt)


def started(node: str) -> NodeChanged:
    return change(node, NodeState.PENDING, NodeState.RUNNING)


def verified(node: str, attempt: int = 1) -> TaskVerified:
    return TaskVerified(nodeId=node, attemptId=attempt, commit=COMMIT, tree=COMMIT)


def merging(*nodes: str, batch: int = 1) -> MergeStarted:
    return MergeStarted(batch=batch, nodes=nodes)


def finished(*, batch: int = 1, left: tuple[str, ...] = ()) -> MergeFinished:
    return MergeFinished(batch=batch, tip=COMMIT, landed=(), conflicting=(), left=left, checks=0)


def conflict(node: str) -> ConflictFound:
    return ConflictFound(nodeId=node, attemptId=1, onto=COMMIT, paths=("a",))


def told(run: GraphRun, event: EventData) -> Problem | None:
    data = event.plain()
    kind = data.pop("type")
    return run.apply(
        Envelope(
            event_id=f"e-{run.seq + 1}",
            seq=run.seq + 1,
            timestamp=MOMENT,
            workflow=Workflow.FORGE,
            run_id=RUN,
            type=kind,
            version=1,
            data=data,
        )
    )


ONE_QUEUED = (started("task-01"), verified("task-01"))
ONE_MERGING = (*ONE_QUEUED, merging("task-01"))


@pytest.mark.req("F3", "F6")
@pytest.mark.parametrize(
    ("before", "event", "expected"),
    [
        ((), OverlayApplied(crId="cr-001", addedNodes=("task-01",), addedEdges=0), "nodes that are new"),
        ((), started("task-09"), "a node of the graph"),
        ((), change("task-01", NodeState.RUNNING, NodeState.DONE), "PENDING"),
        ((started("task-01"),), change("task-01", NodeState.RUNNING, NodeState.DONE), "an attempt that was verified"),
        ((), verified("task-01"), "an attempt that is under way"),
        ((started("task-01"),), verified("task-01", attempt=2), "an attempt that is under way"),
        (ONE_QUEUED, verified("task-01"), "an attempt at work"),
        (ONE_QUEUED, conflict("task-01"), "an attempt being merged, for the first time"),
        ((), merging("task-01"), "batch 1 of nodes that wait, and no other under way"),
        (ONE_QUEUED, merging("task-01", batch=2), "batch 1 of nodes that wait, and no other under way"),
        (ONE_QUEUED, merging("task-01", "task-01"), "batch 1 of nodes that wait, and no other under way"),
        ((), finished(), "the batch that is under way"),
        (ONE_MERGING, finished(batch=2, left=("task-01",)), "the batch that is under way"),
        (ONE_MERGING, finished(), "what is left of the batch, task-01"),
    ],
)
def test_what_cannot_have_happened_is_refused_and_changes_nothing(
    before: tuple[EventData, ...], event: EventData, expected: str
) -> None:
    run = GraphRun(RUN, dag_of([Task("task-01"), Task("task-02")]))
    for each in before:
        assert told(run, each) is None
    kept = (run.seq, dict(run.nodes), dict(run.work), dict(run.queue), run.batch, run.batches)
    problem = told(run, event)
    assert problem is not None
    assert problem.expected == expected
    assert (run.seq, dict(run.nodes), dict(run.work), dict(run.queue), run.batch, run.batches) == kept


@pytest.mark.req("F10")
def test_the_same_change_twice_is_nothing() -> None:
    run = GraphRun(RUN, dag_of([Task("task-01")]))
    assert told(run, started("task-01")) is None
    kept = (dict(run.nodes), dict(run.work))
    assert told(run, started("task-01")) is None
    assert (dict(run.nodes), dict(run.work), run.seq) == (*kept, 2)


def test_an_event_of_another_run_is_no_event_of_this_one() -> None:
    run = GraphRun(RUN, dag_of([Task("task-01")]))
    event = RunPaused(reason="a person asked for it").plain()
    kind = event.pop("type")
    envelope = Envelope(
        event_id="e-1",
        seq=1,
        timestamp=MOMENT,
        workflow=Workflow.FORGE,
        run_id="another",
        type=kind,
        version=1,
        data=event,
    )
    assert run.apply(envelope) is not None
    assert not run.is_paused
