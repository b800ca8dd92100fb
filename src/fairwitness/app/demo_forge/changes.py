"""What the workers before the first refinery write: two of them change the same lines, and one is wrong at first."""

MASS = '''\
"""Masses, in milligrams."""

MASS = {"mg": 1, "g": 1_000, "kg": 1_000_000}
'''
TEST_MASS = '''\
"""Masses are converted like lengths."""

import unittest

from measure.convert import convert


class Masses(unittest.TestCase):
    def test_a_mass_is_converted(self) -> None:
        self.assertEqual([convert(2, "kg", "g"), convert(2, "g", "mg")], [2000, 2000])

    def test_a_mass_is_no_length(self) -> None:
        with self.assertRaisesRegex(ValueError, "kg cannot be converted into m"):
            convert(1, "kg", "m")
'''

DURATION = '''\
"""Times, in seconds."""

DURATION = {"s": 1, "min": 60, "h": 3_600}
'''
TEST_DURATION = '''\
"""Times are converted like lengths."""

import unittest

from measure.convert import convert


class Durations(unittest.TestCase):
    def test_a_time_is_converted(self) -> None:
        self.assertEqual([convert(2, "h", "min"), convert(2, "min", "s")], [120, 120])

    def test_a_time_is_no_length(self) -> None:
        with self.assertRaisesRegex(ValueError, "h cannot be converted into km"):
            convert(1, "h", "km")
'''

_KINDS = "from measure.length import LENGTH\n\nKINDS = (LENGTH,)\n"
KINDS_WITH_MASS = (
    _KINDS,
    "from measure.length import LENGTH\nfrom measure.mass import MASS\n\nKINDS = (LENGTH, MASS)\n",
)
KINDS_WITH_DURATION = (
    _KINDS,
    "from measure.duration import DURATION\nfrom measure.length import LENGTH\n\nKINDS = (LENGTH, DURATION)\n",
)
KINDS_SETTLED = '''\
"""Every kind of quantity, and which one a unit belongs to."""

from measure.duration import DURATION
from measure.length import LENGTH
from measure.mass import MASS

KINDS = (LENGTH, MASS, DURATION)


def kind_of(unit: str) -> dict[str, int]:
    """The units that a unit can be converted into, each with its size."""
    for kind in KINDS:
        if unit in kind:
            return kind
    raise ValueError(f"{unit!r} is no unit")
'''
"""Both kinds, as the refinery leaves it."""

NAMES = '''\
"""Units as people write them out."""

NAMES = {"metre": "m", "kilometre": "km", "gram": "g", "kilogram": "kg", "minute": "min", "hour": "h"}


def symbol(word: str) -> str:
    """The sign of a unit, whether it is written out or not: "hours" is "h"."""
    return NAMES.get(word.removesuffix("s"), word)
'''
TEST_NAMES = '''\
"""Units may be written out."""

import unittest

from measure.names import symbol


class Names(unittest.TestCase):
    def test_a_name_stands_for_its_sign(self) -> None:
        words = ("metre", "kilometres", "gram", "kilograms", "minutes", "hour")
        self.assertEqual([symbol(word) for word in words], ["m", "km", "g", "kg", "min", "h"])

    def test_a_sign_stands_for_itself(self) -> None:
        self.assertEqual([symbol("km"), symbol("s")], ["km", "s"])
'''

PARSE_WRONG = '''\
"""Quantities as people write them."""

from fractions import Fraction


def parse(text: str) -> tuple[Fraction, str]:
    """The amount and the unit of a text: "1.5 km" is 3/2 and "km"."""
    amount, _, unit = text.partition(" ")
    if not unit:
        raise ValueError(f"{text!r} is no quantity")
    return Fraction(amount), unit
'''
"""It takes the space for granted."""
PARSE = '''\
"""Quantities as people write them."""

import re
from fractions import Fraction

_QUANTITY = re.compile(r"([0-9]+(?:[.][0-9]+)?) *([a-z]+)")


def parse(text: str) -> tuple[Fraction, str]:
    """The amount and the unit of a text: "1.5 km" is 3/2 and "km"."""
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no quantity")
    return Fraction(found[1]), found[2]
'''
TEST_PARSE = '''\
"""Quantities are read as people write them."""

import unittest
from fractions import Fraction

from measure.parse import parse


class Parsing(unittest.TestCase):
    def test_amount_and_unit_are_read(self) -> None:
        self.assertEqual(parse(" 1.5 km "), (Fraction(3, 2), "km"))

    def test_a_space_is_not_needed(self) -> None:
        self.assertEqual(parse("90min"), (90, "min"))

    def test_what_is_no_quantity_is_refused(self) -> None:
        for text in ("", "km", "12", "-1 m", "1. m"):
            with self.subTest(text), self.assertRaisesRegex(ValueError, "is no quantity"):
                parse(text)
'''

SHOW = '''\
"""Quantities as people read them."""

from fractions import Fraction


def show(amount: Fraction | int, unit: str, places: int = 2) -> str:
    """An amount with as many places as it needs, at most so many: 3/2 and "km" is "1.5 km"."""
    text = f"{float(round(Fraction(amount), places)):.{places}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {unit}"
'''
TEST_SHOW = '''\
"""Quantities are written as people read them."""

import unittest
from fractions import Fraction

from measure.show import show


class Showing(unittest.TestCase):
    def test_no_place_is_wasted(self) -> None:
        self.assertEqual([show(Fraction(3, 2), "km"), show(2, "h")], ["1.5 km", "2 h"])

    def test_places_are_limited(self) -> None:
        self.assertEqual([show(Fraction(1, 3), "m"), show(Fraction(1, 3), "m", 4)], ["0.33 m", "0.3333 m"])

    def test_a_ten_stays_a_ten(self) -> None:
        self.assertEqual([show(10, "g"), show(10, "g", 0)], ["10 g", "10 g"])
'''
"""The last one is what is easily forgotten: without a point there is no zero to take away."""
