"""A validator's complaints become sentences: what was expected, what stood there, and where."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from fairwitness.contracts.catalog import CatalogEntry
from fairwitness.rules.problem_words import problems_of
from fairwitness.rules.validation import problems_in


class Limits(BaseModel):
    """One field for each kind of limit."""

    few: Annotated[tuple[int, ...], Field(max_length=2)] = ()
    some: Annotated[tuple[int, ...], Field(min_length=1)] = (1,)
    more: Annotated[int, Field(gt=3)] = 4
    less: Annotated[int, Field(lt=3)] = 2
    least: Annotated[int, Field(ge=3)] = 3
    most: Annotated[int, Field(le=3)] = 3
    word: Annotated[str, Field(pattern="^a")] = "a"
    text: Annotated[str, Field(pattern=r"\S")] = "a"
    brief: Annotated[str, Field(max_length=2)] = ""


@pytest.mark.parametrize(
    ("value", "expected", "found"),
    [
        ({"few": [1, 2, 3]}, "at most 2 entries", "a list of 3"),
        ({"some": []}, "at least 1 entry", "an empty list"),
        ({"more": 3}, "more than 3", "3"),
        ({"less": 3}, "less than 3", "3"),
        ({"least": 2}, "at least 3", "2"),
        ({"most": 4}, "at most 3", "4"),
        ({"word": "b"}, "text like ^a", "'b'"),
        ({"text": " "}, "text that is not blank", "' '"),
        ({"brief": "abc"}, "at most 2 characters", "3 characters"),
    ],
)
@pytest.mark.req("P1")
def test_every_kind_of_limit_is_told_in_words(value: dict[str, Any], expected: str, found: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Limits.model_validate(value)
    (problem,) = problems_of(value, raised.value.errors(include_url=False))
    assert (problem.where, problem.expected, problem.found) == ((*value,), expected, found)


@pytest.mark.req("P1")
def test_what_a_terminal_would_act_on_is_spelled_out_in_what_was_found() -> None:
    value = {"word": "\x1b[31mred"}
    with pytest.raises(ValidationError) as raised:
        Limits.model_validate(value)
    (problem,) = problems_of(value, raised.value.errors(include_url=False))
    assert problem.found == "'\\x1b[31mred'"


@pytest.mark.req("P1")
def test_a_document_that_is_wrong_only_far_inside_is_refused_with_the_number_of_its_mistakes() -> None:
    entry = CatalogEntry("numbers", "common", tuple[int, ...], "json", ())
    (problem,) = problems_in([1] * 30 + ["a"] * 600, entry, strict=True)
    assert (problem.where, problem.found) == ((), "more than 500 violations, the first 0 are listed")
