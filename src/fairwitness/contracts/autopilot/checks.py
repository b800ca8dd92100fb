"""How the autopilot contracts state a rule that spans several fields."""

from typing import Any

from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.refusals import Refusal, refuse_if_any

ROUNDING = 0.005
"""How far a written ratio may lie from the exact one: it is often kept with two decimals."""


def expect(document: Contract, holds: bool, expected: str, *where: str) -> None:
    """Refuse the document unless the rule holds; `expected` is read after the word "expected", `where` is the field."""
    if holds:
        return
    found: Any = document.plain()
    for part in where:
        found = found.get(part)
    refuse_if_any(type(document).__name__, [Refusal(where, expected, found)])


def is_ratio(value: float, part: int, whole: int) -> bool:
    """True if the value is part / whole, or 0 of nothing.

    >>> [is_ratio(0.8, 4, 5), is_ratio(0.67, 2, 3), is_ratio(1.0, 0, 0)]
    [True, True, False]
    """
    return abs(value - (part / whole if whole else 0.0)) <= ROUNDING
