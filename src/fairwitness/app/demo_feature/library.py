"""The library that the demo works on: a till that adds up baskets, takes money and prints receipts."""

_MONEY = '''\
"""Money is a whole number of cents; only what people read has a point in it."""


def cents(text: str) -> int:
    """The cents of an amount as people write it: "12.5" is 1250."""
    whole, _, part = text.strip().partition(".")
    if not whole.isdigit() or not (part + "0").isdigit() or len(part) > 2:
        raise ValueError(f"{text!r} is no amount of money")
    return int(whole) * 100 + int(part.ljust(2, "0"))


def shown(amount: int) -> str:
    """An amount as people read it: 1250 is "12.50"."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"
'''

_BASKET = '''\
"""A basket: what somebody wants to buy, and what of it belongs to each rate of VAT."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """Some pieces of one article; its price includes the VAT."""

    name: str
    price: int
    vat: int
    pieces: int = 1

    @property
    def total(self) -> int:
        """What the pieces cost together."""
        return self.price * self.pieces


class Basket:
    """Lines in the order in which they were added."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def add(self, name: str, price: int, vat: int, pieces: int = 1) -> None:
        """Adds some pieces of an article."""
        if price < 0 or pieces < 1:
            raise ValueError(f"{pieces} x {name} for {price} cannot be sold")
        self.lines.append(Line(name, price, vat, pieces))

    @property
    def total(self) -> int:
        """What everything costs."""
        return sum(line.total for line in self.lines)

    def by_rate(self) -> dict[int, int]:
        """What of the total belongs to each rate of VAT, the lowest rate first."""
        totals: dict[int, int] = {}
        for line in sorted(self.lines, key=lambda line: line.vat):
            totals[line.vat] = totals.get(line.vat, 0) + line.total
        return totals
'''

_PAYMENT = '''\
"""Paying for a basket: either it is paid in full, or nothing has happened."""

from dataclasses import dataclass

from till.basket import Basket
from till.money import shown


class NotEnough(Exception):
    """Less was handed over than the basket costs."""


@dataclass(frozen=True)
class Payment:
    """A basket that was paid."""

    total: int
    cash: int
    change: int


def pay(basket: Basket, cash: int) -> Payment:
    """Takes cash for a basket and says what is given back."""
    if not basket.lines:
        raise ValueError("an empty basket cannot be paid")
    if cash < basket.total:
        raise NotEnough(f"{shown(basket.total - cash)} is missing")
    return Payment(total=basket.total, cash=cash, change=cash - basket.total)
'''

_RECEIPT = '''\
"""The receipt: what a customer takes home."""

from till.basket import Basket
from till.money import shown
from till.payment import Payment

WIDTH = 32


def render(basket: Basket, payment: Payment) -> str:
    """The whole text, one row for each thing that was bought, paid or owed to the tax office."""
    rows = [_row(f"{line.pieces} x {line.name}", line.total) for line in basket.lines]
    rows += ["-" * WIDTH, _row("Total", payment.total)]
    rows += [_row("Cash", payment.cash), _row("Change", payment.change), "-" * WIDTH]
    rows += [_row(f"VAT {rate}%", _vat(gross, rate)) for rate, gross in basket.by_rate().items()]
    return "\\n".join(rows) + "\\n"


def _row(text: str, amount: int) -> str:
    return f"{text:<{WIDTH - 10}}{shown(amount):>10}"


def _vat(gross: int, rate: int) -> int:
    """The VAT inside an amount, rounded to the nearest cent."""
    return (gross * rate * 2 + 100 + rate) // (2 * (100 + rate))
'''

_TEST_MONEY = '''\
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
'''

_TEST_BASKET = '''\
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
'''

_TEST_PAYMENT = '''\
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
'''

_TEST_RECEIPT = '''\
"""A receipt, to the last space: accounting reads it by machine."""

import unittest

from till.basket import Basket
from till.payment import pay
from till.receipt import render

EXPECTED = """\\
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
'''

_README = """\
# till

A till in a few hundred lines: baskets, payments in cash, receipts. No dependencies.

    basket = Basket()
    basket.add("tea", cents("3.50"), vat=7, pieces=2)
    print(render(basket, pay(basket, cents("10.00"))))

`python3 -m unittest` runs the tests, `python3 tools/lint.py till tests tools` the linter and
`python3 tools/check_types.py till` the type checker.
"""

FILES = {
    "README.md": _README,
    "till/__init__.py": '"""A small till."""\n',
    "till/money.py": _MONEY,
    "till/basket.py": _BASKET,
    "till/payment.py": _PAYMENT,
    "till/receipt.py": _RECEIPT,
    "tests/__init__.py": '"""What the till promises."""\n',
    "tests/test_money.py": _TEST_MONEY,
    "tests/test_basket.py": _TEST_BASKET,
    "tests/test_payment.py": _TEST_PAYMENT,
    "tests/test_receipt.py": _TEST_RECEIPT,
}
