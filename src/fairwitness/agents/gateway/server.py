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

from fairwitness.errors import NotReady, UsageError

_LONGEST_PATH = 107
"""Bytes of a socket's path that the kernel accepts."""
_BACKLOG = 128
_PATIENCE = 1.0
"""Seconds for an answer to notice the disconnect, and again to end."""


@dataclass(frozen=True, slots=True)
class Served:
    """The addresses of a gateway."""

    url: str | None
    """`http://127.0.0.1:PORT`, without a trailing slash."""
    socket: Path | None


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
async def serving(app: Any, *, socket: Path | None = None, tcp: bool = False) -> AsyncIterator[Served]:
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
            http="h11",
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
