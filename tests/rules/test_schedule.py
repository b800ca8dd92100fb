"""Scheduling: what may start, longest way first under a cap, no two writers of one file, and runs that always end."""

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.forge.dag import Dag, NodeState, NodeType
from fairwitness.contracts.forge.status import DagStatus, NodeStatus
from fairwitness.rules.dag import TRANSITIONS, TransitionKind, dag_problems, moved
from fairwitness.rules.schedule import (
    DEFAULT_CAP,
    GOOD_ENOUGH,
    NOTHING,
    GraphProgress,
    NextTry,
    NoTryLeft,
    after_failure,
    collected,
    collide,
    dag_outcome,
    joined,
    ready_nodes,
    starts,
    ways_to_the_end,
    write_set,
)

GENERATED = settings(max_examples=200)


def _dag(**dependencies: str) -> Dag:
    """A graph in which names that begin with r are refineries."""
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
    return Dag.model_validate(
        {
            "version": 1,
            "runId": "run-7f2",
            "nodes": nodes,
            "metadata": {
                "createdAt": "2024-01-15T09:00:00Z",
                "createdBy": "captain",
                "totalTasks": len(nodes) - refineries,
                "totalRefineries": refineries,
            },
        }
    )


def _status(states: dict[str, NodeState], *, attempt: int = 1, most: int = 3) -> DagStatus:
    return DagStatus(
        runId="run-7f2",
        updatedAt="2024-01-15T10:00:00Z",
        nodes={
            name: NodeStatus(taskId=name, status=state, currentAttempt=attempt, maxAttempts=most)
            for name, state in states.items()
        },
    )


@pytest.mark.req("F3", "F9")
def test_every_pair_of_node_types_knows_when_a_dependency_is_good_enough() -> None:
    assert set(GOOD_ENOUGH) == set(product(NodeType, NodeType))
    table = [
        f"a {after.value} behind a {before.value}: {' or '.join(sorted(states))}"
        for (before, after), states in GOOD_ENOUGH.items()
    ]
    assert table == snapshot(
        [
            "a task behind a task: MERGED or MERGE_READY",
            "a refinery behind a task: MERGED or MERGE_READY",
            "a task behind a refinery: MERGED",
            "a refinery behind a refinery: MERGED or MERGE_READY",
        ]
    )


@pytest.mark.req("F3", "F9")
@pytest.mark.parametrize(("before", "after"), list(product(("t1", "r1"), ("t2", "r2"))))
@pytest.mark.parametrize("state", list(NodeState))
def test_a_node_is_ready_in_exactly_those_states_of_its_dependency(before: str, after: str, state: NodeState) -> None:
    dag = _dag(**{"t0": "", before: "t0", after: before})
    status = _status({"t0": NodeState.MERGED, before: state, after: NodeState.PENDING})
    kinds = {node.id: node.type for node in dag.nodes}
    assert (after in ready_nodes(dag, status)) == (state in GOOD_ENOUGH[kinds[before], kinds[after]])


@pytest.mark.req("F3")
@pytest.mark.parametrize("state", list(NodeState))
def test_only_a_pending_node_is_ready(state: NodeState) -> None:
    assert ready_nodes(_dag(t1=""), _status({"t1": state})) == (("t1",) if state is NodeState.PENDING else ())
    assert ready_nodes(_dag(t1=""), _status({})) == ()


@pytest.mark.req("F3")
def test_all_dependencies_must_be_good_enough() -> None:
    dag = _dag(t1="", t2="", t3="t1 t2")
    states = {"t1": NodeState.MERGED, "t2": NodeState.RUNNING, "t3": NodeState.PENDING}
    assert ready_nodes(dag, _status(states)) == ()
    assert ready_nodes(dag, _status({**states, "t2": NodeState.MERGE_READY})) == ("t3",)


@pytest.mark.req("X7")
def test_the_way_to_the_end_is_the_longest_one_and_follows_the_estimates() -> None:
    plan = {"a": (), "b": ("a",), "c": ("b",), "d": ("a",)}
    assert ways_to_the_end(plan) == {"a": 3, "b": 2, "c": 1, "d": 1}
    assert ways_to_the_end(plan, {"d": 9}) == {"a": 10, "b": 2, "c": 1, "d": 9}
    assert ways_to_the_end(plan, {"d": 2, "b": 5, "x": 7}) == {"a": 7, "b": 6, "c": 1, "d": 2}
    assert ways_to_the_end({}) == {}


@st.composite
def _plans(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    size = draw(st.integers(0, 9))
    return {
        f"t{index}": tuple(f"t{other}" for other in sorted(draw(st.sets(st.integers(0, index - 1), max_size=3))))
        if index
        else ()
        for index in range(size)
    }


@pytest.mark.req("X7")
@GENERATED
@given(_plans(), st.dictionaries(st.sampled_from(["t0", "t1", "t2", "t3"]), st.integers(1, 9)))
def test_a_task_is_always_farther_from_the_end_than_all_that_wait_for_it(
    plan: dict[str, tuple[str, ...]], estimates: dict[str, int]
) -> None:
    ways = ways_to_the_end(plan, estimates)
    assert set(ways) == set(plan)
    for task, others in plan.items():
        assert ways[task] >= estimates.get(task, 1)
        assert all(ways[other] >= ways[task] + estimates.get(other, 1) for other in others)
    last = [task for task in plan if not any(task in others for others in plan.values())]
    assert all(ways[task] == estimates.get(task, 1) for task in last)


@pytest.mark.req("X7", "P12")
@pytest.mark.parametrize(
    ("ready", "running", "cap", "chosen"),
    [
        ("abcde", "", 4, "cabd"),
        ("abcde", "xy", 4, "ca"),
        ("abcde", "wxyz", 4, ""),
        ("abcde", "uvwxyz", 4, ""),
        ("abcde", "", 1, "c"),
        ("", "", 4, ""),
        ("be", "", 9, "be"),
        ("eb", "", 9, "be"),
    ],
)
def test_the_longest_way_goes_first_up_to_the_cap(ready: str, running: str, cap: int, chosen: str) -> None:
    ways = {"a": 3, "b": 2, "c": 5, "d": 2, "e": 1}
    assert starts(tuple(ready), ways, running=tuple(running), cap=cap) == tuple(chosen)


@pytest.mark.req("X7")
def test_the_seeds_cap_of_four_is_the_default() -> None:
    assert DEFAULT_CAP == 4
    assert len(starts(tuple("abcdefgh"), dict.fromkeys("abcdefgh", 1), running=())) == 4


@pytest.mark.req("P9", "X7")
@pytest.mark.parametrize(
    ("writes", "chosen"),
    [
        (None, "ab"),
        ({"a": {"src/a.py"}, "b": {"src/b.py"}}, "ab"),
        ({"a": {"src/a.py"}, "b": {"src/a.py", "src/b.py"}}, "a"),
        ({"a": {"src"}, "b": {"src/deep/b.py"}}, "a"),
        ({"a": {"src/deep/b.py"}, "b": {"src/"}}, "a"),
        ({"a": {"src/deep"}, "b": {"src/deeper.py"}}, "ab"),
        ({"a": {"src/lineX"}, "b": {"src/line"}}, "ab"),
        ({"a": {"src/a.py"}, "b": set()}, "ab"),
        ({"a": {"src/a.py"}}, "a"),
        ({"b": {"src/a.py"}}, "a"),
        ({}, "a"),
    ],
)
def test_tasks_run_side_by_side_only_when_their_declared_files_are_apart(
    writes: dict[str, set[str]] | None, chosen: str
) -> None:
    declared = None if writes is None else {task: frozenset(files) for task, files in writes.items()}
    assert starts(("a", "b"), {"a": 2, "b": 1}, running=(), writes=declared) == tuple(chosen)


@pytest.mark.req("P9", "X7")
def test_a_task_waits_for_a_running_writer_and_lets_others_pass() -> None:
    writes = {"x": frozenset({"src/a.py"}), "a": frozenset({"src/a.py"}), "b": frozenset({"src/b.py"})}
    assert starts(("a", "b"), {"a": 9, "b": 1}, running=("x",), writes=writes) == ("b",)


FILES = st.frozensets(st.sampled_from(["a.py", "src", "src/", "src/b.py", "src/deep/c.py", "srcs"]), max_size=3)


@pytest.mark.req("P9", "X7")
@GENERATED
@given(st.dictionaries(st.sampled_from("abcd"), FILES), st.lists(st.sampled_from("bcde"), min_size=1))
def test_a_task_collides_with_several_exactly_when_it_collides_with_one_of_them(
    writes: dict[str, frozenset[str]], beside: list[str]
) -> None:
    task, others = write_set("a", writes), [write_set(name, writes) for name in beside]
    assert collide(task, joined(others)) == any(collide(task, other) for other in others)
    assert [collide(task, other) for other in others] == [collide(other, task) for other in others]
    assert joined([]) == write_set("a", None) == NOTHING


@pytest.mark.req("X7", "P9")
@GENERATED
@given(_plans(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_every_plan_is_worked_off_within_the_cap_and_in_the_order_of_its_dependencies(
    plan: dict[str, tuple[str, ...]], cap: int, chance: Random
) -> None:
    ways = ways_to_the_end(plan)
    writes = {task: frozenset({chance.choice("pqr")}) for task in plan}
    finished: set[str] = set()
    running: list[str] = []
    for _ in range(2 * len(plan)):
        ready = [task for task in plan if task not in {*finished, *running} and finished.issuperset(plan[task])]
        for task in starts(ready, ways, running=running, cap=cap, writes=writes):
            assert finished.issuperset(plan[task])
            assert all(writes[task] != writes[other] for other in running)
            running.append(task)
        assert len(running) <= cap
        assert running or finished == set(plan)
        if running:
            finished.add(running.pop(chance.randrange(len(running))))
    assert finished == set(plan)


@pytest.mark.req("F9")
def test_a_task_is_collected_if_a_refinery_depends_on_it_and_a_refinery_never_is() -> None:
    dag = _dag(t1="", t2="t1", r1="t2", t3="r1", r2="r1 t3", t4="t3")
    assert collected(dag) == {"t2", "t3"}
    assert collected(_dag(t1="", t2="t1")) == frozenset()


@pytest.mark.req("F10")
@pytest.mark.parametrize(
    ("dag", "states", "end", "exhausted", "stranded"),
    [
        (_dag(t1=""), "PENDING", GraphProgress.GOING, "", ""),
        (_dag(t1=""), "RUNNING", GraphProgress.GOING, "", ""),
        (_dag(t1=""), "DONE", GraphProgress.GOING, "", ""),
        (_dag(t1=""), "MERGE_READY", GraphProgress.GOING, "", ""),
        (_dag(t1=""), "MERGED", GraphProgress.COMPLETED, "", ""),
        (_dag(t1=""), "FAILED", GraphProgress.FAILED, "t1", ""),
        (_dag(t1=""), "STALE", GraphProgress.FAILED, "t1", ""),
        (_dag(t1="", t2="t1"), "FAILED PENDING", GraphProgress.FAILED, "t1", "t2"),
        (_dag(t1="", t2=""), "FAILED PENDING", GraphProgress.GOING, "t1", ""),
        (_dag(t1="", t2=""), "FAILED RUNNING", GraphProgress.GOING, "t1", ""),
        (_dag(t1="", t2=""), "FAILED MERGED", GraphProgress.FAILED, "t1", ""),
        (_dag(t1="", t2="", r1="t1 t2"), "FAILED MERGE_READY PENDING", GraphProgress.FAILED, "t1", "t2 r1"),
        (_dag(t1="", t2="", r1="t1"), "FAILED MERGE_READY PENDING", GraphProgress.GOING, "t1", ""),
        (_dag(t1="", r1="t1"), "MERGE_READY RUNNING", GraphProgress.GOING, "", ""),
        (_dag(t1="", r1="t1"), "MERGE_READY PENDING", GraphProgress.GOING, "", ""),
        (_dag(t1="", r1="t1"), "MERGE_READY FAILED", GraphProgress.FAILED, "r1", "t1"),
        (_dag(t1="", r1="t1", r2="t1"), "MERGE_READY FAILED PENDING", GraphProgress.GOING, "r1", ""),
        (_dag(t1="", r1="t1", r2="t1"), "MERGE_READY FAILED FAILED", GraphProgress.FAILED, "r1 r2", "t1"),
        (_dag(t1="", r1="t1", t2="r1"), "MERGE_READY FAILED PENDING", GraphProgress.FAILED, "r1", "t1 t2"),
        (_dag(t1="", r1="t1", t2="t1"), "MERGE_READY FAILED PENDING", GraphProgress.GOING, "r1", ""),
        (_dag(t1="", t2="t1", r1="t2"), "FAILED PENDING PENDING", GraphProgress.FAILED, "t1", "t2 r1"),
        (_dag(t1="", r1="t1"), "MERGE_READY MERGED", GraphProgress.FAILED, "", "t1"),
        (_dag(t1="", r1="t1", r2="r1"), "MERGED MERGE_READY FAILED", GraphProgress.GOING, "r2", ""),
        (_dag(t1="", r1="t1"), "MERGED MERGED", GraphProgress.COMPLETED, "", ""),
    ],
)
def test_a_run_ends_when_nothing_can_move_any_more(
    dag: Dag, states: str, end: GraphProgress, exhausted: str, stranded: str
) -> None:
    named = {node.id: NodeState(state) for node, state in zip(dag.nodes, states.split(), strict=True)}
    outcome = dag_outcome(dag, _status(named, attempt=3))
    assert (outcome.end, outcome.exhausted, outcome.stranded) == (
        end,
        tuple(exhausted.split()),
        tuple(stranded.split()),
    )


@pytest.mark.req("F10")
@pytest.mark.parametrize("state", [NodeState.FAILED, NodeState.STALE])
def test_a_failed_node_with_attempts_left_keeps_the_run_going(state: NodeState) -> None:
    outcome = dag_outcome(_dag(t1=""), _status({"t1": state}, attempt=2))
    assert (outcome.end, outcome.exhausted) == (GraphProgress.GOING, ())


@pytest.mark.req("F10")
def test_a_node_without_a_status_is_stranded() -> None:
    outcome = dag_outcome(_dag(t1="", t2=""), _status({"t1": NodeState.MERGED}))
    assert (outcome.end, outcome.stranded) == (GraphProgress.FAILED, ("t2",))


@pytest.mark.req("F3", "F10")
def test_a_failed_attempt_is_followed_by_another_until_there_is_none() -> None:
    nodes = [
        NodeStatus(taskId="t1", status=NodeState.FAILED, currentAttempt=attempt, maxAttempts=3) for attempt in (1, 2, 3)
    ]
    assert [after_failure(node) for node in nodes] == [NextTry(attempt=2), NextTry(attempt=3), NoTryLeft(attempts=3)]


@st.composite
def _dags(draw: st.DrawFn) -> Dag:
    size = draw(st.integers(1, 7))
    dependencies: dict[str, str] = {}
    for index in range(size):
        earlier = sorted(dependencies)
        others: set[str] = draw(st.sets(st.sampled_from(earlier), max_size=3)) if earlier else set()
        refines: bool = draw(st.booleans())
        kind = "r" if others and refines else "t"
        dependencies[f"{kind}{index}"] = " ".join(sorted(others))
    return _dag(**dependencies)


@pytest.mark.req("F9", "F10")
@settings(max_examples=300)
@given(_dags(), st.integers(0, 40), st.randoms(use_true_random=False))
def test_every_graph_runs_to_its_end_and_completes_when_nothing_fails(dag: Dag, failing: int, chance: Random) -> None:
    """A small engine: start what is ready, end what runs, push, let refineries take in and promote themselves."""
    assert dag_problems(dag) == ()
    dependencies = {node.id: node.dependencies for node in dag.nodes}
    types = {node.id: node.type for node in dag.nodes}
    held = collected(dag)
    status = _status({node.id: NodeState.PENDING for node in dag.nodes}, most=2)

    def go(name: str, state: NodeState) -> None:
        nonlocal status
        after = moved(status.nodes[name], state)
        assert isinstance(after, NodeStatus)
        status = status.model_copy(update={"nodes": {**status.nodes, name: after}})

    ways = ways_to_the_end(dependencies)
    failures = 0
    for _ in range(12 * len(dag.nodes)):
        if dag_outcome(dag, status).end is not GraphProgress.GOING:
            break
        running = [name for name, node in status.nodes.items() if node.status is NodeState.RUNNING]
        for name in starts(ready_nodes(dag, status), ways, running=running):
            go(name, NodeState.RUNNING)
        for name, node in list(status.nodes.items()):
            match node.status:
                case NodeState.RUNNING if chance.randrange(40) < failing:
                    failures += 1
                    go(name, chance.choice([NodeState.FAILED, NodeState.STALE]))
                case NodeState.RUNNING:
                    go(name, NodeState.DONE)
                    for other in dependencies[name] if types[name] is NodeType.REFINERY else ():
                        if status.nodes[other].status is NodeState.MERGE_READY:
                            go(other, NodeState.MERGED)
                case NodeState.DONE:
                    go(name, NodeState.MERGE_READY)
                case NodeState.MERGE_READY if name not in held:
                    go(name, NodeState.MERGED)
                case NodeState.FAILED | NodeState.STALE if isinstance(after_failure(node), NextTry):
                    go(name, NodeState.PENDING)
                case _:
                    pass
    outcome = dag_outcome(dag, status)
    assert outcome.end is not GraphProgress.GOING
    assert (outcome.end is GraphProgress.COMPLETED) == all(
        node.status is NodeState.MERGED for node in status.nodes.values()
    )
    assert (outcome.end is GraphProgress.FAILED) == bool(outcome.exhausted)
    assert failures or outcome.end is GraphProgress.COMPLETED


@pytest.mark.req("F10")
@settings(max_examples=300)
@given(_dags(), st.randoms(use_true_random=False))
def test_a_run_is_going_exactly_while_somebody_is_left_who_can_move(dag: Dag, chance: Random) -> None:
    """Whatever legal moves were made: without work under way, a start or a merge that is due, nobody waits on."""
    status = _status({node.id: NodeState.PENDING for node in dag.nodes}, most=2)
    held = collected(dag)
    for _ in range(10 * len(dag.nodes)):
        at_work = [name for name, node in status.nodes.items() if node.status in (NodeState.RUNNING, NodeState.DONE)]
        lost = [node for node in status.nodes.values() if node.status in (NodeState.FAILED, NodeState.STALE)]
        merging = [name for name, node in status.nodes.items() if node.status is NodeState.MERGE_READY]
        can_move = [
            *at_work,
            *(node.taskId for node in lost if isinstance(after_failure(node), NextTry)),
            *ready_nodes(dag, status),
            *(name for name in merging if name not in held),
        ]
        outcome = dag_outcome(dag, status)
        assert (outcome.end is GraphProgress.GOING) == bool(can_move)
        if outcome.end is GraphProgress.FAILED:
            merged = {name for name, node in status.nodes.items() if node.status is NodeState.MERGED}
            assert {*outcome.exhausted, *outcome.stranded} == set(status.nodes) - merged
        name = chance.choice(sorted(status.nodes))
        ways = [state for state in NodeState if TRANSITIONS[status.nodes[name].status, state] is TransitionKind.LEGAL]
        after = moved(status.nodes[name], chance.choice(ways)) if ways else None
        if isinstance(after, NodeStatus):
            status = status.model_copy(update={"nodes": {**status.nodes, name: after}})


@pytest.mark.req("X7")
@pytest.mark.timeout(10)
def test_ten_thousand_tasks_are_scheduled_at_once() -> None:
    plan = {f"t{index}": tuple(f"t{other}" for other in range(max(0, index - 3), index)) for index in range(5_000)}
    plan |= {f"u{index}": () for index in range(5_000)}
    ways = ways_to_the_end(plan)
    assert ways["t0"] == 5_000
    ready = [task for task, dependencies in plan.items() if not dependencies]
    assert starts(ready, ways, running=()) == ("t0", "u0", "u1", "u2")
