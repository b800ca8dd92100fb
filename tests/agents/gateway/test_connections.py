"""A connection that an agent leaves half open ends by itself, and the gateway goes on with the others."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from agents.gateway.scripted_kit import GRANT, TOKEN, grants, request, script, scripted
from fairwitness.agents.gateway.app import gateway
from fairwitness.agents.gateway.modes import ModelAnswer, ModelRequest, RawAnswer
from fairwitness.agents.gateway.server import serving
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.agents.settings import GatewayLimits
from fairwitness.testing.script_steps import SayStep
from fairwitness.testing.scripted_model import marker

pytestmark = [pytest.mark.req("X3"), pytest.mark.timeout(120)]

SHORT = GatewayLimits(request_s=0.6, unread_s=0.6, idle_s=0.6, connections=8)
HEAD = f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
PATIENCE_S = 60.0
"""Much longer than any limit here, for a machine that is busy."""


def whole_request() -> bytes:
    """A request that is answered."""
    body = json.dumps(request(ApiDialect.ANTHROPIC, marker("s"))[1]).encode()
    return f"{HEAD}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


class Raw:
    """A connection, byte by byte."""

    opened: ClassVar[list[socket.socket]] = []

    def __init__(self, path: Path, *, small: bool = False) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.opened.append(self.socket)
        if small:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(str(path))
        self.socket.settimeout(PATIENCE_S)

    def send(self, data: bytes) -> bool:
        """Whether the gateway still listens."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def rest(self) -> bytes:
        """What comes until the gateway closes; fails if it never does."""
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := self.socket.recv(1 << 16):
                got += piece
        return got

    def dripping(self, drop: bytes) -> float:
        """How long the gateway lets somebody send a little now and then."""
        began = time.monotonic()
        while self.send(drop) and time.monotonic() - began < PATIENCE_S:
            time.sleep(0.1)
        return time.monotonic() - began


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Closes what a test left open."""
    yield
    while Raw.opened:
        Raw.opened.pop().close()


async def served(tmp_path: Path, work: Callable[[Path], Any], app: Any = None, limits: GatewayLimits = SHORT) -> Any:
    """What the work returns, done in a thread while a gateway listens."""
    path = tmp_path / "door" / "g.sock"
    app = app or scripted(script(SayStep(text="hello")))
    async with serving(app, socket=path, limits=limits):
        return await asyncio.to_thread(work, path)


def test_headers_that_never_end(tmp_path: Path) -> None:
    assert asyncio.run(served(tmp_path, lambda path: Raw(path).rest())) == b""

    def slowly(path: Path) -> float:
        raw = Raw(path)
        raw.send(HEAD.encode())
        return raw.dripping(b"x-a: b\r\n")

    assert asyncio.run(served(tmp_path, slowly)) < PATIENCE_S


def test_a_body_that_never_ends(tmp_path: Path) -> None:
    def slowly(path: Path) -> float:
        raw = Raw(path)
        raw.send(f"{HEAD}content-length: 1000000\r\n\r\n".encode())
        return raw.dripping(b"{")

    assert asyncio.run(served(tmp_path, slowly)) < PATIENCE_S

    def in_chunks(path: Path) -> float:
        raw = Raw(path)
        raw.send(f"{HEAD}transfer-encoding: chunked\r\n\r\n".encode())
        return raw.dripping(b"1\r\n \r\n")

    assert asyncio.run(served(tmp_path, in_chunks)) < PATIENCE_S


def test_a_refused_request_whose_body_never_ends(tmp_path: Path) -> None:
    def slowly(path: Path) -> float:
        raw = Raw(path)
        raw.send(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n")
        return raw.dripping(b"{")

    assert asyncio.run(served(tmp_path, slowly)) < PATIENCE_S


def test_a_connection_that_is_kept_and_not_used(tmp_path: Path) -> None:
    def idle(path: Path) -> bytes:
        raw = Raw(path)
        raw.send(whole_request())
        return raw.rest()

    said = asyncio.run(served(tmp_path, idle))
    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"hello" in said

    def with_blank_lines(path: Path) -> float:
        raw = Raw(path)
        raw.send(whole_request())
        time.sleep(0.2)
        return raw.dripping(b"\r\n")

    assert asyncio.run(served(tmp_path, with_blank_lines)) < PATIENCE_S


class _Floods:
    """A mode whose answers are longer than all buffers on the way, and which sees their end."""

    name = "script"

    def __init__(self) -> None:
        self.closed = False

    async def answer(self, _asked: ModelRequest) -> ModelAnswer:
        return RawAnswer(200, {"content-type": "text/event-stream"}, self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b": x\n" * 10_000
                await asyncio.sleep(0)
        finally:
            self.closed = True


def test_an_agent_that_reads_nothing(tmp_path: Path) -> None:
    mode = _Floods()

    def mute(path: Path) -> bool:
        raw = Raw(path, small=True)
        raw.send(whole_request())
        give_up = time.monotonic() + PATIENCE_S
        while not mode.closed and time.monotonic() < give_up:
            time.sleep(0.05)
        return mode.closed

    assert asyncio.run(served(tmp_path, mute, gateway(mode, grants)))


def test_a_long_answer_to_an_agent_that_reads_slowly_is_not_cut(tmp_path: Path) -> None:
    class Thinks:
        name = "script"

        async def answer(self, asked: ModelRequest) -> ModelAnswer:
            assert asked.grant == GRANT
            await asyncio.sleep(1.5)  # longer than every limit: a model may think
            return RawAnswer(200, {"content-type": "text/plain"}, self._pieces())

        async def _pieces(self) -> AsyncIterator[bytes]:
            for _ in range(4):
                yield b"more\n"
                await asyncio.sleep(0.4)
            yield b"done\n"

    said = asyncio.run(
        served(
            tmp_path, lambda path: (raw := Raw(path)).send(whole_request()) and raw.rest(), gateway(Thinks(), grants)
        )
    )
    assert b"done" in said


def test_too_many_connections_end_and_the_others_are_served(tmp_path: Path) -> None:
    patient = SHORT.model_copy(update={"request_s": 30.0})

    def many(path: Path) -> tuple[int, bytes]:
        kept = [Raw(path) for _ in range(SHORT.connections - 1)]
        good = Raw(path)
        refused = [Raw(path).rest() for _ in range(3)]
        good.send(whole_request())
        said = good.socket.recv(1 << 16)
        assert len(kept) == SHORT.connections - 1
        return len(refused), said

    refused, said = asyncio.run(served(tmp_path, many, limits=patient))
    assert refused == 3
    assert said.startswith(b"HTTP/1.1 200 ")


def test_half_open_connections_leave_nothing_behind_and_block_nobody(tmp_path: Path) -> None:
    path = tmp_path / "door" / "g.sock"

    async def work() -> tuple[int, int]:
        async with serving(scripted(script(SayStep(text="hello"))), socket=path, limits=SHORT):
            held = [Raw(path) for _ in range(4)]
            for each in held:
                each.send(HEAD.encode())
            async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path))) as client:
                where, body = request(ApiDialect.ANTHROPIC, marker("s"))
                answer = await client.post(
                    f"http://localhost{where}", json=body, headers={"authorization": f"Bearer {TOKEN}"}
                )
            ends = await asyncio.gather(*(asyncio.to_thread(each.rest) for each in held))
            return answer.status_code, sum(end == b"" for end in ends)

    assert asyncio.run(work()) == (200, 4)
