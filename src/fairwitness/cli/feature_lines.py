"""A feature run in lines of a terminal: the whole plan, who works now and for how long, and what has just ended."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairwitness.cli.columns import cells, cut, padded, wrapped
from fairwitness.cli.progress import spell_seconds

if TYPE_CHECKING:
    from fairwitness.app.feature_look import FeatureLook
    from fairwitness.app.feature_steps import StepLook
    from fairwitness.app.watching import Event

LINES = 12
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


def event_lines(event: "Event", look: "FeatureLook", width: int) -> list[str]:
    """An event that the look has taken in as lines of the screen; none if another tells the same."""
    from fairwitness.app.event_words import clock_time
    from fairwitness.app.feature_words import told

    words = told(event, look, spell_seconds)
    if words is None:
        return []
    time_of_day = f"{clock_time(event.timestamp)}  "
    line = f"{time_of_day}{words}"
    return [line] if cells(line) <= width else wrapped(words, width, first=time_of_day, rest=" " * len(time_of_day))


def headline(look: "FeatureLook") -> str:
    """The run in one line: where it stands, for how long, what it used."""
    from fairwitness.app.feature_words import tokens_of

    merged = sum(task.word == "merged" for task in look.tasks())
    begun = len(look.tasks())
    parts = (
        look.word.upper(),
        f"iteration {look.iteration}" if look.iteration > 1 else "",
        f"{merged} of {look.planned or begun} tasks merged" if begun else "",
        spell_seconds(look.seconds()),
        tokens_of(look.tokens),
    )
    return "  ".join(filter(None, parts))


def at_work_now(look: "FeatureLook") -> list[tuple[str, str, str]]:
    """Name, what it does, and time so far: agents first, then tasks that no agent works at."""
    from fairwitness.app.event_words import shown
    from fairwitness.app.looking import seconds_since

    now, found = look.now, []
    if look.is_over:
        return []
    for call in look.running():
        about = f" {shown(call.task, 60)}" if call.task else ""
        found.append((call.instance, f"{shown(call.agent, 30)}{about}", call.since))
    busy = {call.task for call in look.running()}
    for task in look.tasks():
        if task.is_under_way and task.name not in busy:
            found.append((task.name, f"{task.word}, attempt {task.attempt}", task.since))
    return [(shown(name, 128), told, spell_seconds(seconds_since(since, now))) for name, told, since in found]


def live_lines(look: "FeatureLook", *, width: int, height: int = LINES, last: str = "") -> list[str]:
    """The living part: the run in one line, all steps, who works now, and what to do; never more than asked for."""
    from fairwitness.app.event_words import shown

    head = cut(f"{shown(look.slug or look.run_id, 40)}  {headline(look)}", width)
    lines = ["─" * width, head, *_plan(look, width)]
    if look.question is not None:
        options = ", ".join(shown(option, 30) for option in look.question.options)
        last = f"QUESTION {shown(look.question.gate, 60)}: {options}"
    lines = lines[: height - 1]
    context = height - 1 - len(lines)
    lines += _workers(look, width, context)
    return [*lines, cut(last, width)][:height]


def _workers(look: "FeatureLook", width: int, context: int) -> list[str]:
    found = at_work_now(look)
    if len(found) > context > 0:
        left = f"  and {len(found) - context + 1} more"
        found, more = found[: context - 1], [left]
    else:
        found, more = found[: max(0, context)], []
    names = max((cells(name) for name, _, _ in found), default=0)
    lines = []
    for name, told, took in found:
        tail = cut(f"  {told}", width // 2) + f"  {took}"
        lines.append(f"  {padded(name, max(8, min(names, width - cells(tail) - 2)))}{tail}")
    return lines + more


def _plan(look: "FeatureLook", width: int) -> list[str]:
    """All steps in three rows: what is done, what runs, what comes."""
    rows: dict[str, list[str]] = {"done": [], "now": [], "next": []}
    for step in look.steps.values():
        state = look.state_of(step)
        row = {"running": "now", "waiting": "next"}.get(state, "done")
        rows[row].append(_item(step, state, look))
    return [line for name, items in rows.items() for line in packed(items, width, label=name)]


def _item(step: "StepLook", state: str, look: "FeatureLook") -> str:
    from fairwitness.app.event_words import shown
    from fairwitness.app.feature_words import agents_of

    parts = [_SIGNS.get(state, "?"), shown(step.name, 40)]
    if state not in _SAID_BY_ITS_ROW:
        parts.append(state)
    if state == "running":
        parts += [f"visit {step.visits}" if step.visits > 1 else "", agents_of(step)]
        parts.append(spell_seconds(step.seconds(look.now)))
    return " ".join(filter(None, parts))


def packed(items: Iterable[str], width: int, *, label: str) -> list[str]:
    """Items in lines behind a label; none is broken in two.

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
