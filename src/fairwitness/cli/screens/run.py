"""Screens of runs: live in a terminal, plain lines elsewhere, or JSON lines.

Events become permanent lines; only the live region, at most twelve lines, is redrawn.
"""

import json
import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TextIO

import click

from fairwitness.cli.screens.columns import cells, cut, padded, terminal_width, wrapped
from fairwitness.cli.screens.progress import HEARTBEAT_S, spell_seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from fairwitness.app.views.followed_run import FollowedRun, SummaryEvent


def print_feature_end(run: "FollowedRun") -> None:
    """Print how a feature run ended, or what it waits for."""
    from fairwitness.app.views.ends import feature_end_lines

    print_lines(feature_end_lines(run.root, run.run_id))


NOBODY = "nobody works on it now"
_LABEL = 10


def name_of(run: "FollowedRun") -> str:
    """Return the run's id, safe for a terminal."""
    from fairwitness.app.text import safe_line

    return safe_line(run.run_id, 128)


def status_of(run: "FollowedRun") -> str:
    """Return the run's status, safe for a terminal; for an unknown workflow it is the name of an event."""
    from fairwitness.app.text import safe_line

    return safe_line(run.view.word, 20)


def past_lines(run: "FollowedRun", width: int) -> list[str]:
    """Return the events before following began, and how many are left out."""
    earlier = run.past[0].seq - 1 if run.past else 0
    lines = [f"{earlier} earlier events: fairwitness events {name_of(run)}"] if earlier else []
    return lines + [line for event in run.past for line in event_lines(event, width)]


def event_lines(event: "SummaryEvent", width: int) -> list[str]:
    """Return an event as screen lines; none if another event says the same."""
    from fairwitness.app.views.event_lines import clock_time, event_text

    words = event_text(event)
    time_of_day = f"{clock_time(event.timestamp)}  "
    return [] if words is None else wrapped(words, width, first=time_of_day, rest=" " * len(time_of_day))


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


def print_end(run: "FollowedRun") -> None:
    """Print how a run ended, or what it waits for."""
    from fairwitness.app.text import safe_line

    view = run.view
    width = terminal_width()
    colour = {"completed": "green", "failed": "red"}.get(view.word, "yellow")
    word = status_of(run).upper()
    waits = view.waits_for("")
    because = safe_line(view.reason) if view.reason else f"waits for {waits}" if waits else ""
    text = ": ".join(filter(None, (f"{counted(run)} in {elapsed(run)}".lstrip(), because)))
    first, *more = wrapped(text, width, first=" " * (cells(word) + 2), rest="  ")
    click.echo(f"{click.style(word, fg=colour, bold=True)}: {first.lstrip()}")
    for line in more:
        click.echo(line)


def print_lines(lines: list[str]) -> None:
    """Print lines of a table; a line that does not fit is wrapped in its second column."""
    width = terminal_width()
    for text in lines:
        label, said = (text[:_LABEL], text[_LABEL:]) if text[_LABEL - 2 : _LABEL] == "  " else ("", text)
        for line in [text] if cells(text) <= width else wrapped(said, width, first=label, rest=" " * _LABEL):
            click.echo(line)


LINES = 12
_NODES = 8


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


def output_mode(plain: bool, as_lines: bool, as_json: bool) -> OutputMode:
    """Return the output mode of the options; `UsageError` if they exclude each other."""
    if plain + as_lines + as_json > 1:
        raise click.UsageError("--plain, --jsonl and --json exclude each other; choose one")
    return OutputMode(plain, as_lines, as_json)


def screen(output_mode: OutputMode, *, hint: str, is_ours: bool = False) -> Screen:
    """Return the screen for the kind of output; `hint` says what Ctrl-C does, `is_ours` that this process runs it."""
    if output_mode.as_json:
        return SilentScreen()
    if output_mode.as_lines:
        return JsonLines(sys.stdout)
    if output_mode.plain or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return PlainLines(sys.stdout, is_ours=is_ours)
    return LiveScreen(hint, is_ours=is_ours)


class SilentScreen:
    """Prints nothing; the result is printed at the end."""

    def __enter__(self) -> "SilentScreen":
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """See `Screen`."""


class JsonLines:
    """Prints every event as one line of JSON and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began = False

    def __enter__(self) -> "JsonLines":
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """See `Screen`."""
        events = [*(() if self._began else run.past), *news]
        self._began = True
        if events:
            self._stream.write("".join(f"{json.dumps(event.plain())}\n" for event in events))
            self._stream.flush()


class PlainLines:
    """Prints a line for each event, and a heartbeat now and then."""

    def __init__(self, stream: TextIO, *, is_ours: bool = False, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._stream, self._is_ours = stream, is_ours
        self._heartbeat_s = heartbeat_s
        self._began = False
        self._last = time.monotonic()
        self._is_alone = False

    def __enter__(self) -> "PlainLines":
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """See `Screen`."""
        width = terminal_width()
        lines = [] if self._began else past_lines(run, width)
        self._began = True
        lines += [line for event in news for line in event_lines(event, width)]
        lines += self._alone(run, width) + ([run.note] if run.note else [])
        if not lines and time.monotonic() - self._last > self._heartbeat_s and not run.view.is_over:
            at_work = ", ".join(f"{name} {took}" for name, _, took in working(run)[:3])
            more = f"{NOBODY}: fairwitness resume {name_of(run)}" if self._is_alone else at_work
            text = "; ".join(filter(None, (f"still {status_of(run)}: {counted(run)}", more)))
            lines = wrapped(text, width, rest="  ")
        if lines:
            self._last = time.monotonic()
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()

    def _alone(self, run: "FollowedRun", width: int) -> list[str]:
        """Return the line that no worker executes the run, once each time that this becomes true."""
        was_alone, self._is_alone = self._is_alone, not self._is_ours and is_alone(run)
        if not self._is_alone or was_alone:
            return []
        return wrapped(f"{NOBODY}: fairwitness resume {name_of(run)}", width, rest="  ")


class LiveScreen:
    """The live region at the bottom of a terminal, with permanent lines above it."""

    def __init__(self, hint: str, *, is_ours: bool = False, console: "Console | None" = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._hint, self._is_ours = hint, is_ours
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        # No automatic refresh: the library's own thread would draw outdated content.
        self._live: Live = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._began = False
        self._drawn = 0.0

    def __enter__(self) -> "LiveScreen":
        self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    def show(self, run: "FollowedRun", news: "list[SummaryEvent]") -> None:
        """See `Screen`."""
        from rich.text import Text

        width = self._console.width
        lines = [] if self._began else past_lines(run, width)
        lines += [line for event in news for line in event_lines(event, width)]
        for line in lines:
            self._console.print(Text(line), soft_wrap=True)
        if lines or run.note or not self._began or time.monotonic() - self._drawn > 0.5:
            self._drawn = time.monotonic()
            self._live.update(self._region(run, width), refresh=True)
        self._began = True

    def _region(self, run: "FollowedRun", width: int) -> "Text":
        from rich.text import Text

        head = f"{name_of(run)}  {status_of(run).upper()}  {counted(run)}  {elapsed(run)}"
        lines = ["─" * width, cut(head, width)]
        nodes = working(run)
        names = max((cells(name) for name, _, _ in nodes[:_NODES]), default=0)
        for name, text, took in nodes[:_NODES]:
            tail = f"  {text}  {took}"
            lines.append(f"  {padded(name, min(names, width - cells(tail) - 2))}{tail}")
        if len(nodes) > _NODES:
            lines.append(f"  and {len(nodes) - _NODES} more")
        alone = not self._is_ours and is_alone(run)
        lines.append(cut(run.note or (f"{NOBODY}: fairwitness resume {name_of(run)}" if alone else self._hint), width))
        return Text("\n".join(lines[:LINES]), no_wrap=True, overflow="ellipsis")


def show_end(run: "FollowedRun", output_mode: OutputMode, *, is_ours: bool = False) -> None:
    """Print how a run ended or what it waits for, and the next command; more if this process ran it."""
    from fairwitness.app.views.detail import next_command

    if run.view.workflow == "feature" and not (output_mode.as_json or output_mode.as_lines):
        print_feature_end(run)
        click.echo(f"next:  {next_command(run.view, is_worked_on=False)}", err=True)
        return
    if output_mode.as_json:
        click.echo(json.dumps(run.plain(), indent=2))
    elif not output_mode.as_lines:
        print_end(run)
        if run.view.workflow == "forge" and is_ours:
            from fairwitness.app.views.ends import forge_end_lines

            print_lines(forge_end_lines(run.root, run.run_id))
    click.echo(f"next:  {next_command(run.view, is_worked_on=False)}", err=True)
