"""The fold of a forge run: counts that are the graph's, moves that are the table's."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag, NodeState
from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES
from fairwitness.contracts.forge.status import DagStatus, RunPhase, RunState
from fairwitness.contracts.forge.status import ForgeRunStatus as ForgeStatus
from fairwitness.rules.dag import COUNTED, TRANSITIONS, TransitionKind, run_counts
from fairwitness.rules.fold_forge import RUN_MOVES, UNSTARTED, ForgeState, fold_forge
from rules.fold_streams import DAG, EXHAUSTED, FORGE, FORGE_RUN, REOPENED, Said, node_moved, stream, time_of


def _forge(said: list[Said], dag: Dag | None = DAG, *, attempts: int = 3) -> ForgeState | Problem:
    return fold_forge(stream(Workflow.FORGE, FORGE_RUN, said), dag, max_attempts=attempts)


def _forge_state(said: list[Said], *, attempts: int = 3) -> ForgeState:
    state = _forge(said, attempts=attempts)
    assert isinstance(state, ForgeState)
    return state


COMMIT = "abc1234"
MERGING: list[Said] = [
    ("task.verified", {"nodeId": "task-001", "attemptId": 1, "commit": COMMIT, "tree": COMMIT}),
    ("merge.started", {"batch": 1, "nodes": ["task-001"]}),
    ("conflict.found", {"nodeId": "task-001", "attemptId": 1, "onto": COMMIT, "paths": ["src/a.py"]}),
    ("target.moved", {"target": "refs/heads/fairwitness/run-7f2", "expected": COMMIT}),
    ("merge.finished", {"batch": 1, "tip": COMMIT, "landed": [], "conflicting": ["task-001"], "left": [], "checks": 0}),
]
"""Events that only concern how attempts are merged."""
BESIDE: list[Said] = [
    (
        "helper.started",
        {"nodeId": "task-001", "attemptId": 1, "agent": "worker-1", "dispatch": "task-001.1.h1", "task": "look"},
    ),
    ("subtask.written", {"nodeId": "task-001", "subtaskId": "subtask-001", "agentType": 1, "title": "look"}),
    ("subtask.changed", {"nodeId": "task-001", "subtaskId": "subtask-001", "status": "running", "agent": "worker-1"}),
    ("walkthrough.disputed", {"nodeId": "task-001", "attemptId": 1, "differences": ["it names a file too many"]}),
]
"""Events that tell how an attempt was made, and what was said of it."""
EXHAUSTED_REOPENED = {"nodeId": "task-001", "maxAttempts": 2, "actor": "ada"}


@pytest.mark.req("F6", "F3", "F10")
def test_every_event_of_a_forge_run_has_its_place_in_the_state() -> None:
    assert {kind for kind, _ in (*FORGE, *REOPENED, *MERGING, *BESIDE)} == set(FORGE_EVENT_TYPES)
    run, dag = _forge_state(FORGE)
    assert RunState.model_validate(run.plain()) == run
    assert DagStatus.model_validate(dag.plain()) == dag
    assert run.plain() == snapshot(
        {
            "runId": "run-7f2",
            "repoUrl": "file:///srv/shop",
            "status": "completed",
            "createdAt": "2026-02-26T14:01:00Z",
            "startedAt": "2026-02-26T14:07:00Z",
            "completedAt": "2026-02-26T14:45:00Z",
            "currentPhase": "completed",
            "model": "m-1",
            "totalTasks": 4,
            "completedTasks": 4,
            "failedTasks": 0,
            "runningTasks": 0,
            "activeCRs": [],
            "lastEventId": "evt-0045",
            "lastEventSeq": 45,
        }
    )
    assert dag.plain()["nodes"] == snapshot(
        {
            "task-001": {
                "taskId": "task-001",
                "status": "MERGED",
                "currentAttempt": 2,
                "maxAttempts": 3,
                "startedAt": "2024-01-15T09:30:00Z",
                "completedAt": "2024-01-15T09:30:00Z",
                "lastError": "worker lost",
            },
            "task-002": {
                "taskId": "task-002",
                "status": "MERGED",
                "currentAttempt": 1,
                "maxAttempts": 3,
                "startedAt": "2024-01-15T09:30:00Z",
                "completedAt": "2024-01-15T09:30:00Z",
            },
            "refinery-001": {
                "taskId": "refinery-001",
                "status": "MERGED",
                "currentAttempt": 1,
                "maxAttempts": 3,
                "startedAt": "2024-01-15T09:30:00Z",
                "completedAt": "2024-01-15T09:30:00Z",
            },
            "task-006": {
                "taskId": "task-006",
                "status": "MERGED",
                "currentAttempt": 1,
                "maxAttempts": 3,
                "startedAt": "2024-01-15T09:30:00Z",
                "completedAt": "2024-01-15T09:30:00Z",
            },
        }
    )


@pytest.mark.req("F6")
@pytest.mark.parametrize("length", range(1, len(FORGE) + 1))
def test_after_every_event_the_counts_are_those_of_the_graph_and_the_number_is_the_events(length: int) -> None:
    run, dag = _forge_state(FORGE[:length])
    assert run.model_dump(include=set(COUNTED)) == run_counts(dag)
    assert run.lastEventSeq == length
    assert RunState.model_validate(run.plain()) == run
    assert DagStatus.model_validate(dag.plain()) == dag


@pytest.mark.req("F6", "F10")
def test_a_failed_run_keeps_its_phase_its_dependents_stay_pending_and_it_may_be_resumed() -> None:
    run, dag = _forge_state(EXHAUSTED, attempts=1)
    assert (run.status, run.currentPhase.value, run.failedTasks) == (ForgeStatus.FAILED, "execution", 1)
    assert (dag.nodes["task-001"].lastError, dag.nodes["task-002"].status) == ("exit 2", NodeState.PENDING)
    assert run.completedAt == time_of(len(EXHAUSTED))
    resumed, _ = _forge_state([*EXHAUSTED, ("run.resumed", {})], attempts=1)
    assert (resumed.status, resumed.completedAt, resumed.startedAt) == (ForgeStatus.EXECUTING, None, run.startedAt)


@pytest.mark.req("F6", "F10")
def test_a_node_that_a_person_gave_more_attempts_is_no_failure_any_more_and_is_tried_again() -> None:
    told = []
    for length in range(len(EXHAUSTED), len(REOPENED) + 1):
        run, dag = _forge_state(REOPENED[:length], attempts=1)
        assert run.model_dump(include=set(COUNTED)) == run_counts(dag)
        node = dag.nodes["task-001"]
        told.append(f"{run.status.value} {run.failedTasks} {node.status} {node.currentAttempt}/{node.maxAttempts}")
    assert told == snapshot(
        [
            "failed 1 FAILED 1/1",
            "failed 0 FAILED 1/2",
            "failed 0 FAILED 1/2",
            "failed 0 PENDING 2/2",
            "executing 0 PENDING 2/2",
            "executing 0 RUNNING 2/2",
            "executing 0 DONE 2/2",
            "executing 0 MERGE_READY 2/2",
            "executing 0 MERGED 2/2",
        ]
    )


@pytest.mark.req("F6", "F10")
@pytest.mark.parametrize(
    ("said", "most", "where"),
    [
        ([*EXHAUSTED, ("task.reopened", {"nodeId": "x", "maxAttempts": 2, "actor": "ada"})], 1, "nodeId"),
        ([*EXHAUSTED, ("task.reopened", EXHAUSTED_REOPENED | {"maxAttempts": 1})], 1, "maxAttempts"),
        ([*EXHAUSTED[:-2], ("task.reopened", EXHAUSTED_REOPENED)], 2, "maxAttempts"),
        ([*FORGE[:7], ("task.reopened", EXHAUSTED_REOPENED)], 1, "maxAttempts"),
    ],
    ids=["unknown", "no more than before", "has attempts left", "waits"],
)
def test_only_a_node_without_attempts_is_given_more(said: list[Said], most: int, where: str) -> None:
    problem = _forge(said, attempts=most)
    assert isinstance(problem, Problem)
    assert spell_path(problem.where) == f"events[{len(said)}].data.{where}"


@pytest.mark.req("F5", "F6")
def test_a_plan_that_a_person_edits_is_proposed_again_before_it_is_approved() -> None:
    smaller = DAG.model_copy(update={"nodes": DAG.nodes[:2]})
    earlier = _forge_state(FORGE[:3])
    edited: list[Said] = [("plan.proposed", {"tasks": 2, "refineries": 0}), ("plan.approved", {"actor": "ada"})]
    state = fold_forge(stream(Workflow.FORGE, FORGE_RUN, edited, first=4), smaller, onto=earlier)
    assert isinstance(state, ForgeState)
    assert (state.run.status, list(state.dag.nodes)) == (ForgeStatus.PLAN_REVIEW, ["task-001", "task-002"])


@pytest.mark.req("F6")
def test_the_whole_table_of_how_a_run_moves() -> None:
    table = [
        f"{event} when {before.value}: {after.value}, {'keeps its phase' if phase is None else phase.value}"
        for (event, before), (after, phase) in RUN_MOVES.items()
    ]
    assert table == snapshot(
        [
            "plan.proposed when planning: plan_review, plan_review",
            "plan.proposed when plan_review: plan_review, plan_review",
            "plan.approved when plan_review: plan_review, plan_review",
            "plan.returned when plan_review: planning, captain_interview",
            "run.started when plan_review: executing, execution",
            "run.paused when executing: paused, paused",
            "run.resumed when paused: executing, execution",
            "run.resumed when executing: executing, execution",
            "run.resumed when failed: executing, execution",
            "run.completed when executing: completed, completed",
            "run.failed when planning: failed, keeps its phase",
            "run.failed when plan_review: failed, keeps its phase",
            "run.failed when executing: failed, keeps its phase",
            "run.failed when paused: failed, keeps its phase",
        ]
    )


@pytest.mark.req("F6")
@pytest.mark.parametrize("event", sorted({event for event, _ in RUN_MOVES}))
@pytest.mark.parametrize("status", list(ForgeStatus))
def test_what_the_table_does_not_have_is_refused(event: str, status: ForgeStatus) -> None:
    reach: dict[ForgeStatus, list[Said]] = {
        ForgeStatus.PLANNING: FORGE[:1],
        ForgeStatus.PLAN_REVIEW: FORGE[:3],
        ForgeStatus.EXECUTING: FORGE[:7],
        ForgeStatus.PAUSED: [*FORGE[:7], ("run.paused", {"reason": "x"})],
        ForgeStatus.COMPLETED: FORGE,
        ForgeStatus.FAILED: [*FORGE[:7], ("run.failed", {"reason": "x"})],
    }
    data: dict[str, dict[str, Any]] = {
        "plan.proposed": {"tasks": 1, "refineries": 0},
        "plan.approved": {"actor": "ada"},
        "plan.returned": {"actor": "ada", "feedback": "x"},
        "run.paused": {"reason": "x"},
        "run.failed": {"reason": "x"},
    }
    answer = _forge([*reach[status], (event, data.get(event, {}))])
    if (event, status) not in RUN_MOVES:
        assert isinstance(answer, Problem)
        assert answer.found == status.value
    elif event == "run.completed":
        assert isinstance(answer, Problem)  # from executing, with nothing merged
        assert answer.found == "task-001, task-002, refinery-001"
    else:
        assert isinstance(answer, ForgeState)
        assert answer.run.status is RUN_MOVES[event, status][0]


@pytest.mark.req("F6", "F10")
@pytest.mark.parametrize(
    ("length", "status"),
    [
        (1, ForgeStatus.PLANNING),
        (3, ForgeStatus.PLAN_REVIEW),
        (4, ForgeStatus.PLANNING),
        (6, ForgeStatus.PLAN_REVIEW),
        (7, ForgeStatus.EXECUTING),
    ],
)
def test_a_run_that_failed_goes_on_where_it_failed_and_can_still_come_to_its_end(
    length: int, status: ForgeStatus
) -> None:
    back: list[Said] = [("run.failed", {"reason": "no money"}), ("run.resumed", {})]
    before, resumed = _forge_state(FORGE[:length]), _forge_state([*FORGE[:length], *back])
    assert (resumed.run.status, resumed.run.currentPhase) == (status, before.run.currentPhase)
    assert (resumed.run.startedAt, resumed.run.completedAt) == (before.run.startedAt, None)
    assert RunState.model_validate(resumed.run.plain()) == resumed.run
    assert _forge_state([*FORGE[:length], *back, *FORGE[length:]]).run.status is ForgeStatus.COMPLETED
    assert set(UNSTARTED) == set(RunPhase) - {RunPhase.EXECUTION, RunPhase.PAUSED, RunPhase.COMPLETED}


@pytest.mark.req("F6", "F3", "F5")
@pytest.mark.parametrize(
    ("said", "where", "expected"),
    [
        (FORGE[1:2], "events[1].type", "run.created as the first event"),
        ([FORGE[0], FORGE[0]], "events[2].type", "run.created once"),
        ([*FORGE[:7], node_moved("task-404", "PENDING", "RUNNING")], "events[8].data.nodeId", "a node of the graph"),
        ([*FORGE[:7], ("task.started", FORGE[8][1] | {"nodeId": "x"})], "events[8].data.nodeId", "a node of the graph"),
        ([*FORGE[:7], node_moved("task-001", "RUNNING", "DONE")], "events[8].data.previousStatus", "PENDING"),
        ([*FORGE[:7], node_moved("task-001", "PENDING", "MERGED")], "events[8].data.newStatus", "RUNNING"),
        (
            [*FORGE[:7], node_moved("task-001", "PENDING", "RUNNING", attemptId=2)],
            "events[8].data.attemptId",
            "attempt 1",
        ),
        ([*FORGE[:10], *FORGE[10:13], FORGE[7]], "events[14].data.attemptId", "attempt 2"),
        (
            [*FORGE[:7], ("overlay.applied", {"crId": "cr-001", "addedNodes": ["task-001"], "addedEdges": 0})],
            "events[8].data.addedNodes",
            "nodes that are new",
        ),
    ],
)
def test_a_forge_stream_that_cannot_be_is_told_where(said: list[Said], where: str, expected: str) -> None:
    problem = _forge(said)
    assert isinstance(problem, Problem)
    assert (spell_path(problem.where), problem.expected) == (where, expected)


@pytest.mark.req("F6")
def test_a_plan_needs_a_graph_and_a_run_without_nodes_is_not_completed() -> None:
    without = _forge(FORGE[:3], None)
    assert isinstance(without, Problem)
    assert without.expected == "a graph behind the plan"
    empty = DAG.model_copy(update={"nodes": ()})
    nothing = _forge([*FORGE[:3], FORGE[6], ("run.completed", {})], empty)
    assert isinstance(nothing, Problem)
    assert nothing.found == "no graph"


@pytest.mark.req("F10")
def test_a_node_without_attempts_does_not_go_back_to_the_queue() -> None:
    problem = _forge([*EXHAUSTED[:-1], node_moved("task-001", "FAILED", "PENDING")], attempts=1)
    assert isinstance(problem, Problem)
    assert (spell_path(problem.where), problem.expected) == ("events[10].data.newStatus", "at most 1 attempts")


@pytest.mark.req("F6")
def test_an_old_event_of_forge_is_brought_up_to_date() -> None:
    said: list[Said] = [("run.created", {"url": "file:///srv/shop", "model": "m-1", "request": "a shop"})]
    upcasters = {("run.created", 1): lambda data: {"repoUrl": data.pop("url"), **data}}
    state = fold_forge(stream(Workflow.FORGE, FORGE_RUN, said), DAG, upcasters=upcasters)
    assert isinstance(state, ForgeState)
    assert state.run.repoUrl == "file:///srv/shop"


@pytest.mark.req("F6")
@pytest.mark.parametrize("said", [*MERGING, *BESIDE], ids=lambda said: said[0])
def test_how_attempts_are_made_and_merged_changes_neither_nodes_nor_counts(said: Said) -> None:
    before, after = _forge_state(FORGE[:9]), _forge_state([*FORGE[:9], said])
    assert after.dag.nodes == before.dag.nodes
    changed = {"lastEventId", "lastEventSeq"}
    assert after.run.model_dump(exclude=changed) == before.run.model_dump(exclude=changed)
    assert after.run.lastEventSeq == 10


def _history(chance: Random) -> list[Said]:
    """Legal moves at random, some told twice; overlays come in, nodes get more attempts, a plan may be told again."""
    said = list(FORGE[:3])
    if chance.random() < 0.3:
        said += FORGE[3:5]
    said.append(FORGE[6])
    nodes = {node.id: (NodeState.PENDING, 1) for node in DAG.nodes}
    most = dict.fromkeys(nodes, 2)
    for number in range(chance.randint(1, 40)):
        name = chance.choice(list(nodes))
        state, attempt = nodes[name]
        is_out = state in (NodeState.FAILED, NodeState.STALE) and attempt == most[name]
        ways = [after for after in NodeState if TRANSITIONS[state, after] is TransitionKind.LEGAL]
        if chance.random() < 0.1:
            added = [f"task-1{number:02}", f"task-2{number:02}"][: chance.randint(0, 2)]
            said.append(("overlay.applied", {"crId": "cr-001", "addedNodes": added, "addedEdges": 0}))
            nodes |= dict.fromkeys(added, (NodeState.PENDING, 1))
            most |= dict.fromkeys(added, 2)
        elif is_out and chance.random() < 0.5:
            most[name] += chance.randint(1, 2)
            said.append(("task.reopened", {"nodeId": name, "maxAttempts": most[name], "actor": "ada"}))
        elif chance.random() < 0.2:
            said.append(("task.retried", {"nodeId": name, "nextAttempt": 2, "reason": "again"}))
        elif ways:
            after = chance.choice(ways)
            if after is NodeState.PENDING and attempt == most[name]:
                continue
            nodes[name] = (after, attempt + (after is NodeState.PENDING))
            said += [node_moved(name, state.value, after.value)] * chance.choice([1, 1, 2])
    return said


@pytest.mark.req("F6")
@settings(max_examples=100)
@given(st.randoms(use_true_random=False))
def test_the_counts_that_follow_each_event_are_those_of_the_whole_graph(chance: Random) -> None:
    events = stream(Workflow.FORGE, FORGE_RUN, _history(chance))
    state: ForgeState | None = None
    for event in events:
        after = fold_forge([event], DAG, max_attempts=2, onto=state)
        assert isinstance(after, ForgeState)
        state = after
        assert state.run.model_dump(include=set(COUNTED)) == run_counts(state.dag)
        assert (state.run.lastEventSeq, state.dag.updatedAt) == (event.seq, event.timestamp)
    assert state == fold_forge(events, DAG, max_attempts=2)


@pytest.mark.req("F6")
@settings(max_examples=100)
@given(st.randoms(use_true_random=False))
def test_folding_on_is_folding_everything_and_leaves_the_earlier_state_as_it_was(chance: Random) -> None:
    events = stream(Workflow.FORGE, FORGE_RUN, _history(chance))
    middle = chance.randint(1, len(events))
    earlier = fold_forge(events[:middle], DAG, max_attempts=2)
    assert isinstance(earlier, ForgeState)
    kept = (earlier.run.plain(), earlier.dag.plain())
    assert fold_forge(events[middle:], DAG, max_attempts=2, onto=earlier) == fold_forge(events, DAG, max_attempts=2)
    assert (earlier.run.plain(), earlier.dag.plain()) == kept


@pytest.mark.req("F6")
def test_a_plan_that_is_proposed_again_brings_its_nodes_anew() -> None:
    smaller = DAG.model_copy(update={"nodes": DAG.nodes[:1]})
    earlier = _forge_state(FORGE[:4])
    again = fold_forge(stream(Workflow.FORGE, FORGE_RUN, FORGE[4:5], first=5), smaller, onto=earlier)
    assert isinstance(again, ForgeState)
    assert (list(again.dag.nodes), again.run.totalTasks) == (["task-001"], 1)
    assert earlier.run.totalTasks == 3


@pytest.mark.req("F6", "X7")
@pytest.mark.timeout(60)
def test_the_events_of_ten_thousand_nodes_are_folded_in_one_go() -> None:
    names = [f"t{number}" for number in range(10_000)]
    dag = DAG.model_copy(update={"nodes": tuple(DAG.nodes[0].model_copy(update={"id": name}) for name in names)})
    moves = [
        node_moved(name, before, after)
        for before, after in (("PENDING", "RUNNING"), ("RUNNING", "DONE"))
        for name in names
    ]
    envelopes = stream(Workflow.FORGE, FORGE_RUN, [*FORGE[:3], FORGE[6]])
    example = stream(Workflow.FORGE, FORGE_RUN, moves[:1])[0]
    envelopes += [
        example.model_copy(update={"seq": seq, "event_id": f"evt-{seq}", "data": data})
        for seq, (_, data) in enumerate(moves, len(envelopes) + 1)
    ]
    state = fold_forge(envelopes, dag)
    assert isinstance(state, ForgeState)
    assert (state.run.totalTasks, state.run.runningTasks, state.run.completedTasks) == (10_000, 0, 0)
    assert state.run.model_dump(include=set(COUNTED)) == run_counts(state.dag)
