"""A conversation with a model: calls it, runs its tool calls in our toolbox, and repeats until it makes no more calls.

The library only speaks the dialects. This module decides how often a model is called, what it is shown after a bad
call, and what ends a turn; each of these has a limit.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Literal

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from fairwitness.agents.backends.turn_loop import (
    SUBMIT,
    SUBMIT_DESCRIPTION,
    UNPARSED,
    CancellableTurn,
    RetryWaits,
    ToolReply,
    ToolRequest,
    TurnReplies,
    limit_problem,
    run_tools,
)
from fairwitness.agents.base import AgentJob, AgentTurn
from fairwitness.agents.gateway.dialects.base import error_in
from fairwitness.contracts.agents.dispatch import Kind, Stop, Usage, UsageSource
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.kit.text import visible
from fairwitness.rules.provider_faults import MEANINGS, ProviderAnswer, ProviderFault, fault_of

_SHOWN = 500
_EMPTY_TRIES = 3
"""How often a model is asked that answers with nothing."""
_NOTHING = "ended without content"
"""How pydantic-ai says that a stream held no word and no call."""
_OVER_BUDGET = "over budget:"


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why there is no turn."""

    stop: Stop
    cause: ErrorCause | None
    text: str
    is_empty: bool = False
    """Whether the model answered, but with nothing."""


def _empty() -> Failure:
    meaning = MEANINGS[ProviderFault.EMPTY]
    return Failure(Stop.FAILED, meaning.cause, meaning.words, is_empty=True)


def failed(cause: ErrorCause, text: str) -> Failure:
    """Return a failure that is neither a limit nor a refusal."""
    return Failure(Stop.FAILED, cause, text)


def failure_of(error: Exception) -> Failure:
    """Return the failure that an exception of pydantic-ai, of a provider's package or of HTTP means."""
    text = visible(_words(error))[:_SHOWN]
    match error:
        case ContentFilterError():
            return Failure(Stop.REFUSED, None, text)
        case ModelHTTPError(status_code=402):  # the gateway's answer when the budget is spent
            return Failure(Stop.LIMIT, None, text)
        case ModelAPIError(in_stream=True) if _OVER_BUDGET in text:  # a stream that the gateway cut off has no status
            return Failure(Stop.LIMIT, None, text)
        case ModelHTTPError():
            said = error_in(error.body)
            fault = fault_of(ProviderAnswer(error.status_code, said.codes, said.message))
            return failed(MEANINGS[fault].cause, text)
        case ModelTimeoutError() | ModelRequestTimeout() | httpx2.TimeoutException():
            return failed(ErrorCause.TIMEOUT, text)
        case ModelConnectionError() | httpx2.HTTPError() | httpx2.StreamError():
            return failed(ErrorCause.NETWORK, text)
        case ModelAPIError():
            return failed(ErrorCause.SERVER_ERROR, text)
        case UnexpectedModelBehavior() if _NOTHING in str(error):
            return _empty()
        case _:  # not a valid answer
            return failed(ErrorCause.AGENT_ERROR, text)


def _words(error: Exception) -> str:
    """Return the message of the provider, or else of the exception."""
    if not isinstance(error, ModelHTTPError):
        return f"the model failed: {error}" if str(error) else f"the model failed: {type(error).__name__}"
    return f"the model answered {error.status_code}: {error_in(error.body).message or 'without a word'}"


MOST_SIGNS = 1 << 20
"""Characters of one turn, with thoughts and arguments; reading stops there."""
MOST_CALLS = 64
"""Calls of one turn that are run, at most."""
_TOO_MANY = ToolReply(False, f"not done: more than {MOST_CALLS} calls in one turn")


class ApiSession:
    """A conversation; every request sends its whole history."""

    def __init__(self, model: Model, settings: ModelSettings, job: AgentJob, waits: RetryWaits) -> None:
        self._model, self._settings, self._job, self._waits = model, settings, job, waits
        self._asking = CancellableTurn()
        self._history: list[ModelMessage] = []
        self._unsaid: list[ModelRequestPart] = []
        """Prompts and results of calls that were not sent yet."""
        self._offered = ModelRequestParameters(function_tools=_offered(job))
        self._requests = 0
        self._responses: list[ModelResponse] = []
        self._empty: list[ModelResponse] = []
        """Answers with nothing in them: they are not part of the conversation, and cost tokens."""

    async def ask(self, prompt: str) -> AgentTurn:
        """Send a prompt and return the turn that ends it, or says why it failed."""
        return await self._asking.run(self._talk(prompt), lambda: self._turn(Stop.CANCELLED, error="it was cancelled"))

    async def cancel(self) -> None:
        """End the current request or tool call."""
        await self._asking.cancel()

    async def _talk(self, prompt: str) -> AgentTurn:
        self._unsaid.append(UserPromptPart(prompt))
        while True:
            response = await self._response()
            if isinstance(response, Failure):
                return self._turn(response.stop, error=response.text, cause=response.cause)
            self._report(response)
            acted = await self._act(response)
            if acted is None:
                return self._turn(Stop.REFUSED if _is_refused(response) else Stop.DONE)
            if acted.submitted is not None:
                return self._turn(Stop.DONE, submitted=acted.submitted)

    async def _act(self, response: ModelResponse) -> TurnReplies | None:
        """Run the calls of a response and keep their results for the next request; None if it has no calls."""
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        if not calls:
            return None
        asked = [ToolRequest(call.tool_call_id, call.tool_name, _arguments(call)) for call in calls[:MOST_CALLS]]
        acted = await run_tools(self._job, asked)
        answers = [*acted.answers, *[_TOO_MANY] * (len(calls) - len(asked))]  # a provider requires one for each call
        for call, answer in zip(calls, answers, strict=True):
            outcome: Literal["success", "failed"] = "success" if answer.ok else "failed"
            self._unsaid.append(ToolReturnPart(call.tool_name, answer.text, call.tool_call_id, outcome=outcome))
        return acted

    async def _response(self) -> ModelResponse | Failure:
        """Return the next response of the model; a failed request is retried as the retry rule says."""
        tries = empty = 0
        while True:
            tokens = sum(response.usage.total_tokens for response in (*self._responses, *self._empty))
            full = limit_problem(self._job.limits, self._requests, tokens)
            if full is not None:
                return Failure(Stop.LIMIT, None, full)
            self._requests += 1
            response = await self._request()
            if isinstance(response, Failure) and response.is_empty:
                empty += 1
                if empty >= _EMPTY_TRIES:
                    return response
                self._job.report(Kind.NOTE, f"{response.text}; asking again")
                continue
            if not isinstance(response, Failure):
                self._history += [ModelRequest(parts=self._unsaid), response]
                self._unsaid = []
                self._responses.append(response)
                return response
            waits = self._waits(response.cause) if response.cause is not None else ()
            if tries >= len(waits):
                return response
            self._job.report(Kind.NOTE, f"{response.text}; asking again in {waits[tries]:g} s")
            await asyncio.sleep(waits[tries])
            tries += 1

    async def _request(self) -> ModelResponse | Failure:
        messages = [*self._history, ModelRequest(parts=self._unsaid)]
        size = 0
        try:
            async with model_request_stream(
                self._model, messages, model_settings=self._settings, model_request_parameters=self._offered
            ) as stream:
                async for event in stream:
                    size += _size(event)
                    if size > MOST_SIGNS:
                        await stream.cancel()
                        return failed(ErrorCause.AGENT_ERROR, f"the model said more than {MOST_SIGNS} signs at once")
                response = stream.get()
        except Exception as error:  # noqa: BLE001 -- any error of a provider's package is a failure of the model
            return failure_of(error)
        if response.state != "complete":
            return failed(ErrorCause.NETWORK, "the model's answer broke off")
        if not _is_refused(response) and not any(map(_says, response.parts)):
            self._empty.append(response)
            return _empty()
        return replace(response, parts=[_mended(part) for part in response.parts])

    def _report(self, response: ModelResponse) -> None:
        thoughts = [part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content]
        if thoughts:
            self._job.report(Kind.THOUGHT, "\n".join(thoughts))
        if response.text:
            self._job.report(Kind.TEXT, response.text)
        used = response.usage
        if _is_counted(used):
            self._job.report(
                Kind.USAGE,
                f"{used.input_tokens} in, {used.output_tokens} out",
                args={"tokens_in": used.input_tokens, "tokens_out": used.output_tokens},
            )

    def _turn(
        self,
        stop: Stop,
        *,
        error: str = "",
        cause: ErrorCause | None = None,
        submitted: dict[str, Any] | None = None,
    ) -> AgentTurn:
        last = self._responses[-1] if self._responses else None
        return AgentTurn(
            text=(last.text or "") if last is not None else "",
            stop=stop,
            usage=_usage([response.usage for response in (*self._responses, *self._empty)]),
            submitted=submitted,
            cause=cause,
            error=error,
            model=last.model_name if last is not None else None,
        )


def _offered(job: AgentJob) -> list[ToolDefinition]:
    """Return the tools of the role and the one that takes the answer."""
    tools = [(tool.name, tool.description, tool.schema) for tool in job.tools.offered()]
    return [
        # not strict: providers differ in the schemas that they accept, and every call is validated here anyway
        ToolDefinition(name=name, description=words, parameters_json_schema=schema, strict=False)
        for name, words, schema in (*tools, (SUBMIT, SUBMIT_DESCRIPTION, job.form.schema))
    ]


def _is_refused(response: ModelResponse) -> bool:
    """Return whether the model or a filter stopped the answer."""
    return response.finish_reason == "content_filter"


def _says(part: ModelResponsePart) -> bool:
    """Return whether a part is a call or has words; thoughts are none."""
    return isinstance(part, ToolCallPart) or (isinstance(part, TextPart) and bool(part.content.strip()))


def _mended(part: ModelResponsePart) -> ModelResponsePart:
    """Return the part without halves of surrogate pairs, which cannot be stored or sent again."""
    match part:
        case TextPart() | ThinkingPart():
            return replace(part, content=_whole(part.content))
        case ToolCallPart():
            name, number = _whole(part.tool_name), _whole(part.tool_call_id)
            return replace(part, tool_name=name, tool_call_id=number, args=_whole(part.args))
        case _:
            return part


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode() if not value.isascii() else value
        case dict():
            return {_whole(key): _whole(inner) for key, inner in value.items()}
        case list():
            return [_whole(inner) for inner in value]
        case _:
            return value


def _arguments(call: ToolCallPart) -> dict[str, Any]:
    try:
        return call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        return {UNPARSED: str(call.args)}


def _size(event: ModelResponseStreamEvent) -> int:
    """Return the number of characters in a stream event."""
    match event:
        case PartStartEvent(part=said) | PartDeltaEvent(delta=said):
            texts = (getattr(said, name, None) for name in ("content", "content_delta", "args", "args_delta"))
            return sum(len(str(text)) for text in texts if text is not None)
        case _:
            return 0


def _is_counted(used: RequestUsage) -> bool:
    return used.unmeasured_requests == 0 and used.total_tokens > 0


def _usage(used: list[RequestUsage]) -> Usage:
    """Return the sum; it is unknown if the usage of one turn is unknown."""
    if not used or not all(map(_is_counted, used)):
        return Usage(turns=len(used))
    return Usage(
        source=UsageSource.PROVIDER,
        tokens_in=sum(one.input_tokens for one in used),
        tokens_out=sum(one.output_tokens for one in used),
        tokens_cached=sum(one.cache_read_tokens for one in used),
        turns=len(used),
    )
