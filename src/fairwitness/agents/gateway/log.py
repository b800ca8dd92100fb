"""What came to the gateway: every request for a turn, every path nobody knows, everybody who was turned away."""

from collections import deque
from dataclasses import dataclass, field

from fairwitness.contracts.agents.model import Dialect

_KEPT = 10_000
"""The last so many of each; a gateway lives as long as its run."""


@dataclass(frozen=True, slots=True)
class Logged:
    """One request for a model's turn. No words of it are kept, and no token."""

    dispatch_id: str
    dialect: Dialect
    path: str
    model: str
    stream: bool
    tools: tuple[str, ...]
    """The names of those that were offered."""
    size: int
    """In bytes; of the first request of a session, a fair measure of what an agent costs before it does anything."""
    status: int | None
    """None if there was no answer: it hung, or the agent went away."""
    step: int | None = None
    """Of the script or the tape."""


@dataclass(slots=True)
class Log:
    """In the order in which it happened."""

    requests: deque[Logged] = field(default_factory=lambda: deque(maxlen=_KEPT))
    unknown: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """`GET /v1/nothing`: paths nobody here answers, which is how stray calls are found."""
    refused: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """`401 POST /v1/messages`: whoever had no token, or came by a strange name."""
