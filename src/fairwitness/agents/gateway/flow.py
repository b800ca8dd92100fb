"""Bytes on their way to the agent: listened to, and closed exactly once, also when nobody ever read one of them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from fairwitness.agents.gateway.dialects.observer import TurnObserver


class StreamBroken(ConnectionError):
    """An answer ended before its end; says why, in words that hold no secret."""


class AnswerStream:
    """Pieces of an answer, and what is to be done when it has ended, was broken off, or was never begun.

    A generator alone cannot promise that: one that was never started has no `finally`.
    """

    def __init__(self, pieces: AsyncIterator[bytes], ended: Callable[[], Awaitable[None]]) -> None:
        self._pieces = pieces
        self._ended = ended
        self._is_closed = False

    def __aiter__(self) -> "AnswerStream":
        return self

    async def __anext__(self) -> bytes:
        if self._is_closed:
            raise StopAsyncIteration
        try:
            return await anext(self._pieces)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Ends it, wherever it is."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await close(self._pieces)
        finally:
            await self._ended()


class HeldEnd:
    """Listens to an answer, and holds its end back: what is to be done at the end is done before the agent reads it.

    Then the agent's next call finds things as they are. An answer that is no stream of events is all end.
    """

    def __init__(self, headers: Mapping[str, str], observer: TurnObserver) -> None:
        self.is_stream = "text/event-stream" in headers.get("content-type", "")
        self.held: list[bytes] = []
        self._observer = observer
        self._has_begun = False

    def holds(self, piece: bytes) -> bool:
        """True if the piece is held back; otherwise it may go on at once."""
        self._observer.feed(piece)
        if self.is_stream and not self._has_begun:
            first = piece.lstrip()[:1]
            self._has_begun = bool(first)
            self.is_stream = first not in (b"{", b"[")  # whatever its headers say, it is one document
        if self.is_stream and not self.held and not self._observer.is_complete:
            return False
        self.held.append(piece)
        return True


async def close(pieces: AsyncIterator[bytes]) -> None:
    """Closes an iterator that can be closed."""
    aclose = getattr(pieces, "aclose", None)
    if aclose is not None:
        await aclose()


async def once(piece: bytes) -> AsyncIterator[bytes]:
    """An answer in one piece."""
    yield piece
