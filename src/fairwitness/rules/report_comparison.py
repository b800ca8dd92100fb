"""Comparison of the tests and diagnostics of a check between baseline and change, each by its id.

A failing check alone says nothing about a change; the items that got worse do. Two tables hold the policy: one for
tests, which must remain, and one for diagnostics, which should disappear.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from fairwitness.contracts.verify.results import (
    RED,
    Comparison,
    ItemChange,
    ItemOutcome,
    Moved,
    RedBefore,
    RedProof,
    ReportItem,
)

State = ItemOutcome | None
"""The outcome of an item in one tree; None if it is missing."""

_PASSED, _FAILED, _ERROR = ItemOutcome.PASSED, ItemOutcome.FAILED, ItemOutcome.ERROR
_SKIPPED, _XFAILED = ItemOutcome.SKIPPED, ItemOutcome.XFAILED

_AFTER: tuple[State, ...] = (None, _PASSED, _FAILED, _ERROR, _SKIPPED, _XFAILED)


def _row(before: State, *moves: ItemChange) -> dict[tuple[State, State], ItemChange]:
    return {(before, after): move for after, move in zip(_AFTER, moves, strict=True) if (before, after) != (None, None)}


_GONE, _QUIET, _NEW, _RED_NEW = ItemChange.VANISHED, ItemChange.SILENCED, ItemChange.NEW_PASSING, ItemChange.NEW_FAILING
_BROKE, _STILL, _FINE, _FIXED, _SKIP = (
    ItemChange.BROKEN,
    ItemChange.STILL_BROKEN,
    ItemChange.PASSING,
    ItemChange.FIXED,
    ItemChange.SKIPPED,
)

TEST_MOVES: Mapping[tuple[State, State], ItemChange] = {
    #              not there  passed  failed    error     skipped  xfailed
    **_row(None, _GONE, _NEW, _RED_NEW, _RED_NEW, _SKIP, _SKIP),
    **_row(_PASSED, _GONE, _FINE, _BROKE, _BROKE, _QUIET, _QUIET),
    # a failing test that was deleted is not fixed
    **_row(_FAILED, _GONE, _FIXED, _STILL, _STILL, _QUIET, _QUIET),
    **_row(_ERROR, _GONE, _FIXED, _STILL, _STILL, _QUIET, _QUIET),
    # it did not run before: any result is new and needs the same proof as a new test
    **_row(_SKIPPED, _GONE, _NEW, _RED_NEW, _RED_NEW, _SKIP, _SKIP),
    # it was expected to fail: that has ended or become worse
    **_row(_XFAILED, _GONE, _FIXED, _BROKE, _BROKE, _SKIP, _SKIP),
}
"""Every pair except (missing, missing)."""

DIAGNOSTIC_MOVES: Mapping[tuple[State, State], ItemChange] = {
    # a reported diagnostic is a failure; a skipped one is a warning
    **_row(None, _FINE, _FINE, _RED_NEW, _RED_NEW, _SKIP, _SKIP),
    **_row(_PASSED, _FINE, _FINE, _BROKE, _BROKE, _SKIP, _SKIP),
    **_row(_FAILED, _FIXED, _FIXED, _STILL, _STILL, _FIXED, _FIXED),
    **_row(_ERROR, _FIXED, _FIXED, _STILL, _STILL, _FIXED, _FIXED),
    # it was there before, whatever it was called
    **_row(_SKIPPED, _FIXED, _FIXED, _STILL, _STILL, _SKIP, _SKIP),
    **_row(_XFAILED, _FIXED, _FIXED, _STILL, _STILL, _SKIP, _SKIP),
}

RAN = frozenset({_PASSED, _FAILED, _ERROR})
_STANDS_FOR_MANY = frozenset({_ERROR, _SKIPPED})
"""Outcomes that a report gives for a whole file, class or package instead of its tests."""
COUNTED_ONLY = frozenset({ItemChange.PASSING, ItemChange.SKIPPED})
ORDER = (
    ItemChange.BROKEN,
    ItemChange.NEW_FAILING,
    ItemChange.VANISHED,
    ItemChange.SILENCED,
    ItemChange.FLAKY,
    ItemChange.STILL_BROKEN,
    ItemChange.FIXED,
    ItemChange.NEW_PASSING,
)
"""The order in which changes are listed: blocking ones first."""

_BEST_FIRST = (_PASSED, _XFAILED, _SKIPPED, _ERROR, _FAILED)
NOWHERE: Mapping[str, str] = {}
"""No file was moved."""
_CUT_IN_TEST = re.compile("::")
_CUT_IN_NAME = re.compile(r"\.| > ")


def compare(
    before: Sequence[ReportItem],
    after: Sequence[ReportItem],
    *,
    are_tests: bool,
    flaky: frozenset[str] = frozenset(),
    uncollected: frozenset[str] = frozenset(),
    came_from: Mapping[str, str] = NOWHERE,
) -> Comparison:
    """Compare all items of one check.

    `flaky` names items that failed once and passed when run again, `uncollected` files that could not be loaded after
    the change although no item says so, `came_from` the earlier path of each file that was moved.

    >>> old = [ReportItem(id=test, outcome=ItemOutcome.PASSED) for test in ("t.py::a", "t.py::b")]
    >>> compare(old, [ReportItem(id="t.py::a", outcome=ItemOutcome.FAILED)], are_tests=True).moved[1].move.value
    'vanished'
    """
    old, new = _by_id(before, best=True), _by_id(after, best=False)
    told_apart = frozenset(outer for id_ in new for outer in enclosing(id_)) if are_tests else frozenset()
    counts = dict.fromkeys(ItemChange, 0)
    moved, taken_along = [], _taken_along(old, new, came_from)
    for id_ in dict.fromkeys((*(id_ for id_ in old if id_ not in taken_along.values()), *new)):
        if id_ in taken_along:
            move, message = ItemChange.STILL_BROKEN, new[id_].message
        elif are_tests:
            move, message = _move(id_, old, new, uncollected, told_apart)
        else:
            move, message = _diagnostic_move(id_, old, new)
        if id_ in flaky and id_ in new and new[id_].outcome in RAN:
            move = ItemChange.FLAKY
        counts[move] += 1
        if move not in COUNTED_ONLY:
            moved.append(Moved(id=id_, move=move, message=message))
    return Comparison(counts=counts, moved=tuple(sorted(moved, key=lambda each: (ORDER.index(each.move), each.id))))


def _taken_along(
    old: Mapping[str, ReportItem], new: Mapping[str, ReportItem], came_from: Mapping[str, str]
) -> dict[str, str]:
    """Return the red items of moved files that were red at their old place, with their old ids.

    An item that is green in one of the places is none of them: it vanished, broke or was mended.
    """
    found = {}
    for id_, item in new.items():
        before = earlier_id(id_, came_from, item.path)
        if before is None or before in new or id_ in old or item.outcome not in RED:
            continue
        if before in old and old[before].outcome in RED:
            found[id_] = before
    return found


def earlier_id(id_: str, came_from: Mapping[str, str], path: str | None = None) -> str | None:
    """Return the id that an item had before its file was moved; None if its file was not, or its id does not name it.

    >>> earlier_id("unit/t.py::a", {"unit/t.py": "t.py"}), earlier_id("t.py::a", {"unit/t.py": "t.py"})
    ('t.py::a', None)
    """
    now = next((outer for outer in (path, *enclosing(id_)) if outer in came_from), None)
    return came_from[now] + id_[len(now) :] if now is not None and id_.startswith(now) else None


def _by_id(items: Sequence[ReportItem], *, best: bool) -> dict[str, ReportItem]:
    """Return the items by id; of duplicates the better one before and the worse one after, so that none hides a
    regression.
    """
    known: dict[str, ReportItem] = {}
    for item in items:
        other = known.get(item.id)
        if other is None or (_BEST_FIRST.index(item.outcome) < _BEST_FIRST.index(other.outcome)) == best:
            known[item.id] = item
    return known


def _state(id_: str, items: Mapping[str, ReportItem]) -> State:
    return items[id_].outcome if id_ in items else None


def _diagnostic_move(id_: str, old: Mapping[str, ReportItem], new: Mapping[str, ReportItem]) -> tuple[ItemChange, str]:
    return DIAGNOSTIC_MOVES[_state(id_, old), _state(id_, new)], _said(id_, old, new)


def _said(id_: str, old: Mapping[str, ReportItem], new: Mapping[str, ReportItem]) -> str:
    return new[id_].message if id_ in new else old[id_].message


def _move(
    id_: str,
    old: Mapping[str, ReportItem],
    new: Mapping[str, ReportItem],
    uncollected: frozenset[str],
    told_apart: frozenset[str],
) -> tuple[ItemChange, str]:
    move = TEST_MOVES[_state(id_, old), _state(id_, new)]
    if move is ItemChange.VANISHED:
        if id_ in told_apart and old[id_].outcome in _STANDS_FOR_MANY:
            return ItemChange.FIXED, "its tests are now reported one by one"
        return _vanished(id_, new, uncollected)
    if move is ItemChange.NEW_FAILING and id_ not in old:
        # its file did not load before, so an earlier pass is unknown
        above = _above(id_, old)
        if above is not None and above.outcome in RED:
            move = ItemChange.STILL_BROKEN
    return move, _said(id_, old, new)


def _vanished(id_: str, new: Mapping[str, ReportItem], uncollected: frozenset[str]) -> tuple[ItemChange, str]:
    """Classify a missing test, unless the outcome of its whole file explains it."""
    above = _above(id_, new)
    if above is not None and above.outcome is _ERROR:
        return ItemChange.BROKEN, f"{above.id}: {above.message}"[:2000]
    if above is not None:
        return ItemChange.SILENCED, f"{above.id}: {above.message}"[:2000]
    lost = next((path for path in enclosing(id_) if path in uncollected), None)
    if lost is not None:
        return ItemChange.BROKEN, f"{lost} cannot be collected"
    return ItemChange.VANISHED, ""


def _above(id_: str, items: Mapping[str, ReportItem]) -> ReportItem | None:
    """Return the item that stands for a test's whole class, file or package: a load error or a skip."""
    for outer in enclosing(id_):
        item = items.get(outer)
        if item is not None and item.outcome in _STANDS_FOR_MANY:
            return item
    return None


def enclosing(id_: str) -> Iterator[str]:
    """Return the ids of everything that contains a test, innermost first.

    >>> list(enclosing("tests/test_a.py::TestA::test_b[x::y]"))
    ['tests/test_a.py::TestA', 'tests/test_a.py']
    >>> list(enclosing("test_a.TestA.test_b"))
    ['test_a.TestA', 'test_a']
    >>> list(enclosing("example.com/a::TestA/sub/one"))
    ['example.com/a::TestA/sub', 'example.com/a::TestA', 'example.com/a']
    """
    first, between, rest = id_.partition("::")
    name = first + between + rest.split("[", 1)[0]  # parameters may hold anything
    cuts = [found.start() for found in _CUT_IN_TEST.finditer(name)]
    if "/" not in first:  # the dots of a file or of a package's address part nothing
        cuts += [found.start() for found in _CUT_IN_NAME.finditer(first)]
    if between:
        last = name.rfind("::")
        cuts += [found.start() for found in re.finditer("/| > ", name) if found.start() > last]
    for cut in sorted(cuts, reverse=True):
        yield id_[:cut]


def is_red_before(
    new_ids: Sequence[str],
    at_base: Sequence[ReportItem] | None,
    *,
    uncollected: frozenset[str] = frozenset(),
    unbuilt: str | None = None,
) -> RedBefore:
    """Which of the change's new tests are red on the base's code, so that they prove something.

    `at_base` is what the base's code said under the new tests; None if there is no evidence, and then nothing is red.
    `unbuilt` says why the tests did not even begin, if that was their own failure and no trouble of the machine: code
    that does not compile with them, or a runner that gave up. Then whatever was not told of is red.

    >>> is_red_before(["t.py::a"], [ReportItem(id="t.py", outcome=ItemOutcome.ERROR)]).red[0].reason
    't.py cannot be loaded on the code of the base'
    """
    known = None if at_base is None else _by_id(at_base, best=True)
    red: list[RedProof] = []
    not_red: list[RedProof] = []
    for id_ in dict.fromkeys(new_ids):
        is_red, reason = _proof(id_, known, uncollected, unbuilt)
        (red if is_red else not_red).append(RedProof(id=id_, reason=reason))
    return RedBefore(red=tuple(red), not_red=tuple(not_red))


def _proof(
    id_: str, known: Mapping[str, ReportItem] | None, uncollected: frozenset[str], unbuilt: str | None
) -> tuple[bool, str]:
    if known is None:
        return unbuilt is not None, unbuilt or "there is no evidence from the code of the base"
    item = known.get(id_)
    if item is not None:
        return item.outcome in RED, f"it {_WORDS[item.outcome]} on the code of the base"
    above = _above(id_, known)
    if above is not None and above.outcome is _ERROR:
        return True, f"{above.id} cannot be loaded on the code of the base"
    if above is not None:
        return False, f"{above.id} is skipped on the code of the base"
    lost = next((path for path in enclosing(id_) if path in uncollected), None)
    if lost is not None:
        return True, f"{lost} cannot be collected on the code of the base"
    if "::" not in id_:
        # some reports name no files, so a file that does not load may be the one that holds it
        file = next((other for other in known.values() if other.outcome is _ERROR and other.path == other.id), None)
        if file is not None:
            return True, f"{file.id}, which may hold it, cannot be loaded on the code of the base"
    return unbuilt is not None, unbuilt or "it did not run on the code of the base"


_WORDS = {
    _PASSED: "passes",
    _FAILED: "fails",
    _ERROR: "cannot run",
    _SKIPPED: "is skipped",
    _XFAILED: "is expected to fail",
}
