"""The receipt as three implementers leave it: one forgets who pays without vouchers, one lies, one gets it right."""

from fairwitness.app.demo_feature.library import FILES

RECEIPT = "till/receipt.py"
README = "README.md"
TEST = "tests/test_voucher_receipt.py"

_PAID = '    rows += [_row("Cash", payment.cash), _row("Change", payment.change), "-" * WIDTH]\n'
_VAT_ROWS = '    rows += [_row(f"VAT {rate}%", _vat(gross, rate)) for rate, gross in basket.by_rate().items()]\n'
_USED = """\
{indent}rows.append(_row("Vouchers", sum(used.taken for used in payment.vouchers)))
{indent}rows += [_row(f"  {{used.rest.{code}}} left", used.rest.balance) for used in payment.vouchers]
"""
_SHARES = '    rows += [_row(f"By voucher at {rate}%", part) for rate, part in payment.by_voucher.items()]\n'

ALWAYS_SHOWN = ((_PAID, _USED.format(indent="    ", code="masked") + _PAID), (_VAT_ROWS, _VAT_ROWS + _SHARES))
"""The honest mistake: a row for vouchers, used or not, so that every receipt of before has changed."""
LIE = FILES[RECEIPT].replace(_PAID, _USED.format(indent="    ", code="code") + _PAID)
"""The lie: codes are printed in full, the parts for each rate are left out, and old receipts have changed."""
_IF_USED = "    if payment.vouchers:\n" + _USED.format(indent="        ", code="masked")
RIGHT = FILES[RECEIPT].replace(_PAID, _IF_USED + _PAID).replace(_VAT_ROWS, _VAT_ROWS + _SHARES)
"""Like the lie the whole file, so that it does not matter what an earlier attempt left."""
_HOW = """
Vouchers pay first, in the order in which they are handed over, and need to know the day:

    payment = pay(basket, cents("5.00"), [Voucher("GIFT-20260001", cents("20.00"), last_day)], today)

What is handed back stands in `payment.vouchers`. Codes are printed with their last four characters only.
"""
RIGHT_README = (
    FILES[README].replace("payments in cash, receipts", "payments in cash and by gift voucher, receipts") + _HOW
)

TEST_RECEIPT = '''\
"""A receipt for vouchers, to the last space."""

import unittest
from datetime import date

from till.basket import Basket
from till.payment import pay
from till.receipt import render
from till.vouchers import Voucher

DAY = date(2026, 2, 26)
EXPECTED = """\\
2 x tea                     7.00
1 x cup                     9.90
--------------------------------
Total                      16.90
Vouchers                    5.00
  ****0001 left             0.00
Cash                       12.00
Change                      0.10
--------------------------------
VAT 7%                      0.46
VAT 19%                     1.58
By voucher at 7%            2.07
By voucher at 19%           2.93
"""


class Vouchers(unittest.TestCase):
    def setUp(self) -> None:
        self.basket = Basket()
        self.basket.add("tea", 350, 7, pieces=2)
        self.basket.add("cup", 990, 19)
        self.voucher = Voucher("GIFT-20260001", 500, DAY)

    def test_a_receipt_for_a_voucher_and_cash(self) -> None:
        self.assertEqual(render(self.basket, pay(self.basket, 1200, [self.voucher], DAY)), EXPECTED)

    def test_no_receipt_tells_a_code(self) -> None:
        self.assertNotIn("GIFT", render(self.basket, pay(self.basket, 1200, [self.voucher], DAY)))
'''
_WITHOUT = """
    def test_a_receipt_without_vouchers_does_not_speak_of_them(self) -> None:
        rows = render(self.basket, pay(self.basket, 2000)).splitlines()
        self.assertEqual([row for row in rows if "oucher" in row], [])
"""
TEST_RECEIPT_AGAIN = TEST_RECEIPT + _WITHOUT
"""The second attempt asks what the first did not."""
