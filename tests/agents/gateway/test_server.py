"""A gateway listens where it was told to, keeps others out, and leaves nothing behind."""

import asyncio
import logging
import signal
import socket
import stat
import time
from pathlib import Path

import httpx
import pytest

from agents.gateway.scripted_kit import TOKEN, client, eventually, request, script, scripted
from fairwitness.agents.gateway.server import serving
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.errors import UsageError
from fairwitness.testing.script_steps import HangStep
from fairwitness.testing.scripted_model import marker

pytestmark = pytest.mark.req("X3")

KEY = {"authorization": f"Bearer {TOKEN}"}


def _socket(folder: Path) -> Path:
    return folder / "door" / "g.sock"


async def _serve(path: Path) -> None:
    async with serving(scripted(), socket=path):
        pass


def test_a_socket_is_there_as_long_as_the_gateway_and_for_nobody_else(tmp_path: Path) -> None:
    path = _socket(tmp_path)

    async def look() -> tuple[int, int]:
        async with serving(scripted(), socket=path) as served:
            assert (served.url, served.socket) == (None, path)
            return path.stat().st_mode, path.parent.stat().st_mode

    of_socket, of_folder = asyncio.run(look())
    assert stat.S_ISSOCK(of_socket)
    assert stat.S_IMODE(of_socket) == 0o600
    assert stat.S_IMODE(of_folder) == 0o700
    assert not path.exists()


def test_a_folder_that_others_can_reach_into_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o755)
    open_to_all.chmod(0o755)
    with pytest.raises(UsageError, match="others can reach"):
        asyncio.run(_serve(open_to_all / "g.sock"))
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(private)
    with pytest.raises(UsageError, match="others can reach"):
        asyncio.run(_serve(link / "g.sock"))


def test_a_path_that_the_kernel_would_not_take_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="107 bytes"):
        asyncio.run(_serve(tmp_path / ("x" * 120) / "g.sock"))


def test_what_a_killed_gateway_left_is_taken_over_and_what_still_answers_is_not(tmp_path: Path) -> None:
    path = _socket(tmp_path)
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    asyncio.run(_serve(path))

    async def twice() -> None:
        async with serving(scripted(), socket=path):
            await _serve(path)

    with pytest.raises(UsageError, match="something else"):
        asyncio.run(twice())
    path.write_text("a file")
    with pytest.raises(UsageError, match="something else"):
        asyncio.run(_serve(path))
    assert path.read_text() == "a file"


def test_it_has_to_listen_somewhere() -> None:
    async def nowhere() -> None:
        async with serving(scripted()):
            pass

    with pytest.raises(UsageError):
        asyncio.run(nowhere())


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_it_listens_on_both_at_once_and_on_no_other_address(tmp_path: Path) -> None:
    async def look() -> tuple[int, int, str]:
        path = _socket(tmp_path)
        async with serving(scripted(), socket=path, tcp=True) as served:
            assert served.url is not None
            async with httpx.AsyncClient(trust_env=False, headers=KEY) as talking:
                by_port = await talking.get(f"{served.url}/v1/models")
            transport = httpx.AsyncHTTPTransport(uds=str(path))
            async with httpx.AsyncClient(transport=transport, headers=KEY) as talking:
                by_socket = await talking.get("http://gateway/v1/models")
            return by_port.status_code, by_socket.status_code, served.url

    by_port, by_socket, url = asyncio.run(look())
    assert (by_port, by_socket) == (200, 200)
    assert url.startswith("http://127.0.0.1:")
    port = int(url.rpartition(":")[2])
    with socket.socket() as knock, pytest.raises(ConnectionRefusedError):
        knock.connect(("127.0.0.1", port))


def test_a_hanging_connection_does_not_keep_it_alive(tmp_path: Path) -> None:
    app = scripted(script(HangStep()))
    path, body = request(ApiDialect.ANTHROPIC, marker("s"))

    async def play() -> float:
        async with client(app, tmp_path) as talking:
            hanging = asyncio.ensure_future(talking.post(path, json=body))
            await eventually(lambda: app.log.requests)
            began = time.monotonic()
        with pytest.raises(httpx.HTTPError):
            await hanging
        return time.monotonic() - began

    assert asyncio.run(play()) < 3


def test_the_signals_of_the_program_are_left_alone(tmp_path: Path) -> None:
    async def look() -> object:
        async with serving(scripted(), socket=_socket(tmp_path)):
            return signal.getsignal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    assert asyncio.run(look()) is before


def test_it_says_nothing_about_requests(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def play() -> None:
        async with client(scripted(), tmp_path) as talking:
            await talking.get(f"/v1/models?key={TOKEN}")

    asyncio.run(play())
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


def test_an_error_inside_the_block_comes_out_and_the_socket_goes(tmp_path: Path) -> None:
    path = _socket(tmp_path)

    async def fail() -> None:
        async with serving(scripted(), socket=path):
            raise LookupError("ours")

    with pytest.raises(LookupError, match="ours"):
        asyncio.run(fail())
    assert not path.exists()


def test_a_cancelled_program_leaves_no_socket(tmp_path: Path) -> None:
    path = _socket(tmp_path)

    async def wait() -> None:
        async with serving(scripted(), socket=path):
            await asyncio.sleep(60)

    async def play() -> None:
        waiting = asyncio.ensure_future(wait())
        await eventually(path.exists)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(play())
    assert not path.exists()
