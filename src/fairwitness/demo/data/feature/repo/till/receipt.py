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
    return "\n".join(rows) + "\n"


def _row(text: str, amount: int) -> str:
    return f"{text:<{WIDTH - 10}}{shown(amount):>10}"


def _vat(gross: int, rate: int) -> int:
    """The VAT inside an amount, rounded to the nearest cent."""
    return (gross * rate * 2 + 100 + rate) // (2 * (100 + rate))
