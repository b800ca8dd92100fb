"""What happened in an autopilot run, in one line each; text of others is made harmless, and noise is left out."""

from collections.abc import Callable, Mapping
from typing import Any

from fairwitness.app.text import shown
from fairwitness.ledger.glance import Event

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
    """A step in plain words."""
    return _STEPS.get(str(step), shown(str(step), 40))


def told(event: Event) -> str | None:
    """One event in words; None if another tells the same better, empty for what this module has no words for."""
    if event.type in _SILENT:
        return None
    words = _WORDS.get(event.type)
    if words is None:
        return ""
    said = words(event.data)
    deferral = (event.data.get("facts") or {}).get("deferral")
    parts = [f"phase {_name(event.phase)}: {said}" if event.phase is not None else said] if said else []
    if deferral is not None:
        parts.append(f"phase {_name(event.phase)} WAITS FOR YOU: {shown(deferral['reason'])}")
    return "; ".join(parts) or None


def _name(value: object) -> str:
    return shown(str(value), 64)


def _why(data: Mapping[str, Any], key: str = "reason") -> str:
    return f": {shown(str(data[key]))}" if data.get(key) else ""


def _began(data: Mapping[str, Any]) -> str:
    phases = data.get("phases") or ()
    flags = " ".join(map(_name, data.get("flags") or ()))
    parts = (f"run begins, phases {', '.join(map(_name, phases))}", flags, f"to reach {data.get('pass_threshold')}")
    return ", ".join(filter(None, parts))


def _phase_began(data: Mapping[str, Any]) -> str:
    expected = data.get("estimated_tokens")
    tokens = f", about {int(expected):,} tokens" if expected else ""
    return f"{shown(data.get('phase_name') or 'a phase', 80)} begins{tokens}"


def _phase_done(data: Mapping[str, Any]) -> str:
    score = data.get("alignment_score")
    return "COMPLETED" + ("" if score is None else f" at {score}")


def _step_failed(data: Mapping[str, Any]) -> str:
    kind = f" ({_name(data['category'])})" if data.get("category") else ""
    return f"{step_word(data.get('step'))} failed{kind}{_why(data, 'error')}"


def _halted(data: Mapping[str, Any]) -> str:
    return f"run {'PAUSED' if data.get('status') == 'paused' else 'FAILED'}{_why(data)}"


def _resumed(data: Mapping[str, Any]) -> str:
    before = f", was {_name(data['previous_status'])}" if data.get("previous_status") else ""
    return f"run goes on{before}"


def _cycle(data: Mapping[str, Any], what: str) -> str:
    number = data.get("cycle", data.get("iteration"))
    if "new_score" in data:
        return f"{what} {number}: {data['old_score']} to {data['new_score']}"
    return f"{what} {number} begins"


def _verdict(data: Mapping[str, Any]) -> str:
    issues = "; ".join(map(str, data.get("issues") or ()))
    return f"a person says {_name(data.get('verdict'))}" + (f": {shown(issues)}" if issues else "")


def _report(data: Mapping[str, Any]) -> str:
    told = f"{data['phases_succeeded']} succeeded, {data['phases_failed']} failed, {data['phases_skipped']} skipped"
    return f"report: {told}; {data['completion_percentage']:g}% of the roadmap"


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "run_started": _began,
    "run_completed": lambda data: "run COMPLETED",
    "run_halted": _halted,
    "run_resumed": _resumed,
    "circuit_breaker_opened": lambda data: f"the breaker OPENED: {_name(data.get('setting'))} at {data.get('value')}",
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
    "phase_skipped": lambda data: f"skipped: {_name(data['reason']).replace('_', ' ')}",
    "step_started": lambda data: "",
    "step_completed": lambda data: f"{step_word(data.get('step'))} done",
    "step_failed": _step_failed,
    "task_completed": lambda data: f"task {_name(data.get('task'))} done",
    "task_failed": lambda data: f"task {_name(data.get('task'))} FAILED{_why(data, 'error')}",
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
    "confidence_diagnostic_written": lambda data: f"what is missing: {_name(data.get('diagnostic_path'))}",
    "force_incomplete_marked": lambda data: "goes on below the threshold, marked",
    "force_reexecution_started": lambda data: "is run anew",
    "flag_mutual_exclusivity_error": lambda data: f"refused: {' and '.join(map(_name, data.get('flags') or ()))}",
    "self_audit_started": lambda data: "self-audit begins",
    "self_audit_gap_found": lambda data: f"self-audit found a gap: {shown(data['gap_description'])}",
    "self_audit_gap_fixed": lambda data: f"self-audit: the gap of {_name(data.get('requirement_id'))} was closed",
    "context_mapping_started": lambda data: "scoring what is known about the phases",
    "context_mapping_completed": lambda data: "what is known about the phases was scored",
    "discuss_session_started": lambda data: "talking about the phases begins",
    "discuss_answers_recorded": lambda data: "what was said about it is written down",
    "self_audit_completed": lambda data: "self-audit done",
}
