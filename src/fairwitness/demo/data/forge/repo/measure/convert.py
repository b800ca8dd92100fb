"""From one unit to another."""

from fractions import Fraction

from measure.kinds import kind_of


def convert(amount: Fraction | int, unit: str, to: str) -> Fraction:
    """An amount in another unit of the same kind, exactly."""
    kind = kind_of(unit)
    if to not in kind:
        raise ValueError(f"{unit} cannot be converted into {to}")
    return Fraction(amount) * kind[unit] / kind[to]
