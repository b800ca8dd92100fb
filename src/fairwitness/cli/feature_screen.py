"""A feature run on the screen while it goes on: the whole plan in a living part, one line for all that ended, or JSON.

The living part, at most twelve lines, shows every step of the pipeline from the first second. What has ended becomes
an ordinary line above it that stays.
"""

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Protocol, TextIO

from fairwitness.cli.columns import terminal_width, wrapped
from fairwitness.cli.feature_lines import at_work_now, event_lines, headline, live_lines
from fairwitness.cli.progress import HEARTBEAT_S

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from fairwitness.app.feature_look import FeatureLook
    from fairwitness.app.watching import Event, Watching
    from fairwitness.cli.run_screen import How

_REDRAW_S = 0.5


class FeatureScreen(Protocol):
    """Where a feature run is shown; use it as a context."""

    look: "FeatureLook"
    note: str

    def __enter__(self) -> "FeatureScreen": ...

    def __exit__(self, *error: object) -> None: ...

    def show(self, event: "Event") -> None:
        """Takes in what happened and shows it."""
        ...

    def beat(self) -> None:
        """Nothing need have happened: shows how long what runs has been running."""
        ...


def feature_screen(how: "How", look: "FeatureLook", *, hint: str) -> FeatureScreen:
    """The screen that fits where the output goes; `hint` says what Ctrl-C does."""
    if how.as_json:
        return FeatureSilent(look)
    if how.as_lines:
        return FeatureJsonLines(look, sys.stdout)
    if how.plain or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return FeaturePlain(look, sys.stdout)
    return FeatureLive(look, hint)


class Watched:
    """A feature's screen for whoever follows a run with its past from the first event on; see `run_screen.Screen`."""

    def __init__(self, screen: FeatureScreen) -> None:
        self._screen = screen

    def __enter__(self) -> "Watched":
        self._screen.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._screen.__exit__(*error)

    def show(self, run: "Watching", news: "list[Event]") -> None:
        """Shows what was not shown before, also what had happened before anybody looked."""
        self._screen.note = run.note
        for event in (*run.past, *news):
            if event.seq > self._screen.look.seq:
                self._screen.show(event)
        self._screen.beat()


class FeatureSilent:
    """Nothing until the end, when there is one object to print."""

    def __init__(self, look: "FeatureLook") -> None:
        self.look, self.note = look, ""

    def __enter__(self) -> "FeatureSilent":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def show(self, event: "Event") -> None:
        """See `FeatureScreen`."""
        self.look.take_in(event)

    def beat(self) -> None:
        """See `FeatureScreen`."""


class FeatureJsonLines(FeatureSilent):
    """Every event as one line of JSON, and nothing else."""

    def __init__(self, look: "FeatureLook", stream: TextIO) -> None:
        super().__init__(look)
        self._stream = stream

    def show(self, event: "Event") -> None:
        """See `FeatureScreen`."""
        super().show(event)
        self._stream.write(f"{json.dumps(event.plain())}\n")
        self._stream.flush()


class FeaturePlain(FeatureSilent):
    """One line for everything that ended, and a sign of life now and then."""

    def __init__(self, look: "FeatureLook", stream: TextIO, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        super().__init__(look)
        self._stream, self._heartbeat_s = stream, heartbeat_s
        self._last = time.monotonic()
        self._noted = ""

    def show(self, event: "Event") -> None:
        """See `FeatureScreen`."""
        super().show(event)
        self._say(event_lines(event, self.look, terminal_width()))

    def beat(self) -> None:
        """See `FeatureScreen`."""
        if self.note != self._noted:
            self._noted = self.note
            self._say([self.note] if self.note else [])
        if time.monotonic() - self._last > self._heartbeat_s and not self.look.is_over:
            at_work = ", ".join(f"{name} {took}" for name, _, took in at_work_now(self.look)[:3])
            told = "; ".join(filter(None, (f"still {headline(self.look)}", at_work)))
            self._say(wrapped(told, terminal_width(), rest="  "))

    def _say(self, lines: list[str]) -> None:
        if lines:
            self._last = time.monotonic()
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()


class FeatureLive:
    """The living part at the bottom of a terminal, and lines that stay above it."""

    def __init__(self, look: "FeatureLook", hint: str, *, console: "Console | None" = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self.look, self.note, self._hint = look, "", hint
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        # Everything is drawn when we say so: a thread of the library's own would draw what is no longer so.
        self._live: Live = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._drawn = 0.0
        self._is_stale = True

    def __enter__(self) -> "FeatureLive":
        self._live.start()
        self.beat()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def show(self, event: "Event") -> None:
        """See `FeatureScreen`."""
        from rich.text import Text

        self.look.take_in(event)
        for line in event_lines(event, self.look, self._console.width):
            self._console.print(Text(line, style=_style(line)), soft_wrap=True)
        self._is_stale = True

    def beat(self) -> None:
        """See `FeatureScreen`."""
        if self._is_stale or self.note or time.monotonic() - self._drawn > _REDRAW_S:
            self._drawn, self._is_stale = time.monotonic(), False
            self._live.update(self._region(), refresh=True)

    def _region(self) -> "Text":
        from rich.text import Text

        lines = live_lines(self.look, width=self._console.width, last=self.note or self._hint)
        drawn = Text(no_wrap=True, overflow="ellipsis")
        for place, line in enumerate(lines):
            drawn.append(f"{chr(10) if place else ''}{line}", style=_style(line))
        return drawn


def _style(line: str) -> str:
    """A colour beside what the words say already; NO_COLOR takes it away."""
    if "QUESTION" in line or "goes on with less" in line:
        return "yellow"
    if any(word in line for word in ("FAILED", "SHUT", " failed", "BUDGET")):
        return "red"
    return "cyan" if line.startswith("now ") else ""
