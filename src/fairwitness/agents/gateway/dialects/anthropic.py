"""The Anthropic Messages dialect: content blocks, and a stream that starts, fills and stops each block."""

from collections.abc import Iterator
from typing import Any

from fairwitness.agents.gateway.dialects.base import (
    Codec,
    Json,
    PartialTurn,
    RequestFields,
    a_count,
    a_dict,
    a_list,
    a_str,
    answer_id,
    args_text,
    counted,
    event_stream,
    pieces,
    sse,
    texts_of,
)
from fairwitness.agents.gateway.modes import ChatCall, ChatMessage, ChatResult, ModelRequest, OfferedTool
from fairwitness.contracts.agents.model import ModelTurn, ModelUsage

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _read(body: Json) -> RequestFields:
    return RequestFields(
        model=a_str(body.get("model")),
        stream=body.get("stream") is True,
        tools=tuple(_offer(a_dict(tool)) for tool in a_list(body.get("tools"))),
        messages=tuple(said for message in a_list(body.get("messages")) for said in _said(a_dict(message))),
        system=texts_of(body.get("system")),
        max_tokens=a_count(body.get("max_tokens")),
        wants_json=bool(body.get("output_format") or a_dict(body.get("output_config")).get("format")),
    )


def _offer(tool: Json) -> OfferedTool:
    return OfferedTool(a_str(tool.get("name")), a_dict(tool.get("input_schema")))


def _said(message: Json) -> Iterator[ChatMessage]:
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [a_dict(b) for b in a_list(content)]
    if message.get("role") == "assistant":
        calls = tuple(
            ChatCall(a_str(block.get("id")), a_str(block.get("name")), a_dict(block.get("input")))
            for block in blocks
            if block.get("type") == "tool_use"
        )
        yield ChatMessage("assistant", texts_of([block for block in blocks if block.get("type") == "text"]), calls)
        return
    results = tuple(
        ChatResult(a_str(block.get("tool_use_id")), texts_of(block.get("content")))
        for block in blocks
        if block.get("type") == "tool_result"
    )
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    if results:
        yield ChatMessage("tool", results=results)
    if rest or not results:
        yield ChatMessage("user", texts_of(rest))


def _content(turn: ModelTurn) -> list[Json]:
    said: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
    return said + [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.args} for call in turn.calls]


def _message(turn: ModelTurn, asked: ModelRequest) -> Json:
    used = turn.usage or ModelUsage(tokens_in=0, tokens_out=0)
    return {
        "id": answer_id("msg_", asked),
        "type": "message",
        "role": "assistant",
        "model": turn.model or asked.model,
        "content": _content(turn),
        "stop_reason": "tool_use" if turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": max(0, used.tokens_in - used.tokens_cached - used.tokens_cache_written),
            "cache_creation_input_tokens": used.tokens_cache_written,
            "cache_read_input_tokens": used.tokens_cached,
            "output_tokens": used.tokens_out,
        },
    }


def _frames(turn: ModelTurn, asked: ModelRequest) -> Iterator[bytes]:
    for event in _events(_message(turn, asked), turn):
        yield sse(event, event["type"])


def _events(whole: Json, turn: ModelTurn) -> Iterator[Json]:
    begun = whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    calls = iter(turn.calls)
    for index, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        empty: Json = {"text": ""} if is_text else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": block | empty}
        for piece in pieces(block["text"] if is_text else args_text(next(calls).args)):
            delta = {"type": "text_delta", "text": piece} if is_text else _json_delta(piece)
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def _json_delta(piece: str) -> Json:
    return {"type": "input_json_delta", "partial_json": piece}


def _failure(status: int, message: str) -> Json:
    kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": None}


def _on_event(gathered: PartialTurn, event: Json) -> None:
    index: Any = event.get("index")
    delta = a_dict(event.get("delta"))
    match event.get("type"):
        case "message_start":
            message = a_dict(event.get("message"))
            gathered.has_begun = True
            gathered.model = a_str(message.get("model"))
            _use(gathered, message)
        case "content_block_start":
            _block(gathered, index, a_dict(event.get("content_block")), is_whole=False)
        case "content_block_delta":
            if delta.get("type") == "text_delta":
                gathered.text.append(a_str(delta.get("text")))
            elif delta.get("type") == "input_json_delta" and index in gathered.calls:
                gathered.call(index).text.append(a_str(delta.get("partial_json")))
        case "message_delta":
            _use(gathered, event)
            _note_refusal(gathered, delta)
        case "message_stop":
            gathered.is_complete = True
        case "error":
            gathered.fail(event.get("error"))
        case _:
            pass


def _on_body(gathered: PartialTurn, body: Json) -> None:
    if body.get("type") != "message":
        gathered.fail(body, "it is no message")
        return
    gathered.has_begun = gathered.is_complete = True
    gathered.model = a_str(body.get("model"))
    _note_refusal(gathered, body)
    for index, block in enumerate(a_list(body.get("content"))):
        _block(gathered, index, a_dict(block), is_whole=True)
    _use(gathered, body)


def _note_refusal(gathered: PartialTurn, holder: Json) -> None:
    if holder.get("stop_reason") == "refusal":
        gathered.refusal = a_str(a_dict(holder.get("stop_details")).get("explanation")) or "stop_reason refusal"


def _block(gathered: PartialTurn, index: Any, block: Json, *, is_whole: bool) -> None:
    if block.get("type") == "text":
        gathered.text.append(a_str(block.get("text")))
    elif block.get("type") == "tool_use":
        call = gathered.call(index)
        call.id, call.name = a_str(block.get("id")), a_str(block.get("name"))
        call.args = a_dict(block.get("input")) if is_whole else None


def _use(gathered: PartialTurn, holder: Json) -> None:
    """Merge counts; later ones win, and a stream repeats only some of them."""
    gathered.usage |= {key: count for key, count in a_dict(holder.get("usage")).items() if a_count(count) is not None}


def _usage(spelled: Json) -> ModelUsage | None:
    fresh, out = a_count(spelled.get("input_tokens")), a_count(spelled.get("output_tokens"))
    written = a_count(spelled.get("cache_creation_input_tokens")) or 0
    cached = a_count(spelled.get("cache_read_input_tokens")) or 0
    return counted(None if fresh is None else fresh + written + cached, out, cached, written)


CODEC = Codec(_read, _message, _frames, event_stream, _failure, _on_event, _on_body, _usage)
