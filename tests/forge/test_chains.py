"""Chains of kills: every point is dealt to one of them, which takes its cases as a run comes to them."""

import pytest

from forge.chains import Case, firsts, in_order, middles, share

PASSED = ("open", "write", "open", "write", "seal", "open", "write", "close")
"""The points of a run that nobody killed."""


def test_every_name_is_dealt_to_one_chain() -> None:
    names = ("a", "b", "c", "d", "e")
    for first in range(4):
        dealt = [name for chain in range(3) for name in share(names, first + chain, of=3)]
        assert sorted(dealt) == sorted(names)


def test_a_chain_takes_its_cases_in_the_order_of_the_run() -> None:
    cases = [*firsts(["close", "seal", "write", "open"]), *middles(["seal", "write", "open"], PASSED)]
    found = [str(case) for case in in_order(cases, PASSED)]
    assert found == ["open#1", "write#1", "open#2", "write#2", "seal#1", "close#1"]


def test_a_point_that_is_passed_once_has_no_middle() -> None:
    assert middles(["seal", "open", "never"], PASSED) == [Case("open", 2)]


@pytest.mark.parametrize("name", ["open#4", "never#1"])
def test_a_case_that_no_run_comes_to_is_named_and_not_left_out(name: str) -> None:
    with pytest.raises(AssertionError, match=name):
        in_order([Case.named(name)], PASSED)
