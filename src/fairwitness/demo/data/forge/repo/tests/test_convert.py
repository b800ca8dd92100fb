"""Lengths are converted exactly."""

import unittest
from fractions import Fraction

from measure.convert import convert


class Lengths(unittest.TestCase):
    def test_a_length_is_converted(self) -> None:
        self.assertEqual([convert(3, "km", "m"), convert(5, "cm", "mm")], [3000, 50])

    def test_nothing_is_rounded(self) -> None:
        self.assertEqual(convert(1, "mm", "m"), Fraction(1, 1000))

    def test_what_is_no_unit_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "'ell' is no unit"):
            convert(1, "ell", "m")
