"""What intake and forge's agents return agrees with itself, or is refused at the place where it does not."""

from typing import Any

import pytest
from pydantic import ValidationError

from fairwitness.contracts.feature.intake import IntakeReturn
from fairwitness.contracts.forge.returns import RefineryReturn
from support.fixtures import value_of


def _refused(shape: type[RefineryReturn | IntakeReturn], value: Any) -> list[str]:
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


@pytest.mark.req("F9")
def test_a_refinery_is_done_only_when_all_is_merged_and_passes() -> None:
    value = value_of("004/refinery-return.json")
    value["walkthrough"]["status"] = "completed"
    assert _refused(RefineryReturn, value) == ["walkthrough.status"]
    assert _refused(RefineryReturn, value | {"failing_tests": [], "unmerged": ["task-002"]}) == ["walkthrough.status"]
    assert _refused(RefineryReturn, value | {"failing_tests": []}) == []
