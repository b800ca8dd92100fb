"""The screen of a feature run: all steps of the pipeline from the start, and the agents at work."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairwitness.cli.screens.columns import cells, cut, padded
from fairwitness.cli.screens.progress import spell_seconds
from fairwitness.cli.screens.run import LINES, wrapped_event

if TYPE_CHECKING:
    from fairwitness.app.views.feature import FeatureView, StepSummary
    from fairwitness.app.views.followed_run import FollowedRun, SummaryEvent

_SIGNS = {
    "done": "✓",
    "skipped": "-",
    "running": "▶",
    "revised": "↺",
    "failed": "✗",
    "stopped": "■",
    "waiting": "·",
}
_SAID_BY_ITS_ROW = frozenset({"done", "waiting"})
_LABEL = 6


def event_lines(event: "SummaryEvent", view: "FeatureView", width: int) -> list[str]:
    """Return an event as screen lines, after the view has applied it; none if another event says the same."""
    from fairwitness.app.views.feature_lines import feature_event_text

    words = feature_event_text(event, view)
    return [] if words is None else wrapped_event(event.timestamp, words, width)


def headline(view: "FeatureView") -> str:
    """Return the run in one line: status, time and tokens."""
    from fairwitness.app.views.feature_lines import tokens_of

    merged = sum(task.word == "merged" for task in view.started_tasks())
    begun = len(view.started_tasks())
    parts = (
        view.word.upper(),
        "light path" if view.is_light else "",
        f"iteration {view.feature.iteration}" if view.feature.iteration > 1 else "",
        f"{merged} of {begun} tasks merged" if begun else "",
        spell_seconds(view.seconds()),
        tokens_of(view.feature.tokens),
    )
    return "  ".join(filter(None, parts))


def at_work_now(view: "FeatureView") -> list[tuple[str, str, str]]:
    """Return name, activity and time so far: agents first, then tasks without an agent."""
    from fairwitness.app.text import safe_line, seconds_between

    now, found = view.now, []
    if view.is_over:
        return []
    for call in view.running():
        about = f" {safe_line(call.task, 60)}" if call.task else ""
        found.append((call.instance, f"{safe_line(call.agent, 30)}{about}", call.since))
    busy = {call.task for call in view.running()}
    for task in view.started_tasks():
        if task.is_under_way and task.name not in busy:
            found.append((task.name, f"{task.word}, attempt {task.attempt}", task.since))
    return [(safe_line(name, 128), text, spell_seconds(seconds_between(since, now))) for name, text, since in found]


def live_lines(view: "FeatureView", *, width: int, height: int = LINES - 1, is_worked_on: bool = True) -> list[str]:
    """Return the run, all steps, the active agents and an open question, limited to the given height.

    If no process works on the run, no agent is active, and its current step is stopped.
    """
    from fairwitness.app.text import safe_line

    head = cut(f"{safe_line(view.feature.slug or view.run_id, 40)}  {headline(view)}", width)
    lines = ["─" * width, head, *_plan(view, width, is_worked_on=is_worked_on)][:height]
    asked = []
    if view.feature.question is not None:
        options = ", ".join(safe_line(option, 30) for option in view.feature.question.options)
        asked = [cut(f"waiting for your answer to {safe_line(view.feature.question.gate, 60)}: {options}", width)]
    workers = _workers(view, width, height - len(lines) - len(asked)) if is_worked_on else []
    return [*lines, *workers, *asked][:height]


def _workers(view: "FeatureView", width: int, context: int) -> list[str]:
    found = at_work_now(view)
    if len(found) > context > 0:
        left = f"  and {len(found) - context + 1} more"
        found, more = found[: context - 1], [left]
    else:
        found, more = found[: max(0, context)], []
    names = max((cells(name) for name, _, _ in found), default=0)
    lines = []
    for name, text, took in found:
        tail = cut(f"  {text}", width // 2) + f"  {took}"
        lines.append(f"  {padded(name, max(8, min(names, width - cells(tail) - 2)))}{tail}")
    return lines + more


def _plan(view: "FeatureView", width: int, *, is_worked_on: bool) -> list[str]:
    """Return all steps in three rows: done, running, to come."""
    rows: dict[str, list[str]] = {"done": [], "now": [], "next": []}
    for step in view.feature.steps.values():
        state = view.state_of(step)
        row = {"running": "now", "waiting": "next"}.get(state, "done")
        shown = "stopped" if state == "running" and not is_worked_on else state
        rows[row].append(_item(step, shown, view))
    return [line for name, items in rows.items() for line in packed(items, width, label=name)]


def _item(step: "StepSummary", state: str, view: "FeatureView") -> str:
    from fairwitness.app.text import safe_line
    from fairwitness.app.views.feature_lines import agents_of

    parts = [_SIGNS.get(state, "?"), safe_line(step.name, 40)]
    if state not in _SAID_BY_ITS_ROW:
        parts.append(state)
    if state == "running":
        parts += [f"visit {step.visits}" if step.visits > 1 else "", agents_of(step)]
        parts.append(spell_seconds(step.seconds(view.now)))
    return " ".join(filter(None, parts))


def packed(items: Iterable[str], width: int, *, label: str) -> list[str]:
    """Return items in lines after a label; no item is broken.

    >>> packed(["✓ setup", "✓ research", "✓ plan"], 26, label="done")
    ['done  ✓ setup  ✓ research', '      ✓ plan']
    """
    lines: list[str] = []
    for item in items:
        if lines and cells(lines[-1]) + 2 + cells(item) <= width:
            lines[-1] += f"  {item}"
        else:
            lines.append(cut(f"{'' if lines else label:<{_LABEL}}{item}", width))
    return lines


class FeatureLines:
    """The lines of a feature run; it must get every event from the first one on."""

    def __init__(self, view: "FeatureView") -> None:
        self.view = view

    def words(self, event: "SummaryEvent") -> str | None:
        """See `RunLines`."""
        from fairwitness.app.views.feature_lines import feature_event_text

        self.view.apply_event(event)
        return feature_event_text(event, self.view)

    def region(self, run: "FollowedRun", width: int) -> list[str]:
        """See `RunLines`."""
        return live_lines(self.view, width=width)

    def still(self, run: "FollowedRun") -> str:
        """See `RunLines`."""
        at_work = ", ".join(f"{name} {took}" for name, _, took in at_work_now(self.view)[:3])
        return "; ".join(filter(None, (headline(self.view), at_work)))
