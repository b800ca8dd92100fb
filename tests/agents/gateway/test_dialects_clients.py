"""The vendors' own clients understand the gateway: plain and streamed, calls, usage, errors, in all four dialects."""

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as genai_errors
from google.genai import types as genai_types
from pydantic_ai import Agent, AgentStreamEvent, RunContext
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from agents.gateway.scripted_kit import MODEL, READ_TOOL, TOKEN, script, scripted
from fairwitness.agents.gateway.app import Gateway
from fairwitness.agents.gateway.server import serving
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.testing.script_steps import (
    CallsStep,
    ErrorStep,
    ForceStep,
    PatchStep,
    ReadStep,
    SayStep,
    ScriptStep,
    SubmitStep,
    WriteStep,
)
from fairwitness.testing.scripted_model import marker

pytestmark = [pytest.mark.req("X3"), pytest.mark.allow_hosts(["127.0.0.1"])]

PROMPT = f"go {marker('s')}"
WORDS = "Both – at once."
CALLS: ScriptStep = CallsStep(
    calls=(ReadStep(path="a"), ForceStep(tool="read_file", args={"path": "b", "deep": {"n": [1, 2.5, None]}})),
    text=WORDS,
)
EXPECTED = [("read_file", {"path": "a"}), ("read_file", {"path": "b", "deep": {"n": [1, 2.5, None]}})]


@asynccontextmanager
async def _url(app: Gateway) -> AsyncIterator[str]:
    async with serving(app, tcp=True) as served:
        assert served.url is not None
        yield served.url


@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "plain"])
def test_anthropics_client_understands_a_turn(is_stream: bool) -> None:
    async def ask() -> Any:
        async with (
            _url(scripted(script(CALLS))) as url,
            anthropic.AsyncAnthropic(base_url=url, api_key=TOKEN, max_retries=0) as vendor,
        ):
            asked: dict[str, Any] = {
                "model": MODEL,
                "max_tokens": 100,
                "messages": [{"role": "user", "content": PROMPT}],
                "tools": [{"name": "read_file", "input_schema": READ_TOOL}],
            }
            if not is_stream:
                return await vendor.messages.create(**asked)
            async with vendor.messages.stream(**asked) as stream:
                return await stream.get_final_message()

    message = asyncio.run(ask())
    text, *calls = message.content
    assert text.text == WORDS
    assert [(call.name, call.input) for call in calls] == EXPECTED
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (1000, 50)


@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "plain"])
def test_openais_client_understands_a_chat(is_stream: bool) -> None:
    async def ask() -> Any:
        async with (
            _url(scripted(script(CALLS))) as url,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0) as vendor,
        ):
            asked: dict[str, Any] = {
                "model": MODEL,
                "messages": [{"role": "user", "content": PROMPT}],
                "tools": [{"type": "function", "function": {"name": "read_file", "parameters": READ_TOOL}}],
            }
            if not is_stream:
                return await vendor.chat.completions.create(**asked)
            async with vendor.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                return await stream.get_final_completion()

    completion = asyncio.run(ask())
    (choice,) = completion.choices
    assert choice.message.content == WORDS
    assert [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls] == EXPECTED
    assert choice.finish_reason == "tool_calls"
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (1000, 50)


@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "plain"])
def test_openais_client_understands_a_response(is_stream: bool) -> None:
    patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
    steps = CallsStep(calls=(ReadStep(path="a"), PatchStep(patch=patch)), text=WORDS)
    kinds: list[str] = []

    async def ask() -> Any:
        async with (
            _url(scripted(script(steps))) as url,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0) as vendor,
        ):
            asked: dict[str, Any] = {
                "model": MODEL,
                "input": PROMPT,
                "tools": [
                    {"type": "function", "name": "read_file", "parameters": READ_TOOL, "strict": False},
                    {"type": "custom", "name": "apply_patch"},
                ],
            }
            if not is_stream:
                return await vendor.responses.create(**asked)
            async with vendor.responses.stream(**asked) as stream:
                async for event in stream:
                    kinds.append(event.type)
                return await stream.get_final_response()

    response = asyncio.run(ask())
    message, call, custom = response.output
    assert response.output_text == WORDS
    assert message.content[0].text == WORDS
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "read_file", {"path": "a"})
    assert (custom.type, custom.name, custom.input) == ("custom_tool_call", "apply_patch", patch)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (1000, 50)
    if is_stream:
        assert {"response.output_text.delta", "response.function_call_arguments.delta"} < set(kinds)
        assert "response.custom_tool_call_input.done" in kinds


@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "plain"])
def test_googles_client_understands_a_turn(is_stream: bool) -> None:
    tool = genai_types.Tool(
        function_declarations=[genai_types.FunctionDeclaration(name="read_file", parameters_json_schema=READ_TOOL)]
    )
    config = genai_types.GenerateContentConfig(
        tools=[tool], automatic_function_calling=genai_types.AutomaticFunctionCallingConfig(disable=True)
    )

    async def ask() -> list[Any]:
        async with _url(scripted(script(CALLS))) as url, _google(url) as vendor:
            if not is_stream:
                return [await vendor.models.generate_content(model=MODEL, contents=PROMPT, config=config)]
            stream = await vendor.models.generate_content_stream(model=MODEL, contents=PROMPT, config=config)
            return [chunk async for chunk in stream]

    chunks = asyncio.run(ask())
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    assert "".join(part.text or "" for part in parts) == WORDS
    assert [(part.function_call.name, part.function_call.args) for part in parts if part.function_call] == EXPECTED
    last = chunks[-1]
    assert last.candidates[0].finish_reason == genai_types.FinishReason.STOP
    assert (last.usage_metadata.prompt_token_count, last.usage_metadata.candidates_token_count) == (1000, 50)


def _google(url: str) -> Any:
    return genai.Client(api_key=TOKEN, http_options=genai_types.HttpOptions(base_url=url)).aio


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, anthropic.BadRequestError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.InternalServerError),
    ],
)
def test_anthropics_client_understands_an_error(status: int, expected: type[anthropic.APIStatusError]) -> None:
    async def ask() -> None:
        async with (
            _url(scripted(script(ErrorStep(status=status, message="so it is"), without_tools=True))) as url,
            anthropic.AsyncAnthropic(base_url=url, api_key=TOKEN, max_retries=0) as vendor,
        ):
            await vendor.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": PROMPT}])

    with pytest.raises(expected, match="so it is") as caught:
        asyncio.run(ask())
    assert caught.value.status_code == status


@pytest.mark.parametrize(
    ("status", "expected"),
    [(400, openai.BadRequestError), (429, openai.RateLimitError), (500, openai.InternalServerError)],
)
@pytest.mark.parametrize("is_chat", [True, False], ids=["chat", "responses"])
def test_openais_client_understands_an_error(status: int, expected: type[openai.APIStatusError], is_chat: bool) -> None:
    async def ask() -> None:
        async with (
            _url(scripted(script(ErrorStep(status=status, message="so it is"), without_tools=True))) as url,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0) as vendor,
        ):
            if is_chat:
                await vendor.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": PROMPT}])
            else:
                await vendor.responses.create(model=MODEL, input=PROMPT)

    with pytest.raises(expected, match="so it is"):
        asyncio.run(ask())


@pytest.mark.parametrize("status", [400, 429, 500])
def test_googles_client_understands_an_error(status: int) -> None:
    async def ask() -> None:
        app = scripted(script(ErrorStep(status=status, message="so it is"), without_tools=True))
        async with _url(app) as url, _google(url) as vendor:
            await vendor.models.generate_content(model=MODEL, contents=PROMPT)

    with pytest.raises(genai_errors.APIError, match="so it is") as caught:
        asyncio.run(ask())
    assert caught.value.code == status


def test_a_wrong_token_is_every_clients_authentication_error() -> None:
    async def ask() -> list[type[BaseException]]:
        raised: list[type[BaseException]] = []
        async with _url(scripted()) as url:
            async with anthropic.AsyncAnthropic(base_url=url, api_key="wrong", max_retries=0) as one:
                try:
                    await one.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "x"}])
                except anthropic.AuthenticationError as error:
                    raised.append(type(error))
            async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0) as other:
                try:
                    await other.responses.create(model=MODEL, input="x")
                except openai.AuthenticationError as error:
                    raised.append(type(error))
        return raised

    assert asyncio.run(ask()) == [anthropic.AuthenticationError, openai.AuthenticationError]


def test_models_and_tokens_are_listed_to_the_vendors_clients() -> None:
    async def ask() -> tuple[list[str], list[str], list[str | None], int]:
        async with (
            _url(scripted(models=("one", "two"))) as url,
            anthropic.AsyncAnthropic(base_url=url, api_key=TOKEN, max_retries=0) as one,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0) as two,
            _google(url) as three,
        ):
            counted = await one.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "x" * 400}])
            return (
                [model.id async for model in one.models.list()],
                [model.id async for model in two.models.list()],
                [model.name async for model in await three.models.list()],
                counted.input_tokens,
            )

    by_anthropic, by_openai, by_google, counted = asyncio.run(ask())
    assert by_anthropic == by_openai == ["one", "two"]
    assert by_google == ["models/one", "models/two"]
    assert counted > 100


@asynccontextmanager
async def _model(dialect: ApiDialect, url: str) -> AsyncIterator[Model]:
    if dialect is ApiDialect.ANTHROPIC:
        async with anthropic.AsyncAnthropic(base_url=url, api_key=TOKEN, max_retries=0) as one:
            yield AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=one))
    elif dialect is ApiDialect.GEMINI:
        client = genai.Client(api_key=TOKEN, http_options=genai_types.HttpOptions(base_url=url))
        async with client.aio:
            yield GoogleModel(MODEL, provider=GoogleProvider(client=client))
    else:
        kind = OpenAIChatModel if dialect is ApiDialect.OPENAI_CHAT else OpenAIResponsesModel
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0) as two:
            yield kind(MODEL, provider=OpenAIProvider(openai_client=two))


async def _listen(_context: RunContext[None], happening: AsyncIterable[AgentStreamEvent]) -> None:
    async for _ in happening:
        pass


@pytest.mark.parametrize("dialect", tuple(ApiDialect))
@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "plain"])
def test_a_whole_script_is_played_to_a_whole_agent(dialect: ApiDialect, is_stream: bool) -> None:
    played = script(
        ReadStep(path="a"),
        CallsStep(calls=(WriteStep(path="b", content="B"), ReadStep(path="b")), text="both"),
        ForceStep(tool="launch_missiles"),
        ReadStep(path="c"),
        SayStep(text="The end."),
    )
    app = scripted(played)
    done: list[str] = []

    async def run() -> Any:
        async with _url(app) as url, _model(dialect, url) as model:
            agent: Agent[None, str] = Agent(model)

            @agent.tool_plain
            def read_file(path: str) -> str:
                """Reads a file."""
                done.append(f"read {path}")
                return f"[[script:other]] of {path}"

            @agent.tool_plain
            def create_file(path: str, content: str) -> str:
                """Makes a file."""
                done.append(f"write {path} {content}")
                return "made"

            result = await agent.run(PROMPT, event_stream_handler=_listen if is_stream else None)
            return result.output, result.usage

    output, usage = asyncio.run(run())
    assert output == "The end."
    assert sorted(done) == ["read a", "read b", "read c", "write b B"]
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (5, 5000, 250)
    assert [logged.step for logged in app.log.requests] == [0, 1, 2, 3, 4]
    assert {(logged.dialect, logged.stream) for logged in app.log.requests} == {(dialect, is_stream)}
    assert not app.log.unknown


def test_a_typed_answer_is_handed_in_by_the_agents_own_tool() -> None:
    app = scripted(script(SubmitStep(answer={"files": 3, "summary": "good"})))

    async def run() -> Any:
        async with _url(app) as url, _model(ApiDialect.OPENAI_CHAT, url) as model:
            agent = Agent(model, output_type=dict[str, Any])
            return (await agent.run(PROMPT)).output

    assert asyncio.run(run()) == {"files": 3, "summary": "good"}
