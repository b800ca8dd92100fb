"""The Gemini dialect: contents with parts, and a stream of events or, by default, one growing list."""

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
    counted,
    dump,
    event_stream,
    pieces,
    sse,
)
from fairwitness.agents.gateway.modes import ChatCall, ChatMessage, ChatResult, ModelRequest, OfferedTool
from fairwitness.contracts.agents.model import ModelTurn, ModelUsage

_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
}

_FILTERS = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"})


def _field(holder: Json, name: str) -> Any:
    """Return a field by its name or its snake_case spelling, which the dialect accepts too."""
    if name in holder:
        return holder[name]
    return holder.get("".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name))


def _read(body: Json) -> RequestFields:
    wanted = a_dict(_field(body, "generationConfig"))
    return RequestFields(
        tools=tuple(offer for tool in a_list(body.get("tools")) for offer in _offers(a_dict(tool))),
        messages=tuple(said for content in a_list(body.get("contents")) for said in _said(a_dict(content))),
        system=_words(a_list(a_dict(_field(body, "systemInstruction")).get("parts"))),
        max_tokens=a_count(_field(wanted, "maxOutputTokens")),
        wants_json=_field(wanted, "responseMimeType") == "application/json",
    )


def _offers(tool: Json) -> Iterator[OfferedTool]:
    for declared in map(a_dict, a_list(_field(tool, "functionDeclarations"))):
        schema = _field(declared, "parametersJsonSchema") or _field(declared, "parameters")
        yield OfferedTool(a_str(declared.get("name")), a_dict(_small_types(schema)))
    for name in tool:
        if name not in ("functionDeclarations", "function_declarations"):
            yield OfferedTool(name, {})


def _small_types(schema: Any) -> Any:
    """Return a schema with types in lower case: the dialect writes `OBJECT` for `object`."""
    if isinstance(schema, list):
        return [_small_types(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _small_types(value)
        for key, value in schema.items()
    }


def _words(parts: list[Any]) -> str:
    said = [a_dict(part) for part in parts]
    return "\n".join(a_str(part["text"]) for part in said if "text" in part and not part.get("thought"))


def _said(content: Json) -> Iterator[ChatMessage]:
    parts = [a_dict(part) for part in a_list(content.get("parts"))]
    calls = tuple(_said_call(a_dict(called)) for part in parts if (called := _field(part, "functionCall")))
    results = tuple(_said_result(a_dict(given)) for part in parts if (given := _field(part, "functionResponse")))
    others = [f"[{a_str(next(iter(part), ''))}]" for part in parts if _is_other(part)]
    words = "\n".join(filter(None, [_words(parts), *others]))
    if content.get("role") == "model":
        yield ChatMessage("assistant", words, calls)
        return
    if results:
        yield ChatMessage("tool", results=results)
    if words or not results:
        yield ChatMessage("user", words)


def _is_other(part: Json) -> bool:
    return "text" not in part and not _field(part, "functionCall") and not _field(part, "functionResponse")


def _said_call(called: Json) -> ChatCall:
    return ChatCall(a_str(called.get("id")), a_str(called.get("name")), a_dict(called.get("args")))


def _said_result(given: Json) -> ChatResult:
    response = a_dict(given.get("response"))
    only = next(iter(response.values())) if len(response) == 1 else None
    return ChatResult(a_str(given.get("id")), only if isinstance(only, str) else dump(response))


def _chunk(parts: list[Json], turn: ModelTurn, asked: ModelRequest) -> Json:
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
        "modelVersion": turn.model or asked.model,
        "responseId": answer_id("", asked),
    }


def _finished(chunk: Json, turn: ModelTurn) -> Json:
    candidate = chunk["candidates"][0] | {"finishReason": "STOP"}
    used = {"usageMetadata": _spelled(turn.usage)} if turn.usage else {}
    return chunk | {"candidates": [candidate]} | used


def _spelled(used: ModelUsage) -> Json:
    return {
        "promptTokenCount": used.tokens_in,
        "candidatesTokenCount": used.tokens_out,
        "totalTokenCount": used.tokens_in + used.tokens_out,
        "cachedContentTokenCount": used.tokens_cached,
    }


def _call_parts(turn: ModelTurn) -> list[Json]:
    return [{"functionCall": {"id": call.id, "name": call.name, "args": call.args}} for call in turn.calls]


def _plain(turn: ModelTurn, asked: ModelRequest) -> Json:
    said: list[Json] = [{"text": turn.text}] if turn.text else []
    return _finished(_chunk(said + _call_parts(turn), turn, asked), turn)


def _chunks(turn: ModelTurn, asked: ModelRequest) -> Iterator[Json]:
    for piece in pieces(turn.text):
        yield _chunk([{"text": piece}], turn, asked)
    yield _finished(_chunk(_call_parts(turn) or [{"text": ""}], turn, asked), turn)


def _wants_events(asked: ModelRequest) -> bool:
    return "alt=sse" in asked.query.split("&")


def _frames(turn: ModelTurn, asked: ModelRequest) -> Iterator[bytes]:
    if _wants_events(asked):
        yield from map(sse, _chunks(turn, asked))
        return
    for number, chunk in enumerate(_chunks(turn, asked)):
        yield (",\r\n" if number else "[").encode() + dump(chunk).encode()
    yield b"\n]"


def _stream_type(asked: ModelRequest) -> str:
    return event_stream(asked) if _wants_events(asked) else "application/json; charset=utf-8"


def _failure(status: int, message: str) -> Json:
    word = _ERRORS.get(status, "UNAVAILABLE" if status >= 500 else "FAILED_PRECONDITION")
    return {"error": {"code": status, "message": message, "status": word}}


def _on_event(gathered: PartialTurn, event: Json) -> None:
    if "error" in event:
        gathered.fail(event["error"])
        return
    gathered.has_begun = True
    gathered.model = a_str(_field(event, "modelVersion")) or gathered.model
    gathered.usage |= a_dict(_field(event, "usageMetadata"))
    blocked = a_str(_field(a_dict(_field(event, "promptFeedback")), "blockReason"))
    if blocked:  # there is no candidate, and nothing follows
        gathered.is_complete, gathered.refusal = True, f"blockReason {blocked}"
    for candidate in map(a_dict, a_list(event.get("candidates"))[:1]):
        for part in map(a_dict, a_list(a_dict(candidate.get("content")).get("parts"))):
            called = a_dict(_field(part, "functionCall"))
            if called:
                call = gathered.call(len(gathered.calls))
                call.id, call.name = a_str(called.get("id")), a_str(called.get("name"))
                call.args = a_dict(called.get("args"))
            elif not part.get("thought"):
                gathered.text.append(a_str(part.get("text")))
        reason = a_str(_field(candidate, "finishReason"))
        gathered.is_complete = gathered.is_complete or bool(reason)
        if reason in _FILTERS:
            gathered.refusal = f"finishReason {reason}"


def _usage(spelled: Json) -> ModelUsage | None:
    sent = a_count(_field(spelled, "promptTokenCount"))
    by_tools = a_count(_field(spelled, "toolUsePromptTokenCount")) or 0
    said = a_count(_field(spelled, "candidatesTokenCount"))
    thought = a_count(_field(spelled, "thoughtsTokenCount"))
    out = None if said is None and thought is None else (said or 0) + (thought or 0)
    return counted(None if sent is None else sent + by_tools, out, a_count(_field(spelled, "cachedContentTokenCount")))


CODEC = Codec(_read, _plain, _frames, _stream_type, _failure, _on_event, _on_event, _usage)
