"""What goes into the journal can be read by everybody who reads it, however deep it is nested and whatever it says."""

import sys

import pytest

from fairwitness.engine.base import EngineError, Json
from fairwitness.engine.json_values import DEEPEST, decode, encode, place_of


def nested(depth: int, *, beside: Json = None) -> Json:
    """A list in a mapping in a list, so many in all."""
    value: Json = "bottom"
    for number in range(depth):
        value = [beside, value] if number % 2 else {"k": value}
    return value


def test_a_value_may_be_nested_so_deep_and_no_deeper() -> None:
    assert decode(encode(nested(DEEPEST))) == nested(DEEPEST)
    for depth in (DEEPEST + 1, 500, 990, 1_000, 10_000, 100_000):
        with pytest.raises(EngineError, match=f"it is nested more than {DEEPEST} deep"):
            encode(nested(depth))


def test_only_what_is_nested_counts_and_neither_width_nor_text_does() -> None:
    hostile: list[Json] = ["[" * 500, '"\\"[{' * 500, "\\" * 7 + '"', [[[1], {"a": {}}]] * 500]
    for beside in hostile:
        value: Json = {"value": nested(DEEPEST - 10, beside=beside), "wide": [[number] for number in range(5_000)]}
        assert decode(encode(value)) == value
        with pytest.raises(EngineError, match="nested"):
            encode([nested(DEEPEST, beside=beside)])


def test_what_was_written_can_be_read_from_far_down_the_stack() -> None:
    text = encode(nested(DEEPEST))

    def from_below(levels: int) -> Json:
        return from_below(levels - 1) if levels else decode(text)

    assert from_below(sys.getrecursionlimit() // 2) == nested(DEEPEST)


def test_a_defect_is_recorded_with_the_calls_that_met_it_and_an_error_on_purpose_without() -> None:
    def deeper(depth: int) -> int:
        return deeper(depth + 1)

    with pytest.raises(RecursionError) as met:
        deeper(0)
    assert place_of(met.value).startswith(" (in test_json_values.deeper:")
    assert len(place_of(met.value)) < 300
    with pytest.raises(EngineError) as meant:
        encode(object())  # type: ignore[arg-type]
    assert place_of(meant.value) == ""
