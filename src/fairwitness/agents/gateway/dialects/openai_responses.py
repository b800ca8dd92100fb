"""The OpenAI Responses dialect: a list of items, and a stream of numbered events that ends with the whole response."""

from collections.abc import Iterator

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
from fairwitness.agents.gateway.dialects.openai_chat import failure
from fairwitness.agents.gateway.modes import ChatCall, ChatMessage, ChatResult, ModelRequest, OfferedTool
from fairwitness.contracts.agents.model import ModelTurn, ModelUsage, ToolUse

_CREATED = 1_600_000_000
_JSON_FORMATS = ("json_object", "json_schema")
_ABOVE = ("system", "developer")


def _read(body: Json) -> RequestFields:
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else [a_dict(i) for i in a_list(given)]
    above = [a_str(body.get("instructions"))]
    above += [texts_of(item.get("content")) for item in items if item.get("role") in _ABOVE]
    return RequestFields(
        model=a_str(body.get("model")),
        stream=body.get("stream") is True,
        tools=tuple(_offer(a_dict(tool)) for tool in a_list(body.get("tools"))),
        messages=tuple(said for item in items if item.get("role") not in _ABOVE for said in _said(item)),
        system="\n".join(words for words in above if words),
        max_tokens=a_count(body.get("max_output_tokens")),
        wants_json=a_dict(a_dict(body.get("text")).get("format")).get("type") in _JSON_FORMATS,
    )


def _offer(tool: Json) -> OfferedTool:
    # what the provider itself would run (web search, …) has a type and no name
    name = a_str(tool.get("name")) or a_str(tool.get("type"))
    return OfferedTool(name, a_dict(tool.get("parameters")), is_freeform=tool.get("type") == "custom")


def _said(item: Json) -> Iterator[ChatMessage]:
    number, name = a_str(item.get("call_id")), a_str(item.get("name"))
    match item.get("type", "message"):
        case "message":
            words = texts_of(item.get("content"))
            yield ChatMessage("assistant" if item.get("role") == "assistant" else "user", words)
        case "function_call":
            yield ChatMessage("assistant", calls=(ChatCall(number, name, args_of(a_str(item.get("arguments")))),))
        case "custom_tool_call":
            yield ChatMessage("assistant", calls=(ChatCall(number, name, {"input": a_str(item.get("input"))}),))
        case "function_call_output" | "custom_tool_call_output":
            yield ChatMessage("tool", results=(ChatResult(number, texts_of(item.get("output"))),))
        case _:
            return  # thoughts, and calls that the provider answers by itself


def _items(turn: ModelTurn, asked: ModelRequest) -> list[Json]:
    items: list[Json] = []
    if turn.text:
        items.append(
            {
                "id": answer_id("msg_", asked),
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}],
            }
        )
    return items + [_call_item(call, asked) for call in turn.calls]


def _call_item(call: ToolUse, asked: ModelRequest) -> Json:
    bound = {"status": "completed", "call_id": call.id, "name": call.name}
    if is_freeform(asked, call.name):
        return {"id": f"ctc_{call.id}", "type": "custom_tool_call", **bound, "input": freeform_text(call.args)}
    return {"id": f"fc_{call.id}", "type": "function_call", **bound, "arguments": args_text(call.args)}


def _plain(turn: ModelTurn, asked: ModelRequest) -> Json:
    return {
        "id": answer_id("resp_", asked),
        "object": "response",
        "created_at": _CREATED,
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": asked.max_tokens,
        "metadata": {},
        "model": turn.model or asked.model,
        "output": _items(turn, asked),
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _spelled(turn.usage) if turn.usage else None,
        "user": None,
    }


def _spelled(used: ModelUsage) -> Json:
    return {
        "input_tokens": used.tokens_in,
        "input_tokens_details": {"cached_tokens": used.tokens_cached, "cache_write_tokens": 0},
        "output_tokens": used.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.tokens_in + used.tokens_out,
    }


def _frames(turn: ModelTurn, asked: ModelRequest) -> Iterator[bytes]:
    for number, event in enumerate(_events(_plain(turn, asked))):
        yield sse(event | {"sequence_number": number}, event["type"])


def _events(whole: Json) -> Iterator[Json]:
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        yield from _message_events(index, item) if item["type"] == "message" else _call_events(index, item)
    yield {"type": "response.completed", "response": whole}


def _message_events(index: int, item: Json) -> Iterator[Json]:
    where = {"item_id": item["id"], "output_index": index, "content_index": 0}
    part = item["content"][0]
    begun = item | {"status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield {"type": "response.content_part.added", **where, "part": part | {"text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **where, "part": part}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _call_events(index: int, item: Json) -> Iterator[Json]:
    where = {"item_id": item["id"], "output_index": index}
    is_custom = item["type"] == "custom_tool_call"
    kind, field = ("custom_tool_call_input", "input") if is_custom else ("function_call_arguments", "arguments")
    begun = item | {"status": "in_progress", field: ""}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    for piece in pieces(item[field]):
        yield {"type": f"response.{kind}.delta", **where, "delta": piece}
    done = {"type": f"response.{kind}.done", **where, field: item[field]}
    yield done if is_custom else done | {"name": item["name"]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _on_event(gathered: PartialTurn, event: Json) -> None:
    response = a_dict(event.get("response"))
    match event.get("type"):
        case "response.created":
            gathered.has_begun = True
            gathered.model = a_str(response.get("model"))
        case "response.output_item.done":
            _item(gathered, event.get("output_index"), a_dict(event.get("item")))
        case "response.completed" | "response.incomplete":
            gathered.has_begun = gathered.is_complete = True
            gathered.model = a_str(response.get("model")) or gathered.model
            gathered.usage |= a_dict(response.get("usage"))
            _note_filter(gathered, response)
        case "response.failed":
            gathered.usage |= a_dict(response.get("usage"))
            gathered.fail(response.get("error"), "failed")
        case "error":
            gathered.fail({name: value for name, value in event.items() if name != "type"})
        case _:
            pass


def _on_body(gathered: PartialTurn, body: Json) -> None:
    if body.get("object") != "response":
        gathered.fail(body, "it is no response")
        return
    gathered.has_begun = True
    gathered.is_complete = body.get("status") in ("completed", "incomplete")
    if body.get("error"):
        gathered.fail(body["error"])
    _note_filter(gathered, body)
    gathered.model = a_str(body.get("model"))
    gathered.usage |= a_dict(body.get("usage"))
    for index, item in enumerate(a_list(body.get("output"))):
        _item(gathered, index, a_dict(item))


def _note_filter(gathered: PartialTurn, response: Json) -> None:
    if a_dict(response.get("incomplete_details")).get("reason") == "content_filter":
        gathered.refusal = gathered.refusal or "incomplete: content_filter"


def _item(gathered: PartialTurn, index: object, item: Json) -> None:
    match item.get("type"):
        case "message":
            parts = [a_dict(part) for part in a_list(item.get("content"))]
            gathered.text += [a_str(part.get("text")) for part in parts if part.get("type") == "output_text"]
            gathered.refusal += "".join(a_str(part.get("refusal")) for part in parts if part.get("type") == "refusal")
        case "function_call" | "custom_tool_call" as kind:
            call = gathered.call(index)
            call.is_freeform = kind == "custom_tool_call"
            call.id, call.name = a_str(item.get("call_id")), a_str(item.get("name"))
            call.text = [a_str(item.get("input" if call.is_freeform else "arguments"))]
        case _:
            pass


def _usage(spelled: Json) -> ModelUsage | None:
    cached = a_count(a_dict(spelled.get("input_tokens_details")).get("cached_tokens"))
    return counted(a_count(spelled.get("input_tokens")), a_count(spelled.get("output_tokens")), cached)


CODEC = Codec(_read, _plain, _frames, event_stream, failure, _on_event, _on_body, _usage)
