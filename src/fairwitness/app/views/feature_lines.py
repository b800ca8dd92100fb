"""Events of a feature run as one line of text each: every finished step, gate, attempt and answer.

Foreign text is made safe, and events that repeat another are left out.
"""

from collections.abc import Mapping
from typing import Any

from fairwitness.app.text import counted, safe_line, short_count, took
from fairwitness.app.views import event_lines
from fairwitness.app.views.event_lines import kind_line, name_of, row
from fairwitness.app.views.feature import FeatureView
from fairwitness.ledger.feature_summary import STEPS, LastGateAnswer, StepSummary, spelled_exhaustion
from fairwitness.ledger.summary_event import SummaryEvent

_COUNTED = {
    "EG-1": "baseline check",
    "EG-2": "passed check",
    "EG-3": "reviewer",
    "EG-4": "blocker",
    "EG-5": "full review",
    "EG-6": "approval",
}
_SILENT = frozenset({"step_started", "dispatch_started", "artifact_written", "head_recorded"})
_QUESTIONS = frozenset({"step-1a", "step-4a"})
"""Steps that only ask a person; the line of the answer says that they are done."""
_TOLD_ELSEWHERE = frozenset({"advance", "ask_human", "wait", "halt", "finish", "replan", "revert"})
"""Decisions that are not shown because their effect has its own line."""
_FAILED_CALLS = {"ERROR": "failed", "TIMEOUT": "timeout", "NEEDS_REVISION": "revise"}
_OUTCOMES = {"low_confidence": "not committed", "error": "failed", "abandoned": "ended by you"}


def step_line(step: StepSummary, view: FeatureView) -> str:
    """Return the line of a step: `step      research       done       12s  4 agents    8k tokens`."""
    tokens = f"{short_count(step.visit_tokens):>3} tokens" if step.visit_tokens else ""
    again = "again" if step.visits > 1 else ""
    why = step.reason if step.reason and step.state != "done" and step.reason != view.feature.decided else None
    text = f"{took(step.seconds(view.now)):>6}  {agents_of(step):<8}  {tokens:<10}  {again}".rstrip()
    return row("step", step.name, view.state_of(step), text + (f": {safe_line(why)}" if why else ""))


def agents_of(step: StepSummary) -> str:
    """Return how many agents of a step have answered; empty if it called none."""
    count = len(step.agents)
    if not count:
        return ""
    return counted(count, "agent") if step.answered == count else f"{step.answered} of {counted(count, 'agent')}"


def tokens_of(count: int) -> str:
    """Return a number of tokens in words; empty if it is zero."""
    return counted(count, "token") if count else ""


def gate_line(gate: LastGateAnswer, slug: str = "") -> str:
    """Return the result of a gate, what it counted, and what is missing.

    >>> gate_line(LastGateAnswer("EG-2", "task-03", True, 4, 3, ()))
    'gate      task-03        open     EG-2: 4 passed checks, 3 required'
    """
    name, _, subject = gate.gate.partition(".")
    required = "" if name == "EG-4" else f", {gate.threshold} required"
    found = f"{counted(gate.counted, _COUNTED.get(name, 'row'))}{required}"
    lacks = f"; not proven: {safe_line(', '.join(gate.missing))}" if gate.missing else ""
    about = (gate.task or subject).removeprefix(f"{slug}-")
    return row("gate", about, "open" if gate.is_open else "blocked", f"{name_of(name)}: {found}{lacks}")


def feature_event_text(event: SummaryEvent, view: FeatureView) -> str | None:
    """Return an event in words, after the view has applied it; None if another event says the same."""
    if event.type in _SILENT:
        return None
    try:
        words = _feature_text(event, event.data, view)
    except (KeyError, TypeError, ValueError):
        words = ""  # malformed: shown as data; `ledger verify` checks it
    return words if words is None or words else event_lines.event_text(event)


def _feature_text(event: SummaryEvent, data: Mapping[str, Any], view: FeatureView) -> str | None:
    match event.type:
        case "run_started":
            base = safe_line(str(data["base_commit"])[:12], 12)
            path = f", {name_of(data['path'])} path" if "path" in data else ""
            return kind_line("run", f"started: {name_of(data['slug'])}, {name_of(data['mode'])}{path}, from {base}")
        case "path_changed":
            return kind_line("path", safe_line(data["reason"]))
        case "run_resumed":
            return kind_line("run", f"resumed at {_step_name(data['from_step'])}")
        case "run_finished":
            return _finished(data, view)
        case "step_finished" if data["step"] in _QUESTIONS and data["outcome"] == "advanced":
            return None
        case "step_finished":
            return step_line(view.feature.steps[str(data["step"])], view)
        case "dispatch_finished":
            return _call_ended(data, view)
        case "call_refused":
            call = view.feature.calls.get(str(data["dispatch_id"]))
            what = f"{name_of(data['tool'])} of {safe_line(data['target'], 80)}: {safe_line(data['reason'])}"
            return row("agent", "an agent" if call is None else call.agent, "refused", what)
        case "gate_evaluated":
            gate = view.feature.gates[str(data["gate"]), event.task]
            return gate_line(gate, view.feature.slug) if gate.is_news else None
        case "decided":
            kind = str(data["kind"])
            return None if kind in _TOLD_ELSEWHERE else kind_line(name_of(kind), safe_line(data["reason"]))
        case _:
            return _of_a_person_or_review(event.type, data, is_autonomous=view.feature.mode == "autonomous")


def _of_a_person_or_review(kind: str, data: Mapping[str, Any], *, is_autonomous: bool) -> str | None:
    """Return the line of a question, review or degradation; empty if there are no words for the event."""
    match kind:
        case "pushback_recorded" if not data["concerns"]:
            return None
        case "pushback_recorded":
            worst = f", the worst is {name_of(data['worst'])}" if data["worst"] else ""
            found = f"{counted(int(data['concerns']), 'concern')}{worst}"
            return row("concern", _step_name(data["step"]), name_of(data["selected_option"]), found)
        case "approval_requested" if is_autonomous:
            return None
        case "approval_requested":
            return kind_line("waiting", f"{name_of(data['gate_id'])}: {', '.join(map(name_of, data['options']))}?")
        case "approval_answered":
            who = "automatic" if data["auto_selected"] else f"by {safe_line(data['actor'], 60)}"
            return kind_line("answer", f"{name_of(data['gate_id'])}: {name_of(data['selected_option'])}, {who}")
        case "review_submitted":
            against = {about: str(said) for about, said in data["verdicts"].items() if said != "approve"}
            word = "blocker" if "blocker" in against.values() else "revise" if against else "approve"
            about = f": {', '.join(map(name_of, against))}" if against else ""
            subject = f"{name_of(data['scope'])} #{int(data['round'])}"
            return row("review", subject, word, f"{name_of(data['perspective'])}{about}")
        case "task_reverted":
            return row("task", data["task"], "revert", f"{counted(len(data['files']), 'file')} restored")
        case "replan_started":
            tasks = ", ".join(map(name_of, data["failing"][:5]))
            if data.get("by") == "implementer":
                return kind_line("retry", f"iteration {int(data['iteration'])}: back to the implementer: {tasks}")
            return kind_line("replan", f"iteration {int(data['iteration'])}: a new plan for {tasks}, not proven yet")
        case "degraded":
            return kind_line("degraded", f"{safe_line(data['detail'])} ({name_of(data['kind'])})")
        case "budget_exhausted":
            return kind_line("budget", safe_line(spelled_exhaustion(data), 200))
        case "committed":
            return kind_line("commit", f"{safe_line(str(data['commit'])[:12])}, exactly the tree that was proven")
        case _:
            return ""


def _call_ended(data: Mapping[str, Any], view: FeatureView) -> str | None:
    """Return the line of a call without a usable answer; other calls are counted in the line of their step."""
    if data["status"] == "DONE":
        return None
    call = view.feature.calls[str(data["dispatch_id"])]
    reason = f": {safe_line(data['reason'])}" if data.get("reason") else ""
    word = _FAILED_CALLS.get(str(data["status"]), name_of(data["status"]))
    return row("agent", call.agent, word, f"{safe_line(call.task or call.instance, 60)}{reason}")


def _finished(data: Mapping[str, Any], view: FeatureView) -> str:
    outcome = str(data["outcome"])
    word = _OUTCOMES.get(outcome, outcome.replace("_", " "))
    sure = f", confidence {name_of(data['confidence'])}" if data["confidence"] else ""
    reason = f": {safe_line(data['reason'])}" if data["reason"] and outcome != "committed" else ""
    return kind_line("run", f"{name_of(word)}{sure}, after {took(view.seconds())}{reason}")


def _step_name(step: object) -> str:
    return STEPS.get(str(step), safe_line(str(step), 40))
