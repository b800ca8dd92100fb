"""YAML is read as one plain document by the rules of YAML 1.2, and everything beyond that is refused with its place."""

from typing import Any

import pytest
from hypothesis import given, settings

from fairwitness.errors import BadDocument, Position
from fairwitness.kit import yaml_text
from fairwitness.kit.limits import DocumentLimits
from kit.plain_values import ODD_TEXTS, plain_values


def _refusal(text: str, limits: DocumentLimits | None = None) -> tuple[str, int, int]:
    with pytest.raises(BadDocument) as caught:
        yaml_text.parse(text, limits or DocumentLimits())
    return caught.value.reason, caught.value.position.line, caught.value.position.column


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 'y', \"z\"]\n", {"a": 1, "b": ["x", "y", "z"]}),
        ("- a\n-\n- - b\n  - c\n", ["a", None, ["b", "c"]]),
        ("a:\n- 1\n- 2\n", {"a": [1, 2]}),
        ("plain\n", "plain"),
        ("---\na: 1\n...\n", {"a": 1}),
        ("---\n", None),
        ("a: |\n  one\n   two\n\nb: >-\n  one\n  two\n", {"a": "one\n two\n", "b": "one two"}),
        ("a: no\nb: 010\nc: 12:30:45\n", {"a": "no", "b": 10, "c": "12:30:45"}),
        ("a: 1e3\nb: ~\nc: 0o17\n", {"a": 1e3, "b": None, "c": 15}),
        ("a: '1'\nb: \"true\"\nc: |-\n  5\n", {"a": "1", "b": "true", "c": "5"}),
        ("a: ''\nb: \"\"\nc:\n", {"a": "", "b": "", "c": None}),
        ("1: a\nnull: b\ntrue: c\n1.5: d\n", {"1": "a", "null": "b", "true": "c", "1.5": "d"}),
        ("? a\n: 1\n? b\n", {"a": 1, "b": None}),
        ("'<<': 1\n", {"<<": 1}),
        ("a: <<\n", {"a": "<<"}),
        ("?\n: 1\n", {"": 1}),
        ("{}", {}),
        ("[]", []),
        ("# comment\na: 1 # more\n", {"a": 1}),
        ("a: 2026-02-26\nb: 2026-02-26T14:30:00Z\n", {"a": "2026-02-26", "b": "2026-02-26T14:30:00Z"}),
        ('a: "\\x1b\\e\\u2028\\U0001F7E2"\n', {"a": "\x1b\x1b\u2028🟢"}),
        ("risk: 🟢\n", {"risk": "🟢"}),
        ("a: {b: {c: 1}}\n", {"a": {"b": {"c": 1}}}),
        ("a: {b: 1}\nc: {b: 1}\n", {"a": {"b": 1}, "c": {"b": 1}}),
    ],
)
def test_plain_yaml_becomes_plain_values(text: str, value: Any) -> None:
    found = yaml_text.parse(text)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("a: 1\nb: &x 2\n", ("anchors (&name) are refused", 2, 4)),
        ("a: &x [*x]\n", ("anchors (&name) are refused", 1, 4)),
        ("&x a: 1\n", ("anchors (&name) are refused", 1, 1)),
        ("a: &x {b: 1}\n", ("anchors (&name) are refused", 1, 4)),
        ("a: &x\n", ("anchors (&name) are refused", 1, 4)),
        ("- 1\n- *x\n", ("aliases (*name) are refused", 2, 3)),
        ("*x : 1\n", ("aliases (*name) are refused", 1, 1)),
        ("a: !!str 1\n", ("tags (!name) are refused", 1, 4)),
        ("a:\n  - !own {b: 1}\n", ("tags (!name) are refused", 2, 5)),
        ("a: ! b\n", ("tags (!name) are refused", 1, 4)),
        ("!!map {a: 1}\n", ("tags (!name) are refused", 1, 1)),
        ("!x a: 1\n", ("tags (!name) are refused", 1, 1)),
        ("a:\n  <<: {b: 1}\n", ("merge keys (<<) are refused", 2, 3)),
        ("a: 1\nb: 2\na: 3\n", ("the key 'a' appears twice", 3, 1)),
        ("a: 1\n'a': 3\n", ("the key 'a' appears twice", 2, 1)),
        ("x: {a: 1, b: 2, a: 3}\n", ("the key 'a' appears twice", 1, 17)),
        ("1: a\n'1': b\n", ("the key '1' appears twice", 2, 1)),
        ("? [a, b]\n: 1\n", ("a key must be plain text, not a list or mapping", 1, 3)),
        ("{a: 1}: 2\n", ("a key must be plain text, not a list or mapping", 1, 1)),
        ("x:\n  ? - a\n  : 1\n", ("a key must be plain text, not a list or mapping", 2, 5)),
        ("a: 1\n---\nb: 2\n", ("a second document is refused", 2, 1)),
        ("a: 1\n...\n---\n", ("a second document is refused", 3, 1)),
        ("%YAML 1.2\n---\na: 1\n", ("directives (%YAML, %TAG) are refused", 1, 1)),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", ("directives (%YAML, %TAG) are refused", 1, 1)),
        ("", ("the document is empty", 1, 1)),
        ("\n# only words\n", ("the document is empty", 1, 1)),
        ("a: .inf\n", ("a number that is not finite is refused", 1, 4)),
        ("- 1\n- -.INF\n", ("a number that is not finite is refused", 2, 3)),
        ("a: [.nan]\n", ("a number that is not finite is refused", 1, 5)),
        ("a: 1e999\n", ("a number too large to hold is refused", 1, 4)),
        ("a: 9223372036854775808\n", ("a whole number beyond 64 bits is refused", 1, 4)),
        ("a: 0xffffffffffffffff\n", ("a whole number beyond 64 bits is refused", 1, 4)),
        ("a: " + "7" * 65 + "\n", ("a number of 65 characters is longer than 64", 1, 4)),
        ('a: "x\\0"\n', ("a NUL character is refused", 1, 4)),
        ('"\\0": 1\n', ("a NUL character is refused", 1, 1)),
        ("a: x\u2028b: y\n", ("character U+2028 is refused outside of an escape", 1, 5)),
        ("a: 'é\u2029'\n", ("character U+2029 is refused outside of an escape", 1, 6)),
        ("a: 1\n\ufeffb: 2\n", ("character U+FEFF is refused outside of an escape", 2, 1)),
        ("a: \x85\n", ("character U+0085 is refused outside of an escape", 1, 4)),
        ("a: \uffff\n", ("character U+FFFF is refused outside of an escape", 1, 4)),
        ("a: 1\nb: \ud800\n", ("character U+D800 is refused outside of an escape", 2, 4)),
        ("a: 1\nb: \x1b[0m\n", ("character U+001B is refused outside of an escape", 2, 4)),
        ("a: b\0\n", ("character U+0000 is refused outside of an escape", 1, 5)),
    ],
)
def test_whatever_is_more_than_values_is_refused_with_reason_and_place(
    text: str, refusal: tuple[str, int, int]
) -> None:
    assert _refusal(text) == refusal


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: [1\n", 2, 1),
        ("a: b: c\n", 1, 5),
        ("a:\n\tb: 1\n", 2, 1),
        ("a: 'x\n", 2, 1),
        ("a: @x\n", 1, 4),
        ("a: 1\n b: 2\n", 2, 3),
        ("- a\nb: 1\n", 2, 1),
        ('a: "\\q"\n', 1, 5),
        ('a: "\\ud800"\n', 1, 7),
        ("%FOO bar\n---\na: 1\n", 1, 5),
        ("%YAML 2.0\n---\na: 1\n", 1, 1),
        ("a: 1\n...\n@\n", 3, 1),
        ("a: 1\n...\nb: 2\n", 3, 1),
        ("}", 1, 1),
    ],
)
def test_text_that_is_not_yaml_is_refused_at_its_place(text: str, line: int, column: int) -> None:
    reason, *place = _refusal(text)
    assert reason.startswith("not YAML: ")
    assert place == [line, column]
    assert "\n" not in reason


def test_a_long_key_is_not_repeated_in_full() -> None:
    key = "k" * 1000
    reason, line, _ = _refusal(f"{key}: 1\n{key}: 2\n")
    assert (reason, line) == (f"the key {'k' * 80!r} appears twice", 2)


def test_depth_is_bounded_where_it_is_exceeded() -> None:
    assert yaml_text.parse("[" * 64 + "]" * 64) is not None
    assert _refusal("[" * 65 + "]" * 65) == ("nested deeper than 64 levels", 1, 65)
    assert _refusal("a:\n  b:\n    c: 1\n", DocumentLimits(depth=2)) == ("nested deeper than 2 levels", 3, 5)


def test_keys_and_values_are_bounded_together() -> None:
    assert yaml_text.parse("a: [1, 2]\n", DocumentLimits(nodes=5)) == {"a": [1, 2]}
    assert _refusal("a: [1, 2]\n", DocumentLimits(nodes=4)) == ("more than 4 values", 1, 8)
    assert _refusal("a: [1, [2]]\n", DocumentLimits(nodes=4)) == ("more than 4 values", 1, 8)


def test_places_are_those_of_keys_and_entries() -> None:
    text = "a:\n  - 10\n  - b: x\n    c: {d: [1, 2]}\n'e f':\n  g: |\n    text\n"
    ways = [("a", 0), ("a", 1, "c", "d", 1), ("e f", "g"), ("missing", "x"), ("a", 9)]
    assert yaml_text.marks(text, ways) == {
        (): Position(1, 1),
        ("a",): Position(1, 1),
        ("a", 0): Position(2, 5),
        ("a", 1): Position(3, 5),
        ("a", 1, "c"): Position(4, 5),
        ("a", 1, "c", "d"): Position(4, 9),
        ("a", 1, "c", "d", 1): Position(4, 16),
        ("e f",): Position(5, 1),
        ("e f", "g"): Position(6, 3),
    }


def test_places_of_a_bare_word_and_of_numbers_as_keys() -> None:
    assert yaml_text.marks("\n  word\n", [()]) == {(): Position(2, 3)}
    assert yaml_text.marks("1: {2: x}\n", [("1", "2")])["1", "2"] == Position(1, 5)


def test_several_lines_are_written_as_a_block_and_keys_keep_their_order() -> None:
    value: Any = {"b": "one\ntwo\n", "a": "one\n  two", "list": [{"x": 1, "w": "p\nq"}], "none": None, "empty": {}}
    assert yaml_text.render(value) == (
        "b: |\n  one\n  two\na: |-\n  one\n    two\nlist:\n- x: 1\n  w: |-\n    p\n    q\nnone: null\nempty: {}\n"
    )


@pytest.mark.parametrize(
    "word",
    ["1e5", "0o17", "010", ".5", "1.", "-7", "0x1F", "null", "~", "true", "FALSE", ".inf", ".NaN", "", "9" * 5000],
)
def test_words_that_would_be_read_as_something_else_are_quoted(word: str) -> None:
    assert yaml_text.render({"a": word}).rstrip().replace("\\\n  ", "") == f'a: "{word}"'
    assert yaml_text.parse(yaml_text.render({"a": word, word: 1})) == {"a": word, word: 1}


@pytest.mark.parametrize("word", ["plain words", "🟢", "größe 🟡", "12-30", "1 2", "v1.0", "src/a.py"])
def test_words_that_mean_themselves_are_written_bare(word: str) -> None:
    assert yaml_text.render({"a": word}) == f"a: {word}\n"


def test_no_stays_text_and_emoji_are_not_escaped() -> None:
    assert yaml_text.parse(yaml_text.render({"a": "no", "b": "🟢: yes"})) == {"a": "no", "b": "🟢: yes"}
    assert "🟢: yes" in yaml_text.render({"b": "🟢: yes"})
    assert "🟢\n" in yaml_text.render({"b": "🟢\n🔴\n"})


def test_a_value_used_twice_is_written_twice() -> None:
    shared = {"x": [1]}
    assert yaml_text.parse(yaml_text.render({"a": shared, "b": shared})) == {"a": shared, "b": shared}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_are_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        yaml_text.render({"a": number})


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_survive_as_value_key_entry_and_whole_document(text: str) -> None:
    values: list[Any] = [{"a": text, "b": 1}, {text: 1, "z": {text: text}}, [text, text], text]
    for value in values:
        assert yaml_text.parse(yaml_text.render(value)) == value


@settings(max_examples=200)
@given(plain_values())
def test_what_is_written_is_read_back_equal(value: Any) -> None:
    assert repr(yaml_text.parse(yaml_text.render(value))) == repr(value)
