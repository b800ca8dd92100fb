"""A captain's answer agrees with itself, or every place where it does not is named."""

from typing import Any

import pytest

from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.problems import spell_path
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.rules.derived_fields import with_derived
from fairwitness.rules.validation import problems_in, validated
from support.fixtures import value_of

ENTRY = entry_of("forge-captain-return")


def places(value: Any) -> list[str]:
    """Where the problems of an answer are."""
    return [spell_path(problem.where) for problem in problems_in(value, ENTRY, strict=True)]


def _plan() -> dict[str, Any]:
    value: dict[str, Any] = value_of("004/captain-return.json")
    return value


def _extension() -> dict[str, Any]:
    value = _plan()
    del value["dag"]
    value["overlay"] = value_of("004/dag-overlay.json")
    value["tasks"][0] |= {"id": "task-006", "dependencies": ["task-001"]}
    return value


@pytest.mark.req("F9")
def test_an_extension_of_the_plan_counts_its_edges_as_dependencies() -> None:
    value = _extension()
    assert [node.id for node in CaptainReturn.model_validate(value).nodes] == ["task-006"]
    assert places(value) == []
    value["tasks"][0]["dependencies"] = []
    assert places(value) == ["tasks[0].dependencies"]


@pytest.mark.req("F9")
def test_a_rejected_change_request_brings_nothing() -> None:
    alone = {"specs": [], "tasks": [], "rejected": "task-002 covers it", "assumptions": [], "open_questions": []}
    assert CaptainReturn.model_validate(alone).nodes == ()
    assert places(alone) == []
    assert places(alone | {"specs": [{"name": "a", "body": "b"}]}) == ["rejected"]


@pytest.mark.req("F9")
def test_a_captain_gives_exactly_one_kind_of_answer() -> None:
    value = _plan()
    assert places(value) == []
    assert places(value | {"overlay": value_of("004/dag-overlay.json")}) == ["dag"]
    assert places({**value, "dag": None, "tasks": []}) == ["dag"]


@pytest.mark.req("F9")
def test_every_task_of_the_graph_is_described_and_none_has_begun() -> None:
    value = _plan()
    first, node = value["tasks"][0], value["dag"]["nodes"][0]
    begun = first | {"branch": "forge/task-001/attempt-1", "status": "RUNNING"}
    assert places(value | {"tasks": [begun]}) == ["tasks[0].status", "tasks[0]"]
    assert places(value | {"tasks": [first | {"attemptId": 2}]}) == ["tasks[0]"]
    assert places(value | {"tasks": []}) == ["dag.nodes[0].id"]
    assert places(value | {"tasks": [first, first]}) == ["tasks[1].id"]
    node["status"] = "DONE"
    assert places(value) == ["dag.nodes[0].status"]


@pytest.mark.req("F3", "F9")
def test_faults_of_every_kind_are_named_at_once() -> None:
    """A fault of a graph that only repeats its tasks is placed at the task, which the captain wrote."""
    value = _plan()
    first, node = value["tasks"][0], value["dag"]["nodes"][0]
    value["tasks"].append(first | {"id": "task-404"})
    first["type"] = 1 if node["agentType"] != 1 else 2
    first["dependencies"] = node["dependencies"] = ["task-777"]
    value["dag"]["metadata"]["totalTasks"] = 99
    value["rejected"] = "and this is not worth it"
    assert places(value) == [
        "dag",
        "rejected",
        "tasks[0].type",
        "tasks[1].id",
        "tasks[0].dependencies[0]",
        "dag.metadata.totalTasks",
    ]
    assert isinstance(validated(value, ENTRY, strict=True).document, CaptainReturn)


@pytest.mark.req("F3", "F9")
def test_what_cannot_be_read_does_not_hide_the_faults_of_the_graph() -> None:
    value = _plan()
    del value["tasks"][0]["title"]
    value["dag"]["nodes"][0]["dependencies"] = ["task-777"]
    value["dag"]["metadata"]["totalTasks"] = 99
    assert places(value) == ["tasks[0].title", "dag.nodes[0].dependencies[0]", "dag.metadata.totalTasks"]
    assert validated(value, ENTRY, strict=True).document is None
    value["dag"] = {}
    assert {place.partition(".")[0] for place in places(value)} == {"tasks[0]", "dag"}
    assert places("a plan") == ["(document)"]


def _writing(*tasks: tuple[str, list[str] | None, list[str]]) -> dict[str, Any]:
    """A plan of tasks, each with what it writes and what it waits for; its graph is derived."""
    value = _plan()
    documents = [
        value["tasks"][0] | {"id": name, "dependencies": waits} | ({} if writes is None else {"writes": writes})
        for name, writes, waits in tasks
    ]
    del value["dag"]["metadata"]["totalTasks"], value["dag"]["metadata"]["totalRefineries"]
    return with_derived("forge-captain-return", value | {"tasks": documents, "dag": value["dag"] | {"nodes": []}})


@pytest.mark.req("F3", "F9")
@pytest.mark.parametrize(
    ("tasks", "found"),
    [
        ((("a", ["src/*.py"], []), ("b", ["docs/**", "src/b.py"], [])), ["tasks[1].writes"]),
        ((("a", ["src/*.py"], ["b"]), ("b", ["src/b.py"], [])), []),
        ((("a", ["src/**"], []), ("b", None, ["a"]), ("c", ["src/c.py"], ["b"])), []),
        ((("a", ["src/**"], []), ("b", ["docs/**"], []), ("c", ["**/*.md"], ["a"])), ["tasks[2].writes"]),
        ((("a", ["src/a.py"], []), ("b", ["src/b.py"], []), ("c", None, [])), []),
        ((("a", ["x"], ["b"]), ("b", ["x"], ["a"])), ["dag.nodes"]),
    ],
    ids=["at once", "one after the other", "over another", "a glob", "apart", "a ring"],
)
def test_tasks_that_may_run_at_the_same_time_do_not_write_the_same_files(tasks: Any, found: list[str]) -> None:
    assert places(_writing(*tasks)) == found


@pytest.mark.req("F3", "F9")
def test_tasks_that_a_refinery_joins_may_write_the_same_files() -> None:
    value = _writing(("a", ["src/*.py"], []), ("b", ["src/b.py"], []), ("c", ["src/b.py"], []))
    join = {"id": "r", "type": "refinery", "agentType": "refinery", "dependencies": ["a", "b"], "status": "PENDING"}
    value["dag"]["nodes"].append(join)
    value["dag"]["metadata"]["totalRefineries"] = 1
    found = problems_in(value, ENTRY, strict=True)
    assert [(each.where, each.expected.partition(",")[0]) for each in found] == [
        (("tasks", 2, "writes"), "other files than a"),
        (("tasks", 2, "writes"), "other files than b"),
    ]


@pytest.mark.req("F3", "F9")
def test_a_task_and_its_node_write_the_same_files() -> None:
    value = _writing(("a", ["src/a.py"], []), ("b", [], []))
    assert places(value) == []
    value["dag"]["nodes"][0]["metadata"] = {"writes": ["src/b.py"]}
    assert places(value) == ["tasks[0].writes"]
    value["dag"]["nodes"][0]["metadata"] = None
    (problem,) = problems_in(value, ENTRY, strict=True)
    assert (problem.expected, problem.found) == ("those of its node, `metadata.writes`: none", "src/a.py")


@pytest.mark.req("F9")
def test_a_new_plan_replaces_no_spec() -> None:
    value = _plan()
    value["specs"] = [{"name": "api", "body": "One call.", "replaces": "old"}]
    assert places(value) == ["specs[0].replaces"]
