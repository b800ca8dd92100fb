"""Forge's artifacts and the common documents hold every constraint of their tables."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from contracts.forge_constraints import TABLES, rows
from fairwitness.contracts.common.approvals import ApprovalRecord, ApprovalRequest
from fairwitness.contracts.common.markdown import first_missing, headings
from fairwitness.contracts.feature.events import FEATURE_EVENT_TYPES, FeatureEvent
from fairwitness.contracts.forge.documents import Walkthrough
from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES, ForgeEvent
from fairwitness.contracts.forge.status import RunState
from support.fixtures import DELETE, check_value, edited, fixture, value_of

ROWS = list(rows())


@pytest.mark.req("F2", "F3", "F4", "F5", "F6")
@pytest.mark.parametrize("contract", TABLES)
def test_every_row_of_a_field_table_refuses_what_it_forbids_and_names_the_field(contract: str) -> None:
    missed = []
    for file, row_contract, field, bad in ROWS:
        if row_contract != contract:
            continue
        value = edited(value_of(file), field, bad)
        named = [violation.field for violation in check_value(value, fixture(file).format, contract)]
        if field not in named:
            missed.append((field, "missing" if bad is DELETE else bad, named))
    assert missed == []


@pytest.mark.req("F2")
def test_a_walkthrough_may_have_more_sections_than_the_four() -> None:
    value = value_of("004/walkthrough.md")
    value["body"] += "\n## Notes\nOne more thing.\n"
    assert headings(Walkthrough.model_validate(value).body)[-1] == "Notes"


def test_a_fence_inside_a_longer_fence_closes_nothing() -> None:
    body = "````\n```\n## hidden\n````\n## Summary\n~~~\n## hidden too\n~~~\n"
    assert headings(body) == ("Summary",)
    assert first_missing(body, ("Summary",)) is None


@pytest.mark.req("F6")
@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"status": "planning", "startedAt": DELETE}, []),
        ({"status": "failed"}, ["completedAt"]),
        ({"status": "failed", "completedAt": "2024-01-15T12:00:00Z"}, []),
        ({"status": "failed", "startedAt": DELETE, "completedAt": "2024-01-15T12:00:00Z"}, []),
        ({"status": "completed", "startedAt": DELETE}, ["startedAt", "completedAt"]),
    ],
)
def test_the_times_of_a_run_follow_its_status(changes: dict[str, Any], fields: list[str]) -> None:
    value = value_of("004/run-state.json")
    for field, new in changes.items():
        edited(value, field, new)
    try:
        RunState.model_validate(value)
        refused = []
    except ValidationError as error:
        refused = [str(detail["loc"][0]) for detail in error.errors()]
    assert refused == fields


@pytest.mark.req("F6")
@pytest.mark.parametrize(("union", "types"), [(ForgeEvent, FORGE_EVENT_TYPES), (FeatureEvent, FEATURE_EVENT_TYPES)])
def test_events_are_a_closed_union_with_one_name_each(union: Any, types: tuple[str, ...]) -> None:
    assert len(set(types)) == len(types) > 20
    with pytest.raises(ValidationError):
        TypeAdapter(union).validate_python({"type": "something_else"})


@pytest.mark.req("P5")
def test_a_question_has_one_default_and_different_answers() -> None:
    value = value_of("000/approval-request.json")
    value["options"][1]["is_default"] = True
    with pytest.raises(ValidationError, match="exactly one default"):
        ApprovalRequest.model_validate(value)
    value = value_of("000/approval-request.json")
    value["options"][1]["id"] = "proceed"
    with pytest.raises(ValidationError, match="different ids"):
        ApprovalRequest.model_validate(value)


@pytest.mark.req("P5")
def test_nobody_is_recorded_as_having_chosen_by_himself_in_interactive_mode() -> None:
    value = value_of("000/approval-record.json") | {"mode": "interactive"}
    with pytest.raises(ValidationError, match="autonomous"):
        ApprovalRecord.model_validate(value)
    assert ApprovalRecord.model_validate(value | {"auto_selected": False}).actor == "fairwitness"
