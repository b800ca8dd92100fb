"""Rewrites an agent's request for a provider: the conversation, and nothing that reaches further.

The request is serialized from what was parsed, so that what was checked is what is sent. The model is the granted one.
Nothing makes the provider act itself (searches, containers, foreign tool servers, URLs to fetch): that would be network
access for an agent that has none. Nothing multiplies the price.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from fairwitness.agents.gateway.modes import ModelRequest
from fairwitness.contracts.agents.model import ApiDialect

_HEADERS = ("anthropic-beta", "anthropic-version", "openai-beta")
"""The agent's headers that are passed on; others may identify a person or a machine, or change the route."""
_HEADER_VALUE = re.compile(r"[A-Za-z0-9,;=._ -]{1,1024}")
_ANTHROPIC_VERSION = "2023-06-01"
_DROPPED = frozenset(
    {
        "background",  # runs on where it is not metered
        "best_of",
        "container",
        "fallbacks",
        "mcp_servers",
        "models",  # other models than the granted one
        "n",
        "plugins",
        "preset",
        "provider",
        "route",
        "serviceTier",
        "service_tier",
        "speed",
        "web_search_options",
    }
)
_AGENTS_OWN = re.compile(r"(custom|bash_\d+|text_editor_\d+|computer_\d+|memory_\d+)")
_OPENAI_OWN = frozenset({"function", "custom", "local_shell", "apply_patch"})
_CANDIDATES = ("candidateCount", "candidate_count")
_DECLARED = ("functionDeclarations", "function_declarations")


class Unsendable(Exception):
    """The request asks for something that is not passed to a provider; the message is for the agent."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to a provider, without the key."""

    path: str
    """Relative to the provider's base URL; holds nothing of the agent's own path."""
    headers: Mapping[str, str]
    content: bytes = field(repr=False)


def outgoing(asked: ModelRequest, model: str) -> Outgoing:
    """Return the request for the granted model; `Unsendable` if it is more than a conversation."""
    body = {name: value for name, value in asked.body.items() if name not in _DROPPED}
    _keep_own_tools(asked.dialect, body)
    if any(_reaches_out(each) for each in objects(body)):
        raise Unsendable("a provider is not asked to fetch addresses: send the content itself")
    path = _spelled(asked, model, body)
    try:
        content = json.dumps(body, allow_nan=False).encode()
    except ValueError:
        raise Unsendable("the request holds a number that JSON does not have") from None
    return Outgoing(path, _headers(asked), content)


def _headers(asked: ModelRequest) -> dict[str, str]:
    kept = {
        name: value
        for name in _HEADERS
        if (value := asked.headers.get(name)) is not None and _HEADER_VALUE.fullmatch(value)
    }
    if asked.dialect is ApiDialect.ANTHROPIC:
        kept.setdefault("anthropic-version", _ANTHROPIC_VERSION)
    kind = "text/event-stream" if asked.stream else "application/json"
    # A compressed answer could not be metered while it streams in, and may expand to any size.
    return {**kept, "accept": kind, "accept-encoding": "identity", "content-type": "application/json"}


def _spelled(asked: ModelRequest, model: str, body: dict[str, Any]) -> str:
    """Set the model where the dialect has it, and return the path."""
    match asked.dialect:
        case ApiDialect.GEMINI:
            body.pop("model", None)
            for name in ("generationConfig", "generation_config"):
                if isinstance(config := body.get(name), dict):
                    body[name] = {key: value for key, value in config.items() if key not in _CANDIDATES}
            events = "?alt=sse" if "alt=sse" in asked.query.split("&") else ""
            how = f"streamGenerateContent{events}" if asked.stream else "generateContent"
            return f"/v1beta/models/{quote(model, safe='')}:{how}"
        case ApiDialect.ANTHROPIC:
            body |= {"model": model, "stream": asked.stream}
            return "/v1/messages"
        case ApiDialect.OPENAI_CHAT:
            body |= {"model": model, "stream": asked.stream}
            body.pop("stream_options", None)
            if asked.stream:
                body["stream_options"] = {"include_usage": True}
            return "/chat/completions"
        case ApiDialect.OPENAI_RESPONSES:
            body |= {"model": model, "stream": asked.stream}
            return "/responses"


def _keep_own_tools(dialect: ApiDialect, body: dict[str, Any]) -> None:
    """Remove the tools that the provider would run; keep those that the agent runs."""
    tools = body.get("tools")
    if not isinstance(tools, list):
        body.pop("tools", None)
        return
    keep: Callable[[Any], Any] = {
        ApiDialect.ANTHROPIC: _own_of_anthropic,
        ApiDialect.OPENAI_CHAT: _own_of_openai,
        ApiDialect.OPENAI_RESPONSES: _own_of_openai,
        ApiDialect.GEMINI: _own_of_gemini,
    }[dialect]
    body["tools"] = [kept for tool in tools if (kept := keep(tool)) is not None]
    if not body["tools"]:
        for name in ("tools", "tool_choice", "toolConfig", "tool_config"):
            body.pop(name, None)


def _own_of_anthropic(tool: Any) -> Any:
    kind = tool.get("type", "custom") if isinstance(tool, dict) else ""
    return tool if isinstance(kind, str) and _AGENTS_OWN.fullmatch(kind) else None


def _own_of_openai(tool: Any) -> Any:
    kind = tool.get("type", "function") if isinstance(tool, dict) else ""
    if kind == "namespace" and isinstance(tool.get("tools"), list):
        return {**tool, "tools": [kept for inner in tool["tools"] if (kept := _own_of_openai(inner)) is not None]}
    return tool if isinstance(kind, str) and kind in _OPENAI_OWN else None


def _own_of_gemini(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return None
    return {name: tool[name] for name in _DECLARED if name in tool} or None


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value, without recursion: the agent chose its depth."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            yield here
            waiting.extend(here.values())
        elif isinstance(here, list):
            waiting.extend(here)


def _reaches_out(part: Mapping[str, Any]) -> bool:
    """Return whether a part of a message makes the provider fetch a URL."""
    if part.get("type") == "mcp" and ("server_url" in part or "connector_id" in part):
        return True
    source = part.get("source")
    if isinstance(source, dict) and source.get("type") == "url" and "url" in source:
        return True
    if part.get("type") in ("image_url", "input_image"):
        image = part.get("image_url")
        address = image.get("url") if isinstance(image, dict) else image
        return address is not None and not (isinstance(address, str) and address.startswith("data:"))
    if part.get("type") == "input_file" and part.get("file_url") is not None:
        return True
    return any(isinstance(part.get(name), dict) for name in ("fileData", "file_data"))
