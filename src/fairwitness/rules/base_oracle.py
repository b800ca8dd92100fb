"""How a change of existing tests and rules is judged: by the base's own form of them, run against the new code.

A test that fails in its old form only, because the change edits or deletes it, expected something else before. Whether
the new expectation is right is for a person to decide, also where the test failed before the change. A test that passed
before and fails in both forms is a regression. A test whose old form passes may be edited, moved or deleted freely,
unless the mode is strict; one whose old form did not run may not.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from fairwitness.contracts.verify.checks import OracleMode
from fairwitness.contracts.verify.results import BAD, Comparison, ItemChange, Moved
from fairwitness.rules.report_comparison import NOWHERE, earlier_id

_RED_NOW = frozenset({ItemChange.BROKEN, ItemChange.NEW_FAILING, ItemChange.STILL_BROKEN, ItemChange.FLAKY})
_OBJECTS = BAD | {ItemChange.STILL_BROKEN}
GONE = frozenset({ItemChange.VANISHED, ItemChange.SILENCED})


class WeakeningVerdict(StrEnum):
    """What becomes of a finding that a test or a rule was weakened."""

    NOTE = "note"
    ASK = "ask"


WEAKENED: Mapping[tuple[OracleMode, bool], WeakeningVerdict] = {
    (OracleMode.BASE, True): WeakeningVerdict.NOTE,
    (OracleMode.BASE, False): WeakeningVerdict.ASK,
    (OracleMode.STRICT, True): WeakeningVerdict.ASK,
    (OracleMode.STRICT, False): WeakeningVerdict.ASK,
}
"""By the mode, and by whether the base's own form was run against the new code."""


class SuppressionVerdict(StrEnum):
    """What becomes of a suppression that a change adds."""

    NOTE = "note"
    ASK = "ask"
    BLOCK = "block"


_NOTE, _ASK, _BLOCK = SuppressionVerdict
SUPPRESSED: Mapping[tuple[OracleMode, bool, bool | None], SuppressionVerdict] = {
    (OracleMode.BASE, True, True): _NOTE,
    (OracleMode.BASE, True, False): _NOTE,
    (OracleMode.BASE, True, None): _NOTE,
    (OracleMode.BASE, False, True): _BLOCK,
    (OracleMode.BASE, False, False): _NOTE,
    (OracleMode.BASE, False, None): _ASK,
    (OracleMode.STRICT, True, True): _ASK,
    (OracleMode.STRICT, True, False): _NOTE,
    (OracleMode.STRICT, True, None): _ASK,
    (OracleMode.STRICT, False, True): _BLOCK,
    (OracleMode.STRICT, False, False): _ASK,
    (OracleMode.STRICT, False, None): _ASK,
}
"""By the mode, by whether it holds for one line and names its code, and by whether it hides a new diagnostic; None if
no checker could be run without it."""


def judged_line(mode: OracleMode, marks: Iterable[tuple[bool, bool | None]]) -> SuppressionVerdict:
    """Return the verdict on a line with several suppressions: that of the worst; each has its columns of the table.

    Without marks, they could not be removed, and nothing is known.

    >>> judged_line(OracleMode.BASE, [(True, True), (False, None)]).value
    'ask'
    """
    verdicts = {SUPPRESSED[mode, is_narrow, hides] for is_narrow, hides in marks} or {SUPPRESSED[mode, False, None]}
    return next(verdict for verdict in (_BLOCK, _ASK, _NOTE) if verdict in verdicts)


class OldForms(NamedTuple):
    """The tests whose old form objects to the new code."""

    regressed: tuple[Moved, ...]
    """They got worse, in their new form as well or it is unknown."""
    expect_otherwise: tuple[Moved, ...]
    """Only their old form fails: the change edits or deletes what it expects."""


def old_forms(original: Comparison, now: Comparison | None, came_from: Mapping[str, str] = NOWHERE) -> OldForms:
    """Divide what the base's own tests say about the new code; `now` is what the change's own tests say.

    `came_from` has the earlier path of each file that was moved.

    >>> broken = Moved(id="t.py::a", move=ItemChange.BROKEN)
    >>> old, new = Comparison(counts={}, moved=(broken,)), Comparison(counts={}, moved=())
    >>> [moved.id for moved in old_forms(old, new).expect_otherwise]
    ['t.py::a']
    """
    red: set[str | None] | None = None
    if now is not None:
        names = [moved.id for moved in now.moved if moved.move in _RED_NOW]
        red = {*names, *(earlier_id(name, came_from) for name in names)}
    return OldForms(
        regressed=tuple(moved for moved in original.moved if moved.move in BAD and (red is None or moved.id in red)),
        expect_otherwise=tuple(
            moved for moved in original.moved if moved.move in _OBJECTS and red is not None and moved.id not in red
        ),
    )


def gone_without_objection(now: Comparison, original: Comparison | None, passed: Collection[str]) -> frozenset[str]:
    """Return the tests that vanished or are skipped now, and whose old form passed with the new code."""
    if original is None:
        return frozenset()
    unsure = {moved.id for moved in original.moved if moved.move in _OBJECTS | {ItemChange.FLAKY}}
    gone = (moved.id for moved in now.moved if moved.move in GONE)
    return frozenset(id_ for id_ in gone if id_ in passed and id_ not in unsure)
