"""Graphs, overlays, moves and run counts: all problems, at their places; an overlay only ever adds."""
# the sentences of the table stay whole

from itertools import permutations, product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.forge.dag import Dag, DagOverlay, NodeState
from fairwitness.contracts.forge.status import DagStatus, NodeStatus, RunState
from fairwitness.rules.dag import (
    COUNTED,
    TRANSITIONS,
    TransitionKind,
    apply_overlay,
    dag_problems,
    effective_dag,
    grown_dag,
    is_exhausted,
    moved,
    overlay_problems,
    run_counts,
)
from support.fixtures import edited, value_of


def _dag(**changes: Any) -> Dag:
    value = value_of("004/dag.json")
    for path, new in changes.items():
        edited(value, path, new)
    return Dag.model_validate(value)


def _overlay(
    nodes: list[dict[str, Any]],
    edges: list[tuple[str, str]],
    *,
    cr: str = "cr-001",
    at: str = "2024-01-15T11:00:00Z",
) -> DagOverlay:
    return DagOverlay.model_validate(
        {
            "crId": cr,
            "appliedAt": at,
            "addedNodes": nodes,
            "addedEdges": [{"from": start, "to": end} for start, end in edges],
        }
    )


def _node(name: str, *dependencies: str) -> dict[str, Any]:
    return {"id": name, "type": "task", "agentType": 2, "dependencies": list(dependencies), "status": "PENDING"}


def _said(problems: tuple[Problem, ...]) -> list[str]:
    return [spell_path(problem.where) for problem in problems]


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"nodes[0].dependencies": ["task-001"]}, ["nodes[0].dependencies[0]"]),
        ({"nodes[0].dependencies": ["task-404"]}, ["nodes[0].dependencies[0]"]),
        ({"nodes[0].dependencies": ["refinery-001"]}, ["nodes"]),
        ({"nodes[2].dependencies": []}, ["nodes[2].dependencies"]),
        ({"nodes[2].agentType": 2}, ["nodes[2].agentType"]),
        ({"nodes[0].agentType": "refinery"}, ["nodes[0].agentType"]),
        (
            {"metadata.totalTasks": 3, "metadata.totalRefineries": 0},
            ["metadata.totalTasks", "metadata.totalRefineries"],
        ),
        (
            {"nodes[0].dependencies": ["task-404"], "nodes[2].dependencies": []},
            ["nodes[0].dependencies[0]", "nodes[2].dependencies"],
        ),
    ],
)
def test_each_problem_of_a_graph_is_named_at_its_place(changes: dict[str, Any], said: list[str]) -> None:
    assert _said(dag_problems(_dag(**changes))) == said


@pytest.mark.req("F5")
@pytest.mark.parametrize(
    ("nodes", "edges", "said"),
    [
        ([_node("task-006")], [("task-001", "task-006")], []),
        ([_node("task-001")], [], ["addedNodes[0].id"]),
        ([_node("task-006"), _node("task-006")], [], ["addedNodes[1].id"]),
        ([], [("task-404", "task-405")], ["addedEdges[0].from", "addedEdges[0].to"]),
        ([], [("task-002", "task-001")], ["addedEdges"]),
        ([_node("task-006", "task-404")], [], ["addedEdges"]),
        ([_node("task-006") | {"status": "MERGED"}], [], ["addedNodes[0].status"]),
    ],
)
def test_an_overlay_that_does_not_fit_is_refused_with_every_reason(
    nodes: list[dict[str, Any]], edges: list[tuple[str, str]], said: list[str]
) -> None:
    assert _said(overlay_problems(_dag(), _overlay(nodes, edges))) == said


@pytest.mark.req("F5")
def test_a_problem_the_graph_had_already_is_not_the_overlays() -> None:
    dag = _dag(**{"nodes[0].dependencies": ["task-404"]})
    assert overlay_problems(dag, _overlay([_node("task-006")], [])) == ()


IDS = st.sampled_from(["task-001", "task-002", "refinery-001", "task-006", "task-007"])


@pytest.mark.req("F5")
@settings(max_examples=200)
@given(st.lists(st.tuples(IDS, IDS), max_size=5))
def test_an_overlay_never_removes_a_node_or_an_edge_and_counts_stay_true(edges: list[tuple[str, str]]) -> None:
    dag = _dag()
    overlay = _overlay([_node("task-006"), _node("task-007")], edges)
    grown = apply_overlay(dag, overlay)
    after = {node.id: set(node.dependencies) for node in grown.nodes}
    for node in dag.nodes:
        assert set(node.dependencies) <= after[node.id]
    assert all(len(set(node.dependencies)) == len(node.dependencies) for node in grown.nodes)
    assert all(start in after[end] for start, end in edges)
    assert (grown.metadata.totalTasks, grown.metadata.totalRefineries) == (4, 1)
    assert (overlay_problems(dag, overlay) == ()) == (dag_problems(grown) == ())


@pytest.mark.req("F6")
def test_the_counts_of_a_run_are_those_of_its_graph() -> None:
    status = DagStatus.model_validate(value_of("004/dag-status.json"))
    run = RunState.model_validate(value_of("004/run-state.json"))
    assert run_counts(status) == run.model_dump(include=set(COUNTED))


@pytest.mark.req("F6")
def test_a_failed_node_counts_only_when_its_attempts_are_spent() -> None:
    value = value_of("004/dag-status.json")
    value["nodes"]["task-002"]["status"] = "FAILED"
    counts = run_counts(DagStatus.model_validate(value))
    assert (counts["failedTasks"], counts["runningTasks"]) == (0, 0)
    value["nodes"]["task-002"]["currentAttempt"] = 3
    assert run_counts(DagStatus.model_validate(value)) == {**counts, "failedTasks": 1}


def _status(**states: str) -> DagStatus:
    nodes = {
        name.replace("_", "-"): {
            "taskId": name.replace("_", "-"),
            "status": state,
            "currentAttempt": 1,
            "maxAttempts": 3,
        }
        for name, state in states.items()
    }
    return DagStatus.model_validate({"runId": "run-7f2", "updatedAt": "2024-01-15T10:00:00Z", "nodes": nodes})


def _grown(answer: Dag | tuple[Problem, ...]) -> Dag:
    assert isinstance(answer, Dag)
    return answer


def _refused(answer: Dag | tuple[Problem, ...]) -> list[str]:
    assert isinstance(answer, tuple)
    return _said(answer)


@pytest.mark.req("F5")
@pytest.mark.parametrize("state", list(NodeState))
def test_an_edge_comes_too_late_for_a_node_that_is_no_longer_pending(state: NodeState) -> None:
    overlay = _overlay([_node("task-006")], [("task-006", "task-002"), ("task-002", "task-006")])
    answer = grown_dag(_dag(), overlay, _status(task_001="MERGED", task_002=state, refinery_001="PENDING"))
    if state is NodeState.PENDING:
        assert isinstance(answer, tuple)  # the two edges form a ring: still refused, but not for being late
        assert _refused(answer) == ["addedEdges"]
    else:
        assert "addedEdges[0].to" in _refused(answer)
        assert isinstance(answer, tuple)
        assert [problem.found for problem in answer][-1] == f"task-002, {state.value}"


@pytest.mark.req("F5")
def test_a_fitting_overlay_grows_a_running_graph() -> None:
    status = _status(task_001="RUNNING", task_002="PENDING", refinery_001="PENDING")
    grown = _grown(grown_dag(_dag(), _overlay([_node("task-006")], [("task-006", "task-002")]), status))
    assert {node.id: node.dependencies for node in grown.nodes}["task-002"] == ("task-001", "task-006")
    late = grown_dag(_dag(), _overlay([], [("task-002", "task-001")]), status)
    assert _refused(late) == ["addedEdges", "addedEdges[0].to"]


@pytest.mark.req("F5")
def test_overlays_are_applied_by_time_and_number_whatever_the_order_they_come_in() -> None:
    overlays = [
        _overlay([_node("task-010")], [], cr="cr-010", at="2024-01-15T11:00:00Z"),
        _overlay([_node("task-011", "task-010")], [], cr="cr-1000", at="2024-01-15T12:00:00+01:00"),
        _overlay([_node("task-012", "task-011")], [("task-011", "task-002")], cr="cr-002", at="2024-01-15T11:00:01Z"),
    ]
    grown = _grown(effective_dag(_dag(), overlays))
    assert all(effective_dag(_dag(), order) == grown for order in permutations(overlays))
    assert [node.id for node in grown.nodes] == [
        *(node.id for node in _dag().nodes),
        "task-010",
        "task-011",
        "task-012",
    ]
    assert (grown.metadata.totalTasks, grown.metadata.totalRefineries) == (5, 1)
    miscounted = _dag(**{"metadata.totalTasks": 3})
    assert effective_dag(miscounted, []) == miscounted


def _edges(dag: Dag) -> set[tuple[str, str]]:
    return {(other, node.id) for node in dag.nodes for other in node.dependencies}


@pytest.mark.req("F5")
@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_overlays_in_any_legal_order_give_the_same_graph(chance: Random) -> None:
    """An order is legal if each overlay comes after those that bring the nodes it names. The order is that of the
    times they were applied at; the order they are handed over in means nothing."""
    owner = {node.id: -1 for node in _dag().nodes}
    overlays: list[DagOverlay] = []
    after: list[set[int]] = []
    for number in range(chance.randint(1, 5)):
        known, added = list(owner), [f"task-{10 * (number + 1) + extra:03}" for extra in range(chance.randint(1, 2))]
        nodes = [_node(name, *chance.sample(known, chance.randint(0, 2))) for name in added]
        edges = [(chance.choice(known), name) for name in added if chance.random() < 0.7]
        edges += [(name, chance.choice(known)) for name in added if chance.random() < 0.3]
        named = {other for node in nodes for other in node["dependencies"]} | {end for edge in edges for end in edge}
        after.append({owner[name] for name in named if name in owner} - {-1})
        owner |= dict.fromkeys(added, number)
        overlays.append(_overlay(nodes, edges, cr=f"cr-{number:03}", at=f"2024-01-15T11:00:{number:02}Z"))

    left, times = set(range(len(overlays))), {}
    for second in range(len(overlays)):
        following = chance.choice([number for number in sorted(left) if not after[number] & left])
        times[following] = f"2024-01-15T12:00:{second:02}Z"
        left.discard(following)
    otherwise = [overlay.model_copy(update={"appliedAt": times[number]}) for number, overlay in enumerate(overlays)]

    grown, again = effective_dag(_dag(), overlays), effective_dag(_dag(), otherwise)
    assert effective_dag(_dag(), chance.sample(overlays, len(overlays))) == grown
    if isinstance(grown, Dag):
        assert isinstance(again, Dag)
        assert {node.id for node in again.nodes} == {node.id for node in grown.nodes} == set(owner)
        assert _edges(again) == _edges(grown)
        assert again.metadata == grown.metadata
    else:
        assert isinstance(again, tuple)  # a ring is a ring in whichever order it is closed


@pytest.mark.req("F5")
def test_each_change_request_is_applied_once_and_two_that_differ_are_refused() -> None:
    once = _overlay([_node("task-006")], [])
    same = _overlay([_node("task-006")], [])
    assert effective_dag(_dag(), [once, once, same]) == effective_dag(_dag(), [once])
    later = _overlay([_node("task-007")], [], cr="cr-002", at="2024-01-15T12:00:00Z")
    assert effective_dag(_dag(), [once, same, later]) == effective_dag(_dag(), [once, later])
    other = _overlay([_node("task-007")], [], at="2024-01-15T12:00:00Z")
    assert _refused(effective_dag(_dag(), [once, other])) == ["overlays.cr-001"]


@pytest.mark.req("F5")
def test_one_overlay_that_does_not_fit_leaves_no_graph_at_all() -> None:
    good = _overlay([_node("task-006")], [])
    bad = _overlay([_node("task-006")], [("task-404", "task-001")], cr="cr-002", at="2024-01-15T12:00:00Z")
    assert _refused(effective_dag(_dag(), [good, bad])) == [
        "overlays.cr-002.addedNodes[0].id",
        "overlays.cr-002.addedEdges[0].from",
    ]


NEW_NODES = st.lists(st.sampled_from(["task-006", "task-007", "task-008"]), max_size=2, unique=True)


@pytest.mark.req("F5")
@settings(max_examples=200)
@given(st.lists(st.tuples(NEW_NODES, st.lists(st.tuples(IDS, IDS), max_size=3)), max_size=4))
def test_the_effective_graph_never_loses_a_node_or_edge_and_has_no_problem(
    grown: list[tuple[list[str], list[tuple[str, str]]]],
) -> None:
    overlays = [
        _overlay([_node(name) for name in nodes], edges, cr=f"cr-{number:03}")
        for number, (nodes, edges) in enumerate(grown)
    ]
    answer = effective_dag(_dag(), overlays)
    if isinstance(answer, tuple):
        assert answer
        return
    after = {node.id: set(node.dependencies) for node in answer.nodes}
    assert dag_problems(answer) == ()
    assert all(set(node.dependencies) <= after[node.id] for node in _dag().nodes)
    assert len(answer.nodes) == len(_dag().nodes) + sum(len(nodes) for nodes, _ in grown)


def _revalidated(dag: Dag, overlays: list[DagOverlay]) -> Dag | list[str]:
    """The plain way: the whole graph is looked at before and after every single overlay."""
    for overlay in overlays:
        grown = apply_overlay(dag, overlay)
        before = set(dag_problems(dag))
        problems = [problem for problem in dag_problems(grown) if problem not in before]
        if problems:
            return [problem.found for problem in problems]
        dag = grown
    return dag


REFINERY = {"type": "refinery", "agentType": "refinery"}


@pytest.mark.width("full")
@pytest.mark.req("F5")
@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_all_overlays_at_once_are_judged_as_one_after_the_other(chance: Random) -> None:
    """Also on a graph that has a problem of its own, and where a later overlay would cure what an earlier one lacks."""
    flaw = chance.choice([[], [], ["task-404"], ["refinery-001"], ["task-001"]])
    base = _dag(**{"nodes[0].dependencies": flaw, "metadata.totalTasks": chance.choice([2, 3])})
    names = [node.id for node in base.nodes]
    overlays = []
    for number in range(chance.randint(1, 4)):
        name = f"task-{number:03}-new"
        node = _node(name, *chance.sample([*names, name, f"task-{number + 1:03}-new"], chance.randint(0, 2)))
        node |= REFINERY if chance.random() < 0.2 else {"agentType": chance.choice([2, 2, 2, 2, "refinery"])}
        names.append(name)
        edges = [(chance.choice(names), chance.choice(names)) for _ in range(chance.randint(0, 2))]
        overlays.append(_overlay([node], edges, cr=f"cr-{number:03}"))
    expected = _revalidated(base, overlays)
    answer = effective_dag(base, overlays)
    assert (answer if isinstance(answer, Dag) else [problem.found for problem in answer]) == expected


@pytest.mark.req("F5")
@pytest.mark.timeout(60)
def test_a_hundred_overlays_on_ten_thousand_nodes_are_added_at_once() -> None:
    size = 10_000
    nodes = [
        _node(f"t{number}", *(f"t{other}" for other in range(max(0, number - 3), number))) for number in range(size)
    ]
    base = _dag(nodes=nodes, **{"metadata.totalTasks": size, "metadata.totalRefineries": 0})
    overlays = [
        _overlay([_node(f"x{number}", f"t{number}")], [(f"x{number}", f"t{size - 1 - number}")], cr=f"cr-{number:03}")
        for number in range(100)
    ]
    grown = _grown(effective_dag(base, overlays))
    assert len(grown.nodes) == size + 100
    assert dag_problems(grown) == ()
    closing = _overlay([], [("t9999", "x0")], cr="cr-100")
    assert _refused(effective_dag(base, [*overlays[:5], closing])) == ["overlays.cr-100.addedEdges"]


def _at(state: NodeState, attempt: int = 1, most: int = 3) -> NodeStatus:
    return NodeStatus(taskId="task-001", status=state, currentAttempt=attempt, maxAttempts=most)


@pytest.mark.req("F3")
def test_every_change_of_state_is_a_step_a_repetition_or_an_error() -> None:
    assert set(TRANSITIONS) == set(product(NodeState, NodeState))
    assert [
        f"{before} → {after}" for (before, after), move in TRANSITIONS.items() if move is TransitionKind.LEGAL
    ] == snapshot(
        [
            "PENDING → RUNNING",
            "RUNNING → DONE",
            "RUNNING → FAILED",
            "RUNNING → STALE",
            "DONE → MERGE_READY",
            "MERGE_READY → MERGED",
            "FAILED → PENDING",
            "STALE → PENDING",
        ]
    )
    assert all(
        (TRANSITIONS[before, after] is TransitionKind.NOTHING) == (before is after) for before, after in TRANSITIONS
    )


@pytest.mark.req("F3")
@pytest.mark.parametrize(("before", "after"), list(product(NodeState, NodeState)))
def test_a_node_moves_where_the_table_lets_it_and_nowhere_else(before: NodeState, after: NodeState) -> None:
    node = _at(before)
    answer = moved(node, after)
    match TRANSITIONS[before, after]:
        case TransitionKind.NOTHING:
            assert answer == node
        case TransitionKind.LEGAL:
            next_attempt = 2 if after is NodeState.PENDING else 1
            assert answer == _at(after, next_attempt)
        case TransitionKind.ILLEGAL:
            assert isinstance(answer, Problem)
            assert answer.where == ("nodes", "task-001", "status")
            assert answer.found == f"{before.value} → {after.value}"


@pytest.mark.req("F3")
def test_an_illegal_move_is_told_what_would_be_legal() -> None:
    told = {
        before.value: answer.expected
        for before in NodeState
        for answer in [moved(_at(before), NodeState.MERGED if before is not NodeState.MERGE_READY else NodeState.DONE)]
        if isinstance(answer, Problem)
    }
    assert told == snapshot(
        {
            "PENDING": "RUNNING",
            "RUNNING": "DONE or FAILED or STALE",
            "DONE": "MERGE_READY",
            "MERGE_READY": "MERGED",
            "FAILED": "PENDING",
            "STALE": "PENDING",
        }
    )


@pytest.mark.req("F3", "F10")
@pytest.mark.parametrize("lost", [NodeState.FAILED, NodeState.STALE])
def test_a_node_goes_back_to_the_queue_until_its_last_attempt(lost: NodeState) -> None:
    assert moved(_at(lost, 2, 3), NodeState.PENDING) == _at(NodeState.PENDING, 3, 3)
    refused = moved(_at(lost, 3, 3), NodeState.PENDING)
    assert isinstance(refused, Problem)
    assert refused.expected == "at most 3 attempts"
    assert [is_exhausted(_at(lost, attempt, 3)) for attempt in (1, 2, 3)] == [False, False, True]
    assert not any(
        is_exhausted(_at(state, 3, 3)) for state in NodeState if state not in (NodeState.FAILED, NodeState.STALE)
    )


@pytest.mark.req("F3", "F10")
@settings(max_examples=200)
@given(st.lists(st.sampled_from(NodeState), max_size=40), st.integers(1, 4))
def test_no_row_of_moves_goes_beyond_the_attempts_or_out_of_merged(moves: list[NodeState], most: int) -> None:
    node = _at(NodeState.PENDING, 1, most)
    for state in moves:
        after = moved(node, state)
        if isinstance(after, Problem):
            continue
        assert node.status is not NodeState.MERGED or after == node
        assert node.currentAttempt <= after.currentAttempt <= most
        node = after


@pytest.mark.req("F6")
def test_a_run_counts_all_nodes_and_by_their_states() -> None:
    status = _status(**{f"n{number}": state for number, state in enumerate(NodeState)})
    assert run_counts(status) == {"totalTasks": 7, "completedTasks": 1, "failedTasks": 0, "runningTasks": 1}


def _sentences(*answers: object) -> list[str]:
    problems = [problem for answer in answers for problem in (answer if isinstance(answer, tuple) else (answer,))]
    assert all(isinstance(problem, Problem) for problem in problems)
    return [f"{spell_path(problem.where)}: expected {problem.expected}, found {problem.found}" for problem in problems]


@pytest.mark.req("F3", "F5", "F6")
def test_every_problem_in_its_own_words() -> None:
    graphs: list[dict[str, Any]] = [
        {"nodes[0].dependencies": ["task-001"]},
        {"nodes[0].dependencies": ["task-404"]},
        {"nodes[0].dependencies": ["refinery-001"]},
        {"nodes[2].dependencies": []},
        {"nodes[2].agentType": 2},
        {"metadata.totalTasks": 3, "metadata.totalRefineries": 0},
    ]
    overlays = [
        _overlay([_node("task-001"), _node("task-006") | {"status": "DONE"}], [("task-404", "task-001")]),
        _overlay([], [("task-002", "task-001")]),
    ]
    late = _status(task_001="RUNNING", task_002="PENDING", refinery_001="PENDING")
    twice = [_overlay([_node("task-006")], []), _overlay([_node("task-007")], [])]
    assert _sentences(
        *(dag_problems(_dag(**changes)) for changes in graphs),
        *(overlay_problems(_dag(), overlay, late) for overlay in overlays),
        effective_dag(_dag(), twice),
        moved(_at(NodeState.MERGED), NodeState.DONE),
        moved(_at(NodeState.FAILED, 3), NodeState.PENDING),
    ) == snapshot(
        [
            "nodes[0].dependencies[0]: expected another node than itself, found task-001",
            "nodes[0].dependencies[0]: expected a node of this graph, found task-404",
            "nodes: expected nodes that do not wait for each other in a ring, found task-001 → refinery-001 → task-001",
            "nodes[2].dependencies: expected something to refine, found nothing",
            "nodes[2].agentType: expected an agent for a refinery, found 2",
            "metadata.totalTasks: expected the number of nodes, 2, found 3",
            "metadata.totalRefineries: expected the number of nodes, 1, found 0",
            "addedNodes[0].id: expected an id that is not taken, found task-001",
            "addedNodes[1].status: expected PENDING, found DONE",
            "addedEdges[0].from: expected a node of the graph or of this overlay, found task-404",
            "addedEdges[0].to: expected a node that is PENDING, found task-001, RUNNING",
            "addedEdges: expected nodes that do not wait for each other in a ring, found task-001 → task-002 → task-001",  # noqa: E501
            "addedEdges[0].to: expected a node that is PENDING, found task-001, RUNNING",
            "overlays.cr-001: expected one overlay per change request, found two that differ",
            "nodes.task-001.status: expected no change any more, found MERGED → DONE",
            "nodes.task-001.status: expected at most 3 attempts, found one more",
        ]
    )
