"""A turn that is spelled in a dialect and overheard in it is the same turn; requests are read alike in all four."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.gateway.scripted_kit import asked, events
from fairwitness.agents.gateway.dialects import CODECS, observe
from fairwitness.agents.gateway.dialects.base import InvalidJson, args_of, args_text, load, pieces
from fairwitness.agents.gateway.dialects.observer import TurnObserver
from fairwitness.agents.gateway.modes import UNPARSED, ChatCall, ChatMessage, ChatResult, ModelRequest, OfferedTool
from fairwitness.contracts.agents.model import ApiDialect, ModelTurn, ModelUsage, ToolUse

pytestmark = pytest.mark.req("X3")

DIALECTS = tuple(ApiDialect)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
NAMES = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_-]{0,20}", fullmatch=True)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
ARGS = st.dictionaries(NAMES, PLAIN, max_size=4)
BROKEN = st.builds(lambda text: {UNPARSED: "{" + text}, st.from_regex(r"[a-z ]{1,30}", fullmatch=True))
CACHED = st.integers(0, 10**6)


@st.composite
def turns(draw: st.DrawFn) -> ModelTurn:
    """Whatever a model could have said."""
    cached = draw(CACHED)
    calls = draw(st.lists(st.tuples(NAMES, ARGS | BROKEN), max_size=3))
    return ModelTurn(
        text=draw(WORDS),
        calls=tuple(ToolUse(id=f"id{index}", name=name, args=args) for index, (name, args) in enumerate(calls)),
        usage=ModelUsage(
            tokens_in=cached + draw(st.integers(0, 10**6)),
            tokens_out=draw(st.integers(0, 10**6)),
            tokens_cached=cached,
        ),
        model=draw(NAMES),
    )


def _question(dialect: ApiDialect, *tools: OfferedTool, is_stream: bool, query: str = "alt=sse") -> ModelRequest:
    body = {"stream_options": {"include_usage": True}}
    return asked(dialect=dialect, stream=is_stream, tools=tools, body=body, query=query)


def _spelled(turn: ModelTurn, question: ModelRequest) -> bytes:
    codec = CODECS[question.dialect]
    if question.stream:
        return b"".join(codec.frames(turn, question))
    return json.dumps(codec.plain(turn, question)).encode()


def _overheard(dialect: ApiDialect, data: bytes, cuts: list[int]) -> TurnObserver:
    observer = observe(dialect)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        observer.feed(data[start:end])
    return observer


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "plain"])
@given(turn=turns(), cuts=st.lists(st.integers(0, 10**6), max_size=6))
def test_what_is_spelled_is_overheard_as_the_same_turn(
    dialect: ApiDialect, is_stream: bool, turn: ModelTurn, cuts: list[int]
) -> None:
    observer = _overheard(dialect, _spelled(turn, _question(dialect, is_stream=is_stream)), cuts)
    assert observer.turn() == turn
    assert observer.is_complete
    assert observer.error == ""


@given(turn=turns())
def test_geminis_list_is_overheard_like_its_events(turn: ModelTurn) -> None:
    data = _spelled(turn, _question(ApiDialect.GEMINI, is_stream=True, query=""))
    assert isinstance(json.loads(data), list)
    assert _overheard(ApiDialect.GEMINI, data, []).turn() == turn


@pytest.mark.parametrize("dialect", [ApiDialect.OPENAI_CHAT, ApiDialect.OPENAI_RESPONSES])
@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "plain"])
def test_a_tool_that_takes_plain_text_gets_plain_text(dialect: ApiDialect, is_stream: bool) -> None:
    patch = '*** Begin Patch\n*** Add File: a\n+"quoted"\n*** End Patch'
    turn = ModelTurn(calls=(ToolUse(id="c", name="apply_patch", args={"input": patch}),))
    question = _question(dialect, OfferedTool("apply_patch", {}, is_freeform=True), is_stream=is_stream)
    data = _spelled(turn, question)
    assert b"custom" in data
    heard = _overheard(dialect, data, []).turn()
    assert heard is not None
    assert heard.calls == turn.calls


@pytest.mark.parametrize("dialect", DIALECTS)
@given(turn=turns(), where=st.integers(0, 10**6))
def test_a_stream_that_breaks_off_is_never_taken_for_a_whole_one(
    dialect: ApiDialect, turn: ModelTurn, where: int
) -> None:
    data = _spelled(turn, _question(dialect, is_stream=True))
    frames = data.split(b"\n\n")
    ends = {ApiDialect.OPENAI_CHAT: 4}.get(dialect, 2)  # reason, usage, [DONE] and what follows the last line end
    whole = b"\n\n".join(frames[: len(frames) - ends])
    observer = _overheard(dialect, whole[: where % (len(whole) + 1)], [])
    assert not observer.is_complete


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status", [400, 401, 402, 404, 413, 429, 500, 503, 529])
def test_an_error_is_no_turn(dialect: ApiDialect, status: int) -> None:
    body = CODECS[dialect].failure(status, "so it is")
    observer = _overheard(dialect, json.dumps(body).encode(), [])
    assert observer.turn() is None
    assert not observer.is_complete
    assert observer.error == "so it is"


def test_errors_have_the_shape_of_their_dialect() -> None:
    assert CODECS[ApiDialect.ANTHROPIC].failure(529, "m")["error"]["type"] == "overloaded_error"
    assert CODECS[ApiDialect.ANTHROPIC].failure(429, "m")["error"]["type"] == "rate_limit_error"
    assert CODECS[ApiDialect.ANTHROPIC].failure(402, "m")["error"]["type"] == "billing_error"
    assert CODECS[ApiDialect.OPENAI_CHAT].failure(401, "m")["error"]["code"] == "invalid_api_key"
    assert CODECS[ApiDialect.OPENAI_RESPONSES].failure(500, "m")["error"]["type"] == "server_error"
    assert CODECS[ApiDialect.GEMINI].failure(429, "m")["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert CODECS[ApiDialect.GEMINI].failure(529, "m")["error"]["code"] == 529


@pytest.mark.parametrize(
    ("dialect", "frame"),
    [
        (ApiDialect.ANTHROPIC, {"type": "error", "error": {"type": "overloaded_error", "message": "too much"}}),
        (ApiDialect.OPENAI_CHAT, {"error": {"message": "too much"}}),
        (ApiDialect.OPENAI_RESPONSES, {"type": "response.failed", "response": {"error": {"message": "too much"}}}),
        (ApiDialect.OPENAI_RESPONSES, {"type": "error", "message": "too much"}),
        (ApiDialect.GEMINI, {"error": {"message": "too much"}}),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_heard(dialect: ApiDialect, frame: dict[str, Any]) -> None:
    observer = _overheard(dialect, f"data: {json.dumps(frame)}\n\n".encode(), [])
    assert observer.error == "too much"
    assert not observer.is_complete


def test_whoever_says_too_much_has_not_finished() -> None:
    turn = ModelTurn(text="x" * 5000, usage=ModelUsage(tokens_in=1, tokens_out=1))
    data = _spelled(turn, _question(ApiDialect.ANTHROPIC, is_stream=True))
    observer = TurnObserver(CODECS[ApiDialect.ANTHROPIC], longest=1000)
    observer.feed(data)
    assert not observer.is_complete


def test_cached_tokens_are_counted_among_those_that_were_sent() -> None:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 4}
    told = ModelUsage(tokens_in=60, tokens_out=4, tokens_cached=30, tokens_cache_written=20)
    assert CODECS[ApiDialect.ANTHROPIC].usage(usage) == told
    thoughts = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3, "toolUsePromptTokenCount": 1}
    assert CODECS[ApiDialect.GEMINI].usage(thoughts) == ModelUsage(tokens_in=6, tokens_out=5)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_usage_that_nobody_said_is_unknown_and_not_zero(dialect: ApiDialect) -> None:
    assert CODECS[dialect].usage({}) is None


def test_a_chat_stream_tells_its_usage_only_if_it_was_asked_to() -> None:
    turn = ModelTurn(text="hi", usage=ModelUsage(tokens_in=1, tokens_out=1))
    quiet = asked(dialect=ApiDialect.OPENAI_CHAT, stream=True)
    said = events(b"".join(CODECS[ApiDialect.OPENAI_CHAT].frames(turn, quiet)).decode())
    assert said[-1] == "[DONE]"
    assert not any("usage" in event for event in said[:-1])


def test_responses_number_their_events_without_a_gap() -> None:
    turn = ModelTurn(text="hi", calls=(ToolUse(id="c", name="t", args={"a": 1}),))
    question = _question(ApiDialect.OPENAI_RESPONSES, is_stream=True)
    said = events(b"".join(CODECS[ApiDialect.OPENAI_RESPONSES].frames(turn, question)).decode())
    assert [event["sequence_number"] for event in said] == list(range(len(said)))
    assert said[0]["type"] == "response.created"
    assert said[-1]["type"] == "response.completed"


def test_anthropics_stream_starts_and_stops_every_block() -> None:
    turn = ModelTurn(text="hi", calls=(ToolUse(id="c", name="t", args={"a": 1}),))
    question = _question(ApiDialect.ANTHROPIC, is_stream=True)
    kinds = [event["type"] for event in events(b"".join(CODECS[ApiDialect.ANTHROPIC].frames(turn, question)).decode())]
    assert kinds == [
        *("message_start", "ping"),
        *("content_block_start", "content_block_delta", "content_block_stop") * 2,
        *("message_delta", "message_stop"),
    ]


CONVERSATIONS: dict[ApiDialect, dict[str, Any]] = {
    ApiDialect.ANTHROPIC: {
        "system": [{"type": "text", "text": "be good"}],
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "reading"},
                    {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "A"}]},
                    {"type": "text", "text": "and now"},
                ],
            },
        ],
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        "max_tokens": 7,
        "output_config": {"format": {"type": "json_schema", "schema": {}}},
    },
    ApiDialect.OPENAI_CHAT: {
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {
                "role": "assistant",
                "content": "reading",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "A"},
            {"role": "user", "content": "and now"},
        ],
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
        "max_completion_tokens": 7,
        "response_format": {"type": "json_object"},
    },
    ApiDialect.OPENAI_RESPONSES: {
        "instructions": "be good",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "reading"}]},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path": "a"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "A"},
            {"role": "user", "content": "and now"},
        ],
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
        "max_output_tokens": 7,
        "text": {"format": {"type": "json_object"}},
    },
    ApiDialect.GEMINI: {
        "systemInstruction": {"parts": [{"text": "be good"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": "reading"},
                    {"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "A"}}},
                    {"text": "and now"},
                ],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "read", "parameters": {"type": "OBJECT"}}]}],
        "generationConfig": {"maxOutputTokens": 7, "responseMimeType": "application/json"},
    },
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_conversation_is_read_alike_in_every_dialect(dialect: ApiDialect) -> None:
    heard = CODECS[dialect].read(CONVERSATIONS[dialect])
    call = ChatCall("c1", "read", {"path": "a"})
    spoken: list[ChatMessage] = [ChatMessage("assistant", "reading", (call,))]
    if dialect is ApiDialect.OPENAI_RESPONSES:
        spoken = [
            ChatMessage("assistant", "reading"),
            ChatMessage("assistant", calls=(call,)),
        ]  # items of their own there
    assert list(heard.messages) == [
        ChatMessage("user", "go"),
        *spoken,
        ChatMessage("tool", results=(ChatResult("c1", "A"),)),
        ChatMessage("user", "and now"),
    ]
    assert heard.tools == (OfferedTool("read", {"type": "object"}),)
    assert (heard.system, heard.max_tokens, heard.wants_json) == ("be good", 7, True)


def test_tools_that_take_plain_text_are_read_in_both_dialects_that_have_them() -> None:
    chat = {
        "tools": [{"type": "custom", "custom": {"name": "apply_patch"}}],
        "messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "apply_patch", "input": "*** Begin"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "done"}]},
        ],
    }
    responses = {
        "tools": [{"type": "custom", "name": "apply_patch"}],
        "input": [
            {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        ],
    }
    for dialect, body in ((ApiDialect.OPENAI_CHAT, chat), (ApiDialect.OPENAI_RESPONSES, responses)):
        heard = CODECS[dialect].read(body)
        assert heard.tools == (OfferedTool("apply_patch", {}, is_freeform=True),)
        assert heard.messages == (
            ChatMessage("assistant", calls=(ChatCall("c1", "apply_patch", {"input": "*** Begin"}),)),
            ChatMessage("tool", results=(ChatResult("c1", "done"),)),
        )


def test_tools_that_the_provider_runs_itself_are_seen_by_their_type() -> None:
    assert CODECS[ApiDialect.OPENAI_RESPONSES].read({"tools": [{"type": "web_search"}]}).tools[0].name == "web_search"
    assert CODECS[ApiDialect.GEMINI].read({"tools": [{"googleSearch": {}}]}).tools[0].name == "googleSearch"


def test_thoughts_and_second_choices_are_no_part_of_a_turn() -> None:
    thought = {"object": "response", "status": "completed", "output": [{"type": "reasoning", "summary": []}]}
    heard = _overheard(ApiDialect.OPENAI_RESPONSES, json.dumps(thought).encode(), []).turn()
    assert heard == ModelTurn()
    second = {"choices": [{"index": 1, "delta": {"content": "other"}}, {"index": 0, "delta": {"content": "this"}}]}
    heard = _overheard(ApiDialect.OPENAI_CHAT, f"data: {json.dumps(second)}\n\n".encode(), []).turn()
    assert heard == ModelTurn(text="this")


@pytest.mark.parametrize("dialect", DIALECTS)
@given(body=st.dictionaries(st.sampled_from(["messages", "input", "contents", "tools", "system", "text"]), PLAIN))
def test_nonsense_is_read_as_nothing_and_never_breaks_the_reader(dialect: ApiDialect, body: dict[str, Any]) -> None:
    heard = CODECS[dialect].read(body)
    assert all(isinstance(said.text, str) for said in heard.messages)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(body=PLAIN)
def test_nonsense_of_a_provider_never_breaks_the_observer(dialect: ApiDialect, body: object) -> None:
    for data in (json.dumps(body), f"data: {json.dumps(body)}\n\n"):
        observer = _overheard(dialect, data.encode(), [])
        observer.turn()
        assert not observer.is_complete


def test_an_ambiguous_request_is_refused() -> None:
    for text in ('{"model": "a", "model": "b"}', '{"a": NaN}', "[" * 100_000, "{"):
        with pytest.raises(InvalidJson):
            load(text)


def test_half_a_character_is_replaced_by_a_mark() -> None:
    assert load('{"a": "x\\ud83d"}') == {"a": "x�"}
    assert load('{"a": "\\ud83d\\ude00"}') == {"a": "😀"}


@given(WORDS)
def test_arguments_that_nobody_can_read_are_sent_as_they_were(text: str) -> None:
    args = args_of(text)
    assert args == {} or UNPARSED not in args or args_text(args) == text


@given(st.text(max_size=5000))
def test_pieces_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text
