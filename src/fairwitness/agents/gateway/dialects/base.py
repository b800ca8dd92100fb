"""What the four dialects share: strict JSON, encoding of streams, and a turn that arrives in pieces."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from fairwitness.agents.gateway.modes import UNPARSED, ChatMessage, ModelRequest, OfferedTool
from fairwitness.contracts.agents.model import ModelTurn, ModelUsage, ToolUse

Json = dict[str, Any]

_HALF_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")
_PIECES = 64
"""The number of pieces, about, in which a text is streamed."""
_PIECE = 24
"""The shortest piece, except the last."""


class InvalidJson(ValueError):
    """A text is not JSON, or is ambiguous."""


def load(text: str) -> Any:
    """Return a JSON value; refuse duplicate keys and non-finite numbers, which parsers read differently."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidJson(str(error)) from None
    return _mended(value) if _HALF_ESCAPE.search(text) else value


def _object(pairs: list[tuple[str, Any]]) -> Json:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise InvalidJson("a key appears twice")
    return value


def _constant(word: str) -> Any:
    raise InvalidJson(f"{word} is no number")


def _mended(value: Any) -> Any:
    """Replace halves of surrogate pairs, which cannot be encoded: agents cut texts in the middle of a character."""
    match value:
        case str():
            return _HALF.sub("�", value)
        case list():
            return [_mended(item) for item in value]
        case dict():
            return {_mended(key): _mended(item) for key, item in value.items()}
        case _:
            return value


def dump(value: Any) -> str:
    """Return JSON in ASCII on one line, so that no text can break a stream."""
    return json.dumps(value, separators=(",", ":"))


def a_dict(value: Any) -> Json:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def a_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def a_str(value: Any) -> str:
    """Return the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def a_count(value: Any) -> int | None:
    """Return the value if it is a non-negative integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def texts_of(content: Any) -> str:
    """Return the text of a message's content, a text or a list of parts; other parts are shown by their type."""
    if isinstance(content, str):
        return content
    parts = [a_dict(part) for part in a_list(content)]
    return "\n".join(a_str(part["text"]) if "text" in part else f"[{a_str(part.get('type'))}]" for part in parts)


def args_of(text: str) -> Json:
    """Return the arguments of a call from their text."""
    if not text.strip():
        return {}
    try:
        value = load(text)
    except InvalidJson:
        return {UNPARSED: text}
    return value if isinstance(value, dict) else {UNPARSED: text}


def args_text(args: Mapping[str, Any]) -> str:
    """Return the text of a call's arguments; malformed ones exactly as they were."""
    text = args.get(UNPARSED)
    return text if isinstance(text, str) and len(args) == 1 else dump(args)


def freeform_text(args: Mapping[str, Any]) -> str:
    """Return the input of a freeform tool."""
    text = args.get("input")
    return text if isinstance(text, str) else args_text(args)


def is_freeform(asked: ModelRequest, tool: str) -> bool:
    """Return whether the agent offered the tool as one that takes plain text."""
    return any(offer.name == tool and offer.is_freeform for offer in asked.tools)


def pieces(text: str) -> Iterator[str]:
    """Yield the pieces in which a text is streamed."""
    size = max(_PIECE, len(text) // _PIECES + 1)
    for start in range(0, len(text), size):
        yield text[start : start + size]


def sse(data: Json, event: str = "") -> bytes:
    """Return a server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {dump(data)}\n\n".encode()


def answer_id(prefix: str, asked: ModelRequest) -> str:
    """Return an id derived from the request, so that answers are reproducible."""
    return prefix + hashlib.sha256(asked.raw).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class RequestFields:
    """The fields that a dialect parses from a request."""

    model: str = ""
    """Empty if the dialect has it elsewhere."""
    stream: bool = False
    tools: tuple[OfferedTool, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    system: str = ""
    max_tokens: int | None = None
    wants_json: bool = False


@dataclass(slots=True)
class PartialCall:
    """A call that is still arriving."""

    id: str = ""
    name: str = ""
    text: list[str] = field(default_factory=list)
    args: Json | None = None
    """Set if the dialect sends arguments in one piece."""
    is_freeform: bool = False

    def whole(self, number: int) -> ToolUse:
        """Return the call as far as it came."""
        text = "".join(self.text)
        args = self.args if self.args is not None else {"input": text} if self.is_freeform else args_of(text)
        return ToolUse(id=self.id.strip() or f"call_{number}", name=self.name.strip() or "unnamed", args=args)


@dataclass(slots=True)
class PartialTurn:
    """A turn that is still arriving."""

    text: list[str] = field(default_factory=list)
    calls: dict[Any, PartialCall] = field(default_factory=dict)
    usage: Json = field(default_factory=dict)
    """In the dialect's own fields; later counts replace earlier ones."""
    model: str = ""
    has_begun: bool = False
    is_complete: bool = False
    error: str = ""
    codes: tuple[str, ...] = ()
    """The words by which the provider names the error."""
    refusal: str = ""
    """The reason why the model, or a filter before it, would not answer."""

    def fail(self, error: Any, otherwise: str = "error") -> None:
        """Take an error in the dialect's own fields."""
        said = error_in(error)
        self.error, self.codes = said.message or otherwise, said.codes

    def call(self, key: Any) -> PartialCall:
        """Return the call with this key, creating it if needed."""
        return self.calls.setdefault(key, PartialCall())


class SaidError(NamedTuple):
    """An error as a provider describes it."""

    codes: tuple[str, ...]
    """Its type, code, status and reasons."""
    message: str
    delay: str = ""
    """How long to wait, if the error says it."""


def error_in(value: Any) -> SaidError:
    """Return the error in a JSON value; all dialects, and most servers that imitate them, use these fields."""
    if isinstance(value, list):
        return error_in(value[0] if value else {})
    if isinstance(value, str):
        return SaidError((), value)
    holder = a_dict(value)
    if "error" in holder:
        inner = error_in(holder["error"])
        return inner._replace(message=inner.message or a_str(holder.get("message")))
    details = [a_dict(detail) for detail in a_list(holder.get("details"))]
    words = [a_str(holder.get(name)) for name in ("type", "code", "status")]
    words += [a_str(detail.get("reason")) for detail in details]
    delay = next((said for detail in details if (said := a_str(detail.get("retryDelay")))), "")
    return SaidError(tuple(word for word in words if word), a_str(holder.get("message")), delay)


class Codec(NamedTuple):
    """One dialect: functions that parse requests, encode answers and observe answers."""

    read: Callable[[Json], RequestFields]
    plain: Callable[[ModelTurn, ModelRequest], Json]
    frames: Callable[[ModelTurn, ModelRequest], Iterable[bytes]]
    stream_type: Callable[[ModelRequest], str]
    failure: Callable[[int, str], Json]
    on_event: Callable[[PartialTurn, Json], None]
    on_body: Callable[[PartialTurn, Json], None]
    usage: Callable[[Json], ModelUsage | None]


def counted(
    tokens_in: int | None, tokens_out: int | None, cached: int | None, written: int | None = None
) -> ModelUsage | None:
    """Return the usage, if input and output were reported."""
    if tokens_in is None or tokens_out is None:
        return None
    return ModelUsage(
        tokens_in=tokens_in, tokens_out=tokens_out, tokens_cached=cached or 0, tokens_cache_written=written or 0
    )


def turn_of(gathered: PartialTurn, usage: ModelUsage | None) -> ModelTurn | None:
    """Return the turn as far as it came; None if there was none, or it is invalid."""
    if not gathered.has_begun:
        return None
    try:
        return ModelTurn(
            text="".join(gathered.text),
            calls=tuple(call.whole(number) for number, call in enumerate(gathered.calls.values())),
            usage=usage,
            model=gathered.model.strip() or None,
        )
    except ValidationError:
        return None


def event_stream(_asked: ModelRequest) -> str:
    """Return the content type of server-sent events."""
    return "text/event-stream; charset=utf-8"
