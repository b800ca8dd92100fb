"""Chains of kills: every case is dealt to one of them, in the order in which a run comes to it."""

import pytest

from forge.chains import Case, dealt, firsts, middles

PASSED = ("open", "write", "open", "write", "seal", "open", "write", "close")
"""The points of a run that nobody killed."""


def test_every_case_is_dealt_to_one_chain_in_the_order_of_the_run() -> None:
    cases = [*firsts(["close", "seal", "write", "open"]), *middles(["seal", "write", "open"], PASSED)]
    chains = [[str(case) for case in dealt(cases, PASSED, chain=chain, of=2)] for chain in range(2)]
    assert chains == [["open#1", "open#2", "seal#1"], ["write#1", "write#2", "close#1"]]


def test_a_point_that_is_passed_once_has_no_middle() -> None:
    assert middles(["seal", "open", "never"], PASSED) == [Case("open", 2)]


@pytest.mark.parametrize("name", ["open#4", "never#1"])
def test_a_case_that_no_run_comes_to_is_named_and_not_left_out(name: str) -> None:
    with pytest.raises(AssertionError, match=name):
        dealt([Case.named(name)], PASSED, chain=0, of=3)
