"""Writes values and errors into the journal as JSON, and reads them from it."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb

from fairwitness.engine.base import EngineError, Json
from fairwitness.errors import FairWitnessError

FORMAT = "fairwitness-json-1"
"""The name of the format of the journal's values; old runs are read by it."""

_ERROR_SIGN = "!"
"""The first character of a recorded error; no JSON text starts with it."""
_LONGEST_MESSAGE = 10_000
_CALLS = 8
"""How many calls of a defect's traceback are kept."""

DEEPEST = 200
"""The maximum nesting of lists and mappings.

Python's limit is below a thousand, and lower if the caller is deep in the stack: what was written must be readable
everywhere.
"""
_TOO_DEEP = f"it is nested more than {DEEPEST} deep"
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[\[\]{}]")


class RecordedError(Exception):
    """An error in the journal: the name of its class and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind, self.message = kind, message


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value that is already JSON text."""

    text: str


def encode(value: Json) -> str:
    """Return a value as JSON text in plain ASCII, which every database can store and every reader can read."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        if _depth(text) <= DEEPEST:
            return text
        reason: Exception = ValueError(_TOO_DEEP)
    except RecursionError:
        reason = ValueError(_TOO_DEEP)  # the actual depth depends on the caller, so the message does not state it
    except (TypeError, ValueError) as error:
        reason = error
    raise EngineError(
        f"a value that crosses the engine is not JSON: {tellable(reason)}",
        next_step="give it as text, numbers, lists and mappings",
    ) from reason


def _depth(text: str) -> int:
    """Return how deep the lists and mappings of a text are nested; 0 if it has too few to exceed the limit."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return 0
    depth = deepest = 0
    for sign in _BRACKET.findall(_TEXT.sub("", text)):
        depth += 1 if sign in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def decode(text: str) -> Json:
    """Return the value of a text that `encode` made."""
    return json.loads(text)  # type: ignore[no-any-return]  # json.loads returns exactly this type


def tellable(error: BaseException) -> str:
    """Return the message of any error as text that can be stored, even if the error's own `__str__` fails."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  # a foreign error may fail when it is converted to text
        return f"(a {type(error).__name__} that cannot be told)"
    return message[:_LONGEST_MESSAGE].replace("\0", "\\0").encode(errors="backslashreplace").decode()


def place_of(error: BaseException) -> str:
    """Return where a defect of the program was met, innermost call first; empty for an error raised on purpose.

    A step's traceback is lost with its process, and "maximum recursion depth exceeded" alone names no place.
    """
    if isinstance(error, FairWitnessError) or error.__traceback__ is None:
        return ""
    calls = [f"{Path(frame.filename).stem}.{frame.name}:{frame.lineno}" for frame in extract_tb(error.__traceback__)]
    return f" (in {' < '.join(list(dict.fromkeys(reversed(calls)))[:_CALLS])})"


def check_name(name: str) -> None:
    """Check the name of a run, a step or a gate: every database can store it and a person can read it."""
    if not name.strip() or not name.isprintable():
        raise EngineError(f"{name!r} cannot name a run, a step or a gate", next_step="give it letters and digits")


class JsonSerializer:
    """The journal's own format instead of pickle: reading from a shared database executes no code."""

    def name(self) -> str:
        """Return the name of the format, which is stored beside every value."""
        return FORMAT

    def serialize(self, data: object) -> str:
        """Return the text of a value, of the arguments of a run, or of an error that it raised."""
        if isinstance(data, Encoded):
            return data.text
        if isinstance(data, RecordedError):
            return _ERROR_SIGN + encode([data.kind, data.message])
        if isinstance(data, BaseException):
            return _ERROR_SIGN + encode([type(data).__name__, tellable(data)])
        return encode(data)  # type: ignore[arg-type]  # encode refuses anything that is not JSON

    def deserialize(self, text: str) -> object:
        """Return the value that was given to `serialize`."""
        if not text.startswith(_ERROR_SIGN):
            return decode(text)
        kind, message = json.loads(text[len(_ERROR_SIGN) :])
        return RecordedError(str(kind), str(message))
