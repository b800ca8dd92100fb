"""What intake and forge's agents return agrees with itself, or is refused at the place where it does not."""

from typing import Any

import pytest
from pydantic import ValidationError

from fairwitness.contracts.feature.intake import IntakeReturn
from fairwitness.contracts.forge.returns import CaptainReturn, RefineryReturn
from support.fixtures import value_of


def _refused(shape: type[CaptainReturn | RefineryReturn | IntakeReturn], value: Any) -> list[str]:
    try:
        shape.model_validate(value)
    except ValidationError as error:
        return [".".join(map(str, detail["loc"])) for detail in error.errors()]
    return []


_BLOCKER = {"severity": "Blocker", "title": "t", "description": "d", "recommendation": "r"}


@pytest.mark.req("P3")
@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({"infeasible": True, "infeasible_because": "the API is gone", "concerns": [_BLOCKER]}, []),
        ({"infeasible": True, "concerns": [_BLOCKER]}, ["infeasible_because"]),
        ({"infeasible": True, "infeasible_because": "the API is gone"}, ["concerns"]),
        ({"concerns": [_BLOCKER]}, ["concerns"]),
        ({"concerns": []}, []),
    ],
)
def test_a_request_is_infeasible_exactly_with_a_reason_and_a_blocker(changes: Any, places: list[str]) -> None:
    assert _refused(IntakeReturn, value_of("000/intake-return.yaml") | changes) == places


def _extension() -> dict[str, Any]:
    value: dict[str, Any] = value_of("004/captain-return.json")
    del value["dag"]
    value["overlay"] = value_of("004/dag-overlay.json")
    value["tasks"][0] |= {"id": "task-006", "dependencies": ["task-001"]}
    return value


@pytest.mark.req("F9")
def test_an_extension_of_the_plan_counts_its_edges_as_dependencies() -> None:
    value = _extension()
    assert [node.id for node in CaptainReturn.model_validate(value).nodes] == ["task-006"]
    value["tasks"][0]["dependencies"] = []
    assert _refused(CaptainReturn, value) == ["tasks.0.dependencies"]


@pytest.mark.req("F9")
def test_a_rejected_change_request_brings_nothing() -> None:
    alone = {"specs": [], "tasks": [], "rejected": "task-002 covers it", "assumptions": [], "open_questions": []}
    assert CaptainReturn.model_validate(alone).nodes == ()
    assert _refused(CaptainReturn, alone | {"specs": [{"name": "a", "body": "b"}]}) == ["rejected"]


@pytest.mark.req("F9")
def test_a_captain_gives_exactly_one_kind_of_answer() -> None:
    value = value_of("004/captain-return.json")
    assert _refused(CaptainReturn, value | {"overlay": value_of("004/dag-overlay.json")}) == ["dag"]
    assert _refused(CaptainReturn, {**value, "dag": None}) == ["dag"]


@pytest.mark.req("F9")
def test_every_task_of_the_graph_is_described_and_none_has_begun() -> None:
    value = value_of("004/captain-return.json")
    begun = value["tasks"][0] | {"branch": "forge/task-001/attempt-1"}
    assert _refused(CaptainReturn, value | {"tasks": [begun]}) == ["tasks.0"]
    assert _refused(CaptainReturn, value | {"tasks": []}) == ["dag.nodes.0.id"]
    assert _refused(CaptainReturn, value | {"tasks": [value["tasks"][0], value["tasks"][0]]}) == ["tasks.1.id"]


@pytest.mark.req("F9")
def test_a_refinery_is_done_only_when_all_is_merged_and_passes() -> None:
    value = value_of("004/refinery-return.json")
    value["walkthrough"]["status"] = "completed"
    assert _refused(RefineryReturn, value) == ["walkthrough.status"]
    assert _refused(RefineryReturn, value | {"failing_tests": [], "unmerged": ["task-002"]}) == ["walkthrough.status"]
    assert _refused(RefineryReturn, value | {"failing_tests": []}) == []
