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
