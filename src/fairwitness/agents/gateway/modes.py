"""The interface of the gateway's modes: the request for a model's turn and its answers, independent of the dialect.

A mode never sees the token of a request, and writes no bytes of a dialect unless it passes them through.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from fairwitness.contracts.agents.model import ApiDialect, ModelTurn
from fairwitness.rules.provider_faults import ProviderAnswer

_NO_REPLY = ProviderAnswer(None)
UNPARSED = "unparsed_arguments"
"""Arguments that are not a JSON object are kept as `{UNPARSED: their text}`, and sent as that text again."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A token and the one dispatch that it is valid for."""

    token: str = field(repr=False)
    dispatch_id: str


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the agent offers to the model."""

    name: str
    schema: dict[str, Any]
    """The JSON Schema of its arguments; empty if the dialect has none."""
    is_freeform: bool = False
    """Whether it takes one text instead of arguments; the text is the argument `input` here."""


@dataclass(frozen=True, slots=True)
class ChatCall:
    """An earlier call of the model, as the agent repeats it."""

    id: str
    """Empty if the dialect has none."""
    name: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatResult:
    """The result of a call, as the agent passes it to the model."""

    id: str
    """The id of its call; empty if the dialect has none."""
    text: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of the conversation; text, calls and results of one message stay together."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ChatCall, ...] = ()
    results: tuple[ChatResult, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request for a model's turn."""

    dialect: ApiDialect
    model: str
    stream: bool
    body: dict[str, Any]
    """The parsed request, without secrets."""
    raw: bytes = field(repr=False)
    """The bytes of the request, for sizes and hashes only: they may hold secrets."""
    path: str
    """The path on the dialect's own server, with the version prefix."""
    headers: Mapping[str, str]
    """Names in lower case, without headers that could hold a credential."""
    grant: Grant
    tools: tuple[OfferedTool, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    max_tokens: int | None = None
    query: str = ""
    """The query string without a key."""
    system: str = ""
    """The system prompt."""
    wants_json: bool = False
    """Whether the answer must be JSON only."""


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """A turn of a model, which the dialect encodes as a stream or in one piece."""

    turn: ModelTurn
    is_cut: bool = False
    """Whether the connection breaks in the middle."""
    step: int | None = None
    """The step of a script or a tape, for the log."""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """Bytes in the agent's dialect, passed through; `body` is closed when the agent disconnects."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    step: int | None = None
    pace: Mapping[str, str] = field(default_factory=dict)
    """The provider's headers about its limits and about waiting; not for the agent."""


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """An error, which the dialect encodes."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """Additional headers, such as `retry-after` or `x-should-retry`."""
    step: int | None = None


@dataclass(frozen=True, slots=True)
class UpstreamFailure(FailedAnswer):
    """An error of the provider, or of the way to it."""

    reply: ProviderAnswer = _NO_REPLY
    """By default the request was sent and not answered: the model may have answered, and that may cost money."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No answer until the agent disconnects."""

    step: int | None = None


ModelAnswer = TurnAnswer | RawAnswer | FailedAnswer | NoAnswer


class Mode(Protocol):
    """What answers behind the gateway: a script, a tape or a provider."""

    @property
    def name(self) -> str:
        """`script`, `replay`, `record` or `pass`."""
        ...

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """Return the next turn; cancelled if the agent disconnects first."""
        ...
