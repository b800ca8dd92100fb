"""Screens of runs: live in a terminal, plain lines elsewhere, or JSON lines.

Events become permanent lines; only the live region, at most twelve lines, is redrawn.
"""

import json
import os
import shlex
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TextIO

import click

from fairwitness.cli.screens.columns import cells, cut, padded, terminal_width, wrapped
from fairwitness.cli.screens.progress import HEARTBEAT_S, NO_PROCESS, spell_seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from fairwitness.app.views.followed_run import FollowedRun, SummaryEvent


_LABEL = 10
_TIME = 11
"""The width of the time of day and the gap after it."""


def name_of(run: "FollowedRun") -> str:
    """Return the run's id, safe for a terminal."""
    from fairwitness.app.text import safe_line

    return safe_line(run.run_id, 128)


def status_of(run: "FollowedRun") -> str:
    """Return the run's status, safe for a terminal; for an unknown workflow it is the name of an event."""
    from fairwitness.app.text import safe_line

    return safe_line(run.view.word, 20)


def wrapped_event(timestamp: str, words: str, width: int) -> list[str]:
    """Return an event as screen lines. The columns are kept, and what does not fit continues below the second one."""
    from fairwitness.app.views.event_lines import KIND, clock_time

    line = f"{clock_time(timestamp)}  {words}"
    if cells(line) <= width:
        return [line]
    body = line.rfind("  ", 0, width // 2 + 8) + 2
    return wrapped(line[body:], width, first=line[:body], rest=" " * (_TIME + KIND + 2))


def working(run: "FollowedRun") -> list[tuple[str, str, str]]:
    """Return name, stage with attempt, and time so far of active nodes, and then of queued ones."""
    from fairwitness.app.text import safe_line, seconds_between
    from fairwitness.app.views.detail import AT_WORK
    from fairwitness.app.views.run import NodeStage

    view, now = run.view, run.now
    return [
        (
            safe_line(node.name, 128),
            f"{view.stage(node).value:<8} attempt {view.tries(node)}",
            spell_seconds(seconds_between(node.since, now)),
        )
        for node in (*view.at(*AT_WORK), *view.at(NodeStage.QUEUED))
    ]


def counted(run: "FollowedRun") -> str:
    """Return the progress of the run in numbers."""
    if run.view.workflow == "autopilot":
        phases = run.view.phases.counts()
        parts = [f"{phases['completed']}/{phases['total']} phases"]
        parts += [f"{phases['failed']} failed"] if phases["failed"] else []
        return ", ".join(parts + ([f"{phases['deferred']} for you"] if phases["deferred"] else []))
    counts = run.view.counts()
    parts = [f"{counts['merged']}/{counts['total']} merged"] if counts["total"] else []
    parts += [f"{counts['failed']} failed"] if counts["failed"] else []
    on_the_way = counts["running"] - counts["queued"]
    parts += [f"{on_the_way} {'stopped' if run.view.is_over else 'at work'}"] if on_the_way else []
    parts += [f"{counts['queued']} queued"] if counts["queued"] else []
    return ", ".join(parts)


def elapsed(run: "FollowedRun") -> str:
    """Return how long the run has taken so far, or took."""
    from fairwitness.app.text import seconds_between

    began, last = run.view.started or run.view.began, run.view.last_time
    if began is None or last is None:
        return ""
    return spell_seconds(seconds_between(began, last if run.view.is_over else run.now))


def is_alone(run: "FollowedRun") -> bool:
    """Return whether the run could continue but no worker executes it."""
    return run.view.status in ("executing", "plan_review") and not run.view.is_over and run.worker() is None


def print_lines(lines: list[str]) -> None:
    """Print lines of a table; a line that does not fit is wrapped in its second column, but a command is not."""
    width = terminal_width()
    for text in lines:
        label, said = (text[:_LABEL], text[_LABEL:]) if text[_LABEL - 2 : _LABEL] == "  " else ("", text)
        is_whole = cells(text) <= width or said.startswith(("fairwitness ", "git "))
        for line in [text] if is_whole else wrapped(said, width, first=label, rest=" " * _LABEL):
            click.echo(line)


LINES = 12
_NODES = 8


class RunLines(Protocol):
    """What the screens say about a run: the words of its events, the live region and a sign of life."""

    def words(self, event: "SummaryEvent") -> str | None:
        """Take an event in and return it in words; None if another event says the same."""
        ...

    def region(self, run: "FollowedRun", width: int) -> list[str]:
        """Return the live region, except for the hint below it."""
        ...

    def still(self, run: "FollowedRun") -> str:
        """Return what the run does now, in one line."""
        ...


class GraphLines:
    """The lines of a run that is a graph of tasks, and of runs that are not known better."""

    def words(self, event: "SummaryEvent") -> str | None:
        """See `RunLines`."""
        from fairwitness.app.views.event_lines import event_text

        return event_text(event)

    def region(self, run: "FollowedRun", width: int) -> list[str]:
        """See `RunLines`."""
        head = f"{name_of(run)}  {status_of(run).upper()}  {counted(run)}  {elapsed(run)}"
        lines = ["─" * width, cut(head, width)]
        nodes = working(run)
        names = max((cells(name) for name, _, _ in nodes[:_NODES]), default=0)
        for name, text, took in nodes[:_NODES]:
            tail = f"  {text}  {took}"
            lines.append(f"  {padded(name, min(names, width - cells(tail) - 2))}{tail}")
        return lines + ([f"  and {len(nodes) - _NODES} more"] if len(nodes) > _NODES else [])

    def still(self, run: "FollowedRun") -> str:
        """See `RunLines`."""
        at_work = ", ".join(f"{name} {took}" for name, _, took in working(run)[:3])
        return "; ".join(filter(None, (f"{status_of(run)}: {counted(run)}", at_work)))


class Screen(Protocol):
    """A screen that shows a run; a context manager."""

    def __enter__(self) -> "Screen": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """Show new events and the state of the run; the first call also shows its past."""
        ...


class OutputMode(NamedTuple):
    """The output format of a run: live, plain lines, JSON lines, or one JSON object."""

    plain: bool = False
    as_lines: bool = False
    as_json: bool = False

    @property
    def after(self) -> int | None:
        """The event after which the past is shown: all of it as JSON lines, else the last events (None)."""
        return 0 if self.as_lines else None

    @property
    def is_live(self) -> bool:
        """Whether the screen is redrawn in a terminal."""
        is_text = not (self.plain or self.as_lines or self.as_json)
        return is_text and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def output_mode(plain: bool, as_lines: bool, as_json: bool) -> OutputMode:
    """Return the output mode of the options; `UsageError` if they exclude each other."""
    if plain + as_lines + as_json > 1:
        raise click.UsageError("--plain, --jsonl and --json exclude each other; choose one")
    return OutputMode(plain, as_lines, as_json)


class SilentScreen:
    """Prints nothing; the result is printed at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """See `Screen`."""


class JsonLines(SilentScreen):
    """Prints every event as one line of JSON and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = 0

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """See `Screen`."""
        for event in (*run.past, *news):
            if event.seq > self._shown:
                self._stream.write(f"{json.dumps(event.plain())}\n")
                self._shown = event.seq
        self._stream.flush()


class PlainLines(SilentScreen):
    """Prints one line for each event, and a heartbeat now and then; `shown` is the last event that was shown before."""

    def __init__(
        self,
        lines: RunLines,
        stream: TextIO,
        *,
        is_ours: bool = False,
        heartbeat_s: float = HEARTBEAT_S,
        shown: int | None = None,
    ) -> None:
        self._lines, self._stream, self._is_ours = lines, stream, is_ours
        self._heartbeat_s, self._shown, self._taken = heartbeat_s, shown, 0
        self._last = time.monotonic()
        self._noted: str | None = None

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """See `Screen`."""
        earlier = run.past[0].seq - 1 if run.past and self._shown is None else 0
        said = [f"{earlier} earlier events: fairwitness events {name_of(run)}"] if earlier else []
        said += self._events((*run.past, *news))
        if (note := run.note or self._alone(run)) != self._noted:
            self._noted = note
            said += [note] if note else []
        is_quiet = not said and time.monotonic() - self._last > self._heartbeat_s and not run.view.is_over
        if is_quiet:
            said = ["; ".join(filter(None, (f"still {self._lines.still(run)}", self._alone(run))))]
        if said:
            self._last = time.monotonic()
            self._say(said)

    def _events(self, events: "Iterable[SummaryEvent]") -> list[str]:
        """Return the lines of the events that were not shown yet; earlier ones are only taken in."""
        said: list[str] = []
        for event in events:
            if event.seq > self._taken:
                words, self._taken = self._lines.words(event), event.seq
                if words is not None and event.seq > (self._shown or 0):
                    said += self._wrapped(event.timestamp, words)
        self._shown = max(self._shown or 0, self._taken)
        return said

    def _alone(self, run: "FollowedRun") -> str:
        """Return how to continue a run that no process executes; empty if one does."""
        if self._is_ours or not is_alone(run):
            return ""
        return f"{NO_PROCESS}: fairwitness resume {name_of(run)}"

    def _wrapped(self, timestamp: str, words: str) -> list[str]:
        """Return one line, however long: so each line can be searched."""
        from fairwitness.app.views.event_lines import clock_time

        return [f"{clock_time(timestamp)}  {words}"]

    def _say(self, lines: list[str]) -> None:
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()


class LiveScreen(PlainLines):
    """The live region at the bottom of a terminal, with permanent lines above it."""

    def __init__(
        self,
        lines: RunLines,
        hint: str,
        *,
        is_ours: bool = False,
        console: "Console | None" = None,
        shown: int | None = None,
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__(lines, sys.stdout, is_ours=is_ours, heartbeat_s=float("inf"), shown=shown)
        self._hint = hint
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        # No automatic refresh: the library's own thread would draw outdated content.
        self._live: Live = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._drawn = float("-inf")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """See `Screen`."""
        self._noted = run.note or self._alone(run)  # the last line of the region says it
        super().show(run, news)
        if news or run.note or time.monotonic() - self._drawn > _REDRAW_S:
            self._drawn = time.monotonic()
            self._live.update(self.region(run), refresh=True)

    def region(self, run: "FollowedRun") -> "Text":
        """Return the live region, of at most twelve lines."""
        from rich.text import Text

        width = self._console.width
        last = cut(run.note or self._alone(run) or self._hint, width)
        drawn = Text(no_wrap=True, overflow="ellipsis")
        for line in self._body(run, width)[: LINES - 1]:
            drawn.append(f"{line}\n", style=_style(line))
        return drawn.append(last)

    def _body(self, run: "FollowedRun", width: int) -> list[str]:
        return self._lines.region(run, width)

    def _wrapped(self, timestamp: str, words: str) -> list[str]:
        return wrapped_event(timestamp, words, self._console.width)

    def _say(self, lines: list[str]) -> None:
        from rich.text import Text

        for line in lines:
            self._console.print(Text(line, style=_style(line)), soft_wrap=True)


_REDRAW_S = 0.5
_COLOURS = (
    ("red", (" failed ", " blocked ", " refused ", " refuted ", " failed:", "Z  budget ")),
    ("yellow", ("waiting ", "Z  degraded ", " warning", " revise ", "Z  replan ")),
    ("cyan", ("now  ",)),
)


def _style(line: str) -> str:
    """Return a colour that repeats what the words say; NO_COLOR removes it."""
    return next((colour for colour, words in _COLOURS if any(word in f"{line} " for word in words)), "")


def show_end(run: "FollowedRun", output_mode: OutputMode) -> None:
    """Print how a run ended or what it waits for, and the next command."""
    from fairwitness.app.views.detail import next_command

    if output_mode.as_json:
        click.echo(json.dumps(run.plain(), indent=2))
    elif not output_mode.as_lines:
        from fairwitness.app.views.ends import end_lines

        head, *lines = end_lines(run)
        word = head.partition(":")[0]
        first, *more = wrapped(head, terminal_width(), rest=" " * _LABEL)
        styled = click.style(word, fg=_ENDS.get(run.view.status, "yellow"), bold=True)
        click.echo(f"\n{first.replace(word, styled, 1)}")
        print_lines([*more, *lines])
    print_next(run.root, next_command(run.view, is_worked_on=False))


def print_next(root: Path, command: str) -> None:
    """Print the next command, as it works from the current folder."""
    go = "" if Path.cwd().is_relative_to(root) else f"cd {shlex.quote(str(root))} && "
    click.echo(f"next:  {go}{command}", err=True)


_ENDS = {"completed": "green", "committed": "green", "failed": "red", "error": "red", "low_confidence": "red"}
