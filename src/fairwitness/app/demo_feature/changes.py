"""What the implementers write: new tests and code for each task, with one honest mistake and one lie among them."""

VOUCHERS = '''\
"""Gift vouchers: a code, what is left on it, and the last day on which it can be used."""

from dataclasses import dataclass, replace
from datetime import date

from till.money import shown

SHOWN = 4
HIDDEN = 4


class Unusable(Exception):
    """A voucher was handed over that pays nothing."""


@dataclass(frozen=True)
class Voucher:
    """A voucher never changes; using it gives another one with the rest."""

    code: str
    balance: int
    last_day: date

    @property
    def masked(self) -> str:
        """The code as it may be shown: whoever finds a receipt must not be able to spend the rest."""
        return "****" + (self.code[-SHOWN:] if len(self.code) >= SHOWN + HIDDEN else "")


def redeem(voucher: Voucher, due: int, today: date) -> tuple[int, Voucher]:
    """What a voucher pays of an amount that is due, and the voucher with its rest."""
    if today > voucher.last_day:
        raise Unusable(f"the voucher {voucher.masked} expired on {voucher.last_day}")
    if voucher.balance <= 0:
        raise Unusable(f"the voucher {voucher.masked} has {shown(voucher.balance)} left")
    taken = min(due, voucher.balance)
    return taken, replace(voucher, balance=voucher.balance - taken)
'''

TEST_VOUCHERS = '''\
"""Vouchers pay what they can, keep their rest, and end."""

import unittest
from datetime import date

from till.vouchers import Unusable, Voucher, redeem

DAY = date(2026, 2, 26)


class Redeeming(unittest.TestCase):
    def test_a_voucher_keeps_its_rest(self) -> None:
        taken, rest = redeem(Voucher("GIFT-20260001", 2500, DAY), 1690, DAY)
        self.assertEqual((taken, rest.balance, rest.code), (1690, 810, "GIFT-20260001"))

    def test_a_voucher_pays_no_more_than_it_has(self) -> None:
        taken, rest = redeem(Voucher("GIFT-20260001", 500, DAY), 1690, DAY)
        self.assertEqual((taken, rest.balance), (500, 0))

    def test_the_last_day_counts_and_the_next_does_not(self) -> None:
        voucher = Voucher("GIFT-20260001", 500, DAY)
        self.assertEqual(redeem(voucher, 100, DAY)[0], 100)
        with self.assertRaisesRegex(Unusable, "expired on 2026-02-26"):
            redeem(voucher, 100, date(2026, 2, 27))

    def test_an_empty_voucher_is_refused(self) -> None:
        with self.assertRaisesRegex(Unusable, "0.00 left"):
            redeem(Voucher("GIFT-20260001", 0, DAY), 100, DAY)


class Codes(unittest.TestCase):
    def test_only_the_end_of_a_code_is_shown(self) -> None:
        self.assertEqual(Voucher("GIFT-20260001", 1, DAY).masked, "****0001")

    def test_of_a_short_code_nothing_is_shown(self) -> None:
        self.assertEqual(Voucher("AB12345", 1, DAY).masked, "****")

    def test_a_refusal_does_not_tell_the_code(self) -> None:
        with self.assertRaises(Unusable) as refused:
            redeem(Voucher("GIFT-20260001", 0, DAY), 100, DAY)
        self.assertNotIn("GIFT", str(refused.exception))
'''

MONEY_HEAD = (
    '"""Money is a whole number of cents; only what people read has a point in it."""\n',
    '"""Money is a whole number of cents; only what people read has a point in it."""\n\n'
    "from collections.abc import Sequence\n",
)
MONEY_SPLIT = (
    '    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"\n',
    '''\
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"


def split(amount: int, weights: Sequence[int]) -> list[int]:
    """An amount in parts by weight that add up to it; cents left over go where most was rounded away."""
    whole = sum(weights)
    if amount < 0 or whole <= 0 or min(weights) < 0:
        raise ValueError(f"{amount} cannot be split by {list(weights)}")
    parts = [amount * weight // whole for weight in weights]
    lost_most = sorted(range(len(parts)), key=lambda at: (-(amount * weights[at] % whole), at))
    for at in lost_most[: amount - sum(parts)]:
        parts[at] += 1
    return parts
''',
)

TEST_SPLIT = '''\
"""No cent is lost when an amount is split."""

import unittest

from till.money import split


class Splitting(unittest.TestCase):
    def test_parts_follow_their_weights(self) -> None:
        self.assertEqual(split(1000, [700, 300]), [700, 300])

    def test_no_cent_is_lost(self) -> None:
        for amount in range(200):
            with self.subTest(amount):
                self.assertEqual(sum(split(amount, [333, 333, 334])), amount)

    def test_what_is_left_over_goes_where_most_was_rounded_away(self) -> None:
        self.assertEqual(split(100, [1, 1, 1]), [34, 33, 33])
        self.assertEqual(split(10, [66, 34]), [7, 3])

    def test_what_cannot_be_split_is_refused(self) -> None:
        for amount, weights in ((-1, [1]), (1, []), (1, [0, 0]), (1, [2, -1])):
            with self.subTest(weights), self.assertRaises(ValueError):
                split(amount, weights)
'''

PAYMENT_IMPORTS = (
    "from dataclasses import dataclass\n\nfrom till.basket import Basket\nfrom till.money import shown\n",
    "from collections.abc import Sequence\nfrom dataclasses import dataclass, field\nfrom datetime import date\n\n"
    "from till.basket import Basket\nfrom till.money import shown, split\nfrom till.vouchers import Voucher, redeem\n",
)
PAYMENT_VALUES = (
    '''\
@dataclass(frozen=True)
class Payment:
    """A basket that was paid."""

    total: int
    cash: int
    change: int
''',
    '''\
@dataclass(frozen=True)
class Used:
    """A voucher that was paid with: what it paid, and the voucher as it is handed back."""

    taken: int
    rest: Voucher


@dataclass(frozen=True)
class Payment:
    """A basket that was paid."""

    total: int
    cash: int
    change: int
    vouchers: tuple[Used, ...] = ()
    by_voucher: dict[int, int] = field(default_factory=dict)
''',
)
_PAY_BEFORE = '''\
def pay(basket: Basket, cash: int) -> Payment:
    """Takes cash for a basket and says what is given back."""
    if not basket.lines:
        raise ValueError("an empty basket cannot be paid")
    if cash < basket.total:
        raise NotEnough(f"{shown(basket.total - cash)} is missing")
    return Payment(total=basket.total, cash=cash, change=cash - basket.total)
'''
PAYMENT_PAY = (
    _PAY_BEFORE,
    '''\
def pay(
    basket: Basket, cash: int, vouchers: Sequence[Voucher] = (), today: date | None = None
) -> Payment:
    """Takes vouchers in their order, then cash; vouchers that are not needed stay out of it."""
    if not basket.lines:
        raise ValueError("an empty basket cannot be paid")
    if len({voucher.code for voucher in vouchers}) < len(vouchers):
        raise ValueError("the same voucher was handed over twice")
    due, used = basket.total, list[Used]()
    for voucher in vouchers:
        if today is None:
            raise ValueError("whether a voucher is good depends on the day")
        if due:
            taken, rest = redeem(voucher, due, today)
            used.append(Used(taken, rest))
            due -= taken
    if cash < due:
        raise NotEnough(f"{shown(due - cash)} is missing")
    rates, paid = basket.by_rate(), basket.total - due
    shares = dict(zip(rates, split(paid, list(rates.values())), strict=True)) if paid else {}
    return Payment(basket.total, cash, cash - due, tuple(used), shares)
''',
)

TEST_VOUCHER_PAYMENT = '''\
"""Paying with vouchers, and with vouchers and cash."""

import unittest
from datetime import date

from till.basket import Basket
from till.payment import NotEnough, pay
from till.vouchers import Unusable, Voucher

DAY = date(2026, 2, 26)


class Vouchers(unittest.TestCase):
    def setUp(self) -> None:
        self.basket = Basket()
        self.basket.add("tea", 350, 7, pieces=2)
        self.basket.add("cup", 990, 19)
        self.small, self.large = Voucher("GIFT-20260001", 500, DAY), Voucher("GIFT-20260002", 5000, DAY)

    def test_cash_pays_what_vouchers_leave(self) -> None:
        payment = pay(self.basket, 1200, [self.small], DAY)
        self.assertEqual((payment.cash, payment.change), (1200, 10))
        self.assertEqual([(used.taken, used.rest.balance) for used in payment.vouchers], [(500, 0)])

    def test_vouchers_are_used_in_their_order(self) -> None:
        payment = pay(self.basket, 0, [self.small, self.large], DAY)
        self.assertEqual([used.taken for used in payment.vouchers], [500, 1190])
        self.assertEqual([used.rest.balance for used in payment.vouchers], [0, 3810])

    def test_a_voucher_that_is_not_needed_is_not_touched(self) -> None:
        payment = pay(self.basket, 0, [self.large, self.small], DAY)
        self.assertEqual([used.rest.code for used in payment.vouchers], ["GIFT-20260002"])

    def test_each_rate_has_its_part_of_the_vouchers(self) -> None:
        self.assertEqual(pay(self.basket, 1200, [self.small], DAY).by_voucher, {7: 207, 19: 293})

    def test_the_same_voucher_does_not_pay_twice(self) -> None:
        with self.assertRaisesRegex(ValueError, "twice"):
            pay(self.basket, 5000, [self.small, self.small], DAY)

    def test_an_expired_voucher_is_refused(self) -> None:
        with self.assertRaises(Unusable):
            pay(self.basket, 5000, [self.small], date(2026, 2, 27))

    def test_what_is_missing_is_told_after_vouchers(self) -> None:
        with self.assertRaisesRegex(NotEnough, "1.90 is missing"):
            pay(self.basket, 1000, [self.small], DAY)

    def test_vouchers_need_a_day(self) -> None:
        with self.assertRaisesRegex(ValueError, "day"):
            pay(self.basket, 5000, [self.small])
'''
