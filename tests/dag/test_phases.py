"""Several graphs in one run: their children never share a name, a branch or a batch, and each is told its graph."""

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.events import MergeFinished, MergeStarted, NodeChanged, TaskVerified
from fairwitness.contracts.graph.orders import AttemptOrder, GraphOptions, MergeOrder
from fairwitness.dag.executor import Children
from fairwitness.rules.graph_run import GraphRun
from support.graph.sim_graphs import RUN, simple_dag

NOW = "2026-02-26T14:30:00Z"
NAMES = ("t1", "t2")


class Told:
    """One run of several graphs, event by event."""

    def __init__(self, graphs: int) -> None:
        self.seq = 0
        self.runs = {
            number: GraphRun(
                RUN, simple_dag(t1="", t2=""), max_attempts=number, first_attempt=number, phase=str(number)
            )
            for number in range(1, graphs + 1)
        }

    def tell(self, number: int, *events: EventData) -> None:
        """Every graph hears of it; all but one let it pass."""
        for event in events:
            self.seq += 1
            data = event.plain()
            envelope = Envelope(
                event_id=f"e-{self.seq}",
                seq=self.seq,
                timestamp=NOW,
                workflow=Workflow.FORGE,
                run_id=RUN,
                phase=str(number),
                type=data.pop("type"),
                version=1,
                data=data,
            )
            assert [run.apply(envelope) for run in self.runs.values()] == [None] * len(self.runs)


def _changed(node: str, attempt: int, before: NodeState, after: NodeState) -> NodeChanged:
    return NodeChanged(nodeId=node, previousStatus=before, newStatus=after, timestamp=NOW, attemptId=attempt)


def test_no_two_graphs_of_a_run_have_a_child_or_a_branch_in_common() -> None:
    told = Told(3)
    ids: list[str] = []
    branches: list[str] = []
    for number, run in told.runs.items():
        options = GraphOptions(
            target="fairwitness/target", first_attempt=number, max_attempts=number, phase=str(number), batch=8
        )
        children, needs = Children(options), dict.fromkeys(NAMES, tuple[str, ...]())
        for name in NAMES:
            told.tell(number, _changed(name, number, NodeState.PENDING, NodeState.RUNNING))
        for id_, child in children.wanted(run).items():
            order = AttemptOrder.model_validate(children.args(run, needs, child))
            assert (order.phase, order.attempt) == (str(number), number)
            ids.append(id_)
            branches.append(order.branch)
        for name in NAMES:
            told.tell(number, TaskVerified(nodeId=name, attemptId=number, commit="abcd", tree="abcd"))
        told.tell(number, MergeStarted(batch=run.batches + 1, nodes=NAMES))
        ((id_, merge),) = children.wanted(run).items()
        asked = MergeOrder.model_validate(children.args(run, needs, merge))
        assert (asked.phase, asked.batch, [each.node for each in asked.members]) == (str(number), number, [*NAMES])
        ids.append(id_)
        told.tell(number, MergeFinished(batch=number, tip="cafe", landed=(), conflicting=(), left=NAMES, checks=1))
    assert len(ids) == len(set(ids)) == 9
    assert len(branches) == len(set(branches)) == 6


def test_a_graph_that_is_over_wants_nothing_when_another_one_goes_on() -> None:
    told = Told(2)
    told.tell(2, _changed("t1", 2, NodeState.PENDING, NodeState.RUNNING))
    first = Children(GraphOptions(target="fairwitness/target", first_attempt=1, max_attempts=1, phase="1"))
    assert first.wanted(told.runs[1]) == {}
    assert told.runs[1].running() == ()
    assert told.runs[2].running() == ("t1",)
