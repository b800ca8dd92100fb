"""JSON is taken as one value, and refused with its place for everything another reader might see differently."""

from typing import Any

import pytest
from hypothesis import given, settings

from fairwitness.errors import BadDocument, Position
from fairwitness.kit import json_text
from fairwitness.kit.limits import DocumentLimits
from kit.plain_values import plain_values


def _refusal(text: str, limits: DocumentLimits | None = None) -> tuple[str, int, int]:
    with pytest.raises(BadDocument) as caught:
        json_text.parse(text, limits or DocumentLimits())
    return caught.value.reason, caught.value.position.line, caught.value.position.column


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -2.5, true, false, null, "x"]}', {"a": [1, -2.5, True, False, None, "x"]}),
        ("3", 3),
        ('""', ""),
        ('"\\ud83d\\udfe2"', "🟢"),
        ('"\\\\ud800 \\\\u0000"', "\\ud800 \\u0000"),
        ('"\\u001b\\u007f"', "\x1b\x7f"),
        (' \t\n{"a":\n1}\n', {"a": 1}),
        ('{"": {"": ""}}', {"": {"": ""}}),
        ('{"a": {"a": 1}, "b": {"a": 1}}', {"a": {"a": 1}, "b": {"a": 1}}),
        ("1e2", 100.0),
        ("-0", 0),
        ('"\u2028\u00a0"', "\u2028\u00a0"),
    ],
)
def test_plain_json_becomes_plain_values(text: str, value: Any) -> None:
    found = json_text.parse(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('{"a": 1,\n "a": 2}', ("the key 'a' appears twice", 2, 2)),
        ('{"a": 1, "\\u0061": 2}', ("the key 'a' appears twice", 1, 10)),
        ('[{"b": {"x": 1,\n\n"x": 1}}]', ("the key 'x' appears twice", 3, 1)),
        ('{"a": NaN}', ("a number that is not finite is refused", 1, 7)),
        ("[\n  -Infinity]", ("a number that is not finite is refused", 2, 3)),
        ("Infinity", ("a number that is not finite is refused", 1, 1)),
        ("[1, 9223372036854775808]", ("a whole number beyond 64 bits is refused", 1, 5)),
        ("[1,\n1e400]", ("a number too large to hold is refused", 2, 1)),
        ("[" + "1" * 65 + "]", ("a number of 65 characters is longer than 64", 1, 2)),
        ('["ok", "\\u0000"]', ("a NUL character is refused", 1, 8)),
        ('{"\\u0000": 1}', ("a NUL character is refused", 1, 2)),
        ('["\\ud800"]', ("half of a surrogate pair is refused", 1, 2)),
        ('["\\uDC00\\uD800"]', ("half of a surrogate pair is refused", 1, 2)),
        ('{"a\\ud800": 1}', ("half of a surrogate pair is refused", 1, 2)),
        ('[1, "\ud800"]', ("half of a surrogate pair is refused", 1, 5)),
        ("", ("not JSON: expecting value", 1, 1)),
        ("{\n'a': 1}", ("not JSON: expecting property name enclosed in double quotes", 2, 1)),
        ('{"a": 1,}', ("not JSON: illegal trailing comma before end of object", 1, 8)),
        ('{"a": 1} x', ("not JSON: extra data", 1, 10)),
        ('{"a" 1}', ("not JSON: expecting ':' delimiter", 1, 6)),
        ('["a\nb"]', ("not JSON: invalid control character at", 1, 4)),
        ('["\\x"]', ("not JSON: invalid \\escape", 1, 3)),
        ('["abc', ("not JSON: unterminated string starting at", 1, 2)),
        ('["\\u0000x', ("not JSON: unterminated string starting at", 1, 2)),
        ('{1: "\\u0000"}', ("not JSON: expecting property name enclosed in double quotes", 1, 2)),
        ('[1.2.3, "\\u0000"]', ("a NUL character is refused", 1, 9)),
        ("[01]", ("not JSON: expecting ',' delimiter", 1, 3)),
        ("[tru]", ("not JSON: expecting value", 1, 2)),
        ("\ufeff{}", ("not JSON: unexpected UTF-8 BOM (decode using utf-8-sig)", 1, 1)),
    ],
)
def test_a_bad_document_is_refused_with_reason_and_place(text: str, refusal: tuple[str, int, int]) -> None:
    reason, line, column = _refusal(text)
    if refusal[0].startswith("not JSON"):  # the wording is the standard parser's and changes between versions
        assert reason.startswith("not JSON: ")
        if "trailing comma" not in refusal[0]:
            assert (reason.partition(":")[2][:9], line, column) == (refusal[0].partition(":")[2][:9], *refusal[1:])
    else:
        assert (reason, line, column) == refusal


def test_depth_is_bounded_where_it_is_exceeded() -> None:
    assert json_text.parse("[" * 64 + "]" * 64) is not None
    assert _refusal("[" * 65 + "]" * 65) == ("nested deeper than 64 levels", 1, 65)
    assert _refusal('{"a":\n{"b": {}}}', DocumentLimits(depth=2)) == ("nested deeper than 2 levels", 2, 7)


def test_a_limit_beyond_what_the_parser_can_do_still_refuses() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert _refusal(text, DocumentLimits(depth=10**6, nodes=10**6)) == ("not an acceptable JSON document", 1, 1)


def test_keys_and_values_are_bounded_together() -> None:
    assert json_text.parse('{"a": [1, 2]}', DocumentLimits(nodes=5)) == {"a": [1, 2]}
    assert _refusal('{"a": [1, 2]}', DocumentLimits(nodes=4)) == ("more than 4 values", 1, 11)


def test_signs_inside_texts_are_not_counted() -> None:
    assert json_text.parse('["' + "[{,:" * 1000 + '"]', DocumentLimits(depth=1, nodes=2)) == ["[{,:" * 1000]


def test_places_are_those_of_keys_and_entries() -> None:
    text = '{\n  "a": [10, {"b": null}],\n  "c\\u0064": {}\n}\n'
    ways = [(), ("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("cd",), ("missing",), ("a", 7)]
    assert json_text.marks(text, ways) == {
        (): Position(1, 1),
        ("a",): Position(2, 3),
        ("a", 0): Position(2, 9),
        ("a", 1): Position(2, 13),
        ("a", 1, "b"): Position(2, 14),
        ("cd",): Position(3, 3),
    }


def test_places_do_not_depend_on_limits() -> None:
    deep = "[" * 70 + "]" * 70
    assert json_text.parse(deep, DocumentLimits(depth=70)) is not None
    assert json_text.marks(deep, [(0,) * 69])[(0,) * 69] == Position(1, 70)


def test_rendering_is_indented_and_keeps_order_and_letters() -> None:
    assert json_text.render({"b": "🟢 é", "a": [1, {}]}) == '{\n  "b": "🟢 é",\n  "a": [\n    1,\n    {}\n  ]\n}\n'


def test_rendering_escapes_what_the_reader_refuses_or_others_take_for_a_line_end() -> None:
    assert json_text.render_line(["\x7f\x85\x9b\u2028\u2029\ufeff\0\x1b"]) == (
        '["\\u007f\\u0085\\u009b\\u2028\\u2029\\ufeff\\u0000\\u001b"]'
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_rendering_refuses_numbers_that_are_not_finite(number: float) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        json_text.render({"a": number})


def test_lines_hold_one_value_each() -> None:
    assert json_text.parse_lines('{"a":1}\n[2]\n"x"\n') == [{"a": 1}, [2], "x"]
    assert json_text.parse_lines("1\n2") == [1, 2]
    assert json_text.parse_lines("") == []


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("1\n\n2\n", ("not JSON: expecting value", 2, 1)),
        ("\n", ("not JSON: expecting value", 1, 1)),
        ("1\n2 3\n", ("not JSON: extra data", 2, 3)),
        ('{"a":1}\n{"a":1,"a":2}\n', ("the key 'a' appears twice", 2, 8)),
        ('{"a":1}\n{"a":\n1}\n', ("not JSON: expecting value", 2, 6)),
        ('{"a":1}\n{"a', ("not JSON: unterminated string starting at", 2, 2)),
        ("1\n[[[]]]\n", ("nested deeper than 2 levels", 2, 3)),
        ("[1,2]\n[3,4]\n[5]\n[6]\n", ("more than 9 values", 4, 1)),
        ("1\n" * 10, ("more than 9 values", 10, 1)),
    ],
)
def test_a_bad_line_is_refused_at_its_own_number(text: str, refusal: tuple[str, int, int]) -> None:
    with pytest.raises(BadDocument) as caught:
        json_text.parse_lines(text, DocumentLimits(depth=2, nodes=9))
    assert (caught.value.reason, caught.value.position.line, caught.value.position.column) == refusal


def test_places_in_lines_begin_with_the_index_of_the_line() -> None:
    text = '{"a":1}\n{"b":[1,2]}\n'
    assert json_text.marks_of_lines(text, [(1, "b", 1), (0, "missing"), (5,), ()]) == {
        (): Position(1, 1),
        (0,): Position(1, 1),
        (1,): Position(2, 1),
        (1, "b"): Position(2, 2),
        (1, "b", 1): Position(2, 9),
    }


@settings(max_examples=150)
@given(plain_values())
def test_what_is_written_is_read_back_equal(value: Any) -> None:
    assert repr(json_text.parse(json_text.render(value))) == repr(value)
    assert repr(json_text.parse_lines(json_text.render_line(value) + "\n")) == repr([value])
