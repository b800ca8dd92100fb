"""A running graph as its executor sees it: every stage of an attempt, a queue in order, and no event that cannot be."""

from collections.abc import Iterable
from itertools import pairwise, product
from random import Random
from typing import Any, get_args

import pytest

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge import events as happened
from fairwitness.contracts.forge.dag import Dag, NodeState
from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES
from fairwitness.contracts.graph.orders import Collision, MergeMember
from fairwitness.rules.dag import TRANSITIONS, TransitionKind, is_exhausted
from fairwitness.rules.fold_forge import ForgeState, fold_forge
from fairwitness.rules.graph_run import (
    CHILDREN,
    MOVING,
    RUNNING,
    AttemptStage,
    Batch,
    GraphRun,
    Moving,
    taken_in,
    verified_before,
)
from fairwitness.rules.next_forge_move import forge_progress

RUN = "run-7f2"
NOW = "2026-02-26T14:30:00Z"
S = NodeState


def _dag(**dependencies: str) -> Dag:
    nodes = [
        {"id": name, "type": "task", "agentType": 2, "dependencies": others.split(), "status": "PENDING"}
        for name, others in dependencies.items()
    ]
    metadata = {"createdAt": NOW, "createdBy": "captain", "totalTasks": len(nodes), "totalRefineries": 0}
    return Dag.model_validate({"version": 1, "runId": RUN, "nodes": nodes, "metadata": metadata})


def _envelope(seq: int, event: EventData, /, **differs: Any) -> Envelope:
    data = event.plain()
    ordinary: dict[str, Any] = {
        "event_id": f"e-{seq}",
        "seq": seq,
        "timestamp": NOW,
        "workflow": Workflow.FORGE,
        "run_id": RUN,
        "type": data.pop("type"),
        "version": 1,
        "data": data,
    }
    return Envelope(**(ordinary | differs))


def _change(node: str, *states: NodeState, attempt: int = 1) -> list[EventData]:
    """Through these states, one after the other."""
    return [
        happened.NodeChanged(
            nodeId=node,
            previousStatus=before,
            newStatus=after,
            timestamp=NOW,
            attemptId=attempt + 1 if after is S.PENDING else attempt,
        )
        for before, after in pairwise(states)
    ]


def _verified(node: str, attempt: int = 1, commit: str = "abcd") -> EventData:
    return happened.TaskVerified(nodeId=node, attemptId=attempt, commit=commit, tree="abcd")


def _finished(batch: int, left: Iterable[str] = (), tip: str = "cafe") -> EventData:
    return happened.MergeFinished(batch=batch, tip=tip, landed=(), conflicting=(), left=tuple(left), checks=1)


def _conflict(node: str, attempt: int = 1) -> EventData:
    return happened.ConflictFound(nodeId=node, attemptId=attempt, onto="cafe", paths=("src/a.py",))


def _merging(batch: int, *nodes: str) -> EventData:
    return happened.MergeStarted(batch=batch, nodes=nodes)


def _overlay(*nodes: str, request: str = "cr-001") -> EventData:
    return happened.OverlayApplied(crId=request, addedNodes=nodes, addedEdges=0)


def _asked(request: str = "cr-001") -> EventData:
    return happened.ChangeRequestEmitted(crId=request, emittedBy="refinery-001", affectedTasks=())


def _rejected(request: str = "cr-001") -> EventData:
    return happened.ChangeRequestRejected(crId=request, actor="captain", reason="no")


def _reopened(node: str, most: int) -> EventData:
    return happened.TaskReopened(nodeId=node, maxAttempts=most, actor="ada")


def _queued(node: str) -> list[EventData]:
    return [*_change(node, S.PENDING, S.RUNNING), _verified(node)]


def _tell(run: GraphRun, *events: EventData) -> Problem | None:
    """Tells a run of events; the answer to the last one, and none of the others may have a problem."""
    answer = None
    for event in events:
        assert answer is None
        answer = run.apply(_envelope(run.seq + 1, event))
    return answer


def _run(*events: EventData) -> GraphRun:
    run = GraphRun(RUN, _dag(t1="", t2="t1", t3=""))
    assert _tell(run, *events) is None
    return run


def _looks(run: GraphRun) -> tuple[Any, ...]:
    """Everything there is to see of a run."""
    return (
        run.seq,
        dict(run.nodes),
        dict(run.work),
        list(run.queue),
        run.batch,
        run.batches,
        run.tip,
        list(run.requests),
        run.is_paused,
        run.is_over,
        {stage: run.in_stage((stage,)) for stage in AttemptStage},
    )


def test_a_graph_begins_with_every_node_pending() -> None:
    run = GraphRun(RUN, _dag(t1="", t2="t1"), max_attempts=5)
    assert [(node.status, node.currentAttempt, node.maxAttempts) for node in run.nodes.values()] == [
        (S.PENDING, 1, 5)
    ] * 2
    assert (run.work, run.queue, run.batch, run.batches, run.tip, run.seq) == ({}, {}, None, 0, None, 0)
    assert run.requests == {}
    assert not run.is_paused
    assert not run.is_over


@pytest.mark.req("F3")
def test_an_attempt_goes_through_its_stages() -> None:
    run = _run(happened.ForgeRunStarted())
    stages = []
    for event in (
        *_queued("t1"),
        _merging(1, "t1"),
        _conflict("t1"),
        _finished(1),
        _verified("t1", commit="beef"),
        _merging(2, "t1"),
        *_change("t1", S.RUNNING, S.DONE, S.MERGE_READY),
    ):
        assert _tell(run, event) is None
        stages.append(run.work["t1"].stage)
    assert stages == [
        AttemptStage.WORKING,
        AttemptStage.QUEUED,
        AttemptStage.MERGING,
        AttemptStage.HELPING,
        AttemptStage.HELPING,
        AttemptStage.QUEUED,
        AttemptStage.MERGING,
        AttemptStage.WAITING,
        AttemptStage.WAITING,
    ]
    assert set(stages) == set(AttemptStage)
    assert run.work["t1"].commit == "beef"
    assert run.work["t1"].collision == Collision(commit="abcd", onto="cafe", paths=("src/a.py",))
    assert _tell(run, *_change("t1", S.MERGE_READY, S.MERGED), _finished(2, tip="beef")) is None
    assert (run.work, run.batch, run.batches, run.tip) == ({}, None, 2, "beef")


@pytest.mark.req("F3", "F10")
@pytest.mark.parametrize("state", [S.FAILED, S.STALE])
@pytest.mark.parametrize("before", [[], [_verified("t1")], [_verified("t1"), _merging(1, "t1")]])
def test_an_attempt_that_ended_is_forgotten_wherever_it_stood(state: NodeState, before: list[EventData]) -> None:
    run = _run(*_change("t1", S.PENDING, S.RUNNING), *before, *_change("t1", S.RUNNING, state))
    assert (run.work, run.queue, run.running()) == ({}, {}, ())
    assert _tell(run, *_change("t1", state, S.PENDING), *_change("t1", S.PENDING, S.RUNNING, attempt=2)) is None
    assert run.work["t1"].attempt == 2
    assert run.work["t1"].collision is None


def test_those_that_wait_to_be_merged_stand_in_the_order_in_which_they_were_proven() -> None:
    run = _run(*_queued("t3"), *_queued("t1"))
    assert list(run.queue) == ["t3", "t1"]
    assert run.member("t1") == MergeMember(node="t1", attempt=1, commit="abcd")


@pytest.mark.req("F3")
def test_what_is_left_of_a_batch_stands_at_the_head_of_the_queue_again() -> None:
    run = _run(*_queued("t3"), *_queued("t1"), _merging(1, "t3", "t1"), *_queued("t2"))
    assert run.batch == Batch(1, ("t3", "t1"))
    assert list(run.queue) == ["t2"]
    assert _tell(run, *_change("t3", S.RUNNING, S.FAILED), _finished(1, left=["t1"])) is None
    assert list(run.queue) == ["t1", "t2"]
    assert run.work["t1"].stage is AttemptStage.QUEUED
    assert run.tip == "cafe"


def test_nodes_are_told_by_their_stage_and_who_came_first_stands_first() -> None:
    run = _run(*_queued("t3"), *_queued("t1"), _merging(1, "t3", "t1"), *_change("t2", S.PENDING, S.RUNNING))
    assert _tell(run, _conflict("t1"), _conflict("t3")) is None
    assert run.in_stage((AttemptStage.HELPING,)) == ("t1", "t3")
    assert run.in_stage(CHILDREN) == ("t2", "t1", "t3")
    assert run.running() == ("t2", "t1", "t3")


def test_every_stage_but_waiting_is_running() -> None:
    assert {*RUNNING, AttemptStage.WAITING} == set(AttemptStage)
    run = _run(*_queued("t1"), *_change("t1", S.RUNNING, S.DONE), *_queued("t3"))
    assert run.running() == ("t3",)


@pytest.mark.req("F10")
def test_a_run_pauses_resumes_and_ends() -> None:
    run = _run()
    seen = []
    for event in (
        happened.ForgeRunStarted(),
        happened.RunPaused(reason="a look"),
        happened.ForgeRunResumed(),
        happened.RunFailed(reason="no money"),
        happened.ForgeRunResumed(),
        happened.ForgeRunCompleted(),
    ):
        assert _tell(run, event) is None
        seen.append((run.is_paused, run.is_over))
    no = (False, False)
    assert seen == [no, (True, False), no, (False, True), no, (False, True)]


@pytest.mark.req("F5")
def test_an_overlay_brings_nodes_that_are_pending() -> None:
    run = _run(_overlay("n1", "n2"))
    assert [run.nodes[name].status for name in ("n1", "n2")] == [S.PENDING] * 2
    assert list(run.nodes) == ["t1", "t2", "t3", "n1", "n2"]
    assert _tell(run, _overlay()) is None


@pytest.mark.req("F4", "F5")
def test_a_change_request_is_open_until_it_is_rejected_or_its_overlay_is_applied() -> None:
    run = _run()
    seen = []
    for event in (
        _overlay("n1", request="cr-009"),  # nobody had asked for it
        _asked("cr-001"),
        _asked("cr-002"),
        _asked("cr-002"),
        happened.ChangeRequestApproved(crId="cr-001", actor="captain"),
        happened.OverlayRefused(crId="cr-001", problems=("a ring",)),
        _overlay("n2", request="cr-001"),
        _rejected("cr-002"),
        _rejected("cr-002"),
    ):
        assert _tell(run, event) is None
        seen.append(" ".join(run.requests))
    both = "cr-001 cr-002"
    assert seen == ["", "cr-001", both, both, both, both, "cr-002", "", ""]


@pytest.mark.req("F4", "F5")
def test_an_overlay_that_cannot_have_been_applied_answers_no_request() -> None:
    run = _run(_asked())
    assert _tell(run, _overlay("t1")) is not None
    assert list(run.requests) == ["cr-001"]


@pytest.mark.req("F10")
def test_a_node_without_attempts_is_given_more_and_is_tried_again() -> None:
    run = GraphRun(RUN, _dag(t1=""), max_attempts=1)
    assert _tell(run, *_change("t1", S.PENDING, S.RUNNING, S.FAILED), _reopened("t1", 2)) is None
    assert (run.nodes["t1"].status, run.nodes["t1"].maxAttempts) == (S.FAILED, 2)
    again = [*_change("t1", S.FAILED, S.PENDING), *_change("t1", S.PENDING, S.RUNNING, attempt=2)]
    assert _tell(run, *again) is None
    assert (run.work["t1"].attempt, run.nodes["t1"].maxAttempts) == (2, 2)


def test_the_same_change_again_is_nothing() -> None:
    run = _run(*_queued("t1"))
    before = _looks(run)[1:]
    assert _tell(run, *_change("t1", S.PENDING, S.RUNNING)) is None
    assert _looks(run)[1:] == before


@pytest.mark.req("F6")
@pytest.mark.parametrize(
    ("before", "event", "where", "expected"),
    [
        ([], _change("t9", S.PENDING, S.RUNNING)[0], "nodeId", "a node of the graph"),
        ([], _change("t1", S.PENDING, S.DONE)[0], "newStatus", "RUNNING"),
        (_change("t1", S.PENDING, S.RUNNING), _change("t1", S.RUNNING, S.DONE)[0], "newStatus", "that was verified"),
        (
            [*_queued("t1"), _merging(1, "t1"), _conflict("t1")],
            _change("t1", S.RUNNING, S.DONE)[0],
            "newStatus",
            "that was verified",
        ),
        ([], _verified("t1"), "attemptId", "an attempt that is under way"),
        (_change("t1", S.PENDING, S.RUNNING), _verified("t1", 2), "attemptId", "an attempt that is under way"),
        (_queued("t1"), _verified("t1"), "nodeId", "an attempt at work"),
        (_queued("t1"), _conflict("t1"), "nodeId", "being merged, for the first time"),
        (
            [*_queued("t1"), _merging(1, "t1"), _conflict("t1"), _finished(1), _verified("t1"), _merging(2, "t1")],
            _conflict("t1"),
            "nodeId",
            "being merged, for the first time",
        ),
        ([], _merging(1, "t1"), "batch", "batch 1 of nodes that wait"),
        (_queued("t1"), _merging(2, "t1"), "batch", "batch 1 of nodes that wait"),
        (_queued("t1"), _merging(1, "t1", "t1"), "batch", "batch 1 of nodes that wait"),
        (
            [*_queued("t1"), *_queued("t3"), _merging(1, "t1")],
            _merging(2, "t3"),
            "batch",
            "no other under way",
        ),
        ([], _finished(1), "batch", "the batch that is under way"),
        ([*_queued("t1"), _merging(1, "t1")], _finished(2), "batch", "the batch that is under way"),
        ([*_queued("t1"), _merging(1, "t1")], _finished(1), "left", "what is left of the batch, t1"),
        ([*_queued("t1"), _merging(1, "t1")], _finished(1, ["t1", "t3"]), "left", "what is left of the batch, t1"),
        ([], _overlay("n1", "t1"), "addedNodes", "nodes that are new"),
        ([], _reopened("t9", 4), "nodeId", "a node of the graph"),
        ([], _reopened("t1", 4), "maxAttempts", "a node without attempts, and more than its 3"),
        (_change("t1", S.PENDING, S.RUNNING, S.FAILED), _reopened("t1", 4), "maxAttempts", "a node without attempts"),
    ],
)
def test_what_cannot_have_happened_is_refused_and_changes_nothing(
    before: list[EventData], event: EventData, where: str, expected: str
) -> None:
    run = _run(*before)
    seen = _looks(run)
    problem = _tell(run, event)
    assert problem is not None
    assert problem.where == ("events", run.seq + 1, "data", where)
    assert expected in problem.expected
    assert _looks(run) == seen


@pytest.mark.req("F6")
@pytest.mark.parametrize("event", [happened.ForgeRunStarted(), happened.LowConfidence(nodeId="t1", confidence=0.5)])
@pytest.mark.parametrize(
    ("differs", "where"),
    [({"seq": 7}, "seq"), ({"run_id": "run-other"}, "run_id"), ({"workflow": Workflow.FEATURE}, "workflow")],
)
def test_an_event_of_another_place_is_refused(event: EventData, differs: dict[str, Any], where: str) -> None:
    run = _run(happened.ForgeRunStarted())
    problem = run.apply(_envelope(2, event, **differs))
    assert problem is not None
    assert problem.where[-1] == where
    assert run.seq == 1


def test_an_event_that_is_spelled_wrong_is_refused() -> None:
    run = _run()
    problem = run.apply(_envelope(1, happened.RunPaused(reason="a look"), data={}))
    assert problem is not None
    assert problem.where == ("events", 1, "data", "reason")


def test_events_that_an_executor_does_not_go_by_are_only_counted() -> None:
    run = _run()
    seen = _looks(run)[1:]
    for number, kind in enumerate(sorted(set(FORGE_EVENT_TYPES) - MOVING), 1):
        envelope = _envelope(number, happened.ForgeRunStarted(), type=kind, data={"whatever": "it says"})
        assert run.apply(envelope) is None
    assert run.seq == len(FORGE_EVENT_TYPES) - len(MOVING)
    assert _looks(run)[1:] == seen


def test_the_events_that_move_a_graph_are_these() -> None:
    assert set(FORGE_EVENT_TYPES) >= MOVING
    assert len(get_args(Moving)) == len(MOVING) == 14


NAMES = ("t1", "t2", "t3", "n1", "n2")
ODD: tuple[EventData, ...] = (
    *(change for name in NAMES for one, other in product(S, S) for change in _change(name, one, other, attempt=2)),
    *(make(name, attempt) for make in (_verified, _conflict) for name in NAMES for attempt in (1, 2, 3)),
    *(_merging(batch, one, other) for batch in (1, 2, 3) for one, other in product(NAMES, NAMES)),
    *(_finished(batch, left) for batch in (1, 2, 3) for left in ((), *((name,) for name in NAMES))),
    *(_overlay(*names) for names in ((), ("n1",), ("n2",), ("n1", "n2"), ("t1",))),
    *(make(request) for make in (_asked, _rejected) for request in ("cr-001", "cr-002")),
    *(_reopened(name, most) for name in NAMES for most in (1, 4)),
    happened.ForgeRunStarted(),
    happened.RunPaused(reason="a look"),
    happened.ForgeRunResumed(),
    happened.ForgeRunCompleted(),
    happened.RunFailed(reason="no money"),
    happened.PlanApproved(actor="ada"),
)
"""Events of every kind, most of which cannot happen when they are told."""


def _likely(run: GraphRun) -> list[EventData]:
    """What could well happen next, so that random streams get far."""
    found: list[EventData] = []
    for name, node in run.nodes.items():
        attempt, state = node.currentAttempt, node.status
        work = run.work.get(name)
        for after in S:
            if TRANSITIONS[state, after] is TransitionKind.LEGAL:
                found += _change(name, state, after, attempt=attempt)
        if work is not None:
            found += [_verified(name, attempt), _conflict(name, attempt)]
        if is_exhausted(node):
            found.append(_reopened(name, node.maxAttempts + 1))
    if run.queue:
        found.append(_merging(run.batches + 1, *run.queue))
    if run.batch is not None:
        left = [name for name in run.batch.nodes if name in run.work and run.work[name].stage is AttemptStage.MERGING]
        found.append(_finished(run.batch.number, left))
    return found


@pytest.mark.req("F3", "F6")
def test_whatever_is_told_a_run_takes_it_in_or_refuses_it_whole() -> None:
    rng = Random(1)
    taken = set()
    for _ in range(250):
        run = GraphRun(RUN, _dag(t1="", t2="t1", t3=""))
        for _ in range(40):
            event = rng.choice(ODD if rng.random() < 0.3 else _likely(run) or ODD)
            before = _looks(run)
            envelope = _envelope(run.seq + 1, event)
            if run.apply(envelope) is None:
                taken.add(envelope.type)
            else:
                assert _looks(run) == before
            _is_whole(run)
    assert taken >= MOVING


@pytest.mark.req("F5", "F6", "F10")
def test_whatever_a_run_takes_in_the_status_files_and_the_course_tell_the_same() -> None:
    """The same events, three folds: where nodes stand, how often each may be tried, which requests have no answer."""
    rng = Random(2)
    dag = _dag(t1="", t2="t1", t3="")
    taken = set()
    for _ in range(150):
        run = GraphRun(RUN, dag, max_attempts=2)
        told: list[Envelope] = []
        began: tuple[EventData, ...] = (
            happened.RunCreated(repoUrl="file:///x", model="m", request="r"),
            happened.PlanProposed(tasks=3, refineries=0),
            happened.ForgeRunStarted(),
        )
        for event in began:
            told.append(_envelope(run.seq + 1, event))
            assert run.apply(told[-1]) is None
        for _ in range(40):
            event = rng.choice(_BY_ANYBODY if rng.random() < 0.3 else _likely(run) or _BY_ANYBODY)
            envelope = _envelope(run.seq + 1, event)
            if run.apply(envelope) is None:
                told.append(envelope)
                taken.add(envelope.type)
        state = fold_forge(told, dag, max_attempts=2)
        assert isinstance(state, ForgeState), state
        stands = [
            {name: (node.status, node.currentAttempt, node.maxAttempts) for name, node in nodes.items()}
            for nodes in (run.nodes, state.dag.nodes)
        ]
        assert stands[0] == stands[1]
        assert set(run.requests) == set(state.run.activeCRs) == set(forge_progress(told).active())
    assert taken >= {"task.reopened", "overlay.applied", "cr.emitted", "cr.rejected", "node.changed"}


_BY_ANYBODY: tuple[EventData, ...] = (
    *(_overlay(*names) for names in ((), ("n1",), ("n2",), ("n1", "n2"), ("t1",))),
    *(make(request) for make in (_asked, _rejected) for request in ("cr-001", "cr-002")),
    *(_reopened(name, 4) for name in NAMES),
)
"""What comes from outside the graph, legal or not."""


def _is_whole(run: GraphRun) -> None:
    """What is known in several ways is the same in all of them."""
    staged = {name: stage for stage in AttemptStage for name in run.in_stage((stage,))}
    assert staged == {name: work.stage for name, work in run.work.items()}
    assert set(run.queue) == set(run.in_stage((AttemptStage.QUEUED,)))
    running = {name for name, node in run.nodes.items() if node.status is S.RUNNING}
    assert set(run.running()) == running
    waiting = {name for name, node in run.nodes.items() if node.status in (S.DONE, S.MERGE_READY)}
    assert set(run.in_stage((AttemptStage.WAITING,))) == waiting
    assert set(run.in_stage((AttemptStage.MERGING,))) <= set(run.batch.nodes if run.batch is not None else ())
    for name, work in run.work.items():
        assert work.attempt == run.nodes[name].currentAttempt
        assert (work.commit is not None) == (work.stage is not AttemptStage.WORKING)
        if work.commit is not None:
            assert run.member(name).commit == work.commit


def _waiting(run: GraphRun, *names: str) -> None:
    for name in names:
        assert _tell(run, *_queued(name), *_change(name, S.RUNNING, S.DONE, S.MERGE_READY)) is None


@pytest.mark.req("F3")
def test_a_node_begins_with_those_it_depends_on_that_nothing_merged_yet() -> None:
    dependencies = {"t1": (), "t2": ("t1",), "t3": (), "t4": ("t1", "t2", "t3")}
    run = GraphRun(RUN, _dag(t1="", t2="t1", t3="", t4="t1 t2 t3"))
    _waiting(run, "t1", "t2", "t3")
    assert _tell(run, *_change("t3", S.MERGE_READY, S.MERGED)) is None
    assert [member.node for member in verified_before(run, dependencies, "t4")] == ["t1", "t2"]
    assert verified_before(run, dependencies, "t1") == ()


@pytest.mark.req("F3")
def test_a_node_takes_in_all_that_it_was_built_upon_and_that_waits() -> None:
    dependencies = {"t1": (), "t2": ("t1",), "t3": ("t1", "t2"), "t4": ("t3",), "t5": ()}
    run = GraphRun(RUN, _dag(t1="", t2="t1", t3="t1 t2", t4="t3", t5=""))
    _waiting(run, "t1", "t2", "t3", "t5")
    assert set(taken_in(run, dependencies, "t4")) == {"t1", "t2", "t3"}
    assert _tell(run, *_change("t2", S.MERGE_READY, S.MERGED)) is None
    assert set(taken_in(run, dependencies, "t4")) == {"t1", "t3"}
    assert taken_in(run, dependencies, "t1") == ()


def _in_phase(run: GraphRun, phase: str | None, *events: EventData) -> Problem | None:
    """The answer to the last of these events of one graph of a run that has several."""
    answer = None
    for event in events:
        assert answer is None
        answer = run.apply(_envelope(run.seq + 1, event, phase=phase))
    return answer


def _merged(node: str, batch: int, attempt: int) -> list[EventData]:
    return [
        *_change(node, S.PENDING, S.RUNNING, attempt=attempt),
        _verified(node, attempt),
        _merging(batch, node),
        happened.BranchMerged(nodeId=node, commit="abcd"),
        *_change(node, S.RUNNING, S.DONE, S.MERGE_READY, S.MERGED, attempt=attempt),
        _finished(batch),
    ]


def test_a_graph_that_counts_on_begins_with_its_own_attempt() -> None:
    run = GraphRun(RUN, _dag(t1=""), max_attempts=4, first_attempt=4)
    assert [(node.currentAttempt, node.maxAttempts) for node in run.nodes.values()] == [(4, 4)]
    assert _tell(run, *_change("t1", S.PENDING, S.RUNNING, attempt=4)) is None
    assert run.work["t1"].attempt == 4


@pytest.mark.req("P9")
def test_of_the_other_graphs_of_its_run_a_graph_counts_only_the_merges() -> None:
    run = GraphRun(RUN, _dag(t1="", t2=""), max_attempts=2, first_attempt=2, phase="2")
    before = _looks(run)
    assert _in_phase(run, "1", *_change("t1", S.PENDING, S.RUNNING), _verified("t1")) is None
    assert _looks(run)[1:] == before[1:]
    assert _in_phase(run, "1", _merging(1, "t1"), happened.BranchMerged(nodeId="t1", commit="abcd")) is None
    assert (run.batches, run.batch, run.tip, list(run.queue)) == (1, None, None, [])
    assert _in_phase(run, "1", *_change("t1", S.RUNNING, S.DONE, S.MERGE_READY, S.MERGED), _finished(1)) is None
    assert run.nodes["t1"].status is S.PENDING
    assert _in_phase(run, "2", *_merged("t1", 2, 2)) is None
    assert (run.batches, run.nodes["t1"].status, run.tip) == (2, S.MERGED, "cafe")


def test_batches_are_numbered_through_a_whole_run() -> None:
    """A batch with a number that another graph of the run has used is no next one."""
    run = GraphRun(RUN, _dag(t1=""), max_attempts=2, first_attempt=2, phase="2")
    assert _in_phase(run, "1", _merging(1, "t1"), _finished(1)) is None
    assert _in_phase(run, "2", *_change("t1", S.PENDING, S.RUNNING, attempt=2), _verified("t1", 2)) is None
    again = _in_phase(run, "2", _merging(1, "t1"))
    assert again is not None
    assert run.batches == 1
    assert _in_phase(run, "2", _merging(2, "t1")) is None


def test_a_graph_without_a_phase_takes_in_every_graph_of_its_run() -> None:
    run = GraphRun(RUN, _dag(t1=""))
    assert run.is_about(_envelope(1, _verified("t1"), phase="7"))
    assert not GraphRun(RUN, _dag(t1=""), phase="7").is_about(_envelope(1, _verified("t1")))
    assert _in_phase(run, "7", *_change("t1", S.PENDING, S.RUNNING)) is None
    assert run.running() == ("t1",)


def test_events_of_another_graph_still_stand_in_their_order() -> None:
    run = GraphRun(RUN, _dag(t1=""), phase="2")
    problem = run.apply(_envelope(3, _merging(1, "t1"), phase="1"))
    assert problem is not None
    assert (run.seq, run.batches) == (0, 0)
