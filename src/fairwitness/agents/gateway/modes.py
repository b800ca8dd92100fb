"""What a mode of the gateway is asked and how it may answer, whatever the dialect of the agent.

A mode never sees the token that came with a request, and never writes a byte of a dialect unless it passes one through.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from fairwitness.contracts.agents.model import Dialect, ModelTurn

UNPARSED = "unparsed_arguments"
"""A call whose arguments are no JSON object is kept as `{UNPARSED: the text of them}`, and sent as that text again."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token is good for: one dispatch, and nothing else. Made by the gateway's owner."""

    token: str = field(repr=False)
    dispatch_id: str


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the agent offers to the model."""

    name: str
    schema: dict[str, Any]
    """The JSON Schema of its arguments; empty where the dialect says nothing."""
    is_freeform: bool = False
    """Whether it takes one text instead of arguments; that text is called `input` here."""


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A call the model once made, as the agent tells it back."""

    id: str
    """Empty where the dialect has none."""
    name: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatResult:
    """What a tool gave, as the agent tells the model."""

    id: str
    """Of its call; empty where the dialect has none."""
    text: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One part of the conversation; words, calls and results that a dialect puts in one message are kept together."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ChatCall, ...] = ()
    results: tuple[ChatResult, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request for a model's turn."""

    dialect: Dialect
    model: str
    stream: bool
    body: dict[str, Any]
    """The request, read."""
    raw: bytes = field(repr=False)
    """The request as it came."""
    path: str
    """As the dialect's own server spells it, prefix of the version included."""
    headers: Mapping[str, str]
    """Names in small letters; everything that could hold a credential has been taken out."""
    grant: Grant
    tools: tuple[OfferedTool, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    max_tokens: int | None = None
    query: str = ""
    """What stood behind the question mark, without a key."""
    system: str = ""
    """The words above the conversation."""
    wants_json: bool = False
    """Whether the answer has to be JSON and nothing else."""


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """A turn of a model, which the dialect spells, streamed or in one piece."""

    turn: ModelTurn
    is_cut: bool = False
    """Whether the connection breaks in the middle of it."""
    step: int | None = None
    """Which step of a script or a tape it was; for the log."""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """Bytes in the agent's own dialect, passed through; `body` is closed when the agent goes away."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    step: int | None = None


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """An error, which the dialect spells."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """More headers, such as `retry-after` or `x-should-retry`."""
    step: int | None = None


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No answer at all, until the agent goes away."""

    step: int | None = None


ModelAnswer = TurnAnswer | RawAnswer | FailedAnswer | NoAnswer


class Mode(Protocol):
    """What stands behind the gateway: a script, a tape, a provider."""

    @property
    def name(self) -> str:
        """`script`, `replay`, `record` or `pass`."""
        ...

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """The next turn; cancelled when the agent goes away before there is one."""
        ...
