"""Paying in cash."""

import unittest

from till.basket import Basket
from till.payment import NotEnough, pay


class Cash(unittest.TestCase):
    def setUp(self) -> None:
        self.basket = Basket()
        self.basket.add("tea", 350, 7, pieces=2)

    def test_change_is_given(self) -> None:
        payment = pay(self.basket, 1000)
        self.assertEqual((payment.total, payment.cash, payment.change), (700, 1000, 300))

    def test_the_exact_amount_is_enough(self) -> None:
        self.assertEqual(pay(self.basket, 700).change, 0)

    def test_a_cent_less_is_not(self) -> None:
        with self.assertRaisesRegex(NotEnough, "0.01 is missing"):
            pay(self.basket, 699)

    def test_an_empty_basket_is_not_paid(self) -> None:
        with self.assertRaises(ValueError):
            pay(Basket(), 100)
