"""`fairwitness dag`: shows the task graph of a run as a table, for Graphviz, or as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import cells, cut, padded, terminal_width
from fairwitness.cli.screens.progress import spell_seconds

if TYPE_CHECKING:
    from fairwitness.app.views.graph import GraphView, NodeLine

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_WIDEST = 28
_COLOURS = {
    "MERGED": "green",
    "RUNNING": "cyan",
    "MERGE_READY": "cyan",
    "DONE": "cyan",
    "FAILED": "red",
    "STALE": "red",
}
_FILLS = {
    "PENDING": "white",
    "RUNNING": "lightblue",
    "DONE": "paleturquoise",
    "MERGE_READY": "paleturquoise",
    "MERGED": "palegreen",
    "FAILED": "lightpink",
    "STALE": "khaki",
}


@click.group(name="dag", context_settings=_SETTINGS)
def command() -> None:
    """The task graph of a run."""


@command.command(name="show")
@click.argument("run", default="last")
@click.option("--dot", "as_dot", is_flag=True, help="Print Graphviz source: fairwitness dag show RUN --dot | dot -Tsvg")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the graph, its status, the run's state.")
def show(run: str, as_dot: bool, as_json: bool) -> int:
    """Show every node of RUN (default: the latest forge run): its state, attempt, and what it waits for.

    A star marks the critical path of what is not merged yet. A confidence is shown where a worker is so unsure that a
    person should review its work.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.graph import graph_view, plain_graph

    if as_dot and as_json:
        raise click.UsageError("--dot and --json exclude each other; choose one")
    root = repository_root(Path.cwd())
    if as_json:
        click.echo(json.dumps(plain_graph(root, run)))
        return ExitCode.REACHED
    picture = graph_view(root, run)
    # One write: ten thousand small ones would take longer than everything else.
    click.echo("\n".join(_dot(picture) if as_dot else _table(picture, terminal_width())))
    if not as_dot:
        click.echo(f"next:  fairwitness status {picture.run_id}", err=True)
    return ExitCode.REACHED


def _table(picture: "GraphView", width: int) -> Iterator[str]:
    names = max(4, min(_WIDEST, width - 50, max((cells(line.name) for line in picture.lines), default=0)))
    yield click.style(f"  {'node':<{names}}  {'type':<8}  {'state':<11}  {'try':<5}  waits for", bold=True)
    for line in picture.lines:
        yield from _row(line, names, width)
    counts = picture.counts
    parts = [f"{counts['merged']} of {counts['total']} merged"]
    parts += [
        f"{counts[name]} {text}"
        for name, text in (("running", "running"), ("waiting", "wait to be taken in"), ("failed", "failed for good"))
        if counts[name]
    ]
    yield cut(f"{picture.status}: {', '.join(parts)}", width)
    if picture.critical:
        way = " → ".join(picture.critical)
        yield cut(f"* longest way, {len(picture.critical)} nodes: {way}", width)


def _row(line: "NodeLine", names: int, width: int) -> Iterator[str]:
    mark = "*" if line.is_critical else " "
    name = padded(line.name, names)
    if cells(line.name) > names:  # a name is never cut where the line has room for it
        yield cut(f"{mark} {line.name}", width)
        mark, name = " ", " " * names
    at_work = "" if line.seconds is None else f"at work {spell_seconds(line.seconds)}"
    doubt = "" if line.doubt is None else f"confidence {line.doubt:.2f}, review it"
    waits = ", ".join(filter(None, (doubt, line.waits_for, at_work)))
    state = click.style(line.state, fg=_COLOURS.get(line.state)) + " " * (11 - len(line.state))
    yield f"{mark} {name}  {line.type:<8}  {state}  {line.attempt:<5}  {cut(waits, width - names - 34)}".rstrip()


def _dot(picture: "GraphView") -> Iterator[str]:
    yield f"digraph {_quoted(picture.run_id)} {{"
    yield '  rankdir=LR; node [shape=box, style=filled, fontname="sans-serif"];'
    critical = set(zip(picture.critical, picture.critical[1:], strict=False))
    for line in picture.lines:
        label = _quoted(line.name, f"{line.state} {line.attempt}")
        border = ", penwidth=3" if line.is_critical else ""
        style = ', style="filled,dashed"' if line.state in ("FAILED", "STALE") else ""
        shape = ", shape=hexagon" if line.type == "refinery" else ""
        fill = _FILLS.get(line.state, "white")
        yield f"  {_quoted(line.name)} [label={label}, fillcolor={fill}{border}{style}{shape}];"
    for before, after in picture.edges:
        yield f"  {_quoted(before)} -> {_quoted(after)}{' [penwidth=3]' if (before, after) in critical else ''};"
    yield "}"


def _quoted(*lines: str) -> str:
    r"""Lines as one string of Graphviz, in which nothing is a command.

    >>> _quoted('a"b', "c\\d")
    '"a\\"b\\nc\\\\d"'
    """
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'
