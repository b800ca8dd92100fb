"""`fairwitness status`: shows the runs of this repository, or one of them in detail."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import age, cells, cut, padded, terminal_width, wrapped
from fairwitness.cli.screens.progress import NO_PROCESS, spell_seconds

if TYPE_CHECKING:
    from fairwitness.app.views.detail import RunDetail, RunLine
    from fairwitness.app.views.feature import FeatureView
    from fairwitness.app.views.workers import RunWorker

COLOURS = {
    "completed": "green",
    "committed": "green",
    "executing": "cyan",
    "failed": "red",
    "paused": "yellow",
    "plan review": "yellow",
}
_GOOD_ENDS = ("completed", "committed")
_MOST = 8
_NAMES = 32
_SECOND_LINE = "    "


@click.command(name="status", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", required=False)
@click.option("--all", "all_runs", is_flag=True, help="List every run, including old ones.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str | None, all_runs: bool, as_json: bool) -> int:
    """Show the runs of this repository, newest first, or the details of RUN (an id, or `last`)."""
    from fairwitness.app.repository import repository_root

    root = repository_root(Path.cwd())
    if run is not None:
        return _show_one(root, run, as_json=as_json)
    from fairwitness.app.views.detail import SHOWN, run_lines

    lines, left = run_lines(root, most=None if all_runs or as_json else SHOWN)
    workers = _workers(root, lines)
    if as_json:
        listed = [
            {**{name: getattr(line, name) for name in line.__slots__}, "worker": _plain(workers.get(line.run_id))}
            for line in lines
        ]
        click.echo(json.dumps({"root": str(root), "runs": listed}))
    elif not lines:
        from fairwitness.app.repository import database_hint

        click.echo(f"No runs in {root} yet.")
        click.echo(f"next:  {database_hint(root) or 'fairwitness demo'}", err=True)
    else:
        names = max(cells(line.run_id) for line in lines)
        stopped = [line.run_id for line in lines if _is_stopped(line, workers)]
        for line in lines:
            _show_line(line, min(names, _NAMES), is_stopped=line.run_id in stopped)
        if left:
            click.echo(f"and {left} more that ended: fairwitness status --all", err=True)
        click.echo(f"next:  {_next(lines, stopped)}", err=True)
    return ExitCode.REACHED


def _workers(root: Path, lines: "list[RunLine]") -> "dict[str, RunWorker]":
    """Return the processes that execute runs; the engine's tables are read only if a run is unfinished."""
    if all(line.is_over for line in lines):
        return {}
    from fairwitness.app.views.workers import workers_of

    return workers_of(root)


def _plain(worker: "RunWorker | None") -> dict[str, Any] | None:
    return None if worker is None else {name: getattr(worker, name) for name in worker.__slots__}


def _is_stopped(line: "RunLine", workers: "dict[str, RunWorker]") -> bool:
    """Return whether a run could continue, but no process is working on it."""
    waits = line.status in ("waiting", "paused") or line.waits_for.startswith("you")
    return not line.is_over and not waits and line.run_id not in workers


def _next(lines: "list[RunLine]", stopped: list[str]) -> str:
    going = next((line for line in lines if line.total and not line.is_over), None)
    if any(line.status == "waiting" and not line.is_over for line in lines):
        return "fairwitness inbox"
    if stopped:
        return f"fairwitness resume {stopped[0]}"
    if going is not None:
        return f"fairwitness status {going.run_id}"
    has_more = lines[0].total or lines[0].workflow == "feature"
    return f"fairwitness {'status' if has_more else 'events'} {lines[0].run_id}"


def _show_line(line: "RunLine", names: int, *, is_stopped: bool) -> None:
    from fairwitness.app.text import safe_line

    width = terminal_width()
    name = safe_line(line.run_id, 128)
    rest = [click.style(f"{safe_line(line.word, 20):<13}", fg=COLOURS.get(line.word))]
    if line.total:
        rest.append(f"{line.merged}/{line.total} {'phases' if line.workflow == 'autopilot' else 'tasks'}")
    rest.append(age(line.age_s))
    line_text = "  ".join([f"{line.workflow:<9}", *rest])
    if max(cells(name), names) + 2 + cells(click.unstyle(line_text)) <= width:
        click.echo(f"{name}{' ' * (names - cells(name))}  {line_text}")
    else:
        click.echo(f"{name}\n{_SECOND_LINE}{line_text}")
    failed = f"{line.failed} failed" if line.failed and line.status != "failed" else ""
    reason = f"because {safe_line(line.reason)}" if line.reason and line.status not in _GOOD_ENDS else ""
    waiting = f"{NO_PROCESS}: fairwitness resume {name}" if is_stopped else _waiting(line.waits_for)
    for text in filter(None, (failed, reason, waiting)):
        for part in wrapped(text, width, first=_SECOND_LINE, rest=_SECOND_LINE + "  "):
            click.echo(part)


def _waiting(waits_for: str) -> str:
    return f"waits for {waits_for}" if waits_for.startswith("you") else waits_for


def _show_one(root: Path, wanted: str, *, as_json: bool) -> int:
    from fairwitness.app.views.agent_usage import read_usage, usage_line
    from fairwitness.app.views.detail import READ, next_command, open_database, plain_detail, read_detail, resolve_run
    from fairwitness.app.views.workers import worker_on

    with open_database(root) as database:
        detail = read_detail(database, resolve_run(database, wanted), events=READ)
        worker = None if detail.view.is_over else worker_on(root, detail.view.run_id)
        used = read_usage(database, detail.view.run_id, is_worked_on=worker is not None)
    following = next_command(detail.view, is_worked_on=worker is not None)
    if as_json:
        plain = {"root": str(root), **plain_detail(detail), "usage": used.plain()}
        plain |= {"worker": _plain(worker), "next": following}
        click.echo(json.dumps(plain, indent=2))
        return ExitCode.REACHED
    feature = _feature(root, detail)
    if detail.view.ended() is not None:
        _show_closing(root, detail)
        _show_board(root, detail)
    else:
        _show_head(detail, worker, usage_line(used) if used.calls or used.interrupted else "")
        _show_board(root, detail)
        if feature is not None:
            from fairwitness.cli.screens.feature import live_lines

            for line in live_lines(feature, width=terminal_width(), is_worked_on=worker is not None)[
                2:
            ]:  # no rule and headline
                click.echo(line)
        _show_nodes(detail, is_worked_on=worker is not None)
    _show_events(detail, feature)
    click.echo(f"next:  {following}", err=True)
    return ExitCode.REACHED


def _show_closing(root: Path, detail: "RunDetail") -> None:
    """Show how a run ended or what it waits for, as it is shown at the end of a run."""
    from fairwitness.app.text import safe_line, seconds_between
    from fairwitness.app.views.ends import end_lines
    from fairwitness.app.views.followed_run import follow_run
    from fairwitness.cli.screens.run import print_lines

    view = detail.view
    with follow_run(root, view.run_id) as followed:
        head, *lines = end_lines(followed, is_brief=True)
    word, _, about = head.partition(": ")
    first = f"{safe_line(view.run_id, 128)}  {view.workflow}  "
    room = terminal_width() - cells(first) - cells(word) - 2
    styled = click.style(word, fg=COLOURS.get(view.word), bold=True)
    click.echo(f"{first}{styled}{f': {cut(about, room)}' if about and room > 0 else ''}")
    ended = f", ended {age(seconds_between(view.last_time, detail.now))}" if view.last_time and view.is_over else ""
    print_lines([f"{line}{ended}" if line.startswith("time ") else line for line in lines])


def _feature(root: Path, detail: "RunDetail") -> "FeatureView | None":
    """Return the view of a feature run with its steps, or None for other runs."""
    if detail.view.workflow != "feature":
        return None
    from fairwitness.app.views.followed_run import read_feature

    return read_feature(root, detail.view.run_id)


def _show_board(root: Path, detail: "RunDetail") -> None:
    """Show the phases of an autopilot run; a run without an order has none."""
    if detail.view.workflow != "autopilot" or not detail.view.phases.wanted:
        return
    from fairwitness.app.views.board import view_of_run
    from fairwitness.cli.screens.autopilot import board_lines

    for line in board_lines(view_of_run(root, detail.view.run_id), terminal_width()):
        click.echo(line)


def _show_head(detail: "RunDetail", worker: "RunWorker | None", cost: str) -> None:
    from fairwitness.app.text import safe_line, seconds_between
    from fairwitness.app.views.detail import review_lines

    view, width = detail.view, terminal_width()
    word = click.style(safe_line(view.word, 20).upper(), fg=COLOURS.get(view.word), bold=True)
    click.echo(f"{safe_line(view.run_id, 128)}  {view.workflow}  {word}")
    _field("asked", safe_line(view.request), width)
    _field("because", safe_line(view.reason or ""), width)
    if view.began is not None and view.last_time is not None:
        began, last = (age(seconds_between(moment, detail.now)) for moment in (view.began, view.last_time))
        _field("time", f"began {began}, last event {last}", width)
    _field("cost", cost, width)
    _show_tasks(detail, is_worked_on=worker is not None)
    for text in review_lines(detail.doubtful):
        _field("review", text, width)
    waits = view.waits_for("")
    if worker is not None:
        _field("worker", f"process {worker.pid} on {worker.host}", width)
    elif not view.is_over and view.ended() is None:
        _field("worker", NO_PROCESS, width)
    if not waits.startswith("a worker"):
        _field("waits for", waits, width)


def _show_tasks(detail: "RunDetail", *, is_worked_on: bool) -> None:
    counts = detail.view.counts()
    if not counts["total"]:
        return
    parts = [
        f"{counts['merged']} of {counts['total']} merged",
        f"{counts['working'] + counts['helping']} {'at work' if is_worked_on else 'interrupted'}",
        f"{counts['queued']} to be merged",
        f"{counts['merging']} being merged",
        f"{counts['waiting']} waiting for a refinery",
        f"{counts['failed']} failed",
    ]
    _field("tasks", ", ".join([parts[0], *(part for part in parts[1:] if not part.startswith("0 "))]), terminal_width())


def _field(name: str, text: str, width: int) -> None:
    if text:
        for line in wrapped(text, width, first=f"{name:<10}", rest=" " * 10):
            click.echo(line)


def _show_nodes(detail: "RunDetail", *, is_worked_on: bool) -> None:
    from fairwitness.app.text import safe_line, seconds_between
    from fairwitness.app.views.detail import AT_WORK
    from fairwitness.app.views.run import NodeStage

    view, width = detail.view, terminal_width()
    groups = {"at work": view.at(*AT_WORK), "to be merged": view.at(NodeStage.QUEUED)}
    if view.workflow == "feature":
        groups = {}  # its steps and tasks are shown above
    names = max((cells(safe_line(node.name, 128)) for nodes in groups.values() for node in nodes[:_MOST]), default=0)
    for title, nodes in groups.items():
        for node in nodes[:_MOST]:
            took = spell_seconds(seconds_between(node.since, detail.now)) if is_worked_on else ""
            line_text = f"{view.stage(node).value:<8}  attempt {view.tries(node)}  {took}".rstrip()
            click.echo(f"  {padded(safe_line(node.name, 128), min(names, width - cells(line_text) - 4))}  {line_text}")
        if len(nodes) > _MOST:
            click.echo(f"  and {len(nodes) - _MOST} more {title}")
    for node in view.exhausted()[:_MOST]:
        word = click.style("FAILED", fg="red")
        click.echo(f"  {cut(safe_line(node.name, 128), width - 30)}  {word} after attempt {node.attempt}")
        for line in wrapped(safe_line(node.error or "no reason is known"), width, first="    ", rest="    "):
            click.echo(line)
    if len(view.exhausted()) > _MOST:
        click.echo(f"  and {len(view.exhausted()) - _MOST} more failed: fairwitness dag show {view.run_id}")


def _show_events(detail: "RunDetail", feature: "FeatureView | None") -> None:
    from fairwitness.app.views.detail import EVENTS
    from fairwitness.app.views.event_lines import event_text
    from fairwitness.cli.screens.run import wrapped_event

    if feature is not None:
        from fairwitness.cli.screens.feature import event_lines

        texts = [event_lines(event, feature, terminal_width() - 2) for event in detail.last]
        shown = [lines for lines in texts if lines][-EVENTS:]
        if shown:
            click.echo("last events")
        for line in [line for lines in shown for line in lines]:
            click.echo(f"  {line}")
        return
    lines = [(event.timestamp, words) for event in detail.last if (words := event_text(event)) is not None]
    if lines:
        click.echo("last events")
    for timestamp, words in lines[-EVENTS:]:
        for part in wrapped_event(timestamp, words, terminal_width() - 2):
            click.echo(f"  {part}")
