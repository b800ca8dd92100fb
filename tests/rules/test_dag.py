"""Graphs, overlays and run counts: all problems, at their places; an overlay only ever adds."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.contracts.common.problems import Problem, spell_path
from assay.contracts.forge.dag import Dag, DagOverlay
from assay.contracts.forge.status import DagStatus, RunState
from assay.rules.dag import apply_overlay, dag_problems, overlay_problems, run_count_problems
from support import edited, value_of


def _dag(**changes: Any) -> Dag:
    value = value_of("004/dag.json")
    for path, new in changes.items():
        edited(value, path, new)
    return Dag.model_validate(value)


def _overlay(nodes: list[dict[str, Any]], edges: list[tuple[str, str]]) -> DagOverlay:
    return DagOverlay.model_validate(
        {
            "crId": "cr-001",
            "appliedAt": "2024-01-15T11:00:00Z",
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
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
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
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"totalTasks": 2}, ["totalTasks"]),
        ({"completedTasks": 0, "runningTasks": 2, "failedTasks": 1}, ["completedTasks", "failedTasks", "runningTasks"]),
    ],
)
def test_the_counts_of_a_run_are_those_of_its_graph(changes: dict[str, int], said: list[str]) -> None:
    status = DagStatus.model_validate(value_of("004/dag-status.json"))
    run = RunState.model_validate(value_of("004/run-state.json") | changes)
    assert _said(run_count_problems(run, status)) == said


@pytest.mark.req("F6")
def test_a_failed_node_counts_only_when_its_attempts_are_spent() -> None:
    value = value_of("004/dag-status.json")
    value["nodes"]["task-002"]["status"] = "FAILED"
    run = RunState.model_validate(value_of("004/run-state.json") | {"runningTasks": 0})
    assert run_count_problems(run, DagStatus.model_validate(value)) == ()
    value["nodes"]["task-002"]["currentAttempt"] = 3
    assert _said(run_count_problems(run, DagStatus.model_validate(value))) == ["failedTasks"]
