"""The log of the gateway: requests for a turn, unknown paths, and refused requests."""

from collections import deque
from dataclasses import dataclass, field

from fairwitness.contracts.agents.model import ApiDialect

_KEPT = 10_000
"""Entries of each kind that are kept: a gateway lives as long as its run."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A request for a model's turn, without its text and its token."""

    dispatch_id: str
    dialect: ApiDialect
    path: str
    model: str
    stream: bool
    tools: tuple[str, ...]
    """Names of the offered tools."""
    size: int
    """Bytes; for the first request of a session, a measure of what an agent costs before it does anything."""
    status: int | None
    """None if there was no answer: it hung, or the agent disconnected."""
    step: int | None = None
    """The step of the script or the tape."""


@dataclass(slots=True)
class Log:
    """The entries in order."""

    requests: deque[Logged] = field(default_factory=lambda: deque(maxlen=_KEPT))
    unknown: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Requests for unknown paths, such as `GET /v1/nothing`: they reveal stray calls."""
    refused: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Requests without a valid token or a local host name, such as `401 POST /v1/messages`."""
