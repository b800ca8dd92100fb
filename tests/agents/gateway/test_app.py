"""The gateway's door and its answers: nobody without a token, nothing that hangs on, every refusal in its dialect."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.gateway.scripted_kit import (
    GRANT,
    MODEL,
    TOKEN,
    Fixed,
    client,
    events,
    eventually,
    fixed,
    grants,
    request,
    script,
    scripted,
)
from fairwitness.agents.gateway.app import gateway
from fairwitness.agents.gateway.auth import is_local
from fairwitness.agents.gateway.dialects import observe
from fairwitness.agents.gateway.log import Logged
from fairwitness.agents.gateway.modes import FailedAnswer, ModelAnswer, ModelRequest, RawAnswer
from fairwitness.contracts.agents.model import ApiDialect, ModelTurn
from fairwitness.testing.script_steps import BreakStep, DelayStep, ErrorStep, FloodStep, HangStep, ReadStep, SayStep
from fairwitness.testing.scripted_model import USAGE, ScriptMode, marker

pytestmark = pytest.mark.req("X3")

DIALECTS = tuple(ApiDialect)
PROMPT = f"go {marker('s')}"


def _message(dialect: ApiDialect, body: Any) -> str:
    found = body["error"]["message"]
    assert isinstance(found, str)
    assert ("type" in body) == (dialect is ApiDialect.ANTHROPIC)
    assert ("status" in body["error"]) == (dialect is ApiDialect.GEMINI)
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "plain"])
def test_a_script_is_played_in_every_dialect(dialect: ApiDialect, is_stream: bool, tmp_path: Path) -> None:
    app = scripted(script(ReadStep(path="a"), SayStep(text="end")))
    path, body = request(dialect, PROMPT, stream=is_stream)

    async def play() -> httpx.Response:
        async with client(app, tmp_path) as talking:
            return await talking.post(path, json=body | {"stream_options": {"include_usage": True}})

    answer = asyncio.run(play())
    assert answer.status_code == 200
    assert ("text/event-stream" in answer.headers["content-type"]) == is_stream
    observer = observe(dialect)
    observer.feed(answer.content)
    turn = observer.turn()
    assert turn is not None
    assert [(call.name, call.args) for call in turn.calls] == [("read_file", {"path": "a"})]
    assert (turn.usage, turn.model) == (USAGE, MODEL)
    assert list(app.log.requests) == [
        Logged(
            dispatch_id=GRANT.dispatch_id,
            dialect=dialect,
            path=path.partition("?")[0],
            model=MODEL,
            stream=is_stream,
            tools=("read_file",),
            size=int(answer.request.headers["content-length"]),
            status=200,
            step=0,
        )
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("token", ["", "wrong", TOKEN.upper()])
def test_without_a_good_token_there_is_nothing(dialect: ApiDialect, token: str, tmp_path: Path) -> None:
    app = scripted(script(SayStep(text="secret")))
    path, body = request(dialect, PROMPT)

    async def play() -> list[httpx.Response]:
        async with client(app, tmp_path, token=token) as talking:
            return [
                await talking.post(path, json=body),
                await talking.get("/v1/models", params={"key": token}),
                await talking.get("/nowhere", headers={"x-api-key": token, "x-goog-api-key": token}),
            ]

    answers = asyncio.run(play())
    assert [answer.status_code for answer in answers] == [401, 401, 401]
    assert "token" in _message(dialect, answers[0].json())
    assert len(app.log.refused) == 3
    assert not app.log.requests
    assert not app.log.unknown


@pytest.mark.parametrize(
    "credentials",
    [
        {"headers": {"authorization": f"Bearer {TOKEN}"}},
        {"headers": {"authorization": f"bearer {TOKEN}"}},
        {"headers": {"x-api-key": TOKEN}},
        {"headers": {"x-goog-api-key": TOKEN}},
        {"params": {"key": TOKEN}},
        {"headers": {"authorization": "Bearer stale", "x-api-key": TOKEN}},
    ],
)
def test_a_token_may_come_in_every_way_that_agents_send_one(credentials: dict[str, Any], tmp_path: Path) -> None:
    mode = Fixed(FailedAnswer(418, "seen"))
    path, body = request(ApiDialect.GEMINI, PROMPT, stream=True)

    async def play() -> int:
        async with client(fixed(mode), tmp_path, token="") as talking:
            params = {"alt": "sse"} | credentials.get("params", {})
            headers = credentials.get("headers", {})
            return (await talking.post(path.partition("?")[0], json=body, headers=headers, params=params)).status_code

    assert asyncio.run(play()) == 418
    (seen,) = mode.seen
    assert seen.query == "alt=sse"
    assert TOKEN not in repr(seen)
    assert not {"authorization", "x-api-key", "x-goog-api-key"} & seen.headers.keys()
    assert seen.grant == GRANT


def test_a_token_can_be_taken_back(tmp_path: Path) -> None:
    good = {TOKEN}
    app = gateway(ScriptMode([]), lambda token: grants(token) if token in good else None)

    async def play() -> list[int]:
        async with client(app, tmp_path) as talking:
            first = await talking.get("/v1/models")
            good.clear()
            return [first.status_code, (await talking.get("/v1/models")).status_code]

    assert asyncio.run(play()) == [200, 401]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("localhost:8080", True),
        ("127.0.0.1:1", True),
        ("[::1]:80", True),
        ("gateway", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:80", False),
        ("", False),
        ("localhost:80:80", False),
        ("user@localhost", False),
    ],
)
def test_only_requests_to_this_machine_are_let_in(host: str, expected: bool) -> None:
    assert is_local(host) is expected


def test_a_strange_host_is_refused_even_with_a_token(tmp_path: Path) -> None:
    app = scripted()

    async def play() -> int:
        async with client(app, tmp_path) as talking:
            return (await talking.get("/v1/models", headers={"host": "rebound.example"})).status_code

    assert asyncio.run(play()) == 403
    assert list(app.log.refused) == ["403 GET /v1/models"]


def test_unknown_paths_and_verbs_are_refused_and_remembered(tmp_path: Path) -> None:
    app = scripted()

    async def play() -> list[int]:
        async with client(app, tmp_path) as talking:
            return [
                (await talking.get("/v1/organizations")).status_code,
                (await talking.post("/v1beta/models/m:embedContent", json={})).status_code,
                (await talking.get("/v1/messages")).status_code,
                (await talking.post("/v1/messages/", json={})).status_code,
            ]

    assert asyncio.run(play()) == [404, 404, 405, 404]
    assert list(app.log.unknown) == [
        "GET /v1/organizations",
        "POST /v1beta/models/m:embedContent",
        "GET /v1/messages",
        "POST /v1/messages/",
    ]


def test_the_version_may_be_left_out_of_a_path(tmp_path: Path) -> None:
    mode = Fixed(FailedAnswer(418, "seen"))

    async def play() -> list[int]:
        statuses = []
        async with client(fixed(mode), tmp_path) as talking:
            for dialect in DIALECTS:
                path, body = request(dialect, PROMPT)
                for spelled in (path, path.removeprefix("/v1beta").removeprefix("/v1")):
                    statuses.append((await talking.post(spelled, json=body)).status_code)
        return statuses

    assert asyncio.run(play()) == [418] * 8
    assert [seen.path for seen in mode.seen[::2]] == [seen.path for seen in mode.seen[1::2]]
    assert mode.seen[1].path == "/v1/messages"


def test_a_request_may_not_be_too_long(tmp_path: Path) -> None:
    mode = Fixed(FailedAnswer(418, "seen"))
    app = gateway(mode, grants, longest=1000)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 100

    async def play() -> list[int]:
        async with client(app, tmp_path) as talking:
            return [
                (await talking.post("/v1/messages", content=b" " * 1001)).status_code,
                (await talking.post("/v1/messages", content=endless())).status_code,
            ]

    assert asyncio.run(play()) == [413, 413]
    assert not mode.seen


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"not json", {}, 400),
        (b"[]", {}, 400),
        (b"{}", {}, 400),
        (b'{"model": "a", "model": "b"}', {}, 400),
        (b'{"model": "\xff"}', {}, 400),
        (b'{"model": 3}', {}, 400),
        (b"\x28\xb5\x2f\xfd", {"content-encoding": "zstd"}, 415),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, headers: dict[str, str], status: int, tmp_path: Path) -> None:
    mode = Fixed(FailedAnswer(418, "seen"))

    async def play() -> httpx.Response:
        async with client(fixed(mode), tmp_path) as talking:
            return await talking.post("/v1/messages", content=content, headers=headers)

    answer = asyncio.run(play())
    assert answer.status_code == status
    assert _message(ApiDialect.ANTHROPIC, answer.json())
    assert not mode.seen


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_errors_are_spelled_in_the_dialect(dialect: ApiDialect, status: int, tmp_path: Path) -> None:
    app = scripted(script(ErrorStep(status=status, message="so it is", headers={"retry-after": "7"})))
    path, body = request(dialect, PROMPT, stream=True)

    async def play() -> httpx.Response:
        async with client(app, tmp_path) as talking:
            return await talking.post(path, json=body)

    answer = asyncio.run(play())
    assert answer.status_code == status
    assert answer.headers["retry-after"] == "7"
    assert _message(dialect, answer.json()) == "so it is"


def test_a_mode_that_fails_is_an_error_of_ours_that_tells_the_agent_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, body = request(ApiDialect.OPENAI_CHAT, PROMPT)

    async def play() -> httpx.Response:
        async with client(fixed(Fixed(ValueError("the key is 1234"))), tmp_path) as talking:
            return await talking.post(path, json=body)

    answer = asyncio.run(play())
    assert answer.status_code == 500
    assert "1234" not in answer.text
    assert "the gateway failed at /v1/chat/completions" in caplog.text


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "plain"])
def test_a_broken_answer_breaks_off(dialect: ApiDialect, is_stream: bool, tmp_path: Path) -> None:
    path, body = request(dialect, PROMPT, stream=is_stream)
    heard = bytearray()

    async def play() -> None:
        async with (
            client(scripted(script(BreakStep(step=SayStep(text="words " * 100)))), tmp_path) as talking,
            talking.stream("POST", path, json=body) as answer,
        ):
            async for piece in answer.aiter_raw():
                heard.extend(piece)

    with pytest.raises(httpx.RemoteProtocolError):
        asyncio.run(play())
    observer = observe(dialect)
    observer.feed(bytes(heard))
    assert heard
    assert not observer.is_complete


@pytest.mark.parametrize("step", [HangStep(), DelayStep(seconds=60.0, step=SayStep(text="x"))], ids=["hang", "delay"])
def test_no_answer_ends_when_the_agent_goes_away(step: Any, tmp_path: Path) -> None:
    app = scripted(script(step))
    path, body = request(ApiDialect.ANTHROPIC, PROMPT)

    async def play() -> None:
        async with client(app, tmp_path) as talking:
            with pytest.raises(httpx.ReadTimeout):
                await talking.post(path, json=body, timeout=0.2)
            await eventually(lambda: not [task for task in asyncio.all_tasks() if "run_asgi" in repr(task)])

    asyncio.run(play())
    assert [logged.status for logged in app.log.requests] == [None]


def test_a_mode_is_cancelled_when_the_agent_goes_away(tmp_path: Path) -> None:
    mode = Fixed(60)
    path, body = request(ApiDialect.ANTHROPIC, PROMPT)

    async def play() -> None:
        async with client(fixed(mode), tmp_path) as talking:
            with pytest.raises(httpx.ReadTimeout):
                await talking.post(path, json=body, timeout=0.2)
            await asyncio.wait_for(mode.was_cancelled.wait(), 5)

    asyncio.run(play())


def test_an_agent_that_goes_away_in_the_middle_of_its_request_is_no_fault_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mode = Fixed(FailedAnswer(418, "seen"))
    head = f"POST /v1/messages HTTP/1.1\r\nhost: gateway\r\nx-api-key: {TOKEN}\r\ncontent-length: 100\r\n\r\n"

    async def play() -> None:
        async with client(fixed(mode), tmp_path):
            _, writing = await asyncio.open_unix_connection(str(tmp_path / "door" / "g.sock"))
            writing.write(head.encode() + b'{"model"')
            await writing.drain()
            await eventually(lambda: [task for task in asyncio.all_tasks() if "run_asgi" in repr(task)])
            writing.close()
            await writing.wait_closed()
            await eventually(lambda: not [task for task in asyncio.all_tasks() if "run_asgi" in repr(task)])

    asyncio.run(play())
    assert not mode.seen
    assert caplog.text == ""


class _Endless:
    """Bytes without an end, until somebody closes it."""

    def __init__(self) -> None:
        self.is_closed = asyncio.Event()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0.01)
        return b"data: {}\n\n"

    async def aclose(self) -> None:
        self.is_closed.set()


def test_what_is_passed_through_is_closed_when_the_agent_goes_away(tmp_path: Path) -> None:
    path, body = request(ApiDialect.ANTHROPIC, PROMPT, stream=True)
    source = _Endless()
    headers = {"content-type": "text/event-stream", "Set-Cookie": "a=b", "x-request-id": "r", "content-length": "3"}

    async def play() -> httpx.Headers:
        async with client(fixed(Fixed(RawAnswer(200, headers, source))), tmp_path) as talking:
            async with talking.stream("POST", path, json=body) as answer:
                await anext(answer.aiter_raw())
            await asyncio.wait_for(source.is_closed.wait(), 5)
            return answer.headers

    passed = asyncio.run(play())
    assert passed["x-request-id"] == "r"
    assert "set-cookie" not in passed
    assert "content-length" not in passed


async def _breaking() -> AsyncIterator[bytes]:
    yield b"data: {}\n\n"
    raise ConnectionResetError("the provider hung up")


def test_a_provider_that_hangs_up_is_not_taken_for_one_that_finished(tmp_path: Path) -> None:
    path, body = request(ApiDialect.ANTHROPIC, PROMPT, stream=True)

    async def play() -> None:
        async with client(fixed(Fixed(RawAnswer(200, {}, _breaking()))), tmp_path) as talking:
            await talking.post(path, json=body)

    with pytest.raises(httpx.RemoteProtocolError):
        asyncio.run(play())


def test_a_flood_arrives_whole(tmp_path: Path) -> None:
    path, body = request(ApiDialect.OPENAI_CHAT, PROMPT, stream=True)

    async def play() -> httpx.Response:
        async with client(scripted(script(FloodStep(characters=3_000_000))), tmp_path) as talking:
            return await talking.post(path, json=body)

    answer = asyncio.run(play())
    assert len(events(answer.text)) < 200
    observer = observe(ApiDialect.OPENAI_CHAT)
    observer.feed(answer.content)
    turn = observer.turn()
    assert turn is not None
    assert len(turn.text) == 3_000_000


def test_tokens_are_estimated_and_models_are_listed(tmp_path: Path) -> None:
    app = scripted(models=("one", "two"))

    async def play() -> list[Any]:
        async with client(app, tmp_path) as talking:
            return [
                (await talking.post("/v1/messages/count_tokens", json={"messages": ["x" * 397]})).json(),
                (await talking.post("/v1beta/models/one:countTokens", json={"contents": []})).json(),
                (await talking.get("/v1/models")).json(),
                (await talking.get("/v1beta/models")).json(),
            ]

    counted, gemini_counted, listed, gemini_listed = asyncio.run(play())
    assert 100 <= counted["input_tokens"] <= 110
    assert gemini_counted["totalTokens"] > 0
    assert [model["id"] for model in listed["data"]] == ["one", "two"]
    assert [model["name"] for model in gemini_listed["models"]] == ["models/one", "models/two"]
    assert not app.log.requests


def test_a_websocket_is_refused() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(scripted()({"type": "websocket", "path": "/v1/responses", "headers": []}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_a_turn_without_words_or_calls_is_still_an_answer(tmp_path: Path) -> None:
    app = scripted(script(SayStep(text="")))

    async def play(dialect: ApiDialect, is_stream: bool) -> ModelTurn | None:
        path, body = request(dialect, PROMPT, stream=is_stream)
        async with client(app, tmp_path) as talking:
            observer = observe(dialect)
            observer.feed((await talking.post(path, json=body)).content)
            assert observer.is_complete
            return observer.turn()

    for dialect in DIALECTS:
        for is_stream in (True, False):
            turn = asyncio.run(play(dialect, is_stream))
            assert turn is not None
            assert (turn.text, turn.calls) == ("", ())


@pytest.mark.parametrize("dialect", list(ApiDialect))
def test_no_secret_reaches_a_model(dialect: ApiDialect) -> None:
    """Whatever an agent read with its own tools: the gateway is the last place before the model."""
    key = "".join(("gh", "p_", "9aZ8bY7cX6dW" * 3))
    heard: list[ModelRequest] = []

    class Hears:
        name = "script"

        async def answer(self, asked: ModelRequest) -> ModelAnswer:
            heard.append(asked)
            return FailedAnswer(400, "heard")

    path, body = request(dialect, f"the test printed {key} and\n-----BEGIN " + "PRIVATE KEY-----\n" + "MIIEvQIB" * 8)

    async def ask() -> int:
        transport = httpx.ASGITransport(app=gateway(Hears(), grants))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.post(path, json=body, headers={"authorization": f"Bearer {TOKEN}"})).status_code

    assert asyncio.run(ask()) == 400
    (asked,) = heard
    assert key not in repr(asked)
    assert "MIIEvQIB" not in repr(asked)
    assert "the test printed [redacted: GitHub token] and" in repr(asked)


def test_a_request_that_is_nested_too_deeply_is_refused() -> None:
    deep = b'{"a":' * 600 + b"1" + b"}" * 600

    async def ask() -> int:
        transport = httpx.ASGITransport(app=scripted())
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (
                await client.post("/v1/messages", content=deep, headers={"authorization": f"Bearer {TOKEN}"})
            ).status_code

    assert asyncio.run(ask()) == 400
