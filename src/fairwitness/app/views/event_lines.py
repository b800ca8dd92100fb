"""Events as one line of text each: the kind of event, what it is about, what happened, and why.

The first word of a line is one of a fixed list, so that lines can be searched. Foreign text is made safe, and events
that repeat another are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fairwitness.app.text import counted, safe_line
from fairwitness.kit import json_text
from fairwitness.kit.clock import spell, system_clock
from fairwitness.ledger.summary_event import SummaryEvent

KIND, _SUBJECT, _WORD = 8, 13, 7
AUTOPILOT = "autopilot"


def kind_line(kind: str, text: str) -> str:
    """Return the text of an event after its kind."""
    return f"{kind:<{KIND}}  {text}"


def row(kind: str, subject: object, word: str, text: str = "") -> str:
    """Return an event in columns.

    >>> row("task", "task-01", "merged")
    'task      task-01        merged'
    """
    return kind_line(kind, f"{name_of(subject):<{_SUBJECT}}  {word:<{_WORD}}  {text}".rstrip())


def name_of(value: object) -> str:
    """Return a name, safe for a terminal."""
    return safe_line(str(value), 128)


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
    is_start = event.workflow == AUTOPILOT and event.data.get("newStatus") == "RUNNING"  # no other event says it
    is_told = _TOLD_ELSEWHERE.get(event.type)
    if is_told is not None and is_told(event.data) and not is_start:
        return None
    if event.workflow == AUTOPILOT and event.type not in _WORDS:
        return _of_autopilot(event)
    return any_event_text(event)


def _of_autopilot(event: SummaryEvent) -> str | None:
    try:
        words = _autopilot_text(event)
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


_LISTED = 5


def _names(values: Sequence[object]) -> str:
    more = f" and {len(values) - _LISTED} more" if len(values) > _LISTED else ""
    return ", ".join(map(name_of, values[:_LISTED])) + more


def first_line(request: str) -> str:
    """Return the first line of a request, without the mark of a heading.

    >>> first_line("# Everyday measures\\n\\nThe library knows lengths only.")
    'Everyday measures'
    """
    return safe_line(next((line for line in request.splitlines() if line.strip(" #")), request).lstrip("# "))


def _reason(data: Mapping[str, Any], key: str = "reason", *, before: str = "") -> str:
    return f"{before}{safe_line(str(data[key]))}" if data.get(key) else ""


def _changed(data: Mapping[str, Any]) -> str:
    after = str(data["newStatus"])
    if after == "RUNNING":
        return row("task", data["nodeId"], "started", f"attempt {int(data['attemptId'])}")
    return row("task", data["nodeId"], "merged" if after == "MERGED" else f"is {name_of(after)}")


def _merged(data: Mapping[str, Any]) -> str:
    parts = []
    if data.get("culprit"):
        parts.append(f"{name_of(data['culprit'])} makes the checks of the merged tree fail")
    if data["conflicting"]:
        parts.append(f"{_names(data['conflicting'])} in conflict")
    parts.append(f"{len(data['landed'])} merged")
    if data["left"]:
        parts.append(f"{len(data['left'])} back in the queue")
    word = "blocked" if data.get("culprit") or data["conflicting"] else "done"
    return row("merge", f"batch {int(data['batch'])}", word, "; ".join(parts))


def _refineries(count: int) -> str:
    return "1 refinery" if count == 1 else f"{count} refineries"


def _asked(data: Mapping[str, Any]) -> str:
    return row(
        "request", data["crId"], "asked", f"by {name_of(data['emittedBy'])}{_reason(data, 'title', before=': ')}"
    )


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "node.changed": _changed,
    "branch.merged": lambda data: row("task", data["nodeId"], "merged", "its branch"),
    "run.created": lambda data: kind_line("run", f"requested: {first_line(data['request'])}"),
    "captain.message": lambda data: kind_line("plan", f"{name_of(data['speaker'])}: {safe_line(data['text'])}"),
    "plan.proposed": lambda data: kind_line(
        "plan",
        f"proposed: {counted(int(data['tasks']), 'task')}, {_refineries(int(data['refineries']))}",
    ),
    "plan.approved": lambda data: kind_line("plan", f"approved by {safe_line(data['actor'])}"),
    "plan.returned": lambda data: kind_line(
        "plan", f"returned by {safe_line(data['actor'])}: {safe_line(data['feedback'])}"
    ),
    "run.started": lambda data: kind_line("run", "started"),
    "run.paused": lambda data: kind_line("run", f"paused: {safe_line(data['reason'])}"),
    "run.resumed": lambda data: kind_line("run", "resumed"),
    "run.completed": lambda data: kind_line("run", "completed"),
    "run.failed": lambda data: kind_line("run", f"failed: {safe_line(data['reason'])}"),
    "task.started": lambda data: row("task", data["nodeId"], "started", f"attempt {int(data['attemptId'])}"),
    "task.verified": lambda data: row("task", data["nodeId"], "proven", "its checks passed; to be merged"),
    "task.retried": lambda data: row(
        "task",
        data["nodeId"],
        "failed",
        f"attempt {int(data['nextAttempt']) - 1}, retrying: {safe_line(data['reason'])}",
    ),
    "task.exhausted": lambda data: row(
        "task",
        data["nodeId"],
        "failed",
        f"attempt {int(data['attempts'])}, no retry left: {safe_line(data['lastError'])}",
    ),
    "task.reopened": lambda data: row(
        "task", data["nodeId"], "retried", f"{safe_line(data['actor'])} allows {int(data['maxAttempts'])} attempts"
    ),
    "task.stale": lambda data: row(
        "task", data["nodeId"], "lost", f"no sign of its worker since {name_of(data['lastHeartbeat'])}"
    ),
    "helper.started": lambda data: row(
        "task", data["nodeId"], "helped", f"by {name_of(data['agent'])}: {safe_line(data['task'], 60)}"
    ),
    "subtask.written": lambda data: row(
        "task", data["nodeId"], "split", f"{name_of(data['subtaskId'])}: {safe_line(data['title'])}"
    ),
    "subtask.changed": lambda data: row("task", data["nodeId"], name_of(data["status"]), name_of(data["subtaskId"])),
    "conflict.found": lambda data: row(
        "task", data["nodeId"], "blocked", f"conflicts with merged work, a helper resolves it: {_names(data['paths'])}"
    ),
    "conflict.potential": lambda data: row(
        "task",
        data["nodeId"],
        "warning",
        f"changes the same files as {name_of(data['otherNodeId'])}: {_names(data['files'])}",
    ),
    "merge.started": lambda data: row("merge", f"batch {int(data['batch'])}", "started", _names(data["nodes"])),
    "merge.finished": _merged,
    "target.moved": lambda data: kind_line(
        "merge", f"{name_of(data['target'])} was moved by another process; its checks are repeated"
    ),
    "review.low_confidence": lambda data: row(
        "task", data["nodeId"], "unsure", f"its worker claims a confidence of {data['confidence']:.2f}"
    ),
    "walkthrough.written": lambda data: row(
        "task", data["nodeId"], "claims", f"{name_of(data['status'])}, confidence {data['confidence']:.2g}"
    ),
    "walkthrough.disputed": lambda data: row(
        "task", data["nodeId"], "refuted", safe_line("; ".join(data["differences"]))
    ),
    "cr.emitted": _asked,
    "cr.approved": lambda data: row("request", data["crId"], "granted", f"by {safe_line(data['actor'])}"),
    "cr.rejected": lambda data: row(
        "request", data["crId"], "refused", f"by {safe_line(data['actor'])}: {safe_line(data['reason'])}"
    ),
    "overlay.applied": lambda data: row("request", data["crId"], "added", _names(data["addedNodes"]) or "edges"),
    "overlay.refused": lambda data: row("request", data["crId"], "refused", safe_line("; ".join(data["problems"]))),
}
_TOLD_ELSEWHERE: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "branch.merged": lambda data: True,
    "merge.started": lambda data: True,
    "merge.finished": lambda data: not (data.get("culprit") or data.get("conflicting", True) or data.get("left", True)),
    "node.changed": lambda data: data.get("newStatus") != "MERGED",
    "subtask.changed": lambda data: data.get("status") in ("running", "completed"),
    "walkthrough.written": lambda data: data.get("status") == "completed",
}
"""Events that are left out if their data says so: another event tells a person the same."""


def _autopilot_text(event: SummaryEvent) -> str | None:
    """Return an autopilot event in words; None if another event says the same, "" if there are no words for it."""
    data = event.data
    deferral = (data.get("facts") or {}).get("deferral")
    if deferral is not None:
        return row("phase", event.phase, "waiting", f"for your verdict: {safe_line(deferral['reason'])}")
    if event.type in _SILENT:
        return None
    if event.type in _RUN_TEXT:
        return kind_line("run", _RUN_TEXT[event.type](data))
    told = _PHASE_TEXT.get(event.type)
    if told is None:
        return ""
    word, text = told(data)
    return row("phase", event.phase, word, text) if word else None


_SILENT = frozenset(
    {"checkpoint_written", "task_retried", "task_completed", "step_started", "unnecessary_deferral_warning"}
    | {"rollback_initiated", "self_audit_started", "context_mapping_started", "discuss_session_started"}
)
_UNREMARKABLE = frozenset({"preflight", "plan_check", "execute", "debug"})
"""Steps whose success is not shown: the lines of tasks and of later steps say it."""
WordAndText = tuple[str, str]


def step_word(step: object) -> str:
    """Return the name of a step in words."""
    return safe_line(str(step).replace("_", " "), 40)


def _step_done(data: Mapping[str, Any]) -> WordAndText:
    """Return what a finished step found, as far as its facts tell."""
    step = str(data.get("step"))
    facts = ((data.get("facts") or {}).get("steps") or {}).get(step) or {}
    if step in _UNREMARKABLE or facts.get("status") == "full_pipeline":
        return "", ""
    found = [str(facts["recommendation"]).replace("_", " ")] if facts.get("recommendation") else []
    found += [name for name, passed in (facts.get("automated") or {}).items() if passed is True]
    found += [f"score {facts['alignment_score']}"] if facts.get("alignment_score") is not None else []
    concerns = len(facts.get("concerns") or ())
    found += [f"{concerns} concern{'' if concerns == 1 else 's'}"] if concerns else []
    return "done", step_word(step) + (f": {safe_line(', '.join(found))}" if found else "")


def _step_failed(data: Mapping[str, Any]) -> WordAndText:
    kind = f" ({name_of(data['category']).replace('_', ' ')})" if data.get("category") else ""
    return "failed", f"{step_word(data.get('step'))}{kind}{_reason(data, 'error', before=': ')}"


def _began(data: Mapping[str, Any]) -> str:
    flags = " ".join(map(name_of, data.get("flags") or ()))
    phases = f"started: phases {', '.join(map(name_of, data.get('phases') or ()))}"
    return ", ".join(filter(None, (phases, flags, f"a phase passes at {data.get('pass_threshold')}")))


def _phase_began(data: Mapping[str, Any]) -> WordAndText:
    expected = data.get("estimated_tokens")
    tokens = f", about {int(expected):,} tokens" if expected else ""
    return "started", f"{safe_line(data.get('phase_name') or '', 80)}{tokens}"


def _phase_passed(data: Mapping[str, Any]) -> WordAndText:
    score = data.get("alignment_score")
    return "passed", "" if score is None else f"score {score}"


def _halted(data: Mapping[str, Any]) -> str:
    return f"{'paused' if data.get('status') == 'paused' else 'failed'}{_reason(data, before=': ')}"


def _cycle(what: str) -> Callable[[Mapping[str, Any]], WordAndText]:
    def told(data: Mapping[str, Any]) -> WordAndText:
        number = data.get("cycle", data.get("iteration"))
        if "new_score" in data:
            return "done", f"{what} {number}: score {data['old_score']} before, {data['new_score']} after"
        if "old_score" in data:
            return "done", f"{what} {number}: not rated, the score is still {data['old_score']}"
        return "again", f"{what} {number}"

    return told


def _verdict(data: Mapping[str, Any]) -> WordAndText:
    issues = "; ".join(map(str, data.get("issues") or ()))
    return "verdict", f"{name_of(data.get('verdict'))}, by a person" + (f": {safe_line(issues)}" if issues else "")


def _report(data: Mapping[str, Any]) -> str:
    text = f"{data['phases_succeeded']} passed, {data['phases_failed']} failed, {data['phases_skipped']} skipped"
    return f"report: {text}; {data['completion_percentage']:g}% of the roadmap"


def _scores(consequence: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda data: f"warning: {data.get('count')} scores in a row are almost equal{consequence}"


_RUN_TEXT: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "run_started": _began,
    "run_completed": lambda data: "completed",
    "run_halted": _halted,
    "run_resumed": lambda data: "resumed" + _reason(data, "previous_status", before=", was "),
    "circuit_breaker_opened": lambda data: (
        f"stopped by the breaker: {name_of(data.get('setting'))} is {data.get('value')}"
    ),
    "circuit_breaker_closed": lambda data: f"breaker closed{_reason(data, before=': ')}",
    "high_defer_rate_warning": lambda data: (
        f"warning: {data.get('human_deferred_count')} of {data.get('total_phases_processed')} phases needed a person"
    ),
    "deferral_threshold_adjusted": lambda data: (
        f"asks a person below confidence {data.get('new_confidence')}, before: {data.get('old_confidence')}"
    ),
    "batch_completion_report": _report,
    "rubber_stamp_warning": _scores(""),
    "rubber_stamp_enhanced": _scores("; verification is stricter from here"),
    "rubber_stamp_critical": _scores("; the phase is marked"),
    "flag_mutual_exclusivity_error": lambda data: (
        f"refused: {' and '.join(map(name_of, data.get('flags') or ()))} exclude each other"
    ),
    "self_audit_gap_found": lambda data: f"self-audit found a gap: {safe_line(data['gap_description'])}",
    "self_audit_gap_fixed": lambda data: f"self-audit closed the gap of {name_of(data.get('requirement_id'))}",
    "self_audit_completed": lambda data: (
        f"self-audit: {data.get('total_requirements_checked')} requirements checked, "
        f"{data.get('gaps_remaining')} gaps left"
    ),
    "context_mapping_completed": lambda data: "rated what is known about the phases",
    "discuss_answers_recorded": lambda data: "recorded your answers about the phases",
}
_PHASE_TEXT: Mapping[str, Callable[[Mapping[str, Any]], WordAndText]] = {
    "phase_started": _phase_began,
    "phase_completed": _phase_passed,
    "phase_failed": lambda data: ("failed", _reason(data)),
    "phase_skipped": lambda data: ("skipped", name_of(data["reason"]).replace("_", " ")),
    "step_completed": _step_done,
    "step_failed": _step_failed,
    "task_failed": lambda data: ("failed", f"task {name_of(data.get('task'))}{_reason(data, 'error', before=': ')}"),
    "debug_attempt": lambda data: ("again", f"debug attempt {data.get('attempt')}"),
    "replan_attempt": lambda data: ("again", f"a new plan{_reason(data, before=': ')}"),
    "rollback_completed": lambda data: ("revert", "its commits were removed from the branch"),
    "human_verdict_recorded": _verdict,
    "autonomous_resolution_success": lambda data: ("done", "resolved without a person"),
    "remediation_started": _cycle("remediation"),
    "remediation_completed": _cycle("remediation"),
    "quality_remediation_started": _cycle("quality cycle"),
    "quality_remediation_completed": _cycle("quality cycle"),
    "quality_exhausted": lambda data: ("warning", "no quality cycle is left"),
    "gaps_iteration_started": _cycle("gap"),
    "gaps_iteration_completed": _cycle("gap"),
    "gaps_exhausted": lambda data: ("warning", "no cycle is left to close gaps"),
    "confidence_diagnostic_written": lambda data: (
        "below",
        f"score {data.get('alignment_score')}, {data.get('pass_threshold')} required; "
        f"see {name_of(data.get('diagnostic_path'))}",
    ),
    "force_incomplete_marked": lambda data: ("warning", "continues below the threshold and is marked"),
    "force_reexecution_started": lambda data: ("again", "executed again"),
}
