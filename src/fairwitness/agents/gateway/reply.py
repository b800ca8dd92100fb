"""How an answer leaves: in one piece, as a stream, passed through, broken off; always until the agent goes away."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")

GONE = 499
"""Never sent: there is nobody left to read it."""
_OUR_BUSINESS = frozenset(
    {"connection", "content-length", "keep-alive", "proxy-connection", "set-cookie", "transfer-encoding", "upgrade"}
)


async def gone(receive: Receive) -> None:
    """Comes back when the agent has gone away; the whole request must have been read before."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T | None:
    """What came of the work; None if the agent went away first, and then the work was cancelled."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(gone(receive))
    first: set[asyncio.Future[Any]] = {working, leaving}
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in first - {done for done in first if done.done()}:
            task.cancel()
        await asyncio.wait(first)
    return None if working.cancelled() else working.result()


class Stream(Response):
    """Pieces as they come. Whoever gives them is told when the agent goes away."""

    def __init__(self, pieces: AsyncIterator[bytes], status: int, headers: Mapping[str, str]) -> None:
        super().__init__(status_code=status)
        self._pieces = pieces
        kept = {name.lower(): value for name, value in headers.items() if name.lower() not in _OUR_BUSINESS}
        self.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in kept.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends; an end that is not the end of the answer breaks the connection, so that nobody takes it for one."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            with suppress(ConnectionError):
                await unless_gone(receive, self._pump(send))
        finally:
            aclose = getattr(self._pieces, "aclose", None)
            if aclose is not None:
                await aclose()

    async def _pump(self, send: Send) -> None:
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def in_pieces(frames: Iterable[bytes]) -> AsyncIterator[bytes]:
    """A stream of our own making; others get their turn between two pieces."""
    for frame in frames:
        yield frame
        await asyncio.sleep(0)


async def in_half(body: bytes) -> AsyncIterator[bytes]:
    """The first half of an answer, and then a broken connection."""
    yield body[: len(body) // 2]
    raise ConnectionAbortedError
