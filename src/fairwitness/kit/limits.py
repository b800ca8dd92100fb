"""How large and how deep a document may be before we stop reading it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Safe defaults; a caller that knows better passes its own."""

    bytes: int = 2 * 1024 * 1024
    depth: int = 64
    nodes: int = 100_000
    integer: int = 2**63 - 1
    """Largest absolute value of a whole number."""
    number_length: int = 64
    """Longest spelling of any number; longer ones are refused before they are converted."""


DEFAULT_LIMITS = DocumentLimits()

CHECKED = DocumentLimits(nodes=10_000)
"""Agents' documents have some hundred values; this is where checking one stops being worth it."""
