"""The answer in what an agent said: the last block decides, the harness fills in what it knows, the contract judges."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.agents.answer import EMPTY, NO_ANSWER, find_answer, read_answer, with_known
from fairwitness.contracts.common.vocabulary import CompletionStatus
from support.fixtures import value_of

JUDGE = {
    "recommendation": "proceed",
    "concerns": ["none that blocks"],
    "independent_evidence": [],
    "verifier_agreement": True,
    "verifier_missed": [],
    "scope_creep": [],
    "missing_requirements": [],
    "notes": "fine",
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('thinking\n```json\n{"a": 1}\n```\nno, better:\n```json\n{"a": 2}\n```\nDone.', {"a": 2}),
        ("```yaml\na: 1\nb: [x]\n```", {"a": 1, "b": ["x"]}),
        ("```yml\na: 1\n```", {"a": 1}),
        ('````json\n{"a": "```"}\n````', {"a": "```"}),
        ('```json\n{"a": 1}', {"a": 1}),
        ('~~~json\n{"a": 1}\n~~~', {"a": 1}),
        ('Here it is: {"a": {"b": 1}} and that is all.', {"a": {"b": 1}}),
        ('{"a": 1}\n{"a": 2}', {"a": 2}),
        ("a: 1\nb: 2", {"a": 1, "b": 2}),
        ('```\n{"a": 1}\n```\n```python\nprint("{}")\n```', {"a": 1}),
        ('```json\n{"a": 1}\n```\n```\n$ pytest\n1 passed\n```', {"a": 1}),
        ('```json\r\n{"a": 1}\r\n```\r\n', {"a": 1}),
        ("```yaml\na: |\n  ```\n  code\n  ```\nb: 1\n```", {"a": "```\ncode\n```\n", "b": 1}),
    ],
)
@pytest.mark.req("X3")
def test_the_last_block_of_a_text_is_the_answer(text: str, value: dict[str, Any]) -> None:
    assert find_answer(text).value == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", EMPTY),
        (" \n", EMPTY),
        ("All tests pass. Trust me: it works.", NO_ANSWER),
        ('```json\n{"a": 1}\n```\n```json\n{"a": \n```', "cannot be read"),
        ("```json\n[1, 2]\n```", "not a mapping"),
        ("```yaml\na: &x 1\nb: *x\n```", "cannot be read"),
        ('```json\n{"a": 1, "a": 2}\n```', "cannot be read"),
    ],
)
@pytest.mark.req("X3")
def test_a_text_without_a_readable_last_block_is_no_answer(text: str, words: str) -> None:
    found = find_answer(text)
    assert found.value is None
    assert words in found.problem


@given(st.text(max_size=400))
def test_any_text_is_an_answer_or_a_reason(text: str) -> None:
    found = find_answer(text)
    assert (found.value is None) == bool(found.problem)


@given(st.text(alphabet="`{}[]\"'ab:\n -~", max_size=200))
def test_texts_made_of_fences_and_brackets_are_survived(text: str) -> None:
    found = find_answer(text)
    assert (found.value is None) == bool(found.problem)


def test_a_long_text_of_open_brackets_costs_little() -> None:
    assert find_answer("{" * 500_000).value is None


@pytest.mark.req("A3")
def test_an_answer_that_fits_has_no_problems_and_what_was_handed_in_outranks_what_was_written() -> None:
    read = read_answer('```json\n{"recommendation": "no"}\n```', JUDGE, "autopilot-judge-return", {})
    assert read.problems == ()
    assert read.value == JUDGE


@pytest.mark.req("A3")
def test_every_problem_is_named_with_its_place() -> None:
    read = read_answer("", {**JUDGE, "concerns": [], "verifier_agreement": "yes"}, "autopilot-judge-return", {})
    assert sorted(problem.split(":")[0] for problem in read.problems) == ["concerns", "verifier_agreement"]


@pytest.mark.req("P2")
def test_fields_the_harness_knows_are_its_own_whatever_the_agent_wrote() -> None:
    document = value_of("000/research-output.yaml")
    document["agent_output"]["agent"] = "captain"
    del document["agent_output"]["started_at"]
    known = {"agent_output.agent": "researcher", "agent_output.started_at": "2026-02-26T14:30:00Z"}
    read = read_answer("", document, "research-output", known, (CompletionStatus.DONE, CompletionStatus.ERROR))
    assert read.problems == ()
    assert read.value is not None
    assert read.value["agent_output"]["agent"] == "researcher"
    assert document["agent_output"]["agent"] == "captain", "what the agent said is not changed"


@pytest.mark.req("P2")
def test_a_status_that_the_role_may_not_return_is_refused() -> None:
    document = value_of("000/research-output.yaml")
    document["completion"]["status"] = "NEEDS_REVISION"
    read = read_answer("", document, "research-output", {}, (CompletionStatus.DONE, CompletionStatus.ERROR))
    assert any("completion.status" in problem and "DONE or ERROR" in problem for problem in read.problems)


@pytest.mark.req("P2")
def test_rules_between_fields_refuse_an_answer_too() -> None:
    document = value_of("000/plan-output.yaml")
    document["agent_output"]["payload"]["waves"][0]["tasks"] = ["task-99"]
    read = read_answer("", document, "plan-output", {}, ())
    assert read.problems, "a wave names a task that is not there"


def test_a_known_field_below_something_that_is_no_mapping_is_left_to_the_contract() -> None:
    assert with_known({"a": [1], "c": {}}, {"a.b": 2, "c.d.e": 3}) == {"a": [1], "c": {"d": {"e": 3}}}
    assert with_known({}, {"c.d": 3}) == {}  # left out on purpose, or missed by its contract


_ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            "```json\n" + '{"a":' * 100_000 + "1" + "}" * 100_000 + "\n```", "deeper than 64", id="json-depth"
        ),
        pytest.param("```yaml\na: " + "[" * 100_000 + "]" * 100_000 + "\n```", "deeper than 64", id="yaml-depth"),
        pytest.param(f"```yaml\n{_ALIASES}```", "anchors", id="yaml-aliases"),
        pytest.param('```json\n{"a": ' + "9" * 1_000_000 + "}\n```", "longer than 64", id="number"),
        pytest.param("x" * 200_000_000, NO_ANSWER, id="200-MB"),
        pytest.param('```json\n{"a": "' + "x" * 200_000_000 + '"}\n```', NO_ANSWER, id="200-MB-block"),
        pytest.param("{" * 2_000_000, NO_ANSWER, id="open-braces"),
        pytest.param("```\n" * 500_000, NO_ANSWER, id="fences"),
    ],
)
@pytest.mark.req("X3")
def test_a_hostile_answer_is_a_problem_in_words(text: str, words: str) -> None:
    """The agent is told what is wrong and asked once more, as for any answer that cannot be read."""
    read = read_answer(text, None, "plan-output", {})
    assert read.value is None
    (problem,) = read.problems
    assert words in problem
    assert len(problem) < 200


@pytest.mark.parametrize("levels", [90, 900, 100_000])
def test_a_submitted_answer_has_the_limits_of_a_written_one(levels: int) -> None:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    read = read_answer("", value, "autopilot-judge-return", {})
    assert read.value is None
    (problem,) = read.problems
    assert problem.startswith("the submitted answer ")
    assert problem.endswith("nested deeper than 64 levels")
