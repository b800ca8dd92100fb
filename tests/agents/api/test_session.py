"""What the loop makes of turns that no script can play: thoughts, counts nobody said, nonsense."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from pydantic_ai.exceptions import ContentFilterError, ModelAPIError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingCalls,
    DeltaThinkingPart,
    DeltaToolCall,
    DeltaToolCalls,
    FunctionModel,
)
from pydantic_ai.settings import ModelSettings

from agents.api.kit import job_in, project
from agents.jobs import Kept
from fairwitness.agents.backends.api_session import ApiSession, failure_of
from fairwitness.agents.backends.turn_loop import no_retries
from fairwitness.agents.base import AgentJob, AgentTurn
from fairwitness.contracts.agents.dispatch import Kind, Stop
from fairwitness.contracts.common.decisions import ErrorCause

Said = AsyncIterator[str | DeltaToolCalls | DeltaThinkingCalls]


def ask(job: AgentJob, stream: object, *prompts: str) -> list[AgentTurn]:
    """Asks a model made of a function."""

    async def run() -> list[AgentTurn]:
        model = FunctionModel(stream_function=stream)  # type: ignore[call-overload]  # one of the library's many shapes
        session = ApiSession(model, ModelSettings(), job, no_retries)
        return [await session.ask(prompt) for prompt in prompts or ("go",)]

    return asyncio.run(run())


@pytest.mark.req("X3")
def test_thoughts_are_told_and_are_no_answer(tmp_path: Path) -> None:
    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> Said:
        yield {0: DeltaThinkingPart(content="hm")}
        yield "the answer"

    kept = Kept()
    (turn,) = ask(job_in(project(tmp_path), kept=kept), stream)
    assert turn.text == "the answer"
    assert kept.texts(Kind.THOUGHT) == ["hm"]
    assert kept.texts(Kind.TEXT) == ["the answer"]


def test_a_second_ask_shows_the_model_what_was_said_before(tmp_path: Path) -> None:
    seen: list[int] = []

    async def stream(messages: list[ModelMessage], _info: AgentInfo) -> Said:
        seen.append(len(messages))
        yield f"answer {len(seen)}"

    first, second = ask(job_in(project(tmp_path)), stream, "one", "two")
    assert (first.text, second.text) == ("answer 1", "answer 2")
    assert seen == [1, 3]


def test_a_request_that_failed_leaves_its_prompt_to_be_said_again(tmp_path: Path) -> None:
    seen: list[str] = []

    async def stream(messages: list[ModelMessage], _info: AgentInfo) -> Said:
        seen.append(" ".join(str(part.content) for message in messages for part in message.parts))  # type: ignore[union-attr]  # prompts have one
        if len(seen) == 1:
            raise UnexpectedModelBehavior("nonsense")
        yield "fine"

    first, second = ask(job_in(project(tmp_path)), stream, "one", "two")
    assert (first.stop, first.cause) == (Stop.FAILED, ErrorCause.AGENT_ERROR)
    assert second.stop is Stop.DONE
    assert seen == ["one", "one two"]


def test_a_model_that_calls_for_ever_ends_at_the_limit_of_turns(tmp_path: Path) -> None:
    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> Said:
        yield {0: DeltaToolCall(name="list_dir", json_args="{}", tool_call_id="c")}

    (turn,) = ask(job_in(project(tmp_path), turns=7), stream)
    assert turn.stop is Stop.LIMIT
    assert turn.usage.turns == 7


@pytest.mark.req("P12")
@pytest.mark.parametrize("silences", [0, 2, 3])
def test_a_model_that_answers_with_nothing_is_asked_again_and_the_nothing_is_not_repeated_to_it(
    tmp_path: Path, silences: int
) -> None:
    heard: list[int] = []

    async def stream(messages: list[ModelMessage], _info: AgentInfo) -> Said:
        heard.append(len(messages))
        yield "" if len(heard) <= silences else "here"

    (turn,) = ask(job_in(project(tmp_path)), stream)
    assert heard == [1] * min(silences + 1, 3)
    if silences < 3:
        assert (turn.stop, turn.text) == (Stop.DONE, "here")
    else:
        assert (turn.stop, turn.error) == (Stop.FAILED, "the model answered with nothing")


def test_half_a_character_is_no_reason_to_fall_over(tmp_path: Path) -> None:
    calls = [
        DeltaToolCall(name="read\ud800", json_args='{"path": "a"}', tool_call_id="c\udfff"),
        DeltaToolCall(name="read_file", json_args='{"path": "a\\ud800"}', tool_call_id="d"),
        DeltaToolCall(name="", json_args='{"path": NaN}', tool_call_id=" "),
    ]

    async def stream(messages: list[ModelMessage], _info: AgentInfo) -> Said:
        if len(messages) == 1:
            yield dict(enumerate(calls))
            return
        yield {0: DeltaThinkingPart(content="hm \ud800")}
        yield "half \ud800"

    kept = Kept()
    (turn,) = ask(job_in(project(tmp_path), kept=kept), stream)
    assert (turn.stop, turn.text) == (Stop.DONE, "half ?")
    assert [one.ok for one in kept.happenings if one.kind is Kind.RESULT] == [False] * 3


@pytest.mark.parametrize(
    ("error", "stop", "cause"),
    [
        (ContentFilterError("no"), Stop.REFUSED, None),
        (ModelHTTPError(402, "m", {"error": {"message": "over budget"}}), Stop.LIMIT, None),
        (ModelHTTPError(529, "m"), Stop.FAILED, ErrorCause.SERVER_ERROR),
        (ModelHTTPError(408, "m"), Stop.FAILED, ErrorCause.SERVER_ERROR),
        (ModelHTTPError(418, "m", [{"message": "teapot"}]), Stop.FAILED, ErrorCause.AGENT_ERROR),
        (ModelAPIError("m", "odd"), Stop.FAILED, ErrorCause.SERVER_ERROR),
        (ModelAPIError("m", "over budget: said in a stream", in_stream=True), Stop.LIMIT, None),
        (httpx2.ReadTimeout("slow"), Stop.FAILED, ErrorCause.TIMEOUT),
        (httpx2.RemoteProtocolError("gone"), Stop.FAILED, ErrorCause.NETWORK),
        (ValueError(), Stop.FAILED, ErrorCause.AGENT_ERROR),
    ],
)
@pytest.mark.req("P12")
def test_every_exception_means_something(error: Exception, stop: Stop, cause: ErrorCause | None) -> None:
    failure = failure_of(error)
    assert (failure.stop, failure.cause) == (stop, cause)
    assert failure.text


def test_what_a_provider_says_is_cut_short_and_made_visible() -> None:
    failure = failure_of(ModelHTTPError(500, "m", {"error": {"message": "\x1b[31m" + "x" * 9000}}))
    assert len(failure.text) <= 500
    assert "\x1b" not in failure.text
