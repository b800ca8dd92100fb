"""Markdown with a head gives the head's fields and the body, exactly, and says where each stands."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.errors import BadDocument, Position
from fairwitness.kit import front_matter
from kit.plain_values import plain_values, texts


def _refusal(text: str) -> tuple[str, int, int]:
    with pytest.raises(BadDocument) as caught:
        front_matter.parse(text)
    return caught.value.reason, caught.value.position.line, caught.value.position.column


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("---\na: 1\n---\n# Title\n", {"a": 1, "body": "# Title\n"}),
        ("---\na: 1\n---\n", {"a": 1, "body": ""}),
        ("---\na: 1\n---", {"a": 1, "body": ""}),
        ("--- \t\na: 1\n---  \nx", {"a": 1, "body": "x"}),
        ("---\na: 1\n---\n\n\nx\n---\ny\n", {"a": 1, "body": "\n\nx\n---\ny\n"}),
        ("---\n{}\n---\nx", {"body": "x"}),
        ("---\na: |\n  --- no fence\n   ---\n---\nx", {"a": "--- no fence\n ---\n", "body": "x"}),
        ("---\na: ----\n---\n----\n", {"a": "----", "body": "----\n"}),
    ],
)
def test_head_and_body_are_taken_apart(text: str, value: Any) -> None:
    assert front_matter.parse(text) == value


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", ("the document must begin with a line of three dashes (---)", 1, 1)),
        ("# Title\n---\na: 1\n---\n", ("the document must begin with a line of three dashes (---)", 1, 1)),
        ("\n---\na: 1\n---\n", ("the document must begin with a line of three dashes (---)", 1, 1)),
        ("----\na: 1\n---\n", ("the document must begin with a line of three dashes (---)", 1, 1)),
        ("---\na: 1\n", ("the front matter is never closed by a second line of three dashes (---)", 1, 1)),
        ("---\na: 1\n --- \n", ("the front matter is never closed by a second line of three dashes (---)", 1, 1)),
        ("---\n- a\n---\n", ("the front matter must be a mapping of fields", 2, 1)),
        ("---\nword\n---\n", ("the front matter must be a mapping of fields", 2, 1)),
        ("---\n---\n", ("the document is empty", 1, 1)),
        ("---\na: 1\nbody: x\n---\n", ("a front matter field may not be called 'body'", 3, 1)),
        ("---\na: 1\na: 2\n---\n", ("the key 'a' appears twice", 3, 1)),
        ("---\na: 1\nb: &x 2\n---\n", ("anchors (&name) are refused", 3, 4)),
        ("---\na: 1\nb: é\u2028\n---\n", ("character U+2028 is refused outside of an escape", 3, 5)),
    ],
)
def test_a_bad_document_is_refused_with_reason_and_place_in_the_file(text: str, refusal: tuple[str, int, int]) -> None:
    assert _refusal(text) == refusal


def test_a_head_that_is_not_yaml_is_refused_at_its_line_in_the_file() -> None:
    reason, line, column = _refusal("---\na: 1\nb: @x\n---\n")
    assert reason.startswith("not YAML: ")
    assert (line, column) == (3, 4)


def test_places_are_counted_in_the_whole_file() -> None:
    text = "---\na: 1\nb:\n  - x\n---\n\n# Title\n"
    assert front_matter.marks(text, [("a",), ("b", 0), ("missing",)]) == {
        (): Position(1, 1),
        ("a",): Position(2, 1),
        ("b",): Position(3, 1),
        ("b", 0): Position(4, 5),
        ("body",): Position(6, 1),
    }


def test_rendering_puts_the_fields_in_order_and_the_body_behind_them() -> None:
    assert front_matter.render({"b": 1, "body": "# T\n", "a": "x\ny\n"}) == "---\nb: 1\na: |\n  x\n  y\n---\n# T\n"


@pytest.mark.parametrize(
    ("body", "reason", "position"),
    [
        ("a\n\x1b[31m", "control character U+001B is refused", Position(2, 1)),
        ("a\x7f", "control character U+007F is refused", Position(1, 2)),
        ("a\r\nb", "a carriage return in the body is refused", Position(1, 2)),
    ],
)
def test_a_body_that_could_not_be_read_back_is_not_written(body: str, reason: str, position: Position) -> None:
    with pytest.raises(BadDocument) as caught:
        front_matter.render({"a": 1, "body": body})
    assert (caught.value.reason, caught.value.position) == (reason, position)


_BODIES = st.text(st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t"), max_size=60)
_HEADS = st.dictionaries(texts().filter(lambda key: key != "body"), plain_values(), max_size=4)


@settings(max_examples=100)
@given(_HEADS, st.one_of(_BODIES, st.just("---\na: 1\n---\n"), st.just("\n\n")))
def test_what_is_written_is_read_back_equal(head: dict[str, Any], body: str) -> None:
    value = {**head, "body": body}
    assert repr(front_matter.parse(front_matter.render(value))) == repr(value)
