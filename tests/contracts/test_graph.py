"""The orders and results of a graph hold together, or they are none."""

import pytest
from pydantic import ValidationError

from fairwitness.contracts.graph.orders import AttemptResult, GraphOptions, Proof, Stack, TargetMove

COMMIT = "c" * 40


def test_an_attempt_is_proven_with_its_commit_or_explained() -> None:
    assert AttemptResult(verified=True, commit=COMMIT, tree=COMMIT).reason is None
    assert AttemptResult(verified=False, reason="red").commit is None
    for wrong in (
        {"verified": True},
        {"verified": True, "commit": COMMIT, "tree": COMMIT, "reason": "red"},
        {"verified": False},
        {"verified": False, "commit": COMMIT, "tree": COMMIT, "reason": "red"},
    ):
        with pytest.raises(ValidationError):
            AttemptResult.model_validate(wrong)


def test_a_proof_says_why_it_does_not_hold() -> None:
    assert Proof(holds=False, reasons=("red",)).reasons == ("red",)
    for holds, reasons in ((True, ("red",)), (False, ())):
        with pytest.raises(ValidationError, match="reasons exactly when it does not hold"):
            Proof(holds=holds, reasons=reasons)


def test_a_stack_that_halts_names_the_move_that_halts_it() -> None:
    moved = TargetMove(expected=COMMIT, found=None)
    stack = Stack(onto=COMMIT, onto_tree=COMMIT, candidates=(), clashes=(), moved=moved, halt="it was moved back")
    assert stack.moved == moved
    with pytest.raises(ValidationError, match="the move that halts it"):
        Stack(onto=COMMIT, onto_tree=COMMIT, candidates=(), clashes=(), halt="it was moved back")


@pytest.mark.req("P12", "X7")
def test_the_seeds_cap_of_four_is_a_setting() -> None:
    assert (GraphOptions(target="t").cap, GraphOptions(target="t").max_attempts) == (4, 3)
    assert GraphOptions(target="t", cap=16).cap == 16
    with pytest.raises(ValidationError):
        GraphOptions(target="t", cap=0)
