"""What an agent is shown of a contract is all of it, and nothing that the harness fills in by itself."""

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from agents.roles.briefs import BRIEFS
from fairwitness.agents.answer import with_known
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import explain, fields_of, form_of
from fairwitness.contracts.catalog import catalog, entry_of
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import UsageError
from support.fixtures import instances, value_of

EXAMPLES = {contract: file for file, contract in instances()}
SIGNED = ("agent_output.agent", "agent_output.started_at", "completion.output_paths")


def _answer(role: Role) -> str:
    answer = ROLES[role].answer
    assert answer is not None
    return answer


def _ways(annotation: Any, way: str) -> Iterator[str]:
    """Every field below an annotation, found by its types and not by its schema."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _ways(get_args(annotation)[0], way)
    elif origin in (Union, types.UnionType):
        for kind in get_args(annotation):
            yield from _ways(kind, way)
    elif origin is tuple:
        yield from _ways(get_args(annotation)[0], f"{way}[]")
    elif origin in (dict, Mapping):
        yield from _ways(get_args(annotation)[1], f"{way}.*")
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            inner = f"{way}.{field.alias or name}".removeprefix(".")
            yield inner
            yield from _ways(field.annotation, inner)


_NEVER_SAID = {"completion.evidence_summary"}
"""Left out where a signature wants it null."""


@pytest.mark.req("P2", "A3")
@pytest.mark.parametrize("role", BRIEFS)
def test_every_field_of_an_answer_is_explained(role: Role) -> None:
    answer = _answer(role)
    expected = set(_ways(entry_of(answer).shape, ""))
    explained = {line[3:].partition("`")[0] for line in explain(answer, ()).split("\n")}
    missing = {way for way in expected - explained if not way.startswith(tuple(_NEVER_SAID))}
    assert (missing, explained - expected) == (set(), set())


@pytest.mark.req("P2")
@pytest.mark.parametrize("role", BRIEFS)
def test_what_the_harness_knows_is_neither_explained_nor_in_the_form(role: Role) -> None:
    answer, known = _answer(role), BRIEFS[role].known
    ways = {field.way for field in fields_of(form_of(answer, known).schema)}
    assert not ways & set(known)
    assert not any(f"`{way}`" in explain(answer, known) for way in known)
    assert len(explain(answer, known).split("\n")) == len(list(fields_of(form_of(answer, known).schema)))


def _take_away(value: Any, way: str) -> None:
    *parents, last = way.split(".")
    for parent in parents:
        value = value[parent]
    value.pop(last)


@pytest.mark.req("P2")
@pytest.mark.parametrize("role", BRIEFS)
def test_an_example_without_what_is_known_fits_the_form_and_is_whole_again_once_it_is_filled_in(role: Role) -> None:
    answer, known = _answer(role), BRIEFS[role].known
    whole = value_of(EXAMPLES[answer])
    written = value_of(EXAMPLES[answer])
    for way in known:
        _take_away(written, way)
    validator = Draft202012Validator(form_of(answer, known).schema)
    assert [error.message for error in validator.iter_errors(written)] == []
    values = {way: _at(whole, way) for way in known}
    assert with_known(written, values) == whole


def _at(value: Any, way: str) -> Any:
    for part in way.split("."):
        value = value[part]
    return value


def test_a_form_is_a_schema_without_titles_and_without_unused_definitions() -> None:
    schema = form_of("implementation-report", SIGNED).schema
    Draft202012Validator.check_schema(schema)
    assert "Agent" not in schema["$defs"]
    assert "title" not in schema
    assert "title" not in schema["$defs"]["ImplementationPayload"]
    assert "title" in form_of("intake-return", ()).schema["$defs"]["Concern"]["properties"]


def test_a_known_field_is_left_out_where_it_stands_and_nowhere_else() -> None:
    way = "agent_output.payload.baseline.ide_diagnostics.errors"
    explained = explain("implementation-report", (way,))
    assert f"`{way}`" not in explained
    assert "`agent_output.payload.baseline.ide_diagnostics.warnings`" in explained
    assert "`agent_output.payload.self_check.ide_diagnostics.errors`" in explained


def test_an_object_that_is_all_known_is_not_asked_for() -> None:
    known = [f"dag.metadata.{name}" for name in ("createdAt", "createdBy", "totalTasks", "totalRefineries")]
    explained = explain("forge-captain-return", known)
    assert "dag.metadata" not in explained
    assert "`dag.nodes`" in explained


@pytest.mark.parametrize("way", ["agent_output.mood", "nothing", "agent_output.agent.name", "agent_output.payload.x.y"])
def test_a_known_field_that_the_contract_does_not_have_is_a_mistake(way: str) -> None:
    with pytest.raises(UsageError, match="has no field"):
        form_of("plan-output", (way,))


def test_a_contract_that_nobody_knows_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="no contract called"):
        form_of("wish-list", ())


@pytest.mark.req("P2")
def test_a_signer_is_shown_only_what_it_may_say_of_its_completion() -> None:
    research = explain("research-output", ())
    assert "- `completion.status`: one of `DONE`, `ERROR`." in research
    assert "- `completion.severity`: null." in research
    assert "completion.evidence_summary" not in research
    plan = explain("plan-output", ())
    assert "- `completion.status`: one of `DONE`, `NEEDS_REVISION`, `ERROR`." in plan
    assert "- `completion.risk_level`: one of `🟢`, `🟡`, `🔴`. How" in plan
    assert "`completion.evidence_summary.passed`" in explain("verification-report", ())


@pytest.mark.parametrize(
    ("contract", "line"),
    [
        ("plan-output", "`agent_output.payload.waves[].max_concurrent`: whole number from 1 to 4."),
        ("plan-output", "`agent_output.payload.key_assumptions`: list, each entry text; optional."),
        ("research-output", "`agent_output.started_at`: a time such as `2026-02-26T14:30:00Z`."),
        ("verification-report", "`agent_output.payload.regressions[].baseline_result`: `true`."),
        ("forge-captain-return", '`dag.nodes[].agentType`: one of `1`, `2`, `3`, `"refinery"`.'),
        ("forge-captain-return", "`tasks[].branch`: the name of a git branch or commit, or null."),
        ("forge-worker-return", "`walkthrough.confidence`: number from 0 to 1."),
        ("forge-worker-return", "`walkthrough.task_id`: a name of letters, digits, `.`, `_` and `-`."),
        ("autopilot-researcher-return", "`key_findings`: list, 1 to 5 entries, each entry text."),
        (
            "autopilot-mini-verifier-return",
            '`criteria_results[].command_output`: text or `""`, at most 200 characters.',
        ),
        ("autopilot-verifier-return", "`automated_checks.lint.status`: true or false or `n/a`."),
        ("intake-return", "`infeasible_because`: text, or null. What makes it impossible; null if it is possible."),
        ("task-schema", "`task.relevant_context.files_to_modify[].path`: a relative path with `/`, without `..`."),
    ],
)
def test_a_field_is_told_in_words(contract: str, line: str) -> None:
    assert f"- {line}" in explain(contract, ()).split("\n")


@pytest.mark.parametrize("contract", catalog())
def test_every_contract_can_be_told_in_words(contract: str) -> None:
    assert all(line.startswith("- `") for line in explain(contract, ()).split("\n"))
