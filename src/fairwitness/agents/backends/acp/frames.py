"""What goes over an agent's two streams: one JSON object a line, everything else skipped, nothing without a bound.

The agent's side is not trusted: a frame that the client's library would trip over does not get that far.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

from fairwitness.kit.text import visible

FRAME_LIMIT = 16 << 20
"""Bytes of one frame; whoever sends more has lost the thread, and the session ends."""
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
        """Why nothing more is read, unless the agent closed its end."""
        self.strays = 0
        self.received = 0
        self._reader, self._writer, self._note = reader, writer, note
        self._left = total_limit
        self._sending = asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Sends one frame; if the agent does not listen any more, nothing more is read from it either."""
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
        """Ends the talk from our side: whoever waits for an answer learns that there will be none."""
        self.broken = self.broken or why
        self._reader.set_exception(ConnectionResetError(self.broken))

    async def receive(self) -> dict[str, Any] | None:
        """The next frame that is one; None when there will be no more."""
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
        """Closes the agent's input; its output may still be read."""
        with contextlib.suppress(ConnectionError, OSError):
            self._writer.close()

    def _stray(self, line: bytes) -> None:
        if not line.strip():
            return
        self.strays += 1
        if self.strays <= _STRAYS_TOLD:
            self._note(f"skipped, since it is no frame: {visible(line.decode(errors='replace').strip())[:_SHOWN]}")


def _message(line: bytes) -> dict[str, Any] | None:
    """A frame in a form that can be worked with, or None."""
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
    """An error with the number and the words that one has to have."""
    error = told if isinstance(told, dict) else {"message": told}
    code = error.get("code")
    is_number = isinstance(code, int) and not isinstance(code, bool)
    return {**error, "code": code if is_number else -32_603, "message": str(error.get("message", "no reason given"))}


def _whole(value: Any) -> Any:
    """The same without halves of signs, which no text of ours can hold."""
    if isinstance(value, str):
        return _HALF_A_SIGN.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value
