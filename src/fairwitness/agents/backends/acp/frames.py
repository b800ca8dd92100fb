"""Reads and writes the frames of an agent's two streams: one JSON object a line, with limits; anything else is skipped.

The agent is not trusted: frames on which the protocol library would fail are dropped or repaired here.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

from fairwitness.kit.text import visible

FRAME_LIMIT = 16 << 20
"""Bytes of one frame; a longer one ends the session."""
TOTAL_LIMIT = 512 << 20
"""Bytes of a whole session."""
_STRAYS_TOLD = 5
_SHOWN = 200
_HALF_A_SIGN = re.compile("[\ud800-\udfff]")


class Frames:
    """A transport for `acp.core.Connection`."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        note: Callable[[str], None],
        *,
        total_limit: int = TOTAL_LIMIT,
    ) -> None:
        self.broken: str | None = None
        """Why reading stopped; None if the agent closed its end."""
        self.strays = 0
        self.received = 0
        self._reader, self._writer, self._note = reader, writer, note
        self._left = total_limit
        self._sending = asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a frame; if the agent no longer reads, stop reading from it."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            async with self._sending:
                if not self._writer.is_closing():
                    self._writer.write(line)
                    await self._writer.drain()
                    return
        except (ConnectionError, OSError):
            pass
        self.hang_up("it does not listen any more")

    def hang_up(self, why: str) -> None:
        """Stop reading, so that pending requests fail."""
        self.broken = self.broken or why
        self._reader.set_exception(ConnectionResetError(self.broken))

    async def receive(self) -> dict[str, Any] | None:
        """Return the next valid frame; None at the end."""
        while self.broken is None:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                line = error.partial
                if not line:
                    return None
            except asyncio.LimitOverrunError:
                self.broken = f"it sent a line of more than {FRAME_LIMIT >> 20} MiB"
                break
            except (ConnectionError, OSError):
                return None
            self._left -= len(line)
            if self._left < 0:
                self.broken = "it sent more than a whole session may hold"
                break
            message = _message(line)
            if message is not None:
                self.received += 1
                return message
            self._stray(line)
        return None

    async def close(self) -> None:
        """Close the agent's input; its output can still be read."""
        with contextlib.suppress(ConnectionError, OSError):
            self._writer.close()

    def _stray(self, line: bytes) -> None:
        if not line.strip():
            return
        self.strays += 1
        if self.strays <= _STRAYS_TOLD:
            self._note(f"skipped, since it is no frame: {visible(line.decode(errors='replace').strip())[:_SHOWN]}")


def _message(line: bytes) -> dict[str, Any] | None:
    """Return a frame that the protocol library can handle, or None."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("id", 0), int | str | None):
        return None
    method = message.get("method")
    if method is None:
        if "id" not in message or not ("result" in message or "error" in message):
            return None
        if "error" in message:
            message["error"] = _error(message["error"])
    elif not isinstance(method, str):
        return None
    return _whole(message) if b"\\u" in line else message


def _error(told: Any) -> dict[str, Any]:
    """Return an error with the code and message that the protocol requires."""
    error = told if isinstance(told, dict) else {"message": told}
    code = error.get("code")
    is_number = isinstance(code, int) and not isinstance(code, bool)
    return {**error, "code": code if is_number else -32_603, "message": str(error.get("message", "no reason given"))}


def _whole(value: Any) -> Any:
    """Return the value without halves of surrogate pairs, which cannot be encoded."""
    if isinstance(value, str):
        return _HALF_A_SIGN.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value
