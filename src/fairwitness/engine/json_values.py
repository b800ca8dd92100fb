"""What crosses the engine is JSON: how values and errors are written into the journal and read from it."""

import json
import re
from dataclasses import dataclass

from fairwitness.engine.base import EngineError, Json

FORMAT = "fairwitness-json-1"
"""The name under which everything in the journal is written; old runs are read by it."""

_ERROR_SIGN = "!"
"""Begins a recorded error; no JSON text begins so."""
_LONGEST_MESSAGE = 10_000

DEEPEST = 200
"""Lists in lists in mappings. Python itself ends somewhere below a thousand, and sooner where the caller stands deeper:
what was written must not be too deep for whoever reads it."""
_TOO_DEEP = f"it is nested more than {DEEPEST} deep"
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[\[\]{}]")


class RecordedError(Exception):
    """An error that stands in the journal: the name of its class and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind, self.message = kind, message


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value that is JSON text already."""

    text: str


def encode(value: Json) -> str:
    """A value as JSON text in plain ASCII, which every database can hold and every reader can read."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        if _depth(text) <= DEEPEST:
            return text
        reason: Exception = ValueError(_TOO_DEEP)
    except RecursionError:
        reason = ValueError(_TOO_DEEP)  # how deep that is depends on who calls, so the sentence does not say
    except (TypeError, ValueError) as error:
        reason = error
    raise EngineError(
        f"a value that crosses the engine is not JSON: {tellable(reason)}",
        next_step="give it as text, numbers, lists and mappings",
    ) from reason


def _depth(text: str) -> int:
    """How deep the lists and mappings of a text are nested; of one with few of them, an upper bound."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return 0
    depth = deepest = 0
    for sign in _BRACKET.findall(_TEXT.sub("", text)):
        depth += 1 if sign in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def decode(text: str) -> Json:
    """The value of a text that `encode` made."""
    return json.loads(text)  # type: ignore[no-any-return]  # JSON is what this type says


def tellable(error: BaseException) -> str:
    """The message of any error as text that can be stored, whatever the error does when it is asked for it."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  # a stranger's error may break while it is spelled
        return f"(a {type(error).__name__} that cannot be told)"
    return message[:_LONGEST_MESSAGE].replace("\0", "\\0").encode(errors="backslashreplace").decode()


def check_name(name: str) -> None:
    """Of a run, a step or a gate: something every database can hold and a person can read."""
    if not name.strip() or not name.isprintable():
        raise EngineError(f"{name!r} cannot name a run, a step or a gate", next_step="give it letters and digits")


class JsonSerializer:
    """The journal's own format, in place of pickles: what is read from a shared database runs nothing."""

    def name(self) -> str:
        """Stands beside every value."""
        return FORMAT

    def serialize(self, data: object) -> str:
        """The text of a value, of the arguments of a run, or of what it raised."""
        if isinstance(data, Encoded):
            return data.text
        if isinstance(data, RecordedError):
            return _ERROR_SIGN + encode([data.kind, data.message])
        if isinstance(data, BaseException):
            return _ERROR_SIGN + encode([type(data).__name__, tellable(data)])
        return encode(data)  # type: ignore[arg-type]  # whatever is no JSON is refused by encode

    def deserialize(self, text: str) -> object:
        """What `serialize` was given."""
        if not text.startswith(_ERROR_SIGN):
            return decode(text)
        kind, message = json.loads(text[len(_ERROR_SIGN) :])
        return RecordedError(str(kind), str(message))
