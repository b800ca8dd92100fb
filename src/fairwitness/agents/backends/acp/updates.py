"""Collects what an agent reports while it works: joins chunks to messages, merges updates of calls, and reports them.

These are claims of the agent, so they decide nothing; but a permission request is understood only with the earlier
updates of its call.
"""

import json
from collections.abc import Mapping
from typing import Any

from fairwitness.agents.backends.acp.usage import UsageCounter
from fairwitness.agents.base import AgentJob
from fairwitness.contracts.agents.dispatch import Kind

CALLS_KEPT = 2_000
MESSAGE_LIMIT = 2 << 20
"""Characters of one message; only the end of a longer one is kept."""
_SHOWN = 24_000
_NOTES = 200
_PIECES = {"agent_message_chunk": Kind.TEXT, "agent_thought_chunk": Kind.THOUGHT}
_ENDED = {"completed": True, "failed": False}
_MERGED = ("title", "kind", "rawInput", "content", "locations", "status", "rawOutput")


class Updates:
    """The updates of one session."""

    def __init__(self, job: AgentJob, counted: UsageCounter) -> None:
        self._job, self._counted = job, counted
        self._calls: dict[str, dict[str, Any]] = {}
        self._told: set[str] = set()
        self._ended: set[str] = set()
        self._kind: Kind | None = None
        self._message: object = None
        self._pieces: list[str] = []
        self._size = 0
        self._last = ""
        self._notes = 0

    def begin(self) -> None:
        """Begin a turn: earlier messages do not answer it."""
        self.flush()
        self._last = ""

    @property
    def last_message(self) -> str:
        """The last message of this turn that is not blank."""
        self.flush()
        return self._last

    def note(self, text: str) -> None:
        """Add a note to the transcript, up to a limit."""
        self._notes += 1
        if self._notes <= _NOTES:
            self._job.report(Kind.NOTE, text[:_SHOWN])

    def take(self, update: Mapping[str, Any], *, is_ours: bool) -> None:
        """Take an update; the text of another session is a thought and never an answer."""
        name = update.get("sessionUpdate")
        kind = _PIECES.get(name) if isinstance(name, str) else None
        if kind is not None:
            self._piece(kind if is_ours else Kind.THOUGHT, update)
        elif name in ("tool_call", "tool_call_update"):
            self.flush()
            self.call(update)
        elif name == "usage_update":
            if self._counted.updated(update):
                self._job.report(Kind.USAGE, _plain({"cost": update.get("cost")}))
        elif name != "user_message_chunk":
            self.note(
                f"{name}: {_plain({key: value for key, value in update.items() if key != 'sessionUpdate'})}"[:500]
            )

    def call(self, update: Mapping[str, Any]) -> dict[str, Any]:
        """Return everything known about a call, including this update."""
        number = update.get("toolCallId")
        if not isinstance(number, str) or not number:
            return dict(update)
        if number not in self._calls and len(self._calls) >= CALLS_KEPT:
            del self._calls[next(iter(self._calls))]
        known = self._calls.setdefault(number, {"toolCallId": number})
        known |= {key: update[key] for key in _MERGED if update.get(key) not in (None, {}, [])}
        known["_meta"] = {**known.get("_meta", {}), **_object(update.get("_meta"))}
        ended = _ENDED.get(str(known.get("status")))
        if known.get("rawInput") or ended is not None:
            self._report_call(number, known)
        if ended is not None and number not in self._ended:
            self._ended.add(number)
            self._job.report(Kind.RESULT, _result(known), tool=_named(known), call=number, ok=ended)
        return known

    def _report_call(self, number: str, known: dict[str, Any]) -> None:
        if number not in self._told:
            self._told.add(number)
            self._job.report(Kind.CALL, tool=_named(known), call=number, args=_bounded(known.get("rawInput")))

    def flush(self) -> None:
        """Report the message that was being collected."""
        if self._kind is None:
            return
        text = "".join(self._pieces)
        self._job.report(self._kind, text)
        if self._kind is Kind.TEXT and text.strip():
            self._last = text
        self._kind, self._message, self._pieces, self._size = None, None, [], 0

    def _piece(self, kind: Kind, update: Mapping[str, Any]) -> None:
        content = _object(update.get("content"))
        text = content.get("text")
        if content.get("type") != "text" or not isinstance(text, str):
            self.note(f"{update.get('sessionUpdate')} of type {content.get('type')}"[:200])
            return
        message = update.get("messageId")
        if kind is not self._kind or message != self._message:
            self.flush()
            self._kind, self._message = kind, message
        self._pieces.append(text)
        self._size += len(text)
        while self._size > MESSAGE_LIMIT and len(self._pieces) > 1:
            self._size -= len(self._pieces.pop(0))
        if self._size > MESSAGE_LIMIT:
            self._pieces = [text[-MESSAGE_LIMIT:]]
            self._size = MESSAGE_LIMIT


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _named(call: Mapping[str, Any]) -> str:
    """Return a name for people; titles are the agent's own text."""
    for name in (call.get("title"), call.get("kind")):
        if isinstance(name, str) and name.strip():
            return name.strip()[:200]
    return "(no name)"


def _bounded(raw: Any) -> dict[str, Any]:
    """Return arguments for the transcript, shortened if they are very long."""
    args = raw if isinstance(raw, dict) else {} if raw is None else {"input": raw}
    text = _plain(args)
    return args if len(text) <= _SHOWN else {"shortened": text[:_SHOWN]}


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _result(call: Mapping[str, Any]) -> str:
    """Return the result of a call, as far as it is text."""
    parts = []
    content = call.get("content")
    for block in content if isinstance(content, list) else ():
        kind, inner = _object(block).get("type"), _object(_object(block).get("content"))
        if kind == "content" and isinstance(inner.get("text"), str):
            parts.append(inner["text"])
        elif kind == "diff":
            parts.append(f"changed {block.get('path')}")
    if not parts and call.get("rawOutput") is not None:
        raw = call["rawOutput"]
        parts.append(raw if isinstance(raw, str) else _plain(raw))
    return "\n".join(parts)[:_SHOWN]
