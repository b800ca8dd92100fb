"""Every fault of a provider, in every dialect: what a dispatch becomes, what is asked again, and what it costs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents.api.kit import DIALECTS
from agents.gateway.fault_kit import ANSWER, Reply, Spell, bad_day, cut, dispatched, driven, error, raw, says
from agents.jobs import GOOD
from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.errors import NotReady, ProviderAway, is_machine_fault

pytestmark = [pytest.mark.enable_socket, pytest.mark.req("P12")]
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
WHOLE = 1050
"""The tokens of one answer."""


@every_dialect
def test_a_minute_of_429_is_waited_for_and_costs_nothing(tmp_path: Path, dialect: ApiDialect) -> None:
    limited = error(429, "slow down", retry_after="60")
    seen = dispatched(tmp_path, dialect, limited, limited, says())
    assert seen.outcome.status is OutcomeStatus.OK
    assert seen.outcome.answer == GOOD
    assert (seen.requests, seen.usage.tokens, seen.usage.turns) == (3, WHOLE, 1)
    assert 120 <= sum(seen.day.time.slept) <= 124
    until, again = (line.split(" (")[0] for line in seen.day.time.shown)
    assert until.startswith("waiting for the provider until ")
    assert until != again
    assert seen.day.time.shown[0].endswith("(acme: too many requests (429: slow down))")


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 408])
@every_dialect
def test_an_error_of_the_server_is_waited_for(tmp_path: Path, dialect: ApiDialect, status: int) -> None:
    seen = dispatched(tmp_path, dialect, *[error(status)] * 4, says())
    assert seen.outcome.status is OutcomeStatus.OK
    assert (seen.requests, seen.usage.tokens) == (5, WHOLE)
    assert seen.day.time.slept == [0.75, 1.5, 3.0, 6.0]  # half of each pause is drawn


@every_dialect
def test_after_the_limit_the_dispatch_is_interrupted_and_has_not_failed(tmp_path: Path, dialect: ApiDialect) -> None:
    seen = dispatched(tmp_path, dialect, error(529, "Overloaded"))
    assert seen.outcome.status is OutcomeStatus.CANCELLED
    assert seen.outcome.cause is None
    assert seen.usage.tokens == 0
    away = seen.cut.away
    assert isinstance(away, ProviderAway)
    assert is_machine_fault(away)
    assert away.what == "the provider acme gave no answer for 15 min: it is overloaded (529: Overloaded)"
    assert 840 < seen.day.time.at <= 900


@every_dialect
def test_a_wait_longer_than_the_limit_is_not_begun(tmp_path: Path, dialect: ApiDialect) -> None:
    seen = dispatched(tmp_path, dialect, error(429, "come back", retry_after="7200"))
    assert seen.requests == 1
    assert seen.day.time.slept == []
    assert seen.cut.away is not None
    assert "asks to wait until" in seen.cut.away.what
    assert "a run waits at most 15 min" in seen.cut.away.what
    assert seen.cut.away.next_step.startswith("wait until ")


@pytest.mark.parametrize("clean", [True, False], ids=["without-its-end", "cut"])
@every_dialect
def test_a_stream_without_its_end_is_no_answer(tmp_path: Path, dialect: ApiDialect, clean: bool) -> None:
    seen = dispatched(tmp_path, dialect, cut(0.5, clean=clean), says())
    assert seen.outcome.status is OutcomeStatus.OK, seen.outcome.problems
    assert seen.outcome.answer == GOOD
    assert seen.requests == 2
    assert seen.usage.tokens is not None
    assert WHOLE < seen.usage.tokens < WHOLE + 8192  # what arrived of the first one, not what was reserved for it


@every_dialect
def test_streams_that_break_again_and_again_interrupt(tmp_path: Path, dialect: ApiDialect) -> None:
    seen = dispatched(tmp_path, dialect, cut(0.5, clean=False), wait_s=2)
    assert seen.outcome.status is OutcomeStatus.CANCELLED
    assert seen.cut.away is not None
    assert "its answer has no end" in seen.cut.away.what


_ERROR_EVENTS: dict[ApiDialect, Any] = {
    ApiDialect.ANTHROPIC: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ApiDialect.OPENAI_CHAT: {"error": {"message": "Overloaded", "type": "server_error", "code": None}},
    ApiDialect.OPENAI_RESPONSES: {"type": "error", "code": "server_error", "message": "Overloaded"},
    ApiDialect.GEMINI: {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}},
}


@every_dialect
def test_an_error_instead_of_the_first_event_is_waited_for(tmp_path: Path, dialect: ApiDialect) -> None:
    seen = dispatched(tmp_path, dialect, raw(_ERROR_EVENTS), says())
    assert seen.outcome.status is OutcomeStatus.OK, seen.outcome.problems
    assert (seen.requests, seen.usage.tokens) == (2, WHOLE)
    assert seen.day.time.shown[0].endswith("(Overloaded))")


@every_dialect
def test_a_connection_that_breaks_before_the_answer_is_made_again_and_may_have_cost_something(
    tmp_path: Path, dialect: ApiDialect
) -> None:
    seen = dispatched(tmp_path, dialect, says(), drops=1)
    assert seen.outcome.status is OutcomeStatus.OK, seen.outcome.problems
    assert seen.requests == 1
    assert "it took the request and did not answer" in seen.day.time.shown[0]
    assert seen.usage.tokens is not None
    assert seen.usage.tokens > WHOLE


_GEMINI_KEY = {
    "error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
        "details": [{"reason": "API_KEY_INVALID"}],
    }
}
_QUOTA = {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": None}}


@pytest.mark.parametrize(
    ("reply", "words", "step"),
    [
        (error(401, "invalid x-api-key"), "it does not accept the key (401: invalid x-api-key)", "of the test"),
        (raw(dict.fromkeys(DIALECTS, _GEMINI_KEY), status=400), "it does not accept the key", "set a valid key"),
        (error(403, "not your region"), "the key may not use this model", "another model"),
        (error(402, "pay first"), "the account has no credit left", "add credit"),
        (raw(dict.fromkeys(DIALECTS, _QUOTA), status=429), "the account has no credit left", "add credit"),
        (error(404, "no such model"), "it does not have this model", "choose another model than"),
    ],
)
@every_dialect
def test_what_only_a_person_can_mend_stops_at_once(
    tmp_path: Path, dialect: ApiDialect, reply: Spell, words: str, step: str
) -> None:
    seen = dispatched(tmp_path, dialect, reply)
    assert (seen.outcome.status, seen.requests, seen.usage.tokens) == (OutcomeStatus.CANCELLED, 1, 0)
    away = seen.cut.away
    assert isinstance(away, NotReady)
    assert away.what.startswith("the provider acme cannot be used: ")
    assert words in away.what
    assert step in away.next_step
    assert seen.day.time.slept == []


@every_dialect
def test_a_server_that_is_down_stops_at_once_if_it_never_answered(tmp_path: Path, dialect: ApiDialect) -> None:
    seen = dispatched(tmp_path, dialect, says(), port="http://127.0.0.1:1")
    assert seen.cut.away is not None
    assert "it cannot be reached" in seen.cut.away.what
    assert "check that the server runs" in seen.cut.away.next_step
    assert "http://127.0.0.1:1" in seen.cut.away.next_step
    assert seen.day.time.slept == []


_TOO_LONG: dict[ApiDialect, Any] = {
    ApiDialect.ANTHROPIC: {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
    },
    ApiDialect.OPENAI_CHAT: {"error": {"message": "too many tokens", "code": "context_length_exceeded"}},
    ApiDialect.OPENAI_RESPONSES: {"error": {"message": "too many tokens", "code": "context_length_exceeded"}},
    ApiDialect.GEMINI: {
        "error": {
            "code": 400,
            "message": "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
            "status": "INVALID_ARGUMENT",
        }
    },
}


@every_dialect
def test_a_conversation_that_is_too_long_fails_and_says_so(tmp_path: Path, dialect: ApiDialect) -> None:
    seen = dispatched(tmp_path, dialect, raw(_TOO_LONG, status=400))
    assert (seen.outcome.status, seen.requests, seen.usage.tokens) == (OutcomeStatus.AGENT_ERROR, 1, 0)
    (problem,) = seen.outcome.problems
    assert problem.startswith("its model failed: the conversation is longer than the model's context (400: ")
    assert problem.endswith("choose a model with a larger context, or a smaller task")


_USED = {"input_tokens": 1000, "output_tokens": 50}
_REFUSALS: dict[ApiDialect, Any] = {
    ApiDialect.ANTHROPIC: [
        {"type": "message_start", "message": {"type": "message", "role": "assistant", "id": "m", "model": "x",
                                              "content": [], "stop_reason": None, "usage": _USED}},
        {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_sequence": None}, "usage": _USED},
        {"type": "message_stop"},
    ],
    ApiDialect.OPENAI_CHAT: [
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x", "choices": [
            {"index": 0, "delta": {"role": "assistant", "refusal": "I will not."}, "finish_reason": None}]},
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x", "choices": [
            {"index": 0, "delta": {}, "finish_reason": "content_filter"}],
         "usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}},
    ],
    ApiDialect.OPENAI_RESPONSES: [
        {"type": "response.created", "sequence_number": 0, "response": {"id": "r", "object": "response", "output": [],
         "created_at": 1, "model": "x", "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}},
        {"type": "response.incomplete", "sequence_number": 1, "response": {"id": "r", "object": "response",
         "created_at": 1, "model": "x", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
         "output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"},
         "usage": {**_USED, "total_tokens": 1050, "input_tokens_details": {"cached_tokens": 0},
                   "output_tokens_details": {"reasoning_tokens": 0}}}},
    ],
    ApiDialect.GEMINI: [
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "modelVersion": "x",
         "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 50, "totalTokenCount": 1050}},
    ],
}  # fmt: skip


@every_dialect
def test_a_model_that_refuses_is_named_and_not_asked_for_its_form(tmp_path: Path, dialect: ApiDialect) -> None:
    seen = dispatched(tmp_path, dialect, raw(_REFUSALS))
    assert (seen.outcome.status, seen.requests, seen.usage.tokens) == (OutcomeStatus.REFUSED, 1, WHOLE)
    (problem,) = seen.outcome.problems
    assert problem.startswith("its model failed: the model refused to answer (")
    assert seen.outcome.asked == 1


@every_dialect
def test_an_empty_answer_is_asked_for_again_and_paid(tmp_path: Path, dialect: ApiDialect) -> None:
    seen = dispatched(tmp_path, dialect, says(""), says(""), says())
    assert seen.outcome.status is OutcomeStatus.OK, seen.outcome.problems
    assert (seen.requests, seen.usage.tokens) == (3, 3 * WHOLE)
    seen = dispatched(tmp_path, dialect, says(""))
    assert (seen.outcome.status, seen.requests) == (OutcomeStatus.AGENT_ERROR, 3)
    assert seen.outcome.problems == ("the model answered with nothing",)


@pytest.mark.parametrize(
    "text",
    [
        f"Natürlich! Hier ist mein Urteil, so wie Sie es wünschten:\n{ANSWER}\nIch hoffe, das hilft.",
        f"好的，这是结果：\n{ANSWER}\n如有问题请告诉我。",
        ANSWER.replace("```json", "```").replace("Done.", "Voilà « la réponse » {pas encore} :"),
        ANSWER.replace("```json\n", "").replace("\n```", " — конец."),
    ],
    ids=["german", "chinese", "no-tag", "no-fence"],
)
@every_dialect
def test_an_answer_wrapped_in_prose_of_any_language_is_found(tmp_path: Path, dialect: ApiDialect, text: str) -> None:
    seen = dispatched(tmp_path, dialect, says(text))
    assert (seen.outcome.status, seen.outcome.answer, seen.requests) == (OutcomeStatus.OK, GOOD, 1)


@every_dialect
def test_an_answer_in_prose_only_is_asked_for_once_more(tmp_path: Path, dialect: ApiDialect) -> None:
    seen = dispatched(tmp_path, dialect, says("Alles ist gut, Sie können fortfahren."), says())
    assert (seen.outcome.status, seen.outcome.asked, seen.requests) == (OutcomeStatus.OK, 2, 2)
    second = str(seen.day.provider.asked[1])
    assert "there is no JSON or YAML block in it" in second


@every_dialect
def test_the_other_calls_to_a_provider_wait_as_well_and_then_one_goes_first(
    tmp_path: Path, dialect: ApiDialect
) -> None:
    async def run() -> None:
        limited = error(429, "slow down", retry_after="60")
        async with bad_day(dialect, limited, limited, says()) as day:
            first = asyncio.ensure_future(driven(day, tmp_path, name="first"))
            await day.provider.was_asked.wait()
            rest = [driven(day, tmp_path, name=f"other-{number}") for number in range(4)]
            everyone = await asyncio.gather(first, *rest)
            assert [one.outcome.status for one in everyone] == [OutcomeStatus.OK] * 5
            assert len(day.provider.asked) == 7  # two were refused, and none of them by a second caller
            assert all(one.usage.tokens == WHOLE for one in everyone)

    asyncio.run(run())


@every_dialect
def test_a_limit_that_is_used_up_is_not_run_into(tmp_path: Path, dialect: ApiDialect) -> None:
    def last(dialect: ApiDialect, body: dict[str, Any], stream: bool) -> Reply:
        whole = says("not yet")(dialect, body, stream)
        spent = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"}
        return Reply(whole.body, whole.status, {**whole.headers, **spent})

    seen = dispatched(tmp_path, dialect, last, says())
    assert (seen.outcome.status, seen.requests) == (OutcomeStatus.OK, 2)
    assert seen.day.time.slept == [20.0]
