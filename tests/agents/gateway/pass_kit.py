"""What the tests of `pass`, `record` and `replay` share: requests in every dialect, and providers of any kind."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from fairwitness.agents.gateway.app import gateway
from fairwitness.agents.gateway.dialects import CODECS, observe
from fairwitness.agents.gateway.flow import close
from fairwitness.agents.gateway.keys import Key
from fairwitness.agents.gateway.modes import Grant, Mode, ModelAnswer, ModelRequest, RawAnswer
from fairwitness.agents.gateway.server import serving
from fairwitness.agents.gateway.upstream import ModelRoute, PassMode, Provider, ProviderLimits
from fairwitness.contracts.agents.dispatch import DispatchLimits
from fairwitness.contracts.agents.model import ApiDialect, ModelTurn
from fairwitness.testing.script_steps import Script
from fairwitness.testing.scripted_model import ScriptMode

SECRET = "sk-a-long-unlikely-key-0123456789"
KEY = Key(SECRET, "the test")
GRANT = Grant("token-of-the-agent", "dispatch-1")
MODEL = "granted-1"

PATHS = {
    ApiDialect.ANTHROPIC: "/v1/messages",
    ApiDialect.OPENAI_CHAT: "/v1/chat/completions",
    ApiDialect.OPENAI_RESPONSES: "/v1/responses",
    ApiDialect.GEMINI: "/v1beta/models/wanted-1",
}
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def limits(*, tokens: int | None = None, cost: int | None = None, turns: int = 1000) -> DispatchLimits:
    """Limits of a dispatch."""
    return DispatchLimits(wall_s=60.0, turns=turns, tokens=tokens, cost_micros=cost)


def body_of(
    dialect: ApiDialect, prompt: str, *, stream: bool = False, most: int | None = 100, tools: bool = True
) -> dict[str, Any]:
    """A request of an agent that can read files."""
    match dialect:
        case ApiDialect.ANTHROPIC:
            offered: list[Any] = [{"name": "read_file", "input_schema": _SCHEMA}]
            body: dict[str, Any] = {"model": "wanted-1", "messages": [{"role": "user", "content": prompt}]}
            body |= {"max_tokens": most} if most else {}
        case ApiDialect.OPENAI_CHAT:
            offered = [{"type": "function", "function": {"name": "read_file", "parameters": _SCHEMA}}]
            body = {"model": "wanted-1", "messages": [{"role": "user", "content": prompt}]}
            body |= {"max_completion_tokens": most} if most else {}
            body |= {"stream_options": {"include_usage": True}} if stream else {}
        case ApiDialect.OPENAI_RESPONSES:
            offered = [{"type": "function", "name": "read_file", "parameters": _SCHEMA}]
            body = {"model": "wanted-1", "input": [{"role": "user", "content": prompt}]}
            body |= {"max_output_tokens": most} if most else {}
        case _:
            offered = [{"functionDeclarations": [{"name": "read_file", "parameters": _SCHEMA}]}]
            body = {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
            body |= {"generationConfig": {"maxOutputTokens": most}} if most else {}
    body |= {"tools": offered} if tools else {}
    return body | ({"stream": stream} if dialect is not ApiDialect.GEMINI else {})


def path_of(dialect: ApiDialect, *, stream: bool) -> str:
    """Where that request is sent."""
    if dialect is not ApiDialect.GEMINI:
        return PATHS[dialect]
    return PATHS[dialect] + (":streamGenerateContent?alt=sse" if stream else ":generateContent")


def asked_of(
    dialect: ApiDialect,
    body: Mapping[str, Any],
    *,
    stream: bool = False,
    grant: Grant = GRANT,
    headers: Mapping[str, str] | None = None,
) -> ModelRequest:
    """The same request as a mode gets it."""
    heard = CODECS[dialect].read(dict(body))
    return ModelRequest(
        dialect=dialect,
        model=heard.model or "wanted-1",
        stream=stream,
        body=dict(body),
        raw=json.dumps(body).encode(),
        path=path_of(dialect, stream=stream).partition("?")[0],
        headers=headers or {},
        grant=grant,
        tools=heard.tools,
        messages=heard.messages,
        max_tokens=heard.max_tokens,
        query="alt=sse" if stream else "",
        system=heard.system,
        wants_json=heard.wants_json,
    )


@dataclass(slots=True)
class Got:
    """A request as the provider saw it."""

    path: str
    query: str
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        """What was in it."""
        return json.loads(self.body)


Pieces = Callable[[], AsyncIterator[bytes]]


class FakeProvider:
    """Answers every request in one way, byte for byte, and remembers them all."""

    def __init__(
        self, pieces: Pieces | bytes, *, status: int = 200, headers: Mapping[str, str] | None = None, cut: bool = False
    ) -> None:
        self.got: list[Got] = []
        self.is_left = asyncio.Event()
        """Set when somebody went away before the end."""
        self._pieces = pieces
        self._status = status
        self._headers = headers or {"content-type": "application/json"}
        self._cut = cut

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.got.append(Got(scope["path"], scope["query_string"].decode(), headers, body))
        leaving = asyncio.ensure_future(self._watch(receive))
        spelled = [(name.encode(), value.encode()) for name, value in self._headers.items()]
        try:
            await send({"type": "http.response.start", "status": self._status, "headers": spelled})
            async for piece in self._all():
                if self.is_left.is_set():
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            if self._cut:
                raise ConnectionAbortedError
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            leaving.cancel()

    async def _all(self) -> AsyncIterator[bytes]:
        if isinstance(self._pieces, bytes):
            yield self._pieces
        else:
            async for piece in self._pieces():
                yield piece

    async def _watch(self, receive: Callable[[], Awaitable[Any]]) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.is_left.set()


def provider_at(url: str, dialect: ApiDialect, *, key: Key | None = KEY) -> Provider:
    """A provider on this machine; OpenAI's dialects have their version in the base address."""
    is_openai = dialect in (ApiDialect.OPENAI_CHAT, ApiDialect.OPENAI_RESPONSES)
    return Provider("acme", dialect, url + ("/v1" if is_openai else ""), key)


QUICK = ProviderLimits(connect_s=2.0, silence_s=2.0, whole_s=10.0)


@contextlib.asynccontextmanager
async def passing(
    app: Any, dialect: ApiDialect, *, patience: ProviderLimits = QUICK, key: Key | None = KEY
) -> AsyncIterator[PassMode]:
    """The mode `pass`, in front of a provider that is served on loopback."""
    async with serving(app, tcp=True) as served:
        assert served.url is not None
        route = ModelRoute(provider_at(served.url, dialect, key=key), MODEL)
        mode = PassMode(lambda _: route, patience)
        try:
            yield mode
        finally:
            await mode.aclose()


def scripted(*scripts: Script) -> Any:
    """A real provider: the gateway's own script mode, which takes our key for its token."""
    grants = {SECRET: Grant(SECRET, "upstream")}
    return gateway(ScriptMode(scripts), grants.get)


@contextlib.asynccontextmanager
async def fronted(mode: Mode, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """An agent's client, at a gateway with this mode, by a unix socket."""
    app = gateway(mode, lambda token: GRANT if token == GRANT.token else None)
    async with serving(app, socket=folder / "gateway.sock"):
        transport = httpx.AsyncHTTPTransport(uds=str(folder / "gateway.sock"))
        headers = {"authorization": f"Bearer {GRANT.token}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway", headers=headers) as client:
            yield client


async def drained(answered: ModelAnswer) -> bytes:
    """All bytes of an answer that is passed through."""
    assert isinstance(answered, RawAnswer), answered
    try:
        return b"".join([piece async for piece in answered.body])
    finally:
        await close(answered.body)


def turn_in(dialect: ApiDialect, answer: bytes) -> ModelTurn | None:
    """What an answer says, if it is whole."""
    observer = observe(dialect)
    observer.feed(answer)
    return observer.turn() if observer.is_complete else None
