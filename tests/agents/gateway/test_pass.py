"""What an agent asks goes on to a provider with our key and the granted model, and nothing of the agent's beside it."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from agents.gateway.pass_kit import (
    GRANT,
    KEY,
    MODEL,
    SECRET,
    FakeProvider,
    asked_of,
    body_of,
    drained,
    fronted,
    passing,
    path_of,
    provider_at,
    scripted,
    turn_in,
)
from fairwitness.agents.gateway.keys import Key
from fairwitness.agents.gateway.modes import FailedAnswer, RawAnswer
from fairwitness.agents.gateway.outgoing import Unsendable, outgoing
from fairwitness.agents.gateway.upstream import ModelRoute, PassMode, Provider
from fairwitness.contracts.agents.model import ApiDialect, ModelUsage
from fairwitness.errors import NotReady, UsageError
from fairwitness.testing.script_steps import ReadStep, Script
from fairwitness.testing.scripted_model import marker

EVERY = pytest.mark.parametrize("dialect", list(ApiDialect))
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
READS = Script(name="reads", steps=(ReadStep(path="a.py"),))


@pytest.mark.req("X3")
@pytest.mark.enable_socket
@EVERY
@BOTH
def test_an_agent_speaks_to_a_provider_through_the_gateway_and_never_sees_the_key(
    tmp_path: Path, dialect: ApiDialect, stream: bool
) -> None:
    tmp_path.chmod(0o700)

    async def play() -> None:
        upstream = scripted(READS)
        async with passing(upstream, dialect) as mode, fronted(mode, tmp_path) as client:
            body = body_of(dialect, f"please {marker('reads')}", stream=stream)
            response = await client.post(path_of(dialect, stream=stream), json=body)
            assert response.status_code == 200, response.text
            turn = turn_in(dialect, response.content)
            assert turn is not None
            assert [(call.name, call.args) for call in turn.calls] == [("read_file", {"path": "a.py"})]
            assert turn.usage == ModelUsage(tokens_in=1000, tokens_out=50)
            assert SECRET not in f"{response.text} {response.headers}"
            assert [(each.model, each.stream) for each in upstream.log.requests] == [(MODEL, stream)]

    asyncio.run(play())


@pytest.mark.req("X3")
@pytest.mark.enable_socket
@EVERY
def test_the_provider_gets_our_key_and_none_of_the_agents_own_headers(dialect: ApiDialect) -> None:
    hostile = {
        "authorization": "Bearer the-agents-own",
        "cookie": "session=1",
        "forwarded": "for=10.0.0.1",
        "host": "evil.example",
        "openai-organization": "org-of-the-agent",
        "proxy-authorization": "Basic eDp5",
        "te": "trailers",
        "transfer-encoding": "chunked",
        "user-agent": "agent/1 (person@home)",
        "x-api-key": "the-agents-own",
        "x-forwarded-for": "10.0.0.1",
        "x-forwarded-host": "evil.example",
        "x-goog-api-key": "the-agents-own",
        "x-original-url": "/admin",
        "anthropic-beta": "prompt-caching-2024-07-31",
    }

    async def play() -> None:
        upstream = FakeProvider(b"{}")
        async with passing(upstream, dialect) as mode:
            await drained(await mode.answer(asked_of(dialect, body_of(dialect, "hello"), headers=hostile)))
        (got,) = upstream.got
        assert set(got.headers) <= {
            *("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"),
            *("anthropic-beta", "anthropic-version", "authorization", "x-api-key", "x-goog-api-key"),
        }
        sent = {name: value for name, value in got.headers.items() if SECRET in value}
        expected = {
            ApiDialect.ANTHROPIC: {"x-api-key": SECRET},
            ApiDialect.OPENAI_CHAT: {"authorization": f"Bearer {SECRET}"},
            ApiDialect.OPENAI_RESPONSES: {"authorization": f"Bearer {SECRET}"},
            ApiDialect.GEMINI: {"x-goog-api-key": SECRET},
        }[dialect]
        assert sent == expected
        assert got.headers["host"].startswith("127.0.0.1:")
        assert got.headers["user-agent"] == "fairwitness"
        assert got.headers["accept-encoding"] == "identity"
        assert "agents-own" not in str(got.headers)
        assert SECRET not in got.path + got.query + got.body.decode()

    asyncio.run(play())


@pytest.mark.req("X3")
@EVERY
@BOTH
def test_the_model_is_the_granted_one_whatever_the_agent_wants(dialect: ApiDialect, stream: bool) -> None:
    body = body_of(dialect, "hello", stream=stream) | {"models": ["dear-1"], "fallbacks": ["dear-2"]}
    sent = outgoing(asked_of(dialect, body, stream=stream), "theirs/1")
    text = sent.path + sent.content.decode()
    assert "wanted-1" not in text
    assert "dear" not in text
    if dialect is ApiDialect.GEMINI:
        assert "/models/theirs%2F1:" in sent.path
    else:
        assert json.loads(sent.content)["model"] == "theirs/1"
        assert json.loads(sent.content)["stream"] is stream


def test_a_stream_of_chat_is_asked_to_say_what_it_used() -> None:
    body = body_of(ApiDialect.OPENAI_CHAT, "hello", stream=True) | {"stream_options": {"include_usage": False}}
    sent = outgoing(asked_of(ApiDialect.OPENAI_CHAT, body, stream=True), MODEL)
    assert json.loads(sent.content)["stream_options"] == {"include_usage": True}
    plain = outgoing(asked_of(ApiDialect.OPENAI_CHAT, body), MODEL)
    assert "stream_options" not in json.loads(plain.content)


@EVERY
def test_the_path_is_ours_and_not_the_agents(dialect: ApiDialect) -> None:
    sent = outgoing(asked_of(dialect, body_of(dialect, "hello")), "../../files?x=1#y")
    assert ".." not in sent.path.replace("..%2F", "")
    assert "#" not in sent.path


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("dialect", "more"),
    [
        (
            ApiDialect.ANTHROPIC,
            {"mcp_servers": [{"url": "https://evil.example"}], "service_tier": "auto", "speed": "fast"},
        ),
        (
            ApiDialect.OPENAI_CHAT,
            {"n": 50, "web_search_options": {}, "service_tier": "priority", "plugins": [{"id": "web"}]},
        ),
        (ApiDialect.OPENAI_RESPONSES, {"background": True, "service_tier": "priority"}),
        (ApiDialect.GEMINI, {"generationConfig": {"candidateCount": 8, "maxOutputTokens": 5}}),
        (ApiDialect.GEMINI, {"generation_config": {"candidate_count": 8}}),
    ],
)
def test_nothing_multiplies_the_price_or_goes_on_behind_our_back(dialect: ApiDialect, more: dict[str, Any]) -> None:
    sent = outgoing(asked_of(dialect, body_of(dialect, "hello") | more), MODEL)
    for name in {*more, "candidateCount", "candidate_count"} - {"generationConfig", "generation_config"}:
        assert f'"{name}"' not in sent.content.decode()


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("dialect", "foreign"),
    [
        (ApiDialect.ANTHROPIC, {"type": "web_search_20250305", "name": "web_search"}),
        (ApiDialect.ANTHROPIC, {"type": "web_fetch_20250910", "name": "web_fetch"}),
        (ApiDialect.ANTHROPIC, {"type": "code_execution_20250825", "name": "code_execution"}),
        (ApiDialect.ANTHROPIC, {"type": "mcp_toolset", "mcp_server_name": "x"}),
        (ApiDialect.ANTHROPIC, {"type": 7, "name": "odd"}),
        (ApiDialect.OPENAI_CHAT, {"type": "web_search"}),
        (ApiDialect.OPENAI_RESPONSES, {"type": "web_search"}),
        (ApiDialect.OPENAI_RESPONSES, {"type": "mcp", "server_label": "x", "server_url": "https://evil.example"}),
        (ApiDialect.OPENAI_RESPONSES, {"type": "code_interpreter", "container": {"type": "auto"}}),
        (
            ApiDialect.OPENAI_RESPONSES,
            {"type": "namespace", "name": "x", "tools": [{"type": "mcp", "server_url": "y"}]},
        ),
        (ApiDialect.GEMINI, {"googleSearch": {}}),
        (ApiDialect.GEMINI, {"urlContext": {}, "functionDeclarations": []}),
        (ApiDialect.GEMINI, "code_execution"),
    ],
)
def test_a_tool_that_the_provider_would_run_is_taken_out_and_the_agents_own_stay(
    dialect: ApiDialect, foreign: Any
) -> None:
    body = body_of(dialect, "hello")
    own = body["tools"][0]
    body["tools"] = [foreign, own]
    tools = json.loads(outgoing(asked_of(dialect, body), MODEL).content)["tools"]
    assert own in tools
    rest = json.dumps([tool for tool in tools if tool != own])
    assert not any(word in rest for word in ("web_", "mcp", "code_", "server", "google", "urlContext", "odd"))
    alone = body | {"tools": ["nonsense"], "tool_choice": "auto"}
    assert not {"tools", "tool_choice"} & set(json.loads(outgoing(asked_of(dialect, alone), MODEL).content))


def test_tools_that_an_agent_runs_itself_are_its_own_though_the_provider_described_them() -> None:
    own = [{"type": "bash_20250124", "name": "bash"}, {"type": "text_editor_20250728", "name": "edit"}, {"name": "x"}]
    body = body_of(ApiDialect.ANTHROPIC, "hello") | {"tools": own}
    assert json.loads(outgoing(asked_of(ApiDialect.ANTHROPIC, body), MODEL).content)["tools"] == own


ADDRESS = "https://evil.example/?stolen=1"


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("dialect", "part"),
    [
        (ApiDialect.ANTHROPIC, {"type": "image", "source": {"type": "url", "url": ADDRESS}}),
        (ApiDialect.ANTHROPIC, {"type": "document", "source": {"type": "url", "url": ADDRESS}}),
        (
            ApiDialect.ANTHROPIC,
            {"type": "tool_result", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]},
        ),
        (ApiDialect.OPENAI_CHAT, {"type": "image_url", "image_url": {"url": ADDRESS}}),
        (ApiDialect.OPENAI_RESPONSES, {"type": "input_image", "image_url": ADDRESS}),
        (ApiDialect.OPENAI_RESPONSES, {"type": "input_file", "file_url": ADDRESS}),
        (
            ApiDialect.OPENAI_RESPONSES,
            {"type": "tool_search_output", "tools": [{"type": "mcp", "server_url": ADDRESS}]},
        ),
        (ApiDialect.GEMINI, {"fileData": {"fileUri": ADDRESS}}),
    ],
)
def test_a_provider_is_not_made_to_fetch_an_address(dialect: ApiDialect, part: dict[str, Any]) -> None:
    body = body_of(dialect, "hello") | {"messages": [{"role": "user", "content": [part]}]}
    with pytest.raises(Unsendable):
        outgoing(asked_of(dialect, body), MODEL)
    mode = PassMode(lambda _: ModelRoute(Provider("acme", dialect, "http://127.0.0.1:1", KEY), MODEL))
    failed = asyncio.run(mode.answer(asked_of(dialect, body)))
    assert isinstance(failed, FailedAnswer)
    assert failed.status == 400


def test_an_address_in_words_or_arguments_is_only_a_text() -> None:
    call = {"type": "tool_use", "id": "1", "name": "fetch", "input": {"url": ADDRESS}}
    body = body_of(ApiDialect.ANTHROPIC, ADDRESS) | {"messages": [{"role": "assistant", "content": [call]}]}
    assert ADDRESS in outgoing(asked_of(ApiDialect.ANTHROPIC, body), MODEL).content.decode()


def test_without_a_route_or_in_another_dialect_nothing_is_sent() -> None:
    asked = asked_of(ApiDialect.GEMINI, body_of(ApiDialect.GEMINI, "hello"))
    nowhere = asyncio.run(PassMode(lambda _: None).answer(asked))
    route = ModelRoute(Provider("acme", ApiDialect.ANTHROPIC, "http://127.0.0.1:1", KEY), MODEL)
    elsewhere = asyncio.run(PassMode(lambda _: route).answer(asked))
    assert isinstance(nowhere, FailedAnswer)
    assert isinstance(elsewhere, FailedAnswer)
    assert (nowhere.status, elsewhere.status) == (403, 400)


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    "url",
    [
        "http://api.example",
        "http://169.254.169.254/latest/meta-data",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "https://user:password@api.example",
        "https://api.example/?x=1",
        "https://api.example/#x",
        "ftp://api.example",
        "file:///etc/passwd",
        "api.example",
        "https://",
    ],
)
def test_a_provider_is_spoken_to_by_https_or_on_this_machine(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Provider("acme", ApiDialect.ANTHROPIC, url, KEY)
    assert "password" not in str(caught.value)
    for good in ("https://api.example", "http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost:11434/v1"):
        Provider("acme", ApiDialect.ANTHROPIC, good, KEY)


def test_only_a_server_on_this_machine_needs_no_key() -> None:
    with pytest.raises(NotReady, match="no key"):
        Provider("acme", ApiDialect.OPENAI_CHAT, "https://api.example/v1", None)
    Provider("acme", ApiDialect.OPENAI_CHAT, "http://127.0.0.1:11434/v1", None)


@pytest.mark.enable_socket
def test_a_server_that_wants_no_key_gets_none_and_a_model_may_have_another_name_there() -> None:
    async def play() -> None:
        upstream = FakeProvider(b"{}")
        async with passing(upstream, ApiDialect.OPENAI_CHAT, key=None) as mode:
            asked = asked_of(ApiDialect.OPENAI_CHAT, body_of(ApiDialect.OPENAI_CHAT, "hello"))
            await drained(await mode.answer(asked))
        assert "authorization" not in upstream.got[0].headers

    asyncio.run(play())
    provider = Provider("acme", ApiDialect.OPENAI_CHAT, "http://127.0.0.1:1", None, {"strong": "llama:70b"})
    assert (ModelRoute(provider, "strong").sold_as, ModelRoute(provider, "other").sold_as) == ("llama:70b", "other")


ECHOES = [
    f'{{"error": {{"message": "Incorrect API key provided: {SECRET}"}}}}'.encode(),
    f'{{"request": {{"headers": {{"authorization": "Bearer {SECRET}"}}}}}}'.encode(),
    *KEY.spellings(),
]


@pytest.mark.req("X3")
@pytest.mark.enable_socket
@pytest.mark.parametrize("status", [200, 401, 500])
@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_that_the_provider_echoes_is_struck_out(
    tmp_path: Path, status: int, echo: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        async def slowly() -> Any:
            for start in range(0, len(echo), 7):
                yield echo[start : start + 7]
                await asyncio.sleep(0)

        headers = {"content-type": "application/json", "x-request-id": f"id-{SECRET}", "set-cookie": f"key={SECRET}"}
        upstream = FakeProvider(slowly, status=status, headers=headers)
        async with passing(upstream, ApiDialect.OPENAI_CHAT) as mode, fronted(mode, tmp_path) as client:
            response = await client.post("/v1/chat/completions", json=body_of(ApiDialect.OPENAI_CHAT, "hello"))
            assert response.status_code == status
            for spelling in KEY.spellings():
                assert spelling not in response.content + str(response.headers).encode()
            assert b"[key]" in response.content
            assert "set-cookie" not in response.headers

    tmp_path.chmod(0o700)
    with caplog.at_level(logging.DEBUG):
        asyncio.run(play())
    assert SECRET not in caplog.text


def test_no_part_of_a_provider_shows_its_key() -> None:
    provider = provider_at("http://127.0.0.1:1", ApiDialect.ANTHROPIC)
    mode = PassMode(lambda _: ModelRoute(provider, MODEL))
    assert SECRET not in f"{provider!r} {ModelRoute(provider, MODEL)!r} {mode!r} {vars(mode)!r} {Key(SECRET, 'x')!r}"


@pytest.mark.req("X3")
@pytest.mark.enable_socket
@EVERY
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
def test_an_error_of_the_provider_is_passed_on_with_its_status(dialect: ApiDialect, status: int) -> None:
    async def play() -> None:
        said = b'{"error": {"message": "too much"}}'
        headers = {"content-type": "application/json", "retry-after": "7", "x-account": "ours"}
        upstream = FakeProvider(said, status=status, headers=headers)
        async with passing(upstream, dialect) as mode:
            answered = await mode.answer(asked_of(dialect, body_of(dialect, "hello")))
            assert isinstance(answered, RawAnswer)
            assert (answered.status, answered.headers["retry-after"]) == (status, "7")
            assert "x-account" not in answered.headers
            assert await drained(answered) == said

    asyncio.run(play())


@pytest.mark.req("X3")
@pytest.mark.enable_socket
@EVERY
def test_a_provider_that_is_not_there_is_an_error_in_the_agents_own_dialect(
    tmp_path: Path, dialect: ApiDialect
) -> None:
    async def play() -> None:
        mode = PassMode(lambda _: ModelRoute(provider_at("http://127.0.0.1:9", dialect), MODEL))
        async with fronted(mode, tmp_path) as client:
            response = await client.post(path_of(dialect, stream=False), json=body_of(dialect, "hello"))
        await mode.aclose()
        assert response.status_code == 502
        assert "could not be reached" in response.json()["error"]["message"]
        assert SECRET not in response.text
        assert GRANT.token not in response.text

    tmp_path.chmod(0o700)
    asyncio.run(play())


@pytest.mark.req("X3")
@pytest.mark.enable_socket
@pytest.mark.parametrize("sold", [ApiDialect.OPENAI_CHAT, ApiDialect.OPENAI_RESPONSES])
@pytest.mark.parametrize("spoken", [ApiDialect.OPENAI_CHAT, ApiDialect.OPENAI_RESPONSES])
def test_one_providers_two_interfaces_are_both_open_since_agents_choose_by_the_models_name(
    tmp_path: Path, sold: ApiDialect, spoken: ApiDialect
) -> None:
    tmp_path.chmod(0o700)

    async def play() -> None:
        async with passing(scripted(READS), sold) as mode, fronted(mode, tmp_path) as client:
            body = body_of(spoken, f"please {marker('reads')}", stream=False)
            response = await client.post(path_of(spoken, stream=False), json=body)
            assert response.status_code == 200, response.text

    asyncio.run(play())


def test_an_address_that_cannot_be_read_is_refused_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="not spoken to at an address without a host"):
        Provider("acme", ApiDialect.ANTHROPIC, "http://[bad/v1", KEY)
