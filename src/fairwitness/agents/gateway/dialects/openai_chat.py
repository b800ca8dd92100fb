"""The OpenAI Chat Completions dialect, which most other providers speak too: one choice, deltas, `[DONE]`."""

from collections.abc import Iterator

from fairwitness.agents.gateway.dialects.base import (
    Codec,
    Json,
    PartialCall,
    PartialTurn,
    RequestFields,
    a_count,
    a_dict,
    a_list,
    a_str,
    answer_id,
    args_of,
    args_text,
    counted,
    event_stream,
    freeform_text,
    is_freeform,
    pieces,
    sse,
    texts_of,
)
from fairwitness.agents.gateway.modes import ChatCall, ChatMessage, ChatResult, ModelRequest, OfferedTool
from fairwitness.contracts.agents.model import ModelTurn, ModelUsage, ToolUse

_CREATED = 1_600_000_000
"""The dialect requires a time; a fixed one keeps answers reproducible."""
_JSON_FORMATS = ("json_object", "json_schema")


def _read(body: Json) -> RequestFields:
    messages = [a_dict(message) for message in a_list(body.get("messages"))]
    above = [texts_of(message.get("content")) for message in messages if message.get("role") in ("system", "developer")]
    most = body.get("max_completion_tokens")
    return RequestFields(
        model=a_str(body.get("model")),
        stream=body.get("stream") is True,
        tools=tuple(_offer(a_dict(tool)) for tool in a_list(body.get("tools"))),
        messages=tuple(_said(message) for message in messages if message.get("role") not in ("system", "developer")),
        system="\n".join(above),
        max_tokens=a_count(body.get("max_tokens") if most is None else most),
        wants_json=a_dict(body.get("response_format")).get("type") in _JSON_FORMATS,
    )


def _offer(tool: Json) -> OfferedTool:
    if tool.get("type") == "custom":
        return OfferedTool(a_str(a_dict(tool.get("custom")).get("name")), {}, is_freeform=True)
    function = a_dict(tool.get("function"))
    return OfferedTool(a_str(function.get("name")), a_dict(function.get("parameters")))


def _said(message: Json) -> ChatMessage:
    words = texts_of(message.get("content"))
    match message.get("role"):
        case "assistant":
            return ChatMessage(
                "assistant", words, tuple(_said_call(a_dict(c)) for c in a_list(message.get("tool_calls")))
            )
        case "tool":
            return ChatMessage("tool", results=(ChatResult(a_str(message.get("tool_call_id")), words),))
        case _:
            return ChatMessage("user", words)


def _said_call(call: Json) -> ChatCall:
    if call.get("type") == "custom":
        custom = a_dict(call.get("custom"))
        return ChatCall(a_str(call.get("id")), a_str(custom.get("name")), {"input": a_str(custom.get("input"))})
    function = a_dict(call.get("function"))
    return ChatCall(a_str(call.get("id")), a_str(function.get("name")), args_of(a_str(function.get("arguments"))))


def _call(call: ToolUse, asked: ModelRequest) -> Json:
    if is_freeform(asked, call.name):
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": freeform_text(call.args)}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": args_text(call.args)}}


def _spelled(used: ModelUsage) -> Json:
    return {
        "prompt_tokens": used.tokens_in,
        "completion_tokens": used.tokens_out,
        "total_tokens": used.tokens_in + used.tokens_out,
        "prompt_tokens_details": {"cached_tokens": used.tokens_cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _head(kind: str, turn: ModelTurn, asked: ModelRequest) -> Json:
    return {
        "id": answer_id("chatcmpl-", asked),
        "object": kind,
        "created": _CREATED,
        "model": turn.model or asked.model,
    }


def _plain(turn: ModelTurn, asked: ModelRequest) -> Json:
    message: Json = {"role": "assistant", "content": turn.text or None, "refusal": None}
    if turn.calls:
        message["tool_calls"] = [_call(call, asked) for call in turn.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(turn)}
    used = {"usage": _spelled(turn.usage)} if turn.usage else {}
    return _head("chat.completion", turn, asked) | {"choices": [choice]} | used


def _reason(turn: ModelTurn) -> str:
    return "tool_calls" if turn.calls else "stop"


def _frames(turn: ModelTurn, asked: ModelRequest) -> Iterator[bytes]:
    head = _head("chat.completion.chunk", turn, asked)

    def chunk(delta: Json, reason: str | None = None) -> bytes:
        return sse(head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]})

    yield chunk({"role": "assistant", "content": None if turn.calls and not turn.text else ""})
    for piece in pieces(turn.text):
        yield chunk({"content": piece})
    for index, call in enumerate(turn.calls):
        whole = _call(call, asked)
        kind, field = ("custom", "input") if whole["type"] == "custom" else ("function", "arguments")
        yield chunk({"tool_calls": [{"index": index} | whole | {kind: whole[kind] | {field: ""}}]})
        for piece in pieces(whole[kind][field]):
            yield chunk({"tool_calls": [{"index": index, kind: {field: piece}}]})
    yield chunk({}, _reason(turn))
    if turn.usage and a_dict(asked.body.get("stream_options")).get("include_usage") is True:
        yield sse(head | {"choices": [], "usage": _spelled(turn.usage)})
    yield b"data: [DONE]\n\n"


def failure(status: int, message: str) -> Json:
    """Return an error in the form of both OpenAI dialects."""
    code = {401: "invalid_api_key", 402: "insufficient_quota", 404: "not_found", 429: "rate_limit_exceeded"}.get(status)
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _on_event(gathered: PartialTurn, event: Json) -> None:
    if "error" in event:
        gathered.fail(event["error"])
        return
    gathered.has_begun = True
    gathered.model = gathered.model or a_str(event.get("model"))
    gathered.usage |= a_dict(event.get("usage"))
    for choice in map(a_dict, a_list(event.get("choices"))):
        if choice.get("index", 0) != 0:
            continue  # agents ask for one
        delta = a_dict(choice.get("delta"))
        gathered.text.append(a_str(delta.get("content")))
        _note_refusal(gathered, choice, delta)
        for number, part in enumerate(map(a_dict, a_list(delta.get("tool_calls")))):
            index = a_count(part.get("index"))
            _add(gathered.call(number if index is None else index), part)
        gathered.is_complete = gathered.is_complete or bool(a_str(choice.get("finish_reason")))


def _add(call: PartialCall, part: Json) -> None:
    custom, function = a_dict(part.get("custom")), a_dict(part.get("function"))
    call.is_freeform = call.is_freeform or bool(custom)
    call.id = call.id or a_str(part.get("id"))
    call.name = call.name or a_str(function.get("name")) or a_str(custom.get("name"))
    call.text.append(a_str(function.get("arguments")) or a_str(custom.get("input")))


def _on_body(gathered: PartialTurn, body: Json) -> None:
    choice = next(map(a_dict, a_list(body.get("choices"))), None)
    if choice is None:
        gathered.fail(body, "it has no choice")
        return
    gathered.has_begun = gathered.is_complete = True
    gathered.model = a_str(body.get("model"))
    gathered.usage |= a_dict(body.get("usage"))
    message = a_dict(choice.get("message"))
    gathered.text.append(a_str(message.get("content")))
    _note_refusal(gathered, choice, message)
    for index, part in enumerate(a_list(message.get("tool_calls"))):
        _add(gathered.call(index), a_dict(part))


def _note_refusal(gathered: PartialTurn, choice: Json, said: Json) -> None:
    gathered.refusal += a_str(said.get("refusal"))
    if choice.get("finish_reason") == "content_filter":
        gathered.refusal = gathered.refusal or "finish_reason content_filter"


def _usage(spelled: Json) -> ModelUsage | None:
    cached = a_count(a_dict(spelled.get("prompt_tokens_details")).get("cached_tokens"))
    return counted(a_count(spelled.get("prompt_tokens")), a_count(spelled.get("completion_tokens")), cached)


CODEC = Codec(_read, _plain, _frames, event_stream, failure, _on_event, _on_body, _usage)
