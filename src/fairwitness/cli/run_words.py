"""What the screens say of a run: its past, what is on its way, how far it is, and how it ended."""

from typing import TYPE_CHECKING

import click

from fairwitness.cli.columns import cells, terminal_width, wrapped
from fairwitness.cli.progress import spell_seconds

if TYPE_CHECKING:
    from fairwitness.app.watching import Event, Watching

NOBODY = "nobody works on it now"
_LABEL = 10


def name_of(run: "Watching") -> str:
    """The run's id, safe to show."""
    from fairwitness.app.event_words import shown

    return shown(run.run_id, 128)


def word_of(run: "Watching") -> str:
    """The run's status, safe to show: of a run that nobody knows the kind of it is the name of an event."""
    from fairwitness.app.event_words import shown

    return shown(run.look.word, 20)


def past_lines(run: "Watching", width: int) -> list[str]:
    """What happened before somebody looked, and how much of it is not shown."""
    earlier = run.past[0].seq - 1 if run.past else 0
    lines = [f"{earlier} earlier events: fairwitness events {name_of(run)}"] if earlier else []
    return lines + [line for event in run.past for line in event_lines(event, width)]


def event_lines(event: "Event", width: int) -> list[str]:
    """An event as lines of the screen; none if another tells the same."""
    from fairwitness.app.event_words import clock_time, told

    words = told(event)
    time_of_day = f"{clock_time(event.timestamp)}  "
    return [] if words is None else wrapped(words, width, first=time_of_day, rest=" " * len(time_of_day))


def working(run: "Watching") -> list[tuple[str, str, str]]:
    """Name, stage with attempt, and time so far of what is on its way; those at work first."""
    from fairwitness.app.event_words import shown
    from fairwitness.app.looking import AT_WORK, seconds_since
    from fairwitness.app.runs import Stage

    look, now = run.look, run.now
    return [
        (
            shown(node.name, 128),
            f"{look.stage(node).value:<8} attempt {look.tries(node)}",
            spell_seconds(seconds_since(node.since, now)),
        )
        for node in (*look.at(*AT_WORK), *look.at(Stage.QUEUED))
    ]


def counted(run: "Watching") -> str:
    """How far the run is, in numbers."""
    if run.look.workflow == "autopilot":
        phases = run.look.phases.counts()
        parts = [f"{phases['completed']}/{phases['total']} phases"]
        parts += [f"{phases['failed']} failed"] if phases["failed"] else []
        return ", ".join(parts + ([f"{phases['deferred']} for you"] if phases["deferred"] else []))
    counts = run.look.counts()
    parts = [f"{counts['merged']}/{counts['total']} merged"] if counts["total"] else []
    parts += [f"{counts['failed']} failed"] if counts["failed"] else []
    on_the_way = counts["running"] - counts["queued"]
    parts += [f"{on_the_way} {'stopped' if run.look.is_over else 'at work'}"] if on_the_way else []
    parts += [f"{counts['queued']} queued"] if counts["queued"] else []
    return ", ".join(parts)


def elapsed(run: "Watching") -> str:
    """How long the run has been going, or went on for."""
    from fairwitness.app.looking import seconds_since

    began, last = run.look.started or run.look.began, run.look.last_time
    if began is None or last is None:
        return ""
    after_it = seconds_since(last, run.now) if run.look.is_over else 0.0
    return spell_seconds(seconds_since(began, run.now) - after_it)


def is_alone(run: "Watching") -> bool:
    """Whether the run should go on and nobody carries it."""
    return run.look.status in ("executing", "plan_review") and not run.look.is_over and run.worker() is None


def say_end(run: "Watching") -> None:
    """How a run ended, or what it waits for."""
    from fairwitness.app.event_words import shown

    look = run.look
    width = terminal_width()
    colour = {"completed": "green", "failed": "red"}.get(look.word, "yellow")
    word = word_of(run).upper()
    waits = look.waits_for("")
    because = shown(look.reason) if look.reason else f"waits for {waits}" if waits else ""
    told = ": ".join(filter(None, (f"{counted(run)} in {elapsed(run)}".lstrip(), because)))
    first, *more = wrapped(told, width, first=" " * (cells(word) + 2), rest="  ")
    click.echo(f"{click.style(word, fg=colour, bold=True)}: {first.lstrip()}")
    for line in more:
        click.echo(line)


def say_lines(lines: list[str]) -> None:
    """Lines of a table: each as it is where it fits, and else broken below its second column."""
    width = terminal_width()
    for text in lines:
        label, said = (text[:_LABEL], text[_LABEL:]) if text[_LABEL - 2 : _LABEL] == "  " else ("", text)
        for line in [text] if cells(text) <= width else wrapped(said, width, first=label, rest=" " * _LABEL):
            click.echo(line)
