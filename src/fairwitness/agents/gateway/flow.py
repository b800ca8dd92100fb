"""Streams of bytes to the agent that are closed exactly once, even if they were never read."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from fairwitness.agents.gateway.dialects.observer import TurnObserver


class StreamBroken(ConnectionError):
    """An answer broke off; the message holds no secret."""


class AnswerStream:
    """The pieces of an answer, with a callback for its end, whether it was complete, broken off or never begun.

    A generator alone cannot do this: the `finally` of one that was never started does not run.
    """

    def __init__(self, pieces: AsyncIterator[bytes], ended: Callable[[], Awaitable[None]]) -> None:
        self._pieces = pieces
        self._ended = ended
        self._is_closed = False
        self.is_cut = False
        """Whether we cut it off ourselves, because its budget is spent."""

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
        """End the stream at any point."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await close(self._pieces)
        finally:
            await self._ended()


class HeldEnd:
    """Holds the end of an answer back, so that it can be settled before the agent reads it and makes its next call.

    An answer that is not a stream of events is held back as a whole.
    """

    def __init__(self, headers: Mapping[str, str], observer: TurnObserver) -> None:
        self.is_stream = "text/event-stream" in headers.get("content-type", "")
        self.held: list[bytes] = []
        self._observer = observer
        self._has_begun = False

    def holds(self, piece: bytes) -> bool:
        """Return whether a piece is held back."""
        self._observer.feed(piece)
        if self.is_stream and not self._has_begun:
            first = piece.lstrip()[:1]
            self._has_begun = bool(first)
            self.is_stream = first not in (b"{", b"[")  # it is one document, whatever its headers say
        if self.is_stream and not self.held and not self._observer.is_complete:
            return False
        self.held.append(piece)
        return True


async def close(pieces: AsyncIterator[bytes]) -> None:
    """Close an iterator that can be closed."""
    aclose = getattr(pieces, "aclose", None)
    if aclose is not None:
        await aclose()


async def once(piece: bytes) -> AsyncIterator[bytes]:
    """Yield an answer in one piece."""
    yield piece
