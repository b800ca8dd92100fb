"""Screens of feature runs: live in a terminal, plain lines, or JSON.

The live region, at most twelve lines, shows every step of the pipeline from the start. Finished steps become permanent
lines above it.
"""

import json
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TextIO

from fairwitness.cli.screens.columns import cells, cut, padded, terminal_width, wrapped
from fairwitness.cli.screens.progress import HEARTBEAT_S, spell_seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from fairwitness.app.views.feature import FeatureView, StepView
    from fairwitness.app.views.followed_run import FollowedRun, SummaryEvent
    from fairwitness.cli.screens.run import OutputMode

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


def event_lines(event: "SummaryEvent", view: "FeatureView", width: int) -> list[str]:
    """Return an event as screen lines, after the view has applied it; none if another event says the same."""
    from fairwitness.app.views.event_lines import clock_time
    from fairwitness.app.views.feature_lines import feature_event_text

    words = feature_event_text(event, view, spell_seconds)
    if words is None:
        return []
    time_of_day = f"{clock_time(event.timestamp)}  "
    line = f"{time_of_day}{words}"
    return [line] if cells(line) <= width else wrapped(words, width, first=time_of_day, rest=" " * len(time_of_day))


def headline(view: "FeatureView") -> str:
    """Return the run in one line: status, time and tokens."""
    from fairwitness.app.views.feature_lines import tokens_of

    merged = sum(task.word == "merged" for task in view.tasks())
    begun = len(view.tasks())
    parts = (
        view.word.upper(),
        f"iteration {view.iteration}" if view.iteration > 1 else "",
        f"{merged} of {view.planned or begun} tasks merged" if begun else "",
        spell_seconds(view.seconds()),
        tokens_of(view.tokens),
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
    for task in view.tasks():
        if task.is_under_way and task.name not in busy:
            found.append((task.name, f"{task.word}, attempt {task.attempt}", task.since))
    return [(safe_line(name, 128), text, spell_seconds(seconds_between(since, now))) for name, text, since in found]


def live_lines(view: "FeatureView", *, width: int, height: int = LINES, last: str = "") -> list[str]:
    """Return the live region: the run, all steps, the active agents and a hint, limited to the given height."""
    from fairwitness.app.text import safe_line

    head = cut(f"{safe_line(view.slug or view.run_id, 40)}  {headline(view)}", width)
    lines = ["─" * width, head, *_plan(view, width)]
    if view.question is not None:
        options = ", ".join(safe_line(option, 30) for option in view.question.options)
        last = f"QUESTION {safe_line(view.question.gate, 60)}: {options}"
    lines = lines[: height - 1]
    context = height - 1 - len(lines)
    lines += _workers(view, width, context)
    return [*lines, cut(last, width)][:height]


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


def _plan(view: "FeatureView", width: int) -> list[str]:
    """Return all steps in three rows: done, running, to come."""
    rows: dict[str, list[str]] = {"done": [], "now": [], "next": []}
    for step in view.steps.values():
        state = view.state_of(step)
        row = {"running": "now", "waiting": "next"}.get(state, "done")
        rows[row].append(_item(step, state, view))
    return [line for name, items in rows.items() for line in packed(items, width, label=name)]


def _item(step: "StepView", state: str, view: "FeatureView") -> str:
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


_REDRAW_S = 0.5


class FeatureScreen(Protocol):
    """A screen for a feature run; a context manager."""

    view: "FeatureView"
    note: str

    def __enter__(self) -> "FeatureScreen": ...

    def __exit__(self, *error: object) -> None: ...

    def show(self, event: "SummaryEvent") -> None:
        """Apply an event to the view and show it."""
        ...

    def beat(self) -> None:
        """Refresh the elapsed times, also without a new event."""
        ...


def feature_screen(how: "OutputMode", view: "FeatureView", *, hint: str) -> FeatureScreen:
    """Return the screen for the kind of output; `hint` says what Ctrl-C does."""
    if how.as_json:
        return FeatureSilent(view)
    if how.as_lines:
        return FeatureJsonLines(view, sys.stdout)
    if how.plain or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return FeaturePlain(view, sys.stdout)
    return FeatureLive(view, hint)


class FollowedFeature:
    """A `Screen` that forwards a followed run, with its past from the first event on, to a feature screen."""

    def __init__(self, screen: FeatureScreen) -> None:
        self._screen = screen

    def __enter__(self) -> "FollowedFeature":
        self._screen.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._screen.__exit__(*error)

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """Show the events that were not shown yet, including those before following began."""
        self._screen.note = run.note
        for event in (*run.past, *news):
            if event.seq > self._screen.view.seq:
                self._screen.show(event)
        self._screen.beat()


class FeatureSilent:
    """Prints nothing; the result is printed at the end."""

    def __init__(self, view: "FeatureView") -> None:
        self.view, self.note = view, ""

    def __enter__(self) -> "FeatureSilent":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def show(self, event: "SummaryEvent") -> None:
        """See `FeatureScreen`."""
        self.view.apply_event(event)

    def beat(self) -> None:
        """See `FeatureScreen`."""


class FeatureJsonLines(FeatureSilent):
    """Prints every event as one line of JSON and nothing else."""

    def __init__(self, view: "FeatureView", stream: TextIO) -> None:
        super().__init__(view)
        self._stream = stream

    def show(self, event: "SummaryEvent") -> None:
        """See `FeatureScreen`."""
        super().show(event)
        self._stream.write(f"{json.dumps(event.plain())}\n")
        self._stream.flush()


class FeaturePlain(FeatureSilent):
    """Prints one line for everything that ended, and a heartbeat now and then."""

    def __init__(self, view: "FeatureView", stream: TextIO, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        super().__init__(view)
        self._stream, self._heartbeat_s = stream, heartbeat_s
        self._last = time.monotonic()
        self._noted = ""

    def show(self, event: "SummaryEvent") -> None:
        """See `FeatureScreen`."""
        super().show(event)
        self._say(event_lines(event, self.view, terminal_width()))

    def beat(self) -> None:
        """See `FeatureScreen`."""
        if self.note != self._noted:
            self._noted = self.note
            self._say([self.note] if self.note else [])
        if time.monotonic() - self._last > self._heartbeat_s and not self.view.is_over:
            at_work = ", ".join(f"{name} {took}" for name, _, took in at_work_now(self.view)[:3])
            text = "; ".join(filter(None, (f"still {headline(self.view)}", at_work)))
            self._say(wrapped(text, terminal_width(), rest="  "))

    def _say(self, lines: list[str]) -> None:
        if lines:
            self._last = time.monotonic()
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()


class FeatureLive:
    """The live region at the bottom of a terminal, with permanent lines above it."""

    def __init__(self, view: "FeatureView", hint: str, *, console: "Console | None" = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self.view, self.note, self._hint = view, "", hint
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        # No automatic refresh: the library's own thread would draw outdated content.
        self._live: Live = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._drawn = 0.0
        self._is_stale = True

    def __enter__(self) -> "FeatureLive":
        self._live.start()
        self.beat()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def show(self, event: "SummaryEvent") -> None:
        """See `FeatureScreen`."""
        from rich.text import Text

        self.view.apply_event(event)
        for line in event_lines(event, self.view, self._console.width):
            self._console.print(Text(line, style=_style(line)), soft_wrap=True)
        self._is_stale = True

    def beat(self) -> None:
        """See `FeatureScreen`."""
        if self._is_stale or self.note or time.monotonic() - self._drawn > _REDRAW_S:
            self._drawn, self._is_stale = time.monotonic(), False
            self._live.update(self._region(), refresh=True)

    def _region(self) -> "Text":
        from rich.text import Text

        lines = live_lines(self.view, width=self._console.width, last=self.note or self._hint)
        drawn = Text(no_wrap=True, overflow="ellipsis")
        for place, line in enumerate(lines):
            drawn.append(f"{chr(10) if place else ''}{line}", style=_style(line))
        return drawn


def _style(line: str) -> str:
    """Return a colour that repeats what the words say; NO_COLOR removes it."""
    if "QUESTION" in line or "goes on with less" in line:
        return "yellow"
    if any(word in line for word in ("FAILED", "SHUT", " failed", "BUDGET")):
        return "red"
    return "cyan" if line.startswith("now ") else ""
