"""Events as one line of text each. Foreign text is made safe, and events that repeat another are left out."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fairwitness.app.text import LONGEST as LONGEST
from fairwitness.app.text import safe_line
from fairwitness.kit import json_text
from fairwitness.kit.clock import spell, system_clock
from fairwitness.ledger.run_summary import SummaryEvent

_SILENT = frozenset({"checkpoint_written", "task_retried"})
_STEPS = {
    "preflight": "preflight",
    "triage": "triage",
    "research": "research",
    "plan": "plan",
    "plan_check": "plan check",
    "execute": "execute",
    "verify": "verify",
    "judge": "judge",
    "rate": "rate",
    "debug": "debug",
}


def step_word(step: object) -> str:
    """Return the name of a step in words."""
    return _STEPS.get(str(step), safe_line(str(step), 40))


def autopilot_text(event: SummaryEvent) -> str | None:
    """Return an autopilot event in words; None if another event says the same, "" if there are no words for it."""
    if event.type in _SILENT:
        return None
    words = _AUTOPILOT_TEXT.get(event.type)
    if words is None:
        return ""
    said = words(event.data)
    deferral = (event.data.get("facts") or {}).get("deferral")
    parts = [f"phase {_short_name(event.phase)}: {said}" if event.phase is not None else said] if said else []
    if deferral is not None:
        parts.append(f"phase {_short_name(event.phase)} WAITS FOR YOU: {safe_line(deferral['reason'])}")
    return "; ".join(parts) or None


def _short_name(value: object) -> str:
    return safe_line(str(value), 64)


def _why(data: Mapping[str, Any], key: str = "reason") -> str:
    return f": {safe_line(str(data[key]))}" if data.get(key) else ""


def _began(data: Mapping[str, Any]) -> str:
    phases = data.get("phases") or ()
    flags = " ".join(map(_short_name, data.get("flags") or ()))
    parts = (
        f"run begins, phases {', '.join(map(_short_name, phases))}",
        flags,
        f"to reach {data.get('pass_threshold')}",
    )
    return ", ".join(filter(None, parts))


def _phase_began(data: Mapping[str, Any]) -> str:
    expected = data.get("estimated_tokens")
    tokens = f", about {int(expected):,} tokens" if expected else ""
    return f"{safe_line(data.get('phase_name') or 'a phase', 80)} begins{tokens}"


def _phase_done(data: Mapping[str, Any]) -> str:
    score = data.get("alignment_score")
    return "COMPLETED" + ("" if score is None else f" at {score}")


def _step_failed(data: Mapping[str, Any]) -> str:
    kind = f" ({_short_name(data['category'])})" if data.get("category") else ""
    return f"{step_word(data.get('step'))} failed{kind}{_why(data, 'error')}"


def _halted(data: Mapping[str, Any]) -> str:
    return f"run {'PAUSED' if data.get('status') == 'paused' else 'FAILED'}{_why(data)}"


def _resumed(data: Mapping[str, Any]) -> str:
    before = f", was {_short_name(data['previous_status'])}" if data.get("previous_status") else ""
    return f"run goes on{before}"


def _cycle(data: Mapping[str, Any], what: str) -> str:
    number = data.get("cycle", data.get("iteration"))
    if "new_score" in data:
        return f"{what} {number}: {data['old_score']} to {data['new_score']}"
    return f"{what} {number} begins"


def _verdict(data: Mapping[str, Any]) -> str:
    issues = "; ".join(map(str, data.get("issues") or ()))
    return f"a person says {_short_name(data.get('verdict'))}" + (f": {safe_line(issues)}" if issues else "")


def _report(data: Mapping[str, Any]) -> str:
    text = f"{data['phases_succeeded']} succeeded, {data['phases_failed']} failed, {data['phases_skipped']} skipped"
    return f"report: {text}; {data['completion_percentage']:g}% of the roadmap"


_AUTOPILOT_TEXT: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "run_started": _began,
    "run_completed": lambda data: "run COMPLETED",
    "run_halted": _halted,
    "run_resumed": _resumed,
    "circuit_breaker_opened": lambda data: (
        f"the breaker OPENED: {_short_name(data.get('setting'))} at {data.get('value')}"
    ),
    "circuit_breaker_closed": lambda data: f"the breaker closed{_why(data)}",
    "high_defer_rate_warning": lambda data: (
        f"{data.get('human_deferred_count')} of {data.get('total_phases_processed')} phases were put to a person"
    ),
    "deferral_threshold_adjusted": lambda data: (
        f"nobody is asked from confidence {data.get('new_confidence')} on, was {data.get('old_confidence')}"
    ),
    "batch_completion_report": _report,
    "rubber_stamp_warning": lambda data: f"{data.get('count')} scores in a row hardly differ",
    "rubber_stamp_enhanced": lambda data: f"{data.get('count')} scores in a row hardly differ: verified harder",
    "rubber_stamp_critical": lambda data: f"{data.get('count')} scores in a row hardly differ: marked",
    "phase_started": _phase_began,
    "phase_completed": _phase_done,
    "phase_failed": lambda data: f"FAILED{_why(data)}",
    "phase_skipped": lambda data: f"skipped: {_short_name(data['reason']).replace('_', ' ')}",
    "step_started": lambda data: "",
    "step_completed": lambda data: f"{step_word(data.get('step'))} done",
    "step_failed": _step_failed,
    "task_completed": lambda data: f"task {_short_name(data.get('task'))} done",
    "task_failed": lambda data: f"task {_short_name(data.get('task'))} FAILED{_why(data, 'error')}",
    "debug_attempt": lambda data: f"debug attempt {data.get('attempt')}",
    "replan_attempt": lambda data: f"planned anew{_why(data)}",
    "rollback_initiated": lambda data: f"is taken back{_why(data)}",
    "rollback_completed": lambda data: "was taken back",
    "human_verdict_recorded": _verdict,
    "unnecessary_deferral_warning": lambda data: f"nothing automatic had failed, and a person is asked{_why(data)}",
    "autonomous_resolution_success": lambda data: "settled without a person",
    "remediation_started": lambda data: _cycle(data, "remediation"),
    "remediation_completed": lambda data: _cycle(data, "remediation"),
    "quality_remediation_started": lambda data: _cycle(data, "quality cycle"),
    "quality_remediation_completed": lambda data: _cycle(data, "quality cycle"),
    "quality_exhausted": lambda data: "no quality cycle is left",
    "gaps_iteration_started": lambda data: _cycle(data, "gap"),
    "gaps_iteration_completed": lambda data: _cycle(data, "gap"),
    "gaps_exhausted": lambda data: "no gap is left to be closed",
    "confidence_diagnostic_written": lambda data: f"what is missing: {_short_name(data.get('diagnostic_path'))}",
    "force_incomplete_marked": lambda data: "goes on below the threshold, marked",
    "force_reexecution_started": lambda data: "is run anew",
    "flag_mutual_exclusivity_error": lambda data: f"refused: {' and '.join(map(_short_name, data.get('flags') or ()))}",
    "self_audit_started": lambda data: "self-audit begins",
    "self_audit_gap_found": lambda data: f"self-audit found a gap: {safe_line(data['gap_description'])}",
    "self_audit_gap_fixed": lambda data: f"self-audit: the gap of {_short_name(data.get('requirement_id'))} was closed",
    "context_mapping_started": lambda data: "scoring what is known about the phases",
    "context_mapping_completed": lambda data: "what is known about the phases was scored",
    "discuss_session_started": lambda data: "talking about the phases begins",
    "discuss_answers_recorded": lambda data: "what was said about it is written down",
    "self_audit_completed": lambda data: "self-audit done",
}


_LISTED = 5
_ROOM, _LEAST = 69, 24
"""The columns left after the time of day in a line of eighty, and the minimum shown of a helper's task."""


def clock_time(timestamp: str) -> str:
    """Return the time of day of an event in UTC.

    >>> clock_time("2026-02-26T15:30:00+01:00")
    '14:30:00Z'
    """
    return datetime.fromisoformat(timestamp).astimezone(UTC).strftime("%H:%M:%SZ")


def now_time() -> str:
    """Return the current time of day in UTC."""
    return clock_time(spell(system_clock()))


def event_text(event: SummaryEvent) -> str | None:
    """Return an event in words; None if another event says the same."""
    if event.type == "branch.merged" or (event.type == "node.changed" and event.data.get("newStatus") != "MERGED"):
        return None
    if event.workflow == "autopilot" and event.type not in _WORDS:
        return _of_autopilot(event)
    return any_event_text(event)


def _of_autopilot(event: SummaryEvent) -> str | None:
    try:
        words = autopilot_text(event)
    except (AttributeError, KeyError, TypeError, ValueError):
        words = ""  # malformed: shown as data, see any_event_text
    return words if words is None or words else _anything(event)


def any_event_text(event: SummaryEvent) -> str:
    """Return an event in words, even if another event says the same."""
    words = _WORDS.get(event.type)
    try:
        return words(event.data) if words is not None else _anything(event)
    except (KeyError, TypeError, ValueError):
        return _anything(event)  # malformed: shown as data; `ledger verify` checks it


def _anything(event: SummaryEvent) -> str:
    task = f" {safe_line(event.task, 60)}" if event.task else ""
    return f"{safe_line(event.type, 64)}{task} {safe_line(json_text.render_line(event.data))}"


def _name(value: object) -> str:
    return safe_line(str(value), 128)


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
    title = f": {safe_line(data['title'])}" if data.get("title") else ""
    return f"{_name(data['crId'])} asks for a larger plan{title}"


def _helped(data: Mapping[str, Any]) -> str:
    """Return the line of a helper's start; a long task is cut, the event holds all of it."""
    text = f"{_name(data['nodeId'])} asked {_name(data['agent'])} for help: "
    return text + safe_line(data["task"], max(_LEAST, _ROOM - len(text)))


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "node.changed": _changed,
    "branch.merged": lambda data: f"the branch of {_name(data['nodeId'])} was taken in",
    "run.created": lambda data: f"run asked for: {safe_line(data['request'])}",
    "captain.message": lambda data: f"{_name(data['speaker'])} said: {safe_line(data['text'])}",
    "plan.proposed": lambda data: f"plan proposed: tasks {int(data['tasks'])}, refineries {int(data['refineries'])}",
    "plan.approved": lambda data: f"plan approved by {safe_line(data['actor'])}",
    "plan.returned": lambda data: f"plan returned by {safe_line(data['actor'])}: {safe_line(data['feedback'])}",
    "run.started": lambda data: "run started",
    "run.paused": lambda data: f"run PAUSED: {safe_line(data['reason'])}",
    "run.resumed": lambda data: "run resumed",
    "run.completed": lambda data: "run COMPLETED",
    "run.failed": lambda data: f"run FAILED: {safe_line(data['reason'])}",
    "task.started": lambda data: f"{_name(data['nodeId'])} started, attempt {int(data['attemptId'])}",
    "task.verified": lambda data: f"{_name(data['nodeId'])} verified, to be merged",
    "task.retried": lambda data: (
        f"{_name(data['nodeId'])} failed, attempt {int(data['nextAttempt'])} follows: {safe_line(data['reason'])}"
    ),
    "task.exhausted": lambda data: (
        f"{_name(data['nodeId'])} FAILED for good after attempt {int(data['attempts'])}: {safe_line(data['lastError'])}"
    ),
    "task.reopened": lambda data: (
        f"{safe_line(data['actor'])} gave {_name(data['nodeId'])} more attempts, up to {int(data['maxAttempts'])}"
    ),
    "task.stale": lambda data: f"{_name(data['nodeId'])} lost its worker, last heard {_name(data['lastHeartbeat'])}",
    "helper.started": _helped,
    "subtask.written": lambda data: (
        f"{_name(data['nodeId'])} split off {_name(data['subtaskId'])}, for type {int(data['agentType'])}: "
        f"{safe_line(data['title'])}"
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
        f"{_name(data['nodeId'])} told what the harness did not see: {safe_line('; '.join(data['differences']))}"
    ),
    "cr.emitted": _asked,
    "cr.approved": lambda data: f"{_name(data['crId'])} approved by {safe_line(data['actor'])}",
    "cr.rejected": lambda data: (
        f"{_name(data['crId'])} rejected by {safe_line(data['actor'])}: {safe_line(data['reason'])}"
    ),
    "overlay.applied": lambda data: f"{_name(data['crId'])} added {_names(data['addedNodes']) or 'edges'}",
    "overlay.refused": lambda data: f"{_name(data['crId'])} REFUSED: {safe_line('; '.join(data['problems']))}",
}
