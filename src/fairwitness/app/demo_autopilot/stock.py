"""Phase 1, the stock: two tasks side by side, and nothing to complain about."""

from fairwitness.app.demo_autopilot.library import NAMES
from fairwitness.app.demo_autopilot.roadmap import STOCK_HELD
from fairwitness.app.demo_autopilot.scripts import (
    Scored,
    Task,
    carried_out,
    judged,
    plan_checked,
    planned,
    rated,
    researched,
    shown,
    verified,
)
from fairwitness.app.demo_feature.scripts import create

PHASE = 1
STOCK = '''\
"""What is in the larder, and how much of it."""

from larder.names import tidy


class Stock:
    """Amounts by name; a name is the same item however it is spelled."""

    def __init__(self) -> None:
        self._amounts: dict[str, int] = {}

    def put(self, name: str, amount: int) -> None:
        """Adds to an item."""
        if amount < 1:
            raise ValueError(f"{amount} of {tidy(name)} cannot be put in")
        self._amounts[tidy(name)] = self.amount(name) + amount

    def take(self, name: str, amount: int) -> None:
        """Takes from an item, and never more than there is."""
        left = self.amount(name) - amount
        if amount < 1 or left < 0:
            raise ValueError(f"{amount} of {tidy(name)} cannot be taken out")
        self._amounts[tidy(name)] = left

    def amount(self, name: str) -> int:
        """How much there is; nothing of what was never put in."""
        return self._amounts.get(tidy(name), 0)
'''
_TEST_STOCK = '''\
"""Things are put in and taken out."""

import unittest

from larder.stock import Stock


class Stocks(unittest.TestCase):
    def setUp(self) -> None:
        self.stock = Stock()
        self.stock.put("Oats", 3)

    def test_what_is_put_in_can_be_taken_out(self) -> None:
        self.stock.put("oats ", 1)
        self.assertEqual(self.stock.amount("oats"), 4)
        self.stock.take("oats", 4)
        self.assertEqual([self.stock.amount("oats"), self.stock.amount("salt")], [0, 0])

    def test_nobody_takes_more_than_there_is(self) -> None:
        with self.assertRaisesRegex(ValueError, "4 of oats cannot be taken out"):
            self.stock.take("oats", 4)
        self.assertEqual(self.stock.amount("oats"), 3)

    def test_one_is_the_least(self) -> None:
        self.stock.take("oats", 1)
        for change in (self.stock.put, self.stock.take):
            with self.assertRaisesRegex(ValueError, "0 of oats cannot be"):
                change("oats", 0)
        self.assertEqual(self.stock.amount("oats"), 2)
'''
DAYS = '''\
"""How long things keep."""

from collections.abc import Mapping
from datetime import date


def days_left(best_before: str, today: str) -> int:
    """The days from today to the last good one; below zero if that is over."""
    return (date.fromisoformat(best_before) - date.fromisoformat(today)).days


def by_age(best_before: Mapping[str, str]) -> list[str]:
    """Names by their last good day, the earliest first; among equals in the order of letters."""
    return sorted(best_before, key=lambda name: (best_before[name], name))
'''
_TEST_DAYS = '''\
"""What keeps shortest comes first."""

import unittest

from larder.days import by_age, days_left


class Days(unittest.TestCase):
    def test_days_are_counted(self) -> None:
        days = [days_left(day, "2026-03-01") for day in ("2026-03-08", "2026-03-01", "2026-02-28")]
        self.assertEqual(days, [7, 0, -1])

    def test_the_earliest_comes_first(self) -> None:
        keeps = {"milk": "2026-03-04", "eggs": "2026-03-04", "oats": "2026-11-30", "fish": "2026-03-02"}
        self.assertEqual(by_age(keeps), ["fish", "eggs", "milk", "oats"])
'''

_IN_AND_OUT, _SHORTEST, _SPELLED = STOCK_HELD
_STOCK, _DAYS = "larder/stock.py", "larder/days.py"
_TAKES = shown(_STOCK, STOCK, "if amount < 1 or left < 0")
_SORTS = shown(_DAYS, DAYS, "return sorted")
_TIDIES = shown(_STOCK, STOCK, "return self._amounts.get")
STOCK_TASK = Task(
    PHASE,
    "stock",
    "Keep amounts by name. Write larder/stock.py with a class Stock: put(name, amount), take(name, amount) and "
    "amount(name). Names go through tidy of larder/names.py. Amounts are whole and at least 1; taking more than there "
    "is is a ValueError.",
    "A Stock can be filled and emptied, and refuses what cannot be.",
    (_IN_AND_OUT, _SPELLED),
    ("LAR-01", _IN_AND_OUT.criterion, _SPELLED.criterion),
    (create("tests/test_stock.py", _TEST_STOCK), create(_STOCK, STOCK)),
    (_TAKES, _TIDIES),
    ("larder/names.py",),
)
DAYS_TASK = Task(
    PHASE,
    "days",
    "Sort by last good day. Write larder/days.py with days_left(best_before, today) and by_age(best_before by name). "
    "Days are ISO dates.",
    "Days are counted, also below zero, and names are sorted by their last good day.",
    (_SHORTEST,),
    ("LAR-02", _SHORTEST.criterion),
    (create("tests/test_days.py", _TEST_DAYS), create(_DAYS, DAYS)),
    (_SORTS,),
    ("larder/names.py",),
)
TASKS = (STOCK_TASK, DAYS_TASK)
_SEEN = ((_IN_AND_OUT, _TAKES), (_SHORTEST, _SORTS), (_SPELLED, _TIDIES))

SESSIONS = (
    researched(
        PHASE,
        (
            f"Names have one spelling already: {shown('larder/names.py', NAMES, 'return')}",
            "Nothing keeps amounts or days yet, so both can be written side by side.",
            "datetime.date of the standard library reads ISO dates; no dependency is needed.",
        ),
        "Two modules of their own, one for amounts and one for days, each with its test.",
        ("A name that is not tidied at one place would be two items.",),
        ("larder/names.py", "README.md"),
    ),
    planned(PHASE, TASKS),
    plan_checked(PHASE, 9.0, "The two tasks share no file, so they can be done at the same time."),
    *carried_out(STOCK_TASK, concerns=("Amounts are whole numbers; half a pound needs a smaller unit.",)),
    *carried_out(DAYS_TASK, deviations=("Nothing but the test uses larder/days.py yet; the plan names no caller.",)),
    verified(PHASE, 1, _SEEN, (_STOCK, _DAYS, "tests/test_stock.py", "tests/test_days.py")),
    judged(
        PHASE,
        1,
        (f"An item that was used up stays in the dictionary with amount 0 ({_STOCK}), which listing it would show.",),
        (
            shown(_STOCK, STOCK, "self._amounts[tidy(name)] = left"),
            "Stock().take('salt', 1) -> ValueError: 1 of salt cannot be taken out",
        ),
        "I tried to take what was never put in before I read the verifier's return, and it is refused. The verifier "
        "and I differ in nothing but the empty entries, which no criterion speaks of.",
        (_STOCK, _DAYS),
    ),
    rated(
        PHASE,
        1,
        (
            Scored(_IN_AND_OUT, 9.3, _TAKES, "Both ways and the refusal are tested, with the words of its message."),
            Scored(_SHORTEST, 9.2, _SORTS, "Order and days below zero are tested; a date that is none is not."),
            Scored(_SPELLED, 9.1, _TIDIES, "All three methods go through tidy; one test holds put and amount to it."),
        ),
        "Every criterion is met by a line of the diff and held by a test; nothing beyond them was built.",
        "None: only new files.",
    ),
)
