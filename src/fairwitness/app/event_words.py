"""What happened, in one line each; text of others is made harmless, and what another line tells already is left out."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fairwitness.app import autopilot_words
from fairwitness.app.text import LONGEST as LONGEST
from fairwitness.app.text import shown as shown
from fairwitness.kit import json_text
from fairwitness.kit.clock import spell, system_clock
from fairwitness.ledger.glance import Event

_LISTED = 5
_ROOM, _LEAST = 69, 24
"""What a line of eighty columns holds behind the time of day, and what is told of an errand at least."""


def clock_time(timestamp: str) -> str:
    """The time of day of an event, with its zone.

    >>> clock_time("2026-02-26T15:30:00+01:00")
    '14:30:00Z'
    """
    return datetime.fromisoformat(timestamp).astimezone(UTC).strftime("%H:%M:%SZ")


def now_time() -> str:
    """The time of day now, with its zone."""
    return clock_time(spell(system_clock()))


def told(event: Event) -> str | None:
    """One event in words; None if another event tells the same better."""
    if event.type == "branch.merged" or (event.type == "node.changed" and event.data.get("newStatus") != "MERGED"):
        return None
    if event.workflow == "autopilot" and event.type not in _WORDS:
        return _of_autopilot(event)
    return told_anyway(event)


def _of_autopilot(event: Event) -> str | None:
    try:
        words = autopilot_words.told(event)
    except (AttributeError, KeyError, TypeError, ValueError):
        words = ""  # as below
    return words if words is None or words else _anything(event)


def told_anyway(event: Event) -> str:
    """One event in words, whatever the others say."""
    words = _WORDS.get(event.type)
    try:
        return words(event.data) if words is not None else _anything(event)
    except (KeyError, TypeError, ValueError):
        return _anything(event)  # it is shown as it is; whether it is sound is for others to say


def _anything(event: Event) -> str:
    task = f" {shown(event.task, 60)}" if event.task else ""
    return f"{shown(event.type, 64)}{task} {shown(json_text.render_line(event.data))}"


def _name(value: object) -> str:
    return shown(str(value), 128)


def _names(values: Sequence[object]) -> str:
    more = f" and {len(values) - _LISTED} more" if len(values) > _LISTED else ""
    return ", ".join(map(_name, values[:_LISTED])) + more


def _changed(data: Mapping[str, Any]) -> str:
    after = str(data["newStatus"])
    return f"{_name(data['nodeId'])} {'merged' if after == 'MERGED' else 'is ' + _name(after)}"


def _merged(data: Mapping[str, Any]) -> str:
    parts = [f"{len(data['landed'])} landed"]
    if data.get("culprit"):
        parts.append(f"{_name(data['culprit'])} turned the checks red")
    if data["conflicting"]:
        parts.append(f"{_names(data['conflicting'])} in conflict")
    if data["left"]:
        parts.append(f"{len(data['left'])} back in the queue")
    return f"batch {int(data['batch'])} is through: {', '.join(parts)}"


def _asked(data: Mapping[str, Any]) -> str:
    title = f": {shown(data['title'])}" if data.get("title") else ""
    return f"{_name(data['crId'])} asks for a larger plan{title}"


def _helped(data: Mapping[str, Any]) -> str:
    """An errand may be long; its beginning tells enough, and the rest stands in the event."""
    told = f"{_name(data['nodeId'])} asked {_name(data['agent'])} for help: "
    return told + shown(data["task"], max(_LEAST, _ROOM - len(told)))


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "node.changed": _changed,
    "branch.merged": lambda data: f"the branch of {_name(data['nodeId'])} was taken in",
    "run.created": lambda data: f"run asked for: {shown(data['request'])}",
    "captain.message": lambda data: f"{_name(data['speaker'])} said: {shown(data['text'])}",
    "plan.proposed": lambda data: f"plan proposed: tasks {int(data['tasks'])}, refineries {int(data['refineries'])}",
    "plan.approved": lambda data: f"plan approved by {shown(data['actor'])}",
    "plan.returned": lambda data: f"plan returned by {shown(data['actor'])}: {shown(data['feedback'])}",
    "run.started": lambda data: "run started",
    "run.paused": lambda data: f"run PAUSED: {shown(data['reason'])}",
    "run.resumed": lambda data: "run resumed",
    "run.completed": lambda data: "run COMPLETED",
    "run.failed": lambda data: f"run FAILED: {shown(data['reason'])}",
    "task.started": lambda data: f"{_name(data['nodeId'])} started, attempt {int(data['attemptId'])}",
    "task.verified": lambda data: f"{_name(data['nodeId'])} verified, to be merged",
    "task.retried": lambda data: (
        f"{_name(data['nodeId'])} failed, attempt {int(data['nextAttempt'])} follows: {shown(data['reason'])}"
    ),
    "task.exhausted": lambda data: (
        f"{_name(data['nodeId'])} FAILED for good after attempt {int(data['attempts'])}: {shown(data['lastError'])}"
    ),
    "task.reopened": lambda data: (
        f"{shown(data['actor'])} gave {_name(data['nodeId'])} more attempts, up to {int(data['maxAttempts'])}"
    ),
    "task.stale": lambda data: f"{_name(data['nodeId'])} lost its worker, last heard {_name(data['lastHeartbeat'])}",
    "helper.started": _helped,
    "subtask.written": lambda data: (
        f"{_name(data['nodeId'])} split off {_name(data['subtaskId'])}, for type {int(data['agentType'])}: "
        f"{shown(data['title'])}"
    ),
    "subtask.changed": lambda data: f"{_name(data['subtaskId'])} of {_name(data['nodeId'])} is {_name(data['status'])}",
    "conflict.found": lambda data: (
        f"{_name(data['nodeId'])} conflicts with what was merged, a helper is asked: {_names(data['paths'])}"
    ),
    "conflict.potential": lambda data: (
        f"{_name(data['nodeId'])} and {_name(data['otherNodeId'])} touch the same files: {_names(data['files'])}"
    ),
    "merge.started": lambda data: f"merging batch {int(data['batch'])}: {_names(data['nodes'])}",
    "merge.finished": _merged,
    "target.moved": lambda data: f"{_name(data['target'])} was moved by somebody else",
    "review.low_confidence": lambda data: f"{_name(data['nodeId'])}: its worker is unsure ({data['confidence']:.2f})",
    "walkthrough.written": lambda data: (
        f"{_name(data['nodeId'])} says {_name(data['status'])}, confidence {data['confidence']:.2g}"
    ),
    "walkthrough.disputed": lambda data: (
        f"{_name(data['nodeId'])} told what the harness did not see: {shown('; '.join(data['differences']))}"
    ),
    "cr.emitted": _asked,
    "cr.approved": lambda data: f"{_name(data['crId'])} approved by {shown(data['actor'])}",
    "cr.rejected": lambda data: f"{_name(data['crId'])} rejected by {shown(data['actor'])}: {shown(data['reason'])}",
    "overlay.applied": lambda data: f"{_name(data['crId'])} added {_names(data['addedNodes']) or 'edges'}",
    "overlay.refused": lambda data: f"{_name(data['crId'])} REFUSED: {shown('; '.join(data['problems']))}",
}
