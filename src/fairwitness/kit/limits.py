"""Limits on the size and depth of documents."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Limits for reading a document; the defaults are safe for untrusted input."""

    bytes: int = 2 * 1024 * 1024
    depth: int = 64
    nodes: int = 100_000
    integer: int = 2**63 - 1
    """Largest absolute value of a whole number."""
    number_length: int = 64
    """Longest text of a number; longer ones are refused before conversion."""


DEFAULT_LIMITS = DocumentLimits()

CHECKED = DocumentLimits(nodes=10_000)
"""Limits for agents' documents, which have some hundred values; a larger one is not worth checking."""
