"""The base's own tests decide about changed tests: regressions, changed expectations, and what is only a note."""

from itertools import product

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.common.evidence import EvidenceQuery
from fairwitness.contracts.common.gates import Blocked, Gate
from fairwitness.contracts.verify.checks import OracleMode
from fairwitness.contracts.verify.results import BAD, Comparison, ItemChange, Moved
from fairwitness.rules.base_oracle import (
    SUPPRESSED,
    WEAKENED,
    SuppressionVerdict,
    gone_without_objection,
    judged_line,
    old_forms,
)


def _compared(**moves: ItemChange) -> Comparison:
    return Comparison(counts={}, moved=tuple(Moved(id=id_, move=move) for id_, move in moves.items()))


@pytest.mark.req("X1")
def test_every_mode_has_a_verdict_and_only_a_run_of_the_old_form_makes_a_note() -> None:
    assert set(WEAKENED) == set(product(OracleMode, (True, False)))
    assert {
        f"{mode.value}, old form {'run' if ran else 'not run'}": each.value for (mode, ran), each in WEAKENED.items()
    } == (
        snapshot(
            {
                "base, old form run": "note",
                "base, old form not run": "ask",
                "strict, old form run": "ask",
                "strict, old form not run": "ask",
            }
        )
    )


@pytest.mark.req("X1")
@pytest.mark.parametrize("old", ItemChange)
@pytest.mark.parametrize("new", [*ItemChange, None])
def test_each_test_whose_old_form_objects_is_in_one_of_two_lists(old: ItemChange, new: ItemChange | None) -> None:
    now = _compared(a=new) if new else _compared()
    forms = old_forms(_compared(a=old), now)
    listed = [moved.id for part in forms for moved in part]
    still_red = {ItemChange.BROKEN, ItemChange.NEW_FAILING, ItemChange.STILL_BROKEN, ItemChange.FLAKY}
    is_hidden = old is ItemChange.STILL_BROKEN and new not in still_red
    assert listed == (["a"] if old in BAD or is_hidden else [])
    assert bool(forms.expect_otherwise) is ((old in BAD or is_hidden) and new not in still_red)


@pytest.mark.req("X1")
@pytest.mark.parametrize("old", [ItemChange.BROKEN, ItemChange.STILL_BROKEN])
@pytest.mark.parametrize("new", [ItemChange.STILL_BROKEN, ItemChange.NEW_FAILING, ItemChange.NEW_PASSING])
def test_a_moved_test_that_is_red_in_both_forms_expects_what_it_did(old: ItemChange, new: ItemChange) -> None:
    original = Comparison(counts={}, moved=(Moved(id="t.py::a", move=old),))
    now = Comparison(counts={}, moved=(Moved(id="unit/t.py::a", move=new),))
    forms = old_forms(original, now, {"unit/t.py": "t.py"})
    assert bool(forms.expect_otherwise) is (new is ItemChange.NEW_PASSING)
    assert bool(forms.regressed) is (old is ItemChange.BROKEN and new is not ItemChange.NEW_PASSING)


@pytest.mark.req("X1")
def test_without_evidence_about_the_new_form_nothing_is_called_a_changed_expectation() -> None:
    forms = old_forms(_compared(a=ItemChange.BROKEN), None)
    assert [moved.id for moved in forms.regressed] == ["a"]
    assert forms.expect_otherwise == ()
    assert old_forms(_compared(a=ItemChange.STILL_BROKEN), None) == ((), ())


@pytest.mark.req("X1")
@pytest.mark.parametrize("gone", [ItemChange.VANISHED, ItemChange.SILENCED])
@pytest.mark.parametrize("old", [*ItemChange, None])
def test_a_test_may_go_only_if_its_old_form_was_run_and_passes(gone: ItemChange, old: ItemChange | None) -> None:
    now, original = _compared(a=gone, new=ItemChange.NEW_PASSING), _compared(a=old) if old else _compared()
    red = {*BAD, ItemChange.STILL_BROKEN, ItemChange.FLAKY}
    assert gone_without_objection(now, original, {"a"}) == (frozenset() if old in red else {"a"})
    assert gone_without_objection(now, original, ()) == frozenset(), "it was skipped"
    assert gone_without_objection(now, None, {"a"}) == frozenset()


@pytest.mark.req("X1")
def test_every_suppression_has_a_verdict_and_strict_is_never_milder() -> None:
    order = [SuppressionVerdict.NOTE, SuppressionVerdict.ASK, SuppressionVerdict.BLOCK]
    assert set(SUPPRESSED) == set(product(OracleMode, (True, False), (True, False, None)))
    for narrow, hides in product((True, False), (True, False, None)):
        base, strict = (SUPPRESSED[mode, narrow, hides] for mode in OracleMode)
        assert order.index(base) <= order.index(strict)
    blocked = [key[1:] for key, verdict in SUPPRESSED.items() if verdict is SuppressionVerdict.BLOCK]
    assert set(blocked) == {(False, True)}, "only a wide one that hides a new diagnostic is wrong by itself"


@pytest.mark.req("X1")
@pytest.mark.parametrize("mode", OracleMode)
def test_the_worst_suppression_of_a_line_counts(mode: OracleMode) -> None:
    order = [SuppressionVerdict.NOTE, SuppressionVerdict.ASK, SuppressionVerdict.BLOCK]
    marks = list(product((True, False), (True, False, None)))
    for first, second in product(marks, marks):
        worst = max(SUPPRESSED[mode, *first], SUPPRESSED[mode, *second], key=order.index)
        assert judged_line(mode, [first, second]) is worst
    assert judged_line(mode, []) is SuppressionVerdict.ASK


@pytest.mark.req("X5")
@pytest.mark.parametrize(("asks", "is_enough"), [((), False), (("drift",), False), (("drift", "tests"), True)])
def test_only_where_nothing_else_is_missing_a_person_is_asked(asks: tuple[str, ...], is_enough: bool) -> None:
    blocked = Blocked(
        gate=Gate.CHANGE_HOLDS,
        missing=("tests", "drift"),
        because="x",
        count=0,
        threshold=1,
        query=EvidenceQuery(sql="SELECT 1", values=()),
        asks=asks,
    )
    assert blocked.needs_person is is_enough
