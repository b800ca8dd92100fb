"""A provider is not trusted either: whatever it sends, the gateway stays within its bounds and says what happened."""

import asyncio
import contextlib
import gzip
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from agents.gateway.pass_kit import (
    QUICK,
    SECRET,
    FakeProvider,
    asked_of,
    body_of,
    drained,
    fronted,
    passing,
    provider_at,
)
from fairwitness.agents.gateway.dialects import observe
from fairwitness.agents.gateway.flow import AnswerStream, HeldEnd, StreamBroken, close
from fairwitness.agents.gateway.modes import FailedAnswer, ModelAnswer, RawAnswer, UpstreamFailure
from fairwitness.agents.gateway.upstream import ModelRoute, PassMode, ProviderLimits
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.rules.provider_faults import MEANINGS, Charge, fault_of

pytestmark = [pytest.mark.enable_socket, pytest.mark.req("X3")]

ASKED = asked_of(ApiDialect.OPENAI_CHAT, body_of(ApiDialect.OPENAI_CHAT, "hello"))
SSE = {"content-type": "text/event-stream"}
SMALL = ProviderLimits(connect_s=2.0, silence_s=2.0, whole_s=10.0, largest=10_000)


def _charge(answered: UpstreamFailure) -> Charge:
    """What a failure costs."""
    return MEANINGS[fault_of(answered.reply)].charge


def _answered(provider: FakeProvider, patience: ProviderLimits = QUICK) -> ModelAnswer:
    async def play() -> ModelAnswer:
        async with passing(provider, ApiDialect.OPENAI_CHAT, patience=patience) as mode:
            return await mode.answer(ASKED)

    return asyncio.run(play())


def _drained(provider: FakeProvider, patience: ProviderLimits = QUICK) -> bytes:
    async def play() -> bytes:
        async with passing(provider, ApiDialect.OPENAI_CHAT, patience=patience) as mode:
            return await drained(await mode.answer(ASKED))

    return asyncio.run(play())


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield b"data: {}\n\n" * 100
        await asyncio.sleep(0)


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:1/", "//evil.example"]
)
def test_a_redirect_is_not_followed_and_not_passed_on(status: int, target: str) -> None:
    provider = FakeProvider(b"", status=status, headers={"location": target})
    answered = _answered(provider)
    assert isinstance(answered, FailedAnswer)
    assert answered.status == 502
    assert isinstance(answered, UpstreamFailure)
    assert _charge(answered) is Charge.NOTHING
    assert target not in f"{answered.message} {answered.headers}"
    assert len(provider.got) == 1


def test_an_answer_that_says_it_is_too_long_is_not_read() -> None:
    headers = {"content-type": "application/json", "content-length": "999999999999999999999"}
    answered = _answered(FakeProvider(_endless, headers=headers), SMALL)
    assert isinstance(answered, FailedAnswer)
    assert answered.status == 502


def test_an_answer_that_never_ends_is_broken_off_at_the_largest_size_and_its_provider_left() -> None:
    async def play() -> None:
        provider = FakeProvider(_endless, headers=SSE)
        async with passing(provider, ApiDialect.OPENAI_CHAT, patience=SMALL) as mode:
            answered = await mode.answer(ASKED)
            assert isinstance(answered, RawAnswer)
            with pytest.raises(StreamBroken, match="more than 10000 bytes"):
                await drained(answered)
            await asyncio.wait_for(provider.is_left.wait(), 5)

    asyncio.run(play())


def test_an_error_that_never_ends_keeps_its_status_and_loses_its_words() -> None:
    answered = _answered(FakeProvider(_endless, status=500))
    assert isinstance(answered, FailedAnswer)
    assert (answered.status, answered.message) == (500, "acme answered 500")


def test_a_packed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    for coding in ("gzip", "br", "zstd", "deflate", "identity, gzip"):
        answered = _answered(FakeProvider(bomb, headers={**SSE, "content-encoding": coding}))
        assert isinstance(answered, UpstreamFailure)
        assert _charge(answered) is not Charge.NOTHING
        assert "packed" in answered.message


def test_garbage_instead_of_events_passes_and_harms_nobody() -> None:
    garbage = b"data: {\xff\xfe\n\nevent: \0\ndata: [[[[[\n\n:::\r\r\n" * 50
    assert _drained(FakeProvider(garbage, headers=SSE)) == garbage


def test_headers_that_could_not_be_sent_on_are_left_out() -> None:
    headers = {**SSE, "x-request-id": "漢字", "request-id": "fine", "retry-after": "\x80"}
    answered = _answered(FakeProvider(b"data: {}\n\n", headers=headers))
    assert isinstance(answered, RawAnswer)
    assert dict(answered.headers) == {**SSE, "request-id": "fine"}


def test_a_provider_that_falls_silent_is_given_up() -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield b"data: {}\n\n"
        await asyncio.sleep(30)

    began = time.monotonic()
    with pytest.raises(StreamBroken, match="fell silent"):
        _drained(FakeProvider(silent, headers=SSE), ProviderLimits(silence_s=0.3))
    assert time.monotonic() - began < 5


def test_a_provider_that_drips_is_given_up() -> None:
    async def drips() -> AsyncIterator[bytes]:
        while True:
            yield b":"
            await asyncio.sleep(0.05)

    with pytest.raises(StreamBroken, match="did not end within"):
        _drained(FakeProvider(drips, headers=SSE), ProviderLimits(silence_s=5, whole_s=0.4))


def test_a_connection_that_breaks_in_the_middle_is_no_end_of_an_answer(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    async def play() -> None:
        provider = FakeProvider(b'data: {"choices": []}\n\n', headers=SSE, cut=True)
        async with passing(provider, ApiDialect.OPENAI_CHAT) as mode:
            with pytest.raises(StreamBroken, match="broke"):
                await drained(await mode.answer(ASKED))
            async with fronted(mode, tmp_path) as client:
                with pytest.raises(httpx.RemoteProtocolError):
                    await client.post(
                        "/v1/chat/completions", json=body_of(ApiDialect.OPENAI_CHAT, "hello", stream=True)
                    )

    asyncio.run(play())


class RawProvider:
    """Reads a request, sends some bytes whatever they are, and hangs up, at once or when it is over."""

    def __init__(self, data: bytes, *, waits: bool) -> None:
        self._data = data
        self._waits = waits
        self._over = asyncio.Event()
        self._speaking: list[asyncio.Task[None]] = []

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        task = asyncio.current_task()
        assert task is not None
        self._speaking.append(task)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self._data)
        if self._waits:
            await self._over.wait()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def end(self) -> None:
        """Hangs up everywhere."""
        self._over.set()
        await asyncio.gather(*self._speaking)


@pytest.mark.parametrize(
    ("data", "waits", "status", "words"),
    [
        (b"", False, 502, "broke before it had answered"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", False, 502, "broke before it had answered"),
        (b"HTTP/1.1 200 OK\r\n" + b"x-a: " + b"y" * 1_000_000, False, 502, "broke before it had answered"),
        (b"HTTP/1.1 200 OK\r\n", True, 504, "did not answer within"),
    ],
)
def test_what_does_not_speak_the_protocol_is_a_lost_answer(data: bytes, waits: bool, status: int, words: str) -> None:
    async def play() -> ModelAnswer:
        raw = RawProvider(data, waits=waits)
        server = await asyncio.start_server(raw.speak, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        route = ModelRoute(provider_at(f"http://127.0.0.1:{port}", ApiDialect.OPENAI_CHAT), "m")
        mode = PassMode(lambda _: route, ProviderLimits(silence_s=0.5))
        try:
            return await mode.answer(ASKED)
        finally:
            await mode.aclose()
            server.close()
            await raw.end()

    answered = asyncio.run(play())
    assert isinstance(answered, UpstreamFailure)
    assert answered.status == status
    assert words in answered.message
    assert SECRET not in answered.message


def test_an_agent_that_goes_away_takes_the_providers_connection_with_it() -> None:
    async def play() -> None:
        provider = FakeProvider(_endless, headers=SSE)
        async with passing(provider, ApiDialect.OPENAI_CHAT) as mode:
            read = await mode.answer(ASKED)
            assert isinstance(read, RawAnswer)
            await anext(aiter(read.body))
            await close(read.body)
            await asyncio.wait_for(provider.is_left.wait(), 5)
            provider.is_left.clear()
            unread = await mode.answer(ASKED)
            assert isinstance(unread, RawAnswer)
            await close(unread.body)
            await asyncio.wait_for(provider.is_left.wait(), 5)
            with pytest.raises(StopAsyncIteration):
                await anext(aiter(unread.body))

    asyncio.run(play())


def test_a_provider_that_does_not_even_take_the_call_is_given_up() -> None:
    async def play() -> ModelAnswer:
        with contextlib.ExitStack() as opened:
            deaf = opened.enter_context(socket.socket())
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            for _ in range(3):  # nobody takes these, so that there is no room for one more
                knock = opened.enter_context(socket.socket())
                knock.setblocking(False)
                knock.connect_ex(deaf.getsockname())
            route = ModelRoute(provider_at(f"http://127.0.0.1:{deaf.getsockname()[1]}", ApiDialect.OPENAI_CHAT), "m")
            mode = PassMode(lambda _: route, ProviderLimits(connect_s=0.3))
            try:
                return await mode.answer(ASKED)
            finally:
                await mode.aclose()

    answered = asyncio.run(play())
    assert isinstance(answered, FailedAnswer)
    assert isinstance(answered, UpstreamFailure)
    assert _charge(answered) is Charge.NOTHING
    assert (answered.status, "reached within" in answered.message) == (504, True)


def test_a_cookie_of_one_call_is_not_sent_with_the_next() -> None:
    async def play() -> None:
        provider = FakeProvider(b"{}", headers={"content-type": "application/json", "set-cookie": "who=dispatch-1"})
        async with passing(provider, ApiDialect.OPENAI_CHAT) as mode:
            for _ in range(2):
                await drained(await mode.answer(ASKED))
        assert [got.headers.get("cookie") for got in provider.got] == [None, None]

    asyncio.run(play())


def test_one_document_in_many_pieces_that_calls_itself_a_stream_is_read_once() -> None:
    observer = observe(ApiDialect.OPENAI_CHAT)
    end = HeldEnd(SSE, observer)
    began = time.monotonic()
    assert all(end.holds(piece) for piece in [b"{", *[b'"a":' + b" " * 2000] * 3000])
    assert time.monotonic() - began < 2
    assert HeldEnd(SSE, observe(ApiDialect.OPENAI_CHAT)).holds(b"  \n") is False


def test_a_flow_ends_once_however_it_ends() -> None:
    async def pieces(broken: bool) -> AsyncIterator[bytes]:
        yield b"one"
        if broken:
            raise StreamBroken("broken")

    async def play(broken: bool, read: int) -> int:
        ended: list[int] = []

        async def end() -> None:
            ended.append(1)

        flow = AnswerStream(pieces(broken), end)
        try:
            for _ in range(read):
                await anext(flow)
        except (StreamBroken, StopAsyncIteration):
            pass
        await flow.aclose()
        await flow.aclose()
        return len(ended)

    for broken in (False, True):
        for read in (0, 1, 2, 3):
            assert asyncio.run(play(broken, read)) == 1
