"""How something on this machine stands, what that costs, and how it is mended."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Health(StrEnum):
    """How something stands; words, not only colours."""

    OK = "ok"
    DEGRADED = "degraded"
    MISSING = "missing"
    BROKEN = "broken"
    """Without it nothing can be proven here."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    health: Health
    found: str
    costs: str = ""
    mend: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    """What a program may want to know beyond the sentence."""
