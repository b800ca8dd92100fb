"""What an agent is shown of a contract is all of it, and nothing that the harness fills in by itself."""

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from agents.roles.briefs import BRIEFS, tools_of
from fairwitness.agents.answer import read_answer
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import explain, fields_of, form_of, unasked_fields
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


def _is_a_bare_object(way: str, ways: set[str]) -> bool:
    """Whether a path only leads to others; its own line would say nothing."""
    return any(other.startswith(f"{way}.") for other in ways)


@pytest.mark.req("P2", "A3")
@pytest.mark.parametrize("role", BRIEFS)
def test_every_field_of_an_answer_is_explained(role: Role) -> None:
    answer = _answer(role)
    expected = set(_ways(entry_of(answer).shape, ""))
    explained = {line[3:].partition("`")[0] for line in explain(answer, ()).split("\n")}
    missing = {way for way in expected - explained if not way.startswith(tuple(_NEVER_SAID))}
    assert all(_is_a_bare_object(way, expected) for way in missing), missing
    assert explained <= expected


def _unasked(role: Role) -> frozenset[str]:
    return unasked_fields(ROLES[role], BRIEFS[role].known, tools_of(role))


@pytest.mark.req("P2")
@pytest.mark.parametrize("role", BRIEFS)
def test_what_the_harness_knows_is_neither_explained_nor_in_the_form(role: Role) -> None:
    answer, unasked = _answer(role), _unasked(role)
    ways = {field.way for field in fields_of(form_of(answer, unasked).schema)}
    assert not ways & unasked
    assert not any(f"`{way}`" in explain(answer, unasked) for way in unasked)


def _take_away(value: Any, way: list[str], *, only_null: bool = False) -> None:
    """Remove a field, and the object that it leaves empty."""
    step, *rest = way
    if not isinstance(value, dict) or step.removesuffix("[]") not in value:
        return
    if not rest:
        if not only_null or value[step] is None:
            value.pop(step)
    elif step.endswith("[]"):
        for entry in value[step.removesuffix("[]")] or ():
            _take_away(entry, rest, only_null=only_null)
    else:
        _take_away(value[step], rest, only_null=only_null)
        if value[step] == {}:
            value.pop(step)


def _written(role: Role) -> dict[str, Any]:
    """The example of a role's answer as its agent writes it: without what is not asked for, and without nulls."""
    written: dict[str, Any] = value_of(EXAMPLES[_answer(role)])
    for way in _unasked(role):
        _take_away(written, way.split("."))
    for field in fields_of(form_of(_answer(role), _unasked(role)).schema):
        if not field.required:
            _take_away(written, field.way.split("."), only_null=True)
    return written


def _problems(role: Role, written: dict[str, Any]) -> tuple[str, ...]:
    spec = ROLES[role]
    return read_answer("", written, _answer(role), BRIEFS[role].known, spec.statuses).problems


@pytest.mark.req("P2")
@pytest.mark.parametrize("role", BRIEFS)
def test_an_example_of_what_is_asked_fits_the_form_and_is_an_answer_once_the_rest_is_filled_in(role: Role) -> None:
    written = _written(role)
    validator = Draft202012Validator(form_of(_answer(role), _unasked(role)).schema)
    assert [error.message for error in validator.iter_errors(written)] == []
    assert _problems(role, written) == ()


_FOLLOWS = {
    # which value is right depends on another field, and the prompt says on which
    ("verifier", "completion.status"),
    ("adversarial-reviewer", "clean_categories"),
    ("adversarial-reviewer", "findings[].category"),
    ("plan-checker", "pass"),
    ("plan-checker", "issues[].severity"),
    ("planner", "agent_output.payload.tasks[].size"),
    ("planner", "agent_output.payload.tasks[].risk"),
    ("phase-verifier", "pass"),
    ("rater", "score_band"),
    ("captain", "tasks[].type"),
    ("refinery", "walkthrough.status"),
    ("intake", "infeasible"),
    ("intake", "infeasible_because"),
    ("intake", "concerns[].severity"),
    ("self-audit", "audit_results[].requirements_checked[].status"),
    ("self-audit", "audit_results[].requirements_checked[].gap_description"),
    ("self-audit", "audit_results[].requirements_checked[].fix_complexity"),
}


def _values(root: dict[str, Any], node: dict[str, Any]) -> list[Any]:
    """Every value that a form names for a field: those of an enumeration, and null."""
    if "$ref" in node:
        return _values(root, root["$defs"][node["$ref"].removeprefix("#/$defs/")])
    if "const" in node:
        return [node["const"]]
    if node.get("type") == "null":
        return [None]
    if node.get("type") == "boolean":
        return [True, False]
    kinds = node.get("anyOf") or node.get("oneOf") or ()
    return [*node.get("enum", ()), *(value for kind in kinds for value in _values(root, kind))]


def _put(value: Any, way: list[str], new: Any) -> bool:
    """Set a field wherever its object is; return whether it is anywhere."""
    step, *rest = way
    if not isinstance(value, dict):
        return False
    if step.endswith("[]"):
        entries = value.get(step.removesuffix("[]")) or []
        put = [_put(entry, rest, new) for entry in entries]
        return any(put)
    if rest:
        return _put(value.get(step), rest, new)
    value[step] = new
    return True


@pytest.mark.req("P2")
@pytest.mark.parametrize("role", BRIEFS)
def test_every_value_that_a_form_names_is_one_that_the_contract_takes(role: Role) -> None:
    schema = form_of(_answer(role), _unasked(role)).schema
    for field in fields_of(schema):
        if field.way.endswith("[]") or (role.value, field.way) in _FOLLOWS:
            continue
        for value in _values(schema, field.node):
            written = _written(role)
            if _put(written, field.way.split("."), value):
                name = field.way.rpartition(".")[2]
                wrong = [each for each in _problems(role, written) if each.partition(":")[0].endswith(name)]
                assert wrong == [], (field.way, value)


def test_a_form_is_a_schema_without_titles_and_without_unused_definitions() -> None:
    schema = form_of("implementation-report", SIGNED).schema
    Draft202012Validator.check_schema(schema)
    assert set(schema["$defs"]) == {"Diagnostics", "TestSummary"}  # what is used once is where it is used
    assert "title" not in schema
    assert "title" not in schema["properties"]["agent_output"]["properties"]["payload"]
    assert "title" in form_of("intake-return", ()).schema["properties"]["concerns"]["items"]["properties"]


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
    assert "- `completion.risk_level`: one of `🟢`, `🟡`, `🔴`." in plan
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
