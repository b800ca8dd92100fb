"""Amounts as people write and read them."""

import unittest

from till.money import cents, shown


class Amounts(unittest.TestCase):
    def test_an_amount_is_read(self) -> None:
        self.assertEqual([cents("12.50"), cents("12.5"), cents("12"), cents("0.05")], [1250, 1250, 1200, 5])

    def test_what_is_no_amount_is_refused(self) -> None:
        for text in ("", "a", "1.234", "1,50", "-1"):
            with self.subTest(text), self.assertRaises(ValueError):
                cents(text)

    def test_an_amount_is_shown(self) -> None:
        self.assertEqual([shown(1250), shown(5), shown(-5)], ["12.50", "0.05", "-0.05"])
