"""Estimates the tokens of a call before it is sent, and of an answer while it streams in.

Four bytes count as a token. The estimates decide what is reserved and when a stream is cut off; the call is settled at
what the model's server counted.
"""

import json
from typing import Any

from fairwitness.agents.gateway.dialects.base import a_dict, a_list, a_str
from fairwitness.agents.gateway.modes import ModelRequest
from fairwitness.agents.gateway.outgoing import objects
from fairwitness.contracts.agents.model import ApiDialect, ModelUsage

BYTES_FOR_A_TOKEN = 4
UNSAID_OUTPUT = 8192
"""Tokens reserved for an answer without a length limit, and at most for one that streams in: more is reserved as it
comes, and agents set limits far above what they get."""
PICTURE = 2000
"""Tokens reserved for a picture, whose size in bytes means nothing."""
_MOST_PICTURES = 100
_LONGEST_LINE = 1024 * 1024


def estimate(asked: ModelRequest) -> ModelUsage:
    """Return what a call may use: its length, and its longest answer, or the first part of a streamed one."""
    pictures = [length for each in objects(asked.body) if (length := _picture(each))][:_MOST_PICTURES]
    sent = max(0, len(asked.raw) - sum(pictures)) // BYTES_FOR_A_TOKEN + 1 + len(pictures) * PICTURE
    longest = UNSAID_OUTPUT if asked.max_tokens is None else asked.max_tokens
    return ModelUsage(tokens_in=sent, tokens_out=min(longest, UNSAID_OUTPUT) if asked.stream else longest)


def _picture(part: dict[str, Any]) -> int:
    """Return the length of the picture in this part; 0 if there is none."""
    kind = part.get("media_type") or part.get("mimeType") or part.get("mime_type")
    if a_str(kind).startswith("image/"):
        return len(a_str(part.get("data")))
    for name in ("url", "image_url"):
        if a_str(part.get(name)).startswith("data:image/"):
            return len(part[name])
    return 0


class StreamTokens:
    """Counts the tokens of a stream of events as it passes."""

    def __init__(self, dialect: ApiDialect) -> None:
        self._said_in = _SAID[dialect]
        self._rest = b""
        self._bytes = 0

    def feed(self, piece: bytes) -> int:
        """Return the estimated tokens so far."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._bytes += self._said(line.removeprefix(b"data:"))
        if len(self._rest) > _LONGEST_LINE:  # no event has such a line; count its bytes
            self._bytes, self._rest = self._bytes + len(self._rest), b""
        return self._bytes // BYTES_FOR_A_TOKEN

    def _said(self, data: bytes) -> int:
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return 0 if data.strip() == b"[DONE]" else len(data)
        return sum(len(text.encode("utf-8", "replace")) for text in self._said_in(a_dict(event)))


def _anthropic(event: dict[str, Any]) -> list[str]:
    delta = a_dict(event.get("delta"))
    return [a_str(delta.get(name)) for name in ("text", "partial_json", "thinking")]


def _chat(event: dict[str, Any]) -> list[str]:
    said = []
    for choice in map(a_dict, a_list(event.get("choices"))):
        delta = a_dict(choice.get("delta"))
        said += [a_str(delta.get(name)) for name in ("content", "reasoning", "reasoning_content", "refusal")]
        for call in map(a_dict, a_list(delta.get("tool_calls"))):
            said += [
                a_str(a_dict(call.get("function")).get("arguments")),
                a_str(a_dict(call.get("custom")).get("input")),
            ]
    return said


def _responses(event: dict[str, Any]) -> list[str]:
    return [a_str(event.get("delta"))]


def _gemini(event: dict[str, Any]) -> list[str]:
    said = []
    for candidate in map(a_dict, a_list(event.get("candidates"))):
        for part in map(a_dict, a_list(a_dict(candidate.get("content")).get("parts"))):
            called = part.get("functionCall") or part.get("function_call")
            said += [a_str(part.get("text")), "" if called is None else json.dumps(called)]
    return said


_SAID = {
    ApiDialect.ANTHROPIC: _anthropic,
    ApiDialect.OPENAI_CHAT: _chat,
    ApiDialect.OPENAI_RESPONSES: _responses,
    ApiDialect.GEMINI: _gemini,
}
