"""What became of each test and diagnostic: total over all pairs, the whole table, and no harm is ever hidden."""

from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.verify.results import BAD, RED, Comparison, ItemChange, ItemOutcome, ReportItem
from fairwitness.rules.report_comparison import (
    COUNTED_ONLY,
    DIAGNOSTIC_MOVES,
    ORDER,
    TEST_MOVES,
    State,
    compare,
    enclosing,
    is_red_before,
)

STATES: tuple[State, ...] = (None, *ItemOutcome)
PAIRS = [pair for pair in product(STATES, STATES) if pair != (None, None)]
PASSED, FAILED, ERROR, SKIPPED, XFAILED = ItemOutcome


def _items(**outcomes: State) -> list[ReportItem]:
    return [
        ReportItem(id=f"t.py::{name}", outcome=outcome) for name, outcome in outcomes.items() if outcome is not None
    ]


def _item(id_: str, outcome: ItemOutcome, message: str = "", path: str | None = None) -> ReportItem:
    return ReportItem(id=id_, outcome=outcome, message=message, path=path)


def _moves(comparison: Comparison) -> list[str]:
    return [
        f"{moved.id}: {moved.move.value}" + f" ({moved.message})" * bool(moved.message) for moved in comparison.moved
    ]


def _only(comparison: Comparison) -> ItemChange:
    (move,) = (move for move, count in comparison.counts.items() if count)
    return move


def _name(state: State) -> str:
    return "not there" if state is None else state.value


def _table(moves: Mapping[tuple[State, State], ItemChange]) -> dict[str, list[str]]:
    """For each state before: what it becomes with each state after."""
    return {
        _name(before): [
            f"{_name(after)} → {moves[before, after].value}" for after in STATES if (before, after) in moves
        ]
        for before in STATES
    }


@pytest.mark.req("P9", "X1")
def test_every_pair_of_states_has_a_move_for_tests_and_for_diagnostics() -> None:
    assert set(TEST_MOVES) == set(DIAGNOSTIC_MOVES) == set(PAIRS)
    assert set(ORDER) | COUNTED_ONLY == set(ItemChange)
    assert not set(ORDER) & COUNTED_ONLY


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("are_tests", [True, False])
@pytest.mark.parametrize("flaky", [True, False])
def test_every_pair_of_states_is_moved_by_its_table(are_tests: bool, flaky: bool) -> None:
    table = TEST_MOVES if are_tests else DIAGNOSTIC_MOVES
    for before, after in PAIRS:
        found = compare(
            _items(a=before), _items(a=after), are_tests=are_tests, flaky=frozenset({"t.py::a"} if flaky else ())
        )
        ran = after in (PASSED, FAILED, ERROR)
        assert _only(found) is (ItemChange.FLAKY if flaky and ran else table[before, after])
        assert set(found.counts) == set(ItemChange)


@pytest.mark.req("P9", "X1")
def test_the_whole_table_of_tests() -> None:
    assert _table(TEST_MOVES) == snapshot(
        {
            "not there": [
                "passed → new",
                "failed → new and failing",
                "error → new and failing",
                "skipped → skipped",
                "xfailed → skipped",
            ],
            "passed": [
                "not there → vanished",
                "passed → passing",
                "failed → broken",
                "error → broken",
                "skipped → silenced",
                "xfailed → silenced",
            ],
            "failed": [
                "not there → vanished",
                "passed → fixed",
                "failed → still broken",
                "error → still broken",
                "skipped → silenced",
                "xfailed → silenced",
            ],
            "error": [
                "not there → vanished",
                "passed → fixed",
                "failed → still broken",
                "error → still broken",
                "skipped → silenced",
                "xfailed → silenced",
            ],
            "skipped": [
                "not there → vanished",
                "passed → new",
                "failed → new and failing",
                "error → new and failing",
                "skipped → skipped",
                "xfailed → skipped",
            ],
            "xfailed": [
                "not there → vanished",
                "passed → fixed",
                "failed → broken",
                "error → broken",
                "skipped → skipped",
                "xfailed → skipped",
            ],
        }
    )


@pytest.mark.req("P9", "X1")
def test_the_whole_table_of_diagnostics() -> None:
    assert _table(DIAGNOSTIC_MOVES) == snapshot(
        {
            "not there": [
                "passed → passing",
                "failed → new and failing",
                "error → new and failing",
                "skipped → skipped",
                "xfailed → skipped",
            ],
            "passed": [
                "not there → passing",
                "passed → passing",
                "failed → broken",
                "error → broken",
                "skipped → skipped",
                "xfailed → skipped",
            ],
            "failed": [
                "not there → fixed",
                "passed → fixed",
                "failed → still broken",
                "error → still broken",
                "skipped → fixed",
                "xfailed → fixed",
            ],
            "error": [
                "not there → fixed",
                "passed → fixed",
                "failed → still broken",
                "error → still broken",
                "skipped → fixed",
                "xfailed → fixed",
            ],
            "skipped": [
                "not there → fixed",
                "passed → fixed",
                "failed → still broken",
                "error → still broken",
                "skipped → skipped",
                "xfailed → skipped",
            ],
            "xfailed": [
                "not there → fixed",
                "passed → fixed",
                "failed → still broken",
                "error → still broken",
                "skipped → skipped",
                "xfailed → skipped",
            ],
        }
    )


@pytest.mark.req("P9", "X1")
def test_a_test_that_ran_and_does_not_run_any_more_is_always_bad() -> None:
    for before, after in product((PASSED, FAILED, ERROR), (None, SKIPPED, XFAILED)):
        assert TEST_MOVES[before, after] in BAD
    for after in (FAILED, ERROR):
        assert {TEST_MOVES[before, after] for before in (None, PASSED, SKIPPED, XFAILED)} <= BAD
        assert {DIAGNOSTIC_MOVES[before, after] for before in (None, PASSED)} <= BAD


@pytest.mark.req("P9", "X1")
def test_what_moved_is_listed_with_what_blocks_first() -> None:
    before = _items(a=PASSED, b=PASSED, c=FAILED, d=FAILED, e=PASSED, f=PASSED, g=SKIPPED, h=PASSED)
    after = _items(a=PASSED, b=FAILED, c=PASSED, d=ERROR, f=SKIPPED, g=SKIPPED, h=PASSED, i=PASSED, j=FAILED)
    found = compare(before, after, are_tests=True, flaky=frozenset({"t.py::h", "t.py::e"}))
    assert _moves(found) == snapshot(
        [
            "t.py::b: broken",
            "t.py::j: new and failing",
            "t.py::e: vanished",
            "t.py::f: silenced",
            "t.py::h: flaky",
            "t.py::d: still broken",
            "t.py::c: fixed",
            "t.py::i: new",
        ]
    )
    assert {move.value: count for move, count in found.counts.items()} == snapshot(
        {
            "passing": 1,
            "fixed": 1,
            "broken": 1,
            "still broken": 1,
            "new": 1,
            "new and failing": 1,
            "vanished": 1,
            "silenced": 1,
            "skipped": 1,
            "flaky": 1,
        }
    )


@pytest.mark.req("P9", "X1")
def test_tests_of_a_file_that_no_longer_loads_are_broken_and_say_why() -> None:
    before = _items(a=PASSED, b=FAILED)
    after = [_item("t.py", ERROR, "No module named 'x'"), _item("u.py::c", PASSED)]
    assert _moves(compare(before, after, are_tests=True)) == snapshot(
        [
            "t.py::a: broken (t.py: No module named 'x')",
            "t.py::b: broken (t.py: No module named 'x')",
            "t.py: new and failing (No module named 'x')",
            "u.py::c: new",
        ]
    )
    assert _moves(compare(before, [], are_tests=True, uncollected=frozenset({"t.py"}))) == snapshot(
        ["t.py::a: broken (t.py cannot be collected)", "t.py::b: broken (t.py cannot be collected)"]
    )
    assert _moves(compare(before, [], are_tests=True, uncollected=frozenset({"u.py"}))) == snapshot(
        ["t.py::a: vanished", "t.py::b: vanished"]
    )


@pytest.mark.req("P9", "X1")
def test_tests_of_a_file_that_is_skipped_as_a_whole_are_silenced() -> None:
    after = [_item("t.py", SKIPPED, "not on this machine")]
    assert _moves(compare(_items(a=PASSED), after, are_tests=True)) == snapshot(
        ["t.py::a: silenced (t.py: not on this machine)"]
    )


@pytest.mark.req("P9", "X1")
def test_a_failed_test_of_the_name_of_a_class_does_not_stand_for_the_class() -> None:
    before = [_item("t.py::A::x", PASSED)]
    after = [_item("t.py::A", FAILED)]
    assert _moves(compare(before, after, are_tests=True)) == ["t.py::A: new and failing", "t.py::A::x: vanished"]


@pytest.mark.req("P9", "X1")
def test_a_file_that_did_not_load_before_and_does_now_is_fixed() -> None:
    before = [_item("t.py", ERROR, "No module named 'x'")]
    assert _moves(compare(before, _items(a=PASSED, b=FAILED, c=SKIPPED), are_tests=True)) == snapshot(
        ["t.py::b: still broken", "t.py: fixed (its tests are now reported one by one)", "t.py::a: new"]
    )
    assert _moves(compare(before, [], are_tests=True)) == ["t.py: vanished"]
    assert _moves(compare(before, [_item("t.py", ERROR)], are_tests=True)) == ["t.py: still broken"]


@pytest.mark.req("P9", "X1")
def test_a_new_failing_test_in_a_file_that_was_skipped_before_is_still_new_and_failing() -> None:
    before = [_item("t.py", SKIPPED)]
    assert _moves(compare(before, _items(a=FAILED), are_tests=True)) == snapshot(
        ["t.py::a: new and failing", "t.py: fixed (its tests are now reported one by one)"]
    )


@pytest.mark.req("P9", "X1")
def test_of_two_items_under_one_id_the_pair_that_shows_most_harm_counts() -> None:
    twice = [*_items(a=PASSED), *_items(a=FAILED)]
    for one, other in ((twice, twice), (twice[::-1], twice), (twice, twice[::-1])):
        assert _moves(compare(one, other, are_tests=True)) == ["t.py::a: broken"]


@pytest.mark.req("P9")
def test_nothing_compared_with_nothing_is_nothing() -> None:
    found = compare([], [], are_tests=True)
    assert (found.moved, sum(found.counts.values())) == ((), 0)


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    ("id_", "outer"),
    [
        ("tests/t.py::A::B::c[1]", ["tests/t.py::A::B", "tests/t.py::A", "tests/t.py"]),
        ("app/[id]/page.test.ts::suite > shows", ["app/[id]/page.test.ts::suite", "app/[id]/page.test.ts"]),
        ("tests.unit.t.A::b", ["tests.unit.t.A", "tests.unit.t", "tests.unit", "tests"]),
        ("m.C.test", ["m.C", "m"]),
        ("suite > deep > leaf", ["suite > deep", "suite"]),
        ("test/a.test.js", []),
        ("plain", []),
    ],
)
def test_what_a_test_is_a_part_of(id_: str, outer: list[str]) -> None:
    assert list(enclosing(id_)) == outer


OUTCOMES = st.sampled_from(ItemOutcome)
IDS = st.sampled_from(["t.py", "t.py::a", "t.py::b", "t.py::A::c", "u.py::a", "m.C.t", "m", "x > y", "x"])
ITEMS = st.lists(st.builds(_item, IDS, OUTCOMES), max_size=8)
QUICK = settings(max_examples=300)


@pytest.mark.req("P9", "X1")
@QUICK
@given(ITEMS, ITEMS, st.booleans(), st.frozensets(IDS), st.frozensets(IDS))
def test_everything_is_counted_once_and_the_order_of_items_means_nothing(
    before: list[ReportItem],
    after: list[ReportItem],
    are_tests: bool,
    flaky: frozenset[str],
    uncollected: frozenset[str],
) -> None:
    found = compare(before, after, are_tests=are_tests, flaky=flaky, uncollected=uncollected)
    assert sum(found.counts.values()) == len({item.id for item in (*before, *after)})
    assert len(found.moved) == sum(count for move, count in found.counts.items() if move not in COUNTED_ONLY)
    turned = compare(before[::-1], after[::-1], are_tests=are_tests, flaky=flaky, uncollected=uncollected)
    assert [(moved.id, moved.move) for moved in turned.moved] == [(moved.id, moved.move) for moved in found.moved]
    assert turned.counts == found.counts


@pytest.mark.req("P9", "X1")
def test_what_is_red_in_a_moved_file_was_red_before_it_moved() -> None:
    before = [
        _item("a.py::one", FAILED),
        _item("a.py::two", PASSED),
        _item("a.py::three", FAILED),
        _item("b.py", ERROR),
    ]
    after = [_item("c/a.py::one", ERROR, "no network"), _item("c/a.py::two", FAILED), _item("c/a.py::three", PASSED)]
    found = compare(before, after, are_tests=True, came_from={"c/a.py": "a.py", "d.py": "b.py"})
    assert _moves(found) == snapshot(
        [
            "c/a.py::two: new and failing",
            "a.py::three: vanished",
            "a.py::two: vanished",
            "b.py: vanished",
            "c/a.py::one: still broken (no network)",
            "c/a.py::three: new",
        ]
    )
    assert [
        _only(compare([_item("a.py::x", old)], [_item("b.py::x", new)], are_tests=True, came_from={"b.py": "a.py"}))
        for old in RED
        for new in RED
    ] == [ItemChange.STILL_BROKEN] * 4


@pytest.mark.req("P9", "X1")
def test_what_a_linter_says_of_a_moved_file_is_not_new() -> None:
    before, after = _item("a.py:F401:os", FAILED, path="a.py"), _item("c/a.py:F401:os", FAILED, path="c/a.py")
    moved = {"c/a.py": "a.py"}
    assert _only(compare([before], [after], are_tests=False, came_from=moved)) is ItemChange.STILL_BROKEN
    found = compare([before], [after, _item("c/a.py:F821:x", FAILED, path="c/a.py")], are_tests=False, came_from=moved)
    assert _moves(found) == ["c/a.py:F821:x: new and failing", "c/a.py:F401:os: still broken"]
    again = compare([before], [before, after], are_tests=False, came_from=moved)
    assert _moves(again) == ["c/a.py:F401:os: new and failing", "a.py:F401:os: still broken"], "a copy is new"
    odd = compare([before], [_item("os", FAILED, path="c/a.py")], are_tests=False, came_from=moved)
    assert _moves(odd) == ["os: new and failing", "a.py:F401:os: fixed"], "an id without its path is not followed"


def _bad(before: Sequence[ReportItem], after: Sequence[ReportItem]) -> set[str]:
    return {moved.id for moved in compare(before, after, are_tests=True).moved if moved.move in BAD}


@pytest.mark.req("P9", "X1")
@QUICK
@given(ITEMS)
def test_a_change_that_changes_nothing_has_nothing_bad(items: list[ReportItem]) -> None:
    same = list({item.id: item for item in items}.values())
    assert _bad(same, same) == set()
    assert {moved.move for moved in compare(same, same, are_tests=False).moved} <= {ItemChange.STILL_BROKEN}


@pytest.mark.req("P9", "X1")
@QUICK
@given(ITEMS, ITEMS, IDS, st.sampled_from([None, FAILED, ERROR, SKIPPED, XFAILED]))
def test_no_passing_test_gets_lost_whatever_else_moves(
    before: list[ReportItem], after: list[ReportItem], id_: str, now: State
) -> None:
    before = [*[item for item in before if item.id != id_], _item(id_, PASSED)]
    after = [item for item in after if item.id != id_]
    assert id_ in _bad(before, after if now is None else [*after, _item(id_, now)])


@pytest.mark.req("P9", "X1")
def test_new_tests_prove_something_if_they_are_red_without_the_change() -> None:
    at_base = [
        *_items(fails=FAILED, breaks=ERROR, passes=PASSED, skips=SKIPPED, known=XFAILED),
        _item("u.py", ERROR),
        _item("v.py", SKIPPED),
    ]
    new = [f"t.py::{name}" for name in ("fails", "breaks", "passes", "skips", "known", "absent", "fails")]
    found = is_red_before([*new, "u.py::A::x", "v.py::y", "w.py::z"], at_base, uncollected=frozenset({"w.py"}))
    assert [f"{proof.id}: {proof.reason}" for proof in found.red] == snapshot(
        [
            "t.py::fails: it fails on the code of the base",
            "t.py::breaks: it cannot run on the code of the base",
            "u.py::A::x: u.py cannot be loaded on the code of the base",
            "w.py::z: w.py cannot be collected on the code of the base",
        ]
    )
    assert [f"{proof.id}: {proof.reason}" for proof in found.not_red] == snapshot(
        [
            "t.py::passes: it passes on the code of the base",
            "t.py::skips: it is skipped on the code of the base",
            "t.py::known: it is expected to fail on the code of the base",
            "t.py::absent: it did not run on the code of the base",
            "v.py::y: v.py is skipped on the code of the base",
        ]
    )


@pytest.mark.req("P9", "X1")
def test_without_evidence_from_the_base_no_test_is_red() -> None:
    found = is_red_before(["a", "b"], None)
    assert found.red == ()
    assert {proof.reason for proof in found.not_red} == {"there is no evidence from the code of the base"}


@pytest.mark.req("P9", "X1")
def test_tests_that_could_not_even_be_built_are_red_unless_they_were_told_of() -> None:
    assert [proof.reason for proof in is_red_before(["a"], None, unbuilt="it does not compile").red] == [
        "it does not compile"
    ]
    found = is_red_before(["t.py::a", "t.py::b"], _items(a=PASSED), unbuilt="it gave up")
    assert [proof.id for proof in found.red] == ["t.py::b"]


@pytest.mark.req("P9", "X1")
def test_a_test_of_a_report_without_files_is_red_if_some_file_does_not_load() -> None:
    at_base = [_item("test/c.test.js", ERROR, path="test/c.test.js"), _item("other", ERROR)]
    assert [proof.reason for proof in is_red_before(["adds"], at_base).red] == snapshot(
        ["test/c.test.js, which may hold it, cannot be loaded on the code of the base"]
    )
    assert is_red_before(["adds"], at_base[1:]).red == ()
    assert is_red_before(["x.js::adds"], at_base).red == ()


@pytest.mark.req("P9", "X1")
@QUICK
@given(st.lists(IDS, max_size=6), st.none() | ITEMS)
def test_every_new_test_is_judged_once_and_a_pass_is_never_red(
    new: list[str], at_base: list[ReportItem] | None
) -> None:
    found = is_red_before(new, at_base)
    assert sorted(proof.id for proof in (*found.red, *found.not_red)) == sorted(set(new))
    passing = {item.id for item in at_base or () if item.outcome not in RED}
    assert not passing & {proof.id for proof in found.red}
