"""Baskets add up."""

import unittest

from till.basket import Basket


class Adding(unittest.TestCase):
    def test_pieces_count(self) -> None:
        basket = Basket()
        basket.add("tea", 350, 7, pieces=2)
        basket.add("cup", 990, 19)
        self.assertEqual(basket.total, 1690)

    def test_each_rate_has_its_part(self) -> None:
        basket = Basket()
        basket.add("cup", 990, 19)
        basket.add("tea", 350, 7, pieces=2)
        basket.add("jar", 500, 19)
        self.assertEqual(list(basket.by_rate().items()), [(7, 700), (19, 1490)])

    def test_nothing_is_sold_for_less_than_nothing(self) -> None:
        with self.assertRaises(ValueError):
            Basket().add("tea", -1, 7)
        with self.assertRaises(ValueError):
            Basket().add("tea", 350, 7, pieces=0)
