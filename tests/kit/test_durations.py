"""Durations for people: none is negative, whatever the clock did."""

import pytest

from fairwitness.kit.durations import seconds_between, took

BEFORE, AFTER = "2026-02-26T14:30:00.000000Z", "2026-02-26T14:31:05.500000Z"


def test_a_clock_that_was_set_back_gives_no_negative_duration() -> None:
    assert seconds_between(BEFORE, AFTER) == 65.5
    assert seconds_between(AFTER, BEFORE) == 0.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-90, "0.0s"), (-0.01, "0.0s"), (9.94, "9.9s"), (9.96, "10s"), (59.6, "1m 0s"), (3599.6, "1h 0m")],
)
def test_a_duration_is_spelled_once_and_never_below_zero(seconds: float, words: str) -> None:
    assert took(seconds) == words
