"""What the tests of the scripted gateway share: a token, requests in each dialect, and a client without a vendor."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from fairwitness.agents.gateway.app import Gateway, gateway
from fairwitness.agents.gateway.modes import ChatMessage, Grant, Mode, ModelRequest, OfferedTool
from fairwitness.agents.gateway.server import serving
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.testing.script_steps import Script, ScriptStep
from fairwitness.testing.scripted_model import ScriptMode

TOKEN = "fairwitness-token-0123456789abcdef"
GRANT = Grant(token=TOKEN, dispatch_id="d-1")
MODEL = "model-1"

READ_TOOL = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}
WRITE_TOOL = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
}


def grants(token: str) -> Grant | None:
    """One token is good."""
    return GRANT if token == TOKEN else None


def script(*steps: ScriptStep, name: str = "s", without_tools: bool = False) -> Script:
    """A script of these steps."""
    return Script(name=name, steps=steps, without_tools=without_tools)


def scripted(*scripts: Script, models: Sequence[str] = ()) -> Gateway:
    """A gateway that plays these."""
    return gateway(ScriptMode(scripts), grants, models=models)


def asked(
    *messages: ChatMessage,
    dialect: ApiDialect = ApiDialect.ANTHROPIC,
    stream: bool = False,
    tools: Iterable[OfferedTool] = (),
    body: dict[str, Any] | None = None,
    query: str = "",
    wants_json: bool = False,
) -> ModelRequest:
    """A question as a mode sees it."""
    return ModelRequest(
        dialect=dialect,
        model=MODEL,
        stream=stream,
        body=body or {},
        raw=b"{}",
        path="/",
        headers={},
        grant=GRANT,
        tools=tuple(tools),
        messages=messages,
        query=query,
        wants_json=wants_json,
    )


def request(
    dialect: ApiDialect, prompt: str, *, stream: bool = False, tools: bool = True
) -> tuple[str, dict[str, Any]]:
    """A first request of an agent that can read: its path and its body."""
    named = {"name": "read_file", "description": "reads"}
    if dialect is ApiDialect.GEMINI:
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        body: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
        offered: list[Any] = [{"functionDeclarations": [named | {"parameters": READ_TOOL}]}]
        return f"/v1beta/models/{MODEL}:{verb}", body | ({"tools": offered} if tools else {})
    said = [{"role": "user", "content": prompt}]
    if dialect is ApiDialect.ANTHROPIC:
        path, body = "/v1/messages", {"messages": said, "max_tokens": 100}
        offered = [named | {"input_schema": READ_TOOL}]
    elif dialect is ApiDialect.OPENAI_CHAT:
        path, body = "/v1/chat/completions", {"messages": said}
        offered = [{"type": "function", "function": named | {"parameters": READ_TOOL}}]
    else:
        path, body = "/v1/responses", {"input": said}
        offered = [{"type": "function", **named, "parameters": READ_TOOL}]
    body |= {"model": MODEL} | ({"stream": True} if stream else {})
    return path, body | ({"tools": offered} if tools else {})


@asynccontextmanager
async def client(app: Any, folder: Path, *, token: str = TOKEN) -> AsyncIterator[httpx.AsyncClient]:
    """Someone who talks to a served gateway over its unix socket."""
    path = folder / "door" / "g.sock"
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        serving(app, socket=path),
        httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(path)),
            base_url="http://gateway",
            headers=headers,
            timeout=20,
            trust_env=False,
        ) as talking,
    ):
        yield talking


async def eventually(condition: Callable[[], object], seconds: float = 10) -> None:
    """Comes back when the condition holds; fails if it never does."""
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


class Fixed:
    """A mode that always answers the same."""

    name = "fixed"

    def __init__(self, answered: Any) -> None:
        self.answered = answered
        self.seen: list[ModelRequest] = []
        self.was_cancelled = asyncio.Event()

    async def answer(self, asked: ModelRequest) -> Any:
        """The answer; an exception is raised, a number is a time to sleep."""
        self.seen.append(asked)
        if isinstance(self.answered, Exception):
            raise self.answered
        if isinstance(self.answered, int | float):
            try:
                await asyncio.sleep(self.answered)
            except asyncio.CancelledError:
                self.was_cancelled.set()
                raise
        return self.answered


def fixed(mode: Mode) -> Gateway:
    """A gateway for any mode."""
    return gateway(mode, grants)


def events(body: str) -> list[Any]:
    """The data of a stream of events; `[DONE]` as it stands."""
    found = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
    return [data if data == "[DONE]" else json.loads(data) for data in found]
