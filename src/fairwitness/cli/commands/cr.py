"""`fairwitness cr`: shows and decides the change requests of a forge run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import cut, padded, terminal_width, wrapped

if TYPE_CHECKING:
    from fairwitness.app.runs.change_requests import ChangeRequestView, DecidedRequest

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_LONG = 4000
_NAMES = 20
_MARGIN = "  "


@click.group(name="cr", context_settings=_SETTINGS)
def command() -> None:
    """Change requests: additions to the plan that a refinery asks for."""


@command.command(name="list")
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_all(run: str, as_json: bool) -> int:
    """List the change requests of RUN (default: the latest forge run)."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.change_requests import listed

    run_id, views = listed(repository_root(Path.cwd()), run)
    if as_json:
        plain = {"run_id": run_id, "change_requests": [view.request.plain() for view in views]}
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    if not views:
        click.echo(f"No change requests in {run_id}.")
    for view in views:
        click.echo(_line(view))
    waiting = next((view.request.id for view in views if view.is_pending), None)
    click.echo(f"next:  fairwitness {f'cr show {waiting}' if waiting else 'status'} {run_id}", err=True)
    return ExitCode.REACHED


@command.command(name="show")
@click.argument("cr", metavar="CR")
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(cr: str, run: str, as_json: bool) -> int:
    """Show what change request CR of RUN (default: the latest forge run) asks for, why, and its result."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.change_requests import shown_request

    view = shown_request(repository_root(Path.cwd()), cr, run)
    if as_json:
        click.echo(json.dumps(view.plain(), indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    for line in _lines(view):
        click.echo(line)
    following = f"cr approve {cr} {view.run_id}" if view.is_pending else f"status {view.run_id}"
    click.echo(f"next:  fairwitness {following}", err=True)
    return ExitCode.REACHED


@command.command(name="approve")
@click.argument("cr", metavar="CR")
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def approve(cr: str, run: str | None, as_json: bool) -> int:
    """Approve change request CR: the captain plans it, and the plan is extended if the new tasks fit."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.change_requests import approve as approve_request

    return _tell(approve_request(repository_root(Path.cwd()), cr, run), as_json=as_json)


@command.command(name="reject")
@click.argument("cr", metavar="CR")
@click.argument("run", required=False)
@click.option("--reason", required=True, help="The reason; the refinery that asked reads it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reject(cr: str, run: str | None, reason: str, as_json: bool) -> int:
    """Reject change request CR: the run continues with the current plan."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.change_requests import reject as reject_request

    return _tell(reject_request(repository_root(Path.cwd()), cr, run, reason), as_json=as_json)


def _tell(decided: "DecidedRequest", *, as_json: bool) -> int:
    view = decided.view
    if as_json:
        plain = {**view.plain(), "is_carried": decided.is_carried, "next": decided.following}
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    click.echo(f"{view.run_id}: {view.request.id} is {view.request.status.value}")
    click.echo(f"next:  {decided.following}", err=True)
    return ExitCode.REACHED


def _line(view: "ChangeRequestView") -> str:
    from fairwitness.app.text import safe_line

    request = view.request
    who = padded(safe_line(request.emitted_by, 128), _NAMES)
    return cut(f"{request.id}  {request.status.value:<8}  {who}  {safe_line(request.title, _LONG)}", terminal_width())


def _lines(view: "ChangeRequestView") -> Iterator[str]:
    """Print a change request in lines that fit the terminal."""
    from fairwitness.app.text import safe_line, safe_lines

    width, request = terminal_width(), view.request
    yield from wrapped(
        safe_line(request.title, _LONG), width, first=f"{request.id}  {request.status.value}  ", rest=_MARGIN
    )
    fields = [
        ("asked by", f"{request.emitted_by}, {request.emitted_at}"),
        ("because", request.reason),
        ("affects", ", ".join(request.affected_tasks) or "no task"),
        ("wanted", request.suggested_changes),
        ("decided", f"{request.decided_by}, {request.decided_at}" if request.decided_by is not None else ""),
        ("reason", view.reason or ""),
    ]
    if view.overlay is not None:
        names = ", ".join(node.id for node in view.overlay.addedNodes) or "no node"
        edges = ", ".join(f"{edge.to} waits for {edge.from_}" for edge in view.overlay.addedEdges)
        fields.append(("added", f"{names}{'; ' if edges else ''}{edges}"))
    fields += [("refused", problem) for problems in view.refused for problem in problems]
    for name, text in fields:
        if text:
            yield from wrapped(safe_line(text, _LONG), width, first=f"{name:<9} ", rest=" " * 10)
    for text in safe_lines(request.body):
        yield from wrapped(text, width, first=_MARGIN, rest=_MARGIN) if text.strip() else ("",)
