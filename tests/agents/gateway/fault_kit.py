"""A provider on loopback that has bad days by script, and a clock on which waits take no time."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agents.api.kit import MODELS
from agents.gateway.pass_kit import asked_of, provider_at
from agents.jobs import GOOD, Kept, job
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.agents.base import Backend
from fairwitness.agents.driver import DispatchCut, drive
from fairwitness.agents.gateway.dialects import CODECS
from fairwitness.agents.gateway.dialects.base import sse
from fairwitness.agents.gateway.patience import ProviderWatches, Timer
from fairwitness.agents.gateway.server import serving
from fairwitness.agents.gateway.upstream import ModelRoute
from fairwitness.app.assembly.models import GatewayModels
from fairwitness.contracts.agents.dispatch import DispatchLimits, DispatchOutcome, Usage
from fairwitness.contracts.agents.model import ApiDialect, ModelTurn, ModelUsage
from fairwitness.contracts.agents.settings import GatewayLimits
from fairwitness.contracts.common.budgets import NO_CAPS, Budget
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.rules.feature_retry import retries_inside
from fairwitness.runs.dispatch.meter import RunMeter

BEGAN = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
USED = ModelUsage(tokens_in=1000, tokens_out=50)
ANSWER = f"Done.\n```json\n{json.dumps(GOOD)}\n```\n"


class FastTime:
    """A clock that goes on when somebody sleeps, and what was shown meanwhile."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []
        self.shown: list[str] = []
        self.first_s = 0.0
        """The real seconds that the first sleep takes."""
        self.watches = ProviderWatches(Timer(self.now, lambda: self.at, self.sleep, lambda: 0.5))

    def now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.at)

    async def sleep(self, seconds: float) -> None:
        if (note := self.watches.note()) not in self.shown:
            self.shown.append(note)
        real_s = 0.002 if self.slept else self.first_s
        self.slept.append(seconds)
        await asyncio.sleep(real_s)
        self.at += seconds


@dataclass(frozen=True)
class Reply:
    """What the provider sends."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False
    """Whether the connection breaks after it."""


Spell = Callable[[ApiDialect, dict[str, Any], bool], Reply]
"""Spells a reply in a dialect, for a body, streamed or not."""


def says(text: str = ANSWER, usage: ModelUsage = USED) -> Spell:
    """A whole turn."""

    def spell(dialect: ApiDialect, body: dict[str, Any], stream: bool) -> Reply:
        asked, codec = asked_of(dialect, body, stream=stream), CODECS[dialect]
        turn = ModelTurn(text=text, usage=usage, model=MODELS[dialect])
        if stream:
            return Reply(b"".join(codec.frames(turn, asked)), headers={"content-type": "text/event-stream"})
        return Reply(json.dumps(codec.plain(turn, asked)).encode(), headers={"content-type": "application/json"})

    return spell


def error(status: int, message: str = "the words of it", **headers: str) -> Spell:
    """An error in the dialect's own form."""

    def spell(dialect: ApiDialect, _body: dict[str, Any], _stream: bool) -> Reply:
        said = json.dumps(CODECS[dialect].failure(status, message)).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Reply(said, status, {"content-type": "application/json", **named})

    return spell


def cut(part: float, *, clean: bool) -> Spell:
    """The first part of a turn; `clean` ends the stream in order, as if it were whole."""

    def spell(dialect: ApiDialect, body: dict[str, Any], stream: bool) -> Reply:
        whole = says("A long answer. " * 100)(dialect, body, stream)
        events = whole.body.split(b"\n\n")
        kept = b"\n\n".join(events[: max(1, int(len(events) * part))]) + b"\n\n"
        return replace(whole, body=kept if stream else whole.body[: int(len(whole.body) * part)], is_cut=not clean)

    return spell


def raw(spelled: Mapping[ApiDialect, Any], *, status: int = 200) -> Spell:
    """Events or a body that only this dialect has."""

    def spell(dialect: ApiDialect, _body: dict[str, Any], stream: bool) -> Reply:
        given = spelled[dialect]
        if status >= 400 or not stream:
            return Reply(json.dumps(given).encode(), status, {"content-type": "application/json"})
        events = given if isinstance(given, list) else [given]
        frames = b"".join(sse(event, event.get("type", "")) for event in events)
        return Reply(frames, status, {"content-type": "text/event-stream"})

    return spell


class BadDayProvider:
    """Plays replies one after the other; the last one is repeated."""

    def __init__(self, dialect: ApiDialect, replies: tuple[Spell, ...]) -> None:
        self._dialect, self._replies = dialect, replies
        self.asked: list[dict[str, Any]] = []
        self.was_asked = asyncio.Event()

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        read = json.loads(body)
        self.asked.append(read)
        self.was_asked.set()
        stream = read.get("stream") is True or "streamGenerateContent" in scope["path"]
        spell = self._replies[min(len(self.asked), len(self._replies)) - 1]
        await asyncio.sleep(0.01)
        await _send(spell(self._dialect, read, stream), send)


async def _send(reply: Reply, send: Callable[[Any], Any]) -> None:
    spelled = [(name.encode(), value.encode()) for name, value in reply.headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": spelled})
    await send({"type": "http.response.body", "body": reply.body, "more_body": True})
    if reply.is_cut:
        await asyncio.sleep(0.05)  # what was sent is to arrive
        raise ConnectionAbortedError
    await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass
class Day:
    """A provider that can be reached, and the models of a run that uses it."""

    provider: BadDayProvider
    models: GatewayModels
    time: FastTime
    kept: Kept = field(default_factory=Kept)


@dataclass
class Seen:
    """How a dispatch ended."""

    outcome: DispatchOutcome
    usage: Usage
    cut: DispatchCut
    day: Day

    @property
    def requests(self) -> int:
        return len(self.day.provider.asked)


@asynccontextmanager
async def dropping(url: str, times: int) -> AsyncIterator[str]:
    """A way to a server that takes some requests and closes their connections without a byte."""
    left = times

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            await reader.read(100)
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65_536):
        writer.write(piece)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def bad_day(
    dialect: ApiDialect, *replies: Spell, wait_s: float = 900, port: str | None = None, drops: int = 0
) -> AsyncIterator[Day]:
    """A provider and the gateway before it."""
    provider, time = BadDayProvider(dialect, replies), FastTime()
    async with AsyncExitStack() as open_:
        served = await open_.enter_async_context(serving(provider, tcp=True))
        assert served.url is not None
        url = await open_.enter_async_context(dropping(served.url, drops)) if drops else served.url
        route = ModelRoute(provider_at(port or url, dialect), MODELS[dialect])
        meter = RunMeter(lambda: Budget(caps=NO_CAPS))
        limits = GatewayLimits(provider_wait_s=wait_s)
        yield Day(provider, GatewayModels(route, meter, tcp=True, limits=limits, watches=time.watches), time)


async def driven(
    day: Day, folder: Path, *, name: str = "d-1", backend: Backend | None = None, wall_s: float = 60
) -> Seen:
    """One dispatch of a judge, with the retries that a run has."""
    ended = DispatchCut()
    policy = RetryPolicy()
    ours = ApiBackend(waits=lambda cause: tuple(0.01 for _ in retries_inside(cause, policy)))
    async with day.models.connect(name, DispatchLimits(wall_s=wall_s, turns=20), ended) as connection:
        made = job(folder, endpoint=connection.endpoint, kept=day.kept, wall_s=wall_s)
        made = replace(made, waited=connection.waited, trouble=connection.trouble)
        outcome = await drive(backend or ours, made, cut=ended)
        usage = connection.used()
        assert usage is not None
    return Seen(outcome, usage, ended, day)


def dispatched(folder: Path, dialect: ApiDialect, *replies: Spell, **more: Any) -> Seen:
    """One dispatch on a bad day."""

    async def run() -> Seen:
        async with bad_day(dialect, *replies, **more) as day:
            return await driven(day, folder)

    return asyncio.run(run())
