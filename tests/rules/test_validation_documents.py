"""Every kind of document that has rules is sent to them; the others have none."""

import pytest
from pydantic import TypeAdapter

from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.rules.validation import document_problems, version_place, version_warning
from support.fixtures import instances, value_of

BREAKS_ITS_OWN_RULES = {"000/plan-output.yaml": 3, "000/verification-report.yaml": 2}


@pytest.mark.parametrize(("file", "contract"), instances())
def test_every_published_example_keeps_the_rules_but_for_the_two_we_name(file: str, contract: str) -> None:
    document = TypeAdapter(entry_of(contract).shape).validate_python(value_of(file))
    assert len(document_problems(document)) == BREAKS_ITS_OWN_RULES.get(file, 0)


@pytest.mark.req("F3")
def test_a_ring_in_a_captains_plan_is_found_where_it_stands() -> None:
    value = value_of("004/captain-return.json")
    first, last = value["dag"]["nodes"][0], value["dag"]["nodes"][-1]
    first["dependencies"] = [last["id"]]
    task = next(task for task in value["tasks"] if task["id"] == first["id"])
    task["dependencies"] = [last["id"]]
    document = CaptainReturn.model_validate(value)
    problems = document_problems(document)
    assert problems
    assert {problem.where[0] for problem in problems} == {"dag"}


def test_a_version_is_looked_for_where_it_may_stand() -> None:
    assert version_place({"agent_output": {"schema_version": "1.0"}}) == ("agent_output", "schema_version")
    assert version_place({"schema_version": "1.0"}) == ("schema_version",)
    assert version_place({"agent_output": {"schema_version": 1.0}}) is None
    assert version_place({"agent_output": []}) is None


@pytest.mark.parametrize(("version", "warns"), [("1.0", False), ("1.99", False), ("0.9", True), ("2.0", True)])
def test_only_an_unknown_major_version_is_worth_a_warning(version: str, warns: bool) -> None:
    assert (version_warning(version, ("v",)) is not None) == warns
