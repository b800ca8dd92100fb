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
