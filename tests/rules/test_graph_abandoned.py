"""A run that is ended from outside leaves no node behind that claims to be at work."""

from collections.abc import Iterable

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.events import MergeStarted, NodeChanged, TaskVerified
from fairwitness.contracts.forge.status import NodeStatus
from fairwitness.rules.graph_events import abandoned
from fairwitness.rules.graph_run import GraphRun
from support.graph.team import MOMENT, RUN, Task, dag_of

COMMIT = "a" * 40


def told(run: GraphRun, events: Iterable[EventData]) -> None:
    for event in events:
        data = event.plain()
        kind = data.pop("type")
        envelope = Envelope(
            event_id=f"e-{run.seq + 1}",
            seq=run.seq + 1,
            timestamp=MOMENT,
            workflow=Workflow.FORGE,
            run_id=RUN,
            type=kind,
            version=1,
            data=data,
        )
        assert run.apply(envelope) is None


def started(node: str) -> NodeChanged:
    return NodeChanged(
        nodeId=node, previousStatus=NodeState.PENDING, newStatus=NodeState.RUNNING, timestamp=MOMENT, attemptId=1
    )


def verified(node: str) -> TaskVerified:
    return TaskVerified(nodeId=node, attemptId=1, commit=COMMIT, tree=COMMIT)


def states(run: GraphRun) -> dict[str, tuple[NodeState, int]]:
    def where(node: NodeStatus) -> tuple[NodeState, int]:
        return node.status, node.currentAttempt

    return {name: where(node) for name, node in run.nodes.items()}


def test_what_is_under_way_failed_and_a_batch_is_through() -> None:
    run = GraphRun(RUN, dag_of([Task("task-01"), Task("task-02"), Task("task-03")]), max_attempts=2)
    told(run, [started("task-01"), started("task-02"), verified("task-02"), MergeStarted(batch=1, nodes=("task-02",))])
    told(run, abandoned(run, "cancelled by Ada", COMMIT, MOMENT))
    assert states(run) == {
        "task-01": (NodeState.PENDING, 2),
        "task-02": (NodeState.PENDING, 2),
        "task-03": (NodeState.PENDING, 1),
    }
    assert (run.batch, dict(run.queue), run.running()) == (None, {}, ())
    assert run.nodes["task-01"].lastError == "cancelled by Ada"


def test_a_run_with_nothing_under_way_has_nothing_to_tell() -> None:
    run = GraphRun(RUN, dag_of([Task("task-01")]), max_attempts=1)
    assert abandoned(run, "cancelled", COMMIT, MOMENT) == ()
    told(run, [started("task-01")])
    told(run, abandoned(run, "cancelled", COMMIT, MOMENT))
    assert states(run) == {"task-01": (NodeState.FAILED, 1)}
