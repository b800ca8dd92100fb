"""Serves the gateway on a private Unix socket, on the loopback interface, or on both.

Needs uvicorn, so it is imported only where a gateway is started.
"""

import asyncio
import contextlib
import os
import socket as sockets
import stat
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from fairwitness.contracts.agents.settings import GatewayLimits
from fairwitness.errors import NotReady, UsageError

_LONGEST_PATH = 107
"""Bytes of a socket's path that the kernel accepts."""
_BACKLOG = 128
_PATIENCE = 1.0
"""Seconds for an answer to notice the disconnect, and again to end."""
_LIMITS = GatewayLimits()


@dataclass(frozen=True, slots=True)
class Served:
    """The addresses of a gateway."""

    url: str | None
    """`http://127.0.0.1:PORT`, without a trailing slash."""
    socket: Path | None


class _TimedConnection(H11Protocol):
    """A connection that ends if the agent does not: one timer for what is to come from it, one for what it must read.

    While an answer is being made there is no limit here: a model may think for minutes, and the dispatch has its own
    limit of time.
    """

    limits: GatewayLimits
    _awaited: asyncio.TimerHandle | None = None
    _is_idle = False
    """Whether no byte of a further request has arrived."""
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Expect a whole request; refuse one connection too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.abort()
        else:
            self._await(self.limits.request_s, is_idle=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop both timers."""
        self._stop_waiting()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Expect the rest of a request that begins; stop to wait when it is whole."""
        if self._is_idle or self._awaited is None:
            self._await(self.limits.request_s, is_idle=False)
        super().data_received(data)
        self._look_after()

    def on_response_complete(self) -> None:
        """Wait for another request."""
        self._await(self.limits.idle_s, is_idle=True)
        super().on_response_complete()
        self._look_after()

    def pause_writing(self) -> None:
        """Expect the agent to read."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the agent reads."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _await(self, seconds: float, *, is_idle: bool) -> None:
        self._stop_waiting()
        self._is_idle = is_idle
        self._awaited = self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        self._is_idle = False
        if self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None

    def _look_after(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # uvicorn's annotation leaves out that it may be None
        if self.transport.is_closing():
            if self.transport.get_write_buffer_size() and self._unread is None:
                self._unread = self.loop.call_later(self.limits.unread_s, self.transport.abort)
        elif cycle is not None and not cycle.more_body and not cycle.response_complete:
            self._stop_waiting()


class _Server(uvicorn.Server):
    """A uvicorn server that handles no signals, says when it listens, and ends at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()
        self.ends = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals: the program that started the server decides when to end."""
        yield

    async def startup(self, sockets: list[sockets.socket] | None = None) -> None:
        """Start as usual, then set `listens`."""
        await super().startup(sockets)
        self.listens.set()

    async def main_loop(self) -> None:
        """Wait for the end; no periodic work is needed."""
        await self.on_tick(0)
        await self.ends.wait()

    async def shutdown(self, sockets: list[sockets.socket] | None = None) -> None:
        """End every connection and every running answer."""
        for server in self.servers:
            server.close()
        for opened in sockets or []:
            opened.close()
        for connection in list(self.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        busy = set(self.server_state.tasks)
        if busy:
            _, busy = await asyncio.wait(busy, timeout=_PATIENCE)
        for task in busy:
            task.cancel()
        if busy:
            await asyncio.wait(busy, timeout=_PATIENCE)
        await asyncio.sleep(0)  # aborted transports close in the next iteration of the loop


@contextlib.asynccontextmanager
async def serving(
    app: Any, *, socket: Path | None = None, tcp: bool = False, limits: GatewayLimits = _LIMITS
) -> AsyncIterator[Served]:
    """Serve for the duration of the block: it listens inside, and has ended afterwards."""
    if socket is None and not tcp:
        raise UsageError("a gateway has to listen somewhere", next_step="give a socket, or ask for loopback")
    with contextlib.ExitStack() as listening:
        opened: list[sockets.socket] = []
        if socket is not None:
            opened.append(listening.enter_context(_unix(socket)))
        url = None
        if tcp:
            opened.append(listening.enter_context(_loopback()))
            url = f"http://127.0.0.1:{opened[-1].getsockname()[1]}"
        config = uvicorn.Config(
            app,
            http=type("_LimitedConnection", (_TimedConnection,), {"limits": limits}),
            timeout_keep_alive=int(limits.idle_s) + 1,  # ours is the first
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
        )
        server = _Server(config)
        running = asyncio.ensure_future(server.serve(opened))
        try:
            await _listening(server, running)
            yield Served(url, socket)
        finally:
            server.ends.set()
            await asyncio.wait({running})
    if not running.cancelled() and (error := running.exception()) is not None:
        raise error


async def _listening(server: _Server, running: "asyncio.Future[None]") -> None:
    waiting = asyncio.ensure_future(server.listens.wait())
    first: set[asyncio.Future[Any]] = {waiting, running}
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if running.done():
        raise NotReady("the gateway did not start") from running.exception()


@contextlib.contextmanager
def _loopback() -> Iterator[sockets.socket]:
    with sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM, sockets.IPPROTO_TCP) as opened:
        opened.bind(("127.0.0.1", 0))
        yield opened


@contextlib.contextmanager
def _unix(path: Path) -> Iterator[sockets.socket]:
    """Open a socket in a private folder, which keeps others out while the socket is created."""
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise UsageError(
            f"the path of a socket may have {_LONGEST_PATH} bytes: {path}", next_step="use a shorter folder"
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = path.parent.lstat()
    if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.geteuid() or stat.S_IMODE(folder.st_mode) & 0o077:
        raise UsageError(
            f"others can reach into {path.parent}", next_step=f"chmod 700 {path.parent}, or use a folder of your own"
        )
    _clear(path)
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as opened:
        opened.bind(os.fspath(path))
        try:
            path.chmod(0o600)
            yield opened
        finally:
            path.unlink(missing_ok=True)


def _clear(path: Path) -> None:
    """Remove the socket of a killed gateway; refuse a path that still answers or is something else."""
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as knock:
        try:
            if is_socket:
                knock.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise UsageError(f"something else is at {path}", next_step="use another path for the socket")
