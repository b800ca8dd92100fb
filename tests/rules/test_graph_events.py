"""What an executor writes down: for each case all of its events, in an order in which they can happen, and no other."""

from collections.abc import Iterable, Mapping

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag, NodeState, NodeType
from fairwitness.contracts.forge.events import ForgeRunStarted
from fairwitness.contracts.forge.status import NodeStatus
from fairwitness.contracts.graph.orders import (
    AttemptOrder,
    AttemptResult,
    Clash,
    Culprit,
    LandedMember,
    MergeResult,
    TargetMove,
)
from fairwitness.rules.graph_events import (
    abandoned,
    attempt_ended,
    failed,
    lost,
    merge_ended,
    merge_started,
    reopened,
    started,
)
from fairwitness.rules.graph_run import AttemptStage, GraphRun

RUN = "run-7f2"
NOW = "2026-02-26T14:30:00.000000Z"
TREE = "b" * 40


def _dag(**dependencies: str) -> Dag:
    nodes = [
        {
            "id": name,
            "type": "refinery" if name.startswith("r") else "task",
            "agentType": "refinery" if name.startswith("r") else 2,
            "dependencies": others.split(),
            "status": "PENDING",
        }
        for name, others in dependencies.items()
    ]
    refineries = sum(name.startswith("r") for name in dependencies)
    metadata = {
        "createdAt": "2024-01-15T09:00:00Z",
        "createdBy": "captain",
        "totalTasks": len(nodes) - refineries,
        "totalRefineries": refineries,
    }
    return Dag.model_validate({"version": 1, "runId": RUN, "nodes": nodes, "metadata": metadata})


class Running:
    """A graph that is carried out event by event, each of which must be one that can happen."""

    def __init__(self, most: int = 3, **dependencies: str) -> None:
        self.dag = _dag(**dependencies)
        self.run = GraphRun(RUN, self.dag, max_attempts=most)
        self.dependencies: Mapping[str, tuple[str, ...]] = {node.id: node.dependencies for node in self.dag.nodes}
        self.take([ForgeRunStarted()])

    def take(self, events: Iterable[EventData]) -> list[str]:
        """Lets events happen, and tells them in short."""
        told = []
        for event in events:
            data = event.plain()
            kind = data.pop("type")
            envelope = Envelope(
                event_id=f"e-{self.run.seq + 1}",
                seq=self.run.seq + 1,
                timestamp=NOW,
                workflow=Workflow.FORGE,
                run_id=RUN,
                type=kind,
                version=1,
                data=data,
            )
            assert self.run.apply(envelope) is None
            told.append(_short(kind, data))
        return told

    def start(self, *names: str) -> None:
        nodes = {node.id: node for node in self.dag.nodes}
        for name in names:
            status = self.run.nodes[name]
            self.take(started(status, nodes[name], _order(name, status.currentAttempt), NOW))

    def verify(self, *names: str, collected: bool = False) -> None:
        for name in names:
            self.take(attempt_ended(self.run.nodes[name], _verified(name), is_collected=collected, now=NOW))

    def batch(self, *names: str) -> None:
        members = [self.run.member(name) for name in names]
        self.take(merge_started(self.run.batches + 1, members))

    def merged(self, result: MergeResult) -> list[str]:
        return self.take(merge_ended(self.run, self.dependencies, "fairwitness/integration", result, NOW))


def _short(kind: str, data: dict[str, object]) -> str:
    shown = {name: value for name, value in data.items() if name not in ("timestamp",)}
    return " ".join([kind, *(f"{name}={value}" for name, value in shown.items())])


def _order(name: str, attempt: int) -> AttemptOrder:
    branch = f"fairwitness/{RUN}/{name}/attempt-{attempt}"
    return AttemptOrder(run_id=RUN, node=name, attempt=attempt, branch=branch, target="fairwitness/integration")


def _commit(name: str) -> str:
    return name.encode().hex().ljust(8, "0")


def _verified(name: str) -> AttemptResult:
    return AttemptResult(verified=True, commit=_commit(name), tree=TREE)


def _landed(*names: str) -> tuple[LandedMember, ...]:
    return tuple(LandedMember(node=name, commit="cafe") for name in names)


def _status(attempt: int = 1, most: int = 3) -> NodeStatus:
    return NodeStatus(taskId="t1", status=NodeState.RUNNING, currentAttempt=attempt, maxAttempts=most)


def _told(events: Iterable[EventData]) -> list[str]:
    return [_short(data.pop("type"), data) for data in (event.plain() for event in events)]


@pytest.mark.req("F3")
def test_an_attempt_that_begins_is_told_with_its_branch_and_its_agent() -> None:
    nodes = {node.id: node for node in _dag(t1="", r1="t1").nodes}
    told = []
    for name, node in nodes.items():
        status = NodeStatus(taskId=name, status=NodeState.PENDING, currentAttempt=2, maxAttempts=3)
        told += _told(started(status, node, _order(name, 2), NOW))
    assert {node.type for node in nodes.values()} == set(NodeType)
    assert told == snapshot(
        [
            "node.changed nodeId=t1 previousStatus=PENDING newStatus=RUNNING attemptId=2",
            "task.started nodeId=t1 attemptId=2 branch=fairwitness/run-7f2/t1/attempt-2 agent=type 2",
            "node.changed nodeId=r1 previousStatus=PENDING newStatus=RUNNING attemptId=2",
            "task.started nodeId=r1 attemptId=2 branch=fairwitness/run-7f2/r1/attempt-2 agent=refinery",
        ]
    )


@pytest.mark.req("F3")
def test_an_attempt_that_was_proven_waits_in_the_queue_or_on_its_branch_for_a_refinery() -> None:
    assert _told(attempt_ended(_status(), _verified("t1"), is_collected=False, now=NOW)) == snapshot(
        ["task.verified nodeId=t1 attemptId=1 commit=74310000 tree=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"]
    )
    assert _told(attempt_ended(_status(), _verified("t1"), is_collected=True, now=NOW)) == snapshot(
        [
            "task.verified nodeId=t1 attemptId=1 commit=74310000 tree=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
            "node.changed nodeId=t1 previousStatus=RUNNING newStatus=DONE attemptId=1",
            "node.changed nodeId=t1 previousStatus=DONE newStatus=MERGE_READY attemptId=1",
        ]
    )


@pytest.mark.req("F3", "F10", "P12")
def test_an_attempt_that_failed_is_made_again_until_there_is_none_left() -> None:
    result = AttemptResult(verified=False, reason="the tests fail")
    for is_collected in (False, True):
        assert _told(attempt_ended(_status(2), result, is_collected=is_collected, now=NOW)) == snapshot(
            [
                "node.changed nodeId=t1 previousStatus=RUNNING newStatus=FAILED attemptId=2 reason=the tests fail",
                "task.retried nodeId=t1 nextAttempt=3 reason=the tests fail",
                "node.changed nodeId=t1 previousStatus=FAILED newStatus=PENDING attemptId=3",
            ]
        )
    assert _told(failed(_status(3), "the tests fail", NOW)) == snapshot(
        [
            "node.changed nodeId=t1 previousStatus=RUNNING newStatus=FAILED attemptId=3 reason=the tests fail",
            "task.exhausted nodeId=t1 attempts=3 lastError=the tests fail",
        ]
    )


@pytest.mark.req("F3", "F10")
def test_an_attempt_that_lost_its_worker_is_stale_and_made_again_until_there_is_none_left() -> None:
    since = "2026-02-26T14:29:00.000000Z"
    assert _told(lost(_status(), since, NOW)) == snapshot(
        [
            "node.changed nodeId=t1 previousStatus=RUNNING newStatus=STALE attemptId=1 "
            "reason=its worker gave no sign of life since 2026-02-26T14:29:00.000000Z",
            "task.stale nodeId=t1 attemptId=1 lastHeartbeat=2026-02-26T14:29:00.000000Z",
            "task.retried nodeId=t1 nextAttempt=2 "
            "reason=its worker gave no sign of life since 2026-02-26T14:29:00.000000Z",
            "node.changed nodeId=t1 previousStatus=STALE newStatus=PENDING attemptId=2",
        ]
    )
    *_, last = _told(lost(_status(1, most=1), since, NOW))
    assert last.startswith("task.exhausted nodeId=t1 attempts=1 lastError=its worker gave no sign of life")


@pytest.mark.req("F3")
def test_what_landed_is_done_merge_ready_and_merged_in_one_record() -> None:
    graph = Running(t1="", t2="")
    graph.start("t1", "t2")
    graph.verify("t1", "t2")
    graph.batch("t1", "t2")
    assert graph.merged(MergeResult(tip="cafe", landed=_landed("t1"), clashes=(), checks=1)) == snapshot(
        [
            "branch.merged nodeId=t1 commit=cafe",
            "node.changed nodeId=t1 previousStatus=RUNNING newStatus=DONE attemptId=1",
            "node.changed nodeId=t1 previousStatus=DONE newStatus=MERGE_READY attemptId=1",
            "node.changed nodeId=t1 previousStatus=MERGE_READY newStatus=MERGED attemptId=1",
            "merge.finished batch=1 tip=cafe landed=['t1'] conflicting=[] left=['t2'] checks=1",
        ]
    )
    assert list(graph.run.queue) == ["t2"]


@pytest.mark.req("F3")
def test_with_what_landed_everything_is_merged_that_it_was_built_upon_once() -> None:
    graph = Running(t1="", t2="t1", t3="t2", t4="t1", r1="t1 t2")
    for name in ("t1", "t2"):
        graph.start(name)
        graph.verify(name, collected=True)
    graph.start("t3", "t4")
    graph.verify("t3", "t4")
    graph.batch("t3", "t4")
    told = graph.merged(MergeResult(tip="cafe", landed=_landed("t3", "t4"), clashes=(), checks=1))
    assert [line for line in told if line.startswith("branch.merged")] == snapshot(
        [
            "branch.merged refineryId=t3 nodeId=t2 commit=cafe",
            "branch.merged refineryId=t3 nodeId=t1 commit=cafe",
            "branch.merged nodeId=t3 commit=cafe",
            "branch.merged nodeId=t4 commit=cafe",
        ]
    )
    assert {name: node.status.value for name, node in graph.run.nodes.items()} == {
        **dict.fromkeys(("t1", "t2", "t3", "t4"), "MERGED"),
        "r1": "PENDING",
    }


@pytest.mark.req("F3")
def test_what_turned_the_tree_red_fails_and_what_stood_above_it_goes_back() -> None:
    graph = Running(t1="", t2="", t3="")
    graph.start("t1", "t2", "t3")
    graph.verify("t1", "t2", "t3")
    graph.batch("t1", "t2", "t3")
    culprit = Culprit(node="t2", reasons=("tests failed", "lint failed"))
    result = MergeResult(tip="cafe", landed=_landed("t1"), culprit=culprit, clashes=(), checks=2)
    assert graph.merged(result)[4:] == snapshot(
        [
            "node.changed nodeId=t2 previousStatus=RUNNING newStatus=FAILED attemptId=1 "
            "reason=red on the merged tree: tests failed; lint failed",
            "task.retried nodeId=t2 nextAttempt=2 reason=red on the merged tree: tests failed; lint failed",
            "node.changed nodeId=t2 previousStatus=FAILED newStatus=PENDING attemptId=2",
            "merge.finished batch=1 tip=cafe landed=['t1'] culprit=t2 conflicting=[] left=['t3'] checks=2",
        ]
    )
    assert list(graph.run.queue) == ["t3"]


@pytest.mark.req("F3")
def test_a_first_conflict_goes_to_a_helper_and_a_second_one_is_a_failure() -> None:
    graph = Running(t1="")
    graph.start("t1")
    graph.verify("t1")
    graph.batch("t1")
    clash = Clash(node="t1", paths=("a", "b", "c", "d", "e"))
    result = MergeResult(tip="cafe", landed=(), clashes=(clash,), checks=0)
    assert graph.merged(result) == snapshot(
        [
            "conflict.found nodeId=t1 attemptId=1 onto=cafe paths=['a', 'b', 'c', 'd', 'e']",
            "merge.finished batch=1 tip=cafe landed=[] conflicting=['t1'] left=[] checks=0",
        ]
    )
    assert graph.run.work["t1"].stage is AttemptStage.HELPING
    graph.verify("t1")
    graph.batch("t1")
    again = graph.merged(result)
    assert again[0] == snapshot(
        "node.changed nodeId=t1 previousStatus=RUNNING newStatus=FAILED attemptId=1 "
        "reason=it conflicts again with what was merged: a, b, c and 2 more"
    )
    assert again[-1] == snapshot("merge.finished batch=2 tip=cafe landed=[] conflicting=['t1'] left=[] checks=0")


def test_up_to_three_paths_of_a_conflict_are_told() -> None:
    graph = Running(t1="")
    graph.start("t1")
    told = []
    for paths in (("x",), ("a", "b", "c")):
        graph.verify("t1")
        graph.batch("t1")
        told = graph.merged(MergeResult(tip="cafe", landed=(), clashes=(Clash(node="t1", paths=paths),), checks=0))
    assert told[0].endswith("with what was merged: a, b, c")


@pytest.mark.req("F3")
@pytest.mark.parametrize("found", ["beef", None])
def test_a_target_that_somebody_moved_is_told_first(found: str | None) -> None:
    graph = Running(t1="")
    graph.start("t1")
    graph.verify("t1")
    graph.batch("t1")
    moved = TargetMove(expected="cafe", found=found)
    first, last = graph.merged(MergeResult(tip="cafe", landed=(), clashes=(), checks=1, moved=moved))
    assert first == "target.moved target=fairwitness/integration expected=cafe" + (f" found={found}" if found else "")
    assert last == "merge.finished batch=1 tip=cafe landed=[] conflicting=[] left=['t1'] checks=1"
    assert list(graph.run.queue) == ["t1"]


def test_a_batch_is_told_by_its_nodes_in_their_order() -> None:
    graph = Running(t1="", t2="")
    graph.start("t1", "t2")
    graph.verify("t2", "t1")
    members = [graph.run.member(name) for name in graph.run.queue]
    assert _told(merge_started(1, members)) == ["merge.started batch=1 nodes=['t2', 't1']"]


@pytest.mark.req("F10")
def test_a_run_that_is_ended_leaves_nothing_that_claims_to_be_at_work() -> None:
    graph = Running(most=2, t1="", t2="", t3="", t4="", r1="t4")
    assert abandoned(graph.run, "ada ended it", "cafe", NOW) == ()
    graph.start("t1", "t2", "t3", "t4")
    graph.verify("t2", "t3")
    graph.verify("t4", collected=True)
    graph.batch("t2")
    told = graph.take(abandoned(graph.run, "ada ended it", "cafe", NOW))
    assert [line for line in told if "FAILED attemptId" in line] == [
        f"node.changed nodeId={name} previousStatus=RUNNING newStatus=FAILED attemptId=1 reason=ada ended it"
        for name in ("t1", "t3", "t2")
    ]
    assert told[-1] == "merge.finished batch=1 tip=cafe landed=[] conflicting=[] left=[] checks=0"
    assert (graph.run.running(), graph.run.batch, list(graph.run.queue)) == ((), None, [])
    assert graph.run.nodes["t4"].status is NodeState.MERGE_READY
    graph.start("t1")
    *_, last = graph.take(abandoned(graph.run, "ada ended it", "cafe", NOW))
    assert last == "task.exhausted nodeId=t1 attempts=2 lastError=ada ended it"


@pytest.mark.req("F10")
def test_a_node_that_a_person_gives_more_attempts_is_back_in_the_queue_in_one_record() -> None:
    graph = Running(most=1, t1="", t2="t1")
    graph.start("t1")
    graph.take(failed(graph.run.nodes["t1"], "the tests fail", NOW))
    assert graph.take(reopened(graph.run.nodes["t1"], 2, "ada", NOW)) == snapshot(
        [
            "task.reopened nodeId=t1 maxAttempts=3 actor=ada",
            "task.retried nodeId=t1 nextAttempt=2 reason=the tests fail",
            "node.changed nodeId=t1 previousStatus=FAILED newStatus=PENDING attemptId=2",
        ]
    )
    status = graph.run.nodes["t1"]
    assert (status.status, status.currentAttempt, status.maxAttempts) == (NodeState.PENDING, 2, 3)
    graph.start("t1")
    *_, again = graph.take(failed(graph.run.nodes["t1"], "still red", NOW))
    assert again == snapshot("node.changed nodeId=t1 previousStatus=FAILED newStatus=PENDING attemptId=3")


@pytest.mark.req("F10")
def test_a_node_of_which_no_reason_is_known_is_tried_again_all_the_same() -> None:
    status = NodeStatus(taskId="t1", status=NodeState.STALE, currentAttempt=3, maxAttempts=3)
    assert _told(reopened(status, 1, "ada", NOW))[1:] == snapshot(
        [
            "task.retried nodeId=t1 nextAttempt=4 reason=it had failed before",
            "node.changed nodeId=t1 previousStatus=STALE newStatus=PENDING attemptId=4",
        ]
    )
