"""A receipt, to the last space: accounting reads it by machine."""

import unittest

from till.basket import Basket
from till.payment import pay
from till.receipt import render

EXPECTED = """\
2 x tea                     7.00
1 x cup                     9.90
--------------------------------
Total                      16.90
Cash                       20.00
Change                      3.10
--------------------------------
VAT 7%                      0.46
VAT 19%                     1.58
"""


class Cash(unittest.TestCase):
    def test_a_receipt_for_cash(self) -> None:
        basket = Basket()
        basket.add("tea", 350, 7, pieces=2)
        basket.add("cup", 990, 19)
        self.assertEqual(render(basket, pay(basket, 2000)), EXPECTED)
