"""Events of a feature run as one line of text each: every finished step, gate, attempt and answer.

Foreign text is made safe, and events that repeat another are left out. The caller chooses how durations are spelled.
"""

from collections.abc import Callable, Mapping
from typing import Any

from fairwitness.app.text import safe_line
from fairwitness.app.views import event_lines
from fairwitness.app.views.feature import STEPS, FeatureView, LastGateAnswer, StepView
from fairwitness.ledger.run_summary import SummaryEvent

Spell = Callable[[float], str]
"""Spells a duration given in seconds."""

NAMES = max(map(len, STEPS.values()))
_COUNTED = {
    "EG-1": "baseline checks",
    "EG-2": "checks",
    "EG-3": "reviewers",
    "EG-5": "complete reviews",
    "EG-6": "approvals",
}
_SILENT = frozenset(
    {"step_started", "dispatch_started", "artifact_written", "head_recorded", "branch.merged", "merge.started"}
)
_TOLD_ELSEWHERE = frozenset({"advance", "ask_human", "wait", "halt", "finish"})
"""Decisions that are not shown because their effect has its own line."""


def step_line(step: StepView, view: FeatureView, spell: Spell) -> str:
    """Return the line of a step: `research   done   4 of 4 agents   12s   8,400 tokens`."""
    again = f"visit {step.visits}" if step.visits > 1 else ""
    parts = [f"{view.state_of(step):<7}", again, agents_of(step), spell(step.seconds(view.now)), tokens_of(step.tokens)]
    why = safe_line(step.reason) if step.reason and step.state != "done" else ""
    return "   ".join(filter(None, [f"{safe_line(step.name, 40):<{NAMES}}", *parts, why]))


def agents_of(step: StepView) -> str:
    """Return how many agents of a step have answered; empty if it called none."""
    count = len(step.agents)
    return f"{step.answered} of {count} agent{'' if count == 1 else 's'}" if count else ""


def tokens_of(count: int) -> str:
    """Return a number of tokens in words; empty if it is zero.

    >>> tokens_of(8400), tokens_of(0)
    ('8,400 tokens', '')
    """
    return f"{count:,} tokens" if count else ""


def gate_line(gate: LastGateAnswer) -> str:
    """Return the result and count of a gate.

    >>> gate_line(LastGateAnswer("EG-2", "task-03", True, 4, 3, ()))
    'gate EG-2 task-03: open, 4 of 3 checks'
    """
    name, _, subject = gate.gate.partition(".")
    about = f" {safe_line(gate.task or subject, 60)}" if gate.task or subject else ""
    if name == "EG-4":
        counted = f"{gate.counted} blocker{'' if gate.counted == 1 else 's'}"
    else:
        counted = f"{gate.counted} of {gate.threshold} {_COUNTED.get(name, 'wanted')}"
    lacks = f"; missing: {safe_line(', '.join(gate.missing))}" if gate.missing else ""
    return f"gate {safe_line(name, 40)}{about}: {'open' if gate.is_open else 'SHUT'}, {counted}{lacks}"


def feature_event_text(event: SummaryEvent, view: FeatureView, spell: Spell) -> str | None:
    """Return an event in words, after the view has applied it; None if another event says the same."""
    if event.type in _SILENT:
        return None
    try:
        words = _feature_text(event, event.data, view, spell)
    except (KeyError, TypeError, ValueError):
        words = ""  # malformed: shown as data; `ledger verify` checks it
    if words is None:
        return None
    return words or event_lines.any_event_text(event)


def _feature_text(event: SummaryEvent, data: Mapping[str, Any], view: FeatureView, spell: Spell) -> str | None:
    match event.type:
        case "run_started":
            return f"feature {_name(data['slug'])} begins, {_name(data['mode'])}, from {_short(data['base_commit'])}"
        case "run_resumed":
            return f"goes on with {_step_name(data['from_step'])}"
        case "run_finished":
            return _finished(data, view, spell)
        case "step_finished":
            return step_line(view.steps[str(data["step"])], view, spell)
        case "dispatch_finished":
            return _call_ended(data, view)
        case "call_refused":
            return f"refused {_name(data['tool'])} of {safe_line(data['target'], 80)}: {safe_line(data['reason'])}"
        case "gate_evaluated":
            return gate_line(view.gates[str(data["gate"]), event.task])
        case "decided":
            is_told = str(data["kind"]) in _TOLD_ELSEWHERE
            return None if is_told else f"decided to {_name(data['kind'])}: {safe_line(data['reason'])}"
        case "node.changed" if data["newStatus"] in ("FAILED", "STALE"):
            reason = f": {safe_line(data['reason'])}" if data.get("reason") else ""
            word = "FAILED" if data["newStatus"] == "FAILED" else "lost its worker"
            return f"{_name(data['nodeId'])} attempt {int(data.get('attemptId') or 1)} {word}{reason}"
        case "node.changed":
            return event_lines.event_text(event)
        case _:
            return _of_a_person_or_review(event.type, data, is_autonomous=view.mode == "autonomous")


def _of_a_person_or_review(kind: str, data: Mapping[str, Any], *, is_autonomous: bool) -> str | None:
    """Return the line of a question, review or degradation; empty if there are no words for the event."""
    match kind:
        case "pushback_recorded":
            worst = f", the worst {_name(data['worst'])}" if data["worst"] else ""
            how = _name(data["selected_option"]) + (" was selected by itself" if data["auto_selected"] else "")
            return f"concerns at {_step_name(data['step'])}: {int(data['concerns'])}{worst}; {how}"
        case "approval_requested" if is_autonomous:
            return None
        case "approval_requested":
            return f"QUESTION {_name(data['gate_id'])}: {', '.join(map(_name, data['options']))}"
        case "approval_answered":
            who = (
                "selected by itself, nobody was asked"
                if data["auto_selected"]
                else f"by {safe_line(data['actor'], 60)}"
            )
            return f"answer to {_name(data['gate_id'])}: {_name(data['selected_option'])}, {who}"
        case "review_submitted":
            said = ", ".join(f"{_name(about)} {_name(verdict)}" for about, verdict in data["verdicts"].items())
            return f"{_name(data['scope'])} review {int(data['round'])}, {_name(data['perspective'])}: {said}"
        case "task_reverted":
            return f"{_name(data['task'])} reverted, files put back: {len(data['files'])}"
        case "replan_started":
            return f"iteration {int(data['iteration'])} begins; to be planned anew: {', '.join(data['failing'][:5])}"
        case "degraded":
            return f"goes on with less, {_name(data['kind'])}: {safe_line(data['detail'])}"
        case "budget_exhausted":
            return f"BUDGET used up, {safe_line(data['what'], 60)}: {int(data['used']):,} of {int(data['cap']):,}"
        case "committed":
            return f"committed {_short(data['commit'])}; to undo it: {safe_line(data['rollback_command'])}"
        case _:
            return ""


def _call_ended(data: Mapping[str, Any], view: FeatureView) -> str | None:
    """Return the line of a call without an answer; answered calls are counted in the line of their step."""
    if data["status"] == "DONE":
        return None
    call = view.calls[str(data["dispatch_id"])]
    reason = f": {safe_line(data['reason'])}" if data.get("reason") else ""
    return f"{safe_line(call.agent, 40)} {safe_line(call.instance, 60)} ended with {_name(data['status'])}{reason}"


def _finished(data: Mapping[str, Any], view: FeatureView, spell: Spell) -> str:
    sure = f", confidence {_name(data['confidence'])}" if data["confidence"] else ""
    reason = f": {safe_line(data['reason'])}" if data["reason"] else ""
    word = _name(str(data["outcome"]).replace("_", " ")).upper()
    return f"run {word}{sure}, after {spell(view.seconds())}{reason}"


def _name(value: object) -> str:
    return safe_line(str(value), 64)


def _short(commit: object) -> str:
    return safe_line(str(commit)[:12], 12)


def _step_name(step: object) -> str:
    return STEPS.get(str(step), safe_line(str(step), 40))
