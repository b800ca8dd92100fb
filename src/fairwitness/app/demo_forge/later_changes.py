"""What the workers behind the first refinery write, and those that the change request brings."""

SUMS_BEGUN = '''\
"""Several quantities at once."""

from collections.abc import Sequence
from fractions import Fraction

from measure.convert import convert
from measure.parse import parse


def total(texts: Sequence[str], to: str) -> Fraction:
    """What quantities are together, in a unit."""
    return sum((convert(*parse(text), to) for text in texts), Fraction(0))
'''
TEST_TOTAL = '''\
"""Quantities are added up."""

import unittest

from measure.sums import total


class Adding(unittest.TestCase):
    def test_units_may_be_mixed(self) -> None:
        self.assertEqual(total(["1 h", "30min", "60 s"], "min"), 91)

    def test_nothing_is_nothing(self) -> None:
        self.assertEqual(total([], "kg"), 0)
'''
SUMS_LARGEST = (
    "    return sum((convert(*parse(text), to) for text in texts), Fraction(0))\n",
    '''\
    return sum((convert(*parse(text), to) for text in texts), Fraction(0))


def largest(texts: Sequence[str]) -> str:
    """The largest of some quantities of one kind, as it was written."""
    _, unit = parse(texts[0])
    return max(texts, key=lambda text: total([text], unit))
''',
)
TEST_LARGEST = '''\
"""Quantities are compared whatever their units are."""

import unittest

from measure.sums import largest


class Comparing(unittest.TestCase):
    def test_the_unit_counts(self) -> None:
        self.assertEqual(largest(["90 min", "2 h", "100 s"]), "2 h")
        self.assertEqual(largest(["3 km", "200 m"]), "3 km")

    def test_kinds_are_not_compared(self) -> None:
        with self.assertRaises(ValueError):
            largest(["1 h", "1 kg"])
'''
SUMS_HEAD = (
    '"""Several quantities at once."""\n',
    '"""Several quantities at once: what they are together, and which of them is the largest."""\n',
)

MIXED = '''\
"""Quantities in more than one unit."""

from measure.kinds import kind_of


def mixed(amount: int, unit: str) -> str:
    """An amount in whole units, the largest first: 5400 and "s" is "1 h 30 min"."""
    kind = kind_of(unit)
    rest, parts = amount * kind[unit], list[str]()
    for name in sorted(kind, key=kind.__getitem__, reverse=True):
        count, rest = divmod(rest, kind[name])
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts) or f"0 {unit}"
'''
TEST_MIXED = '''\
"""Quantities are taken apart."""

import unittest

from measure.mixed import mixed


class Mixing(unittest.TestCase):
    def test_the_largest_unit_comes_first(self) -> None:
        self.assertEqual([mixed(5400, "s"), mixed(61, "min")], ["1 h 30 min", "1 h 1 min"])

    def test_what_is_not_needed_is_left_out(self) -> None:
        self.assertEqual([mixed(120, "min"), mixed(0, "s")], ["2 h", "0 s"])
'''

ASK = '''\
"""A whole question, and its answer."""

from measure.convert import convert
from measure.names import symbol
from measure.parse import parse
from measure.show import show


def ask(question: str) -> str:
    """The answer as people read it: "1.5 km in metres" is "1500 m"."""
    given, _, wanted = question.partition(" in ")
    amount, unit = parse(given)
    to = symbol(wanted.strip())
    return show(convert(amount, symbol(unit), to), to)
'''
TEST_ASK = '''\
"""Questions are answered."""

import unittest

from measure.ask import ask


class Asking(unittest.TestCase):
    def test_a_question_is_answered(self) -> None:
        self.assertEqual(ask("1.5 km in metres"), "1500 m")
        self.assertEqual([ask("2 hours in min"), ask("250g in kg ")], ["120 min", "0.25 kg"])

    def test_a_question_without_a_unit_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            ask("1.5 km")
'''

README = (
    'Lengths and how to convert them, exactly and without dependencies.\n\n    convert(3, "km", "m")\n',
    """\
Lengths, masses and times: read, converted, added up and shown; exactly and without dependencies.

    ask("1.5 km in metres")
    total(["1 h", "30 min"], "min")
    mixed(5400, "s")
    convert(3, "km", "m")
""",
)

PACKAGE = '''\
"""Quantities and their units."""

from measure.ask import ask
from measure.convert import convert
from measure.mixed import mixed
from measure.sums import largest, total

__all__ = ["ask", "convert", "largest", "mixed", "total"]
'''
TEST_PACKAGE = '''\
"""What the package offers by its own name."""

import unittest

import measure


class Package(unittest.TestCase):
    def test_everything_is_at_hand(self) -> None:
        self.assertEqual(measure.__all__, ["ask", "convert", "largest", "mixed", "total"])
        self.assertEqual([callable(getattr(measure, name)) for name in measure.__all__], [True] * 5)
'''

CLASHES = '''\
"""Units that more than one kind claims; only the first kind would ever be found."""

from collections import Counter
from collections.abc import Iterable, Mapping


def claimed_twice(kinds: Iterable[Mapping[str, int]]) -> list[str]:
    """The units that stand in more than one kind, in their order."""
    counted = Counter(unit for kind in kinds for unit in kind)
    return [unit for unit, count in counted.items() if count > 1]
'''
TEST_CLASHES = '''\
"""No unit belongs to two kinds."""

import unittest

from measure.clashes import claimed_twice
from measure.kinds import KINDS


class Clashes(unittest.TestCase):
    def test_our_own_kinds_are_apart(self) -> None:
        self.assertEqual(claimed_twice(KINDS), [])

    def test_a_unit_of_two_kinds_is_told(self) -> None:
        self.assertEqual(claimed_twice([{"m": 1, "km": 1000}, {"s": 1, "m": 60}]), ["m"])
'''

CONTRIBUTING = """\
# A new kind of quantity

1. Write its units into a module of its own, each with its size in the smallest one.
2. Add it to `KINDS` in `measure/kinds.py`.
3. Run `python3 -m unittest`: `tests/test_clashes.py` tells if one of its units is taken.
"""
