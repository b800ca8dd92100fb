"""`fairwitness cr`: what refineries found missing in a plan, and what a person says to it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import cut, padded, terminal_width, wrapped

if TYPE_CHECKING:
    from fairwitness.app.runs.change_requests import Decided, Look

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_LONG = 4000
_NAMES = 20
_MARGIN = "  "


@click.group(name="cr", context_settings=_SETTINGS)
def command() -> None:
    """Change requests: where a refinery finds that a plan lacks something, it asks for it."""


@command.command(name="list")
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_all(run: str | None, as_json: bool) -> int:
    """List the change requests of RUN (an id, or `last`); without RUN, of the only run that has not ended."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.change_requests import listed

    run_id, looks = listed(repository_root(Path.cwd()), run)
    if as_json:
        plain = {"run_id": run_id, "change_requests": [look.request.plain() for look in looks]}
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    if not looks:
        click.echo(f"Nothing was asked for in {run_id}.")
    for look in looks:
        click.echo(_line(look))
    waiting = next((look.request.id for look in looks if look.is_pending), None)
    click.echo(f"next:  fairwitness {f'cr show {waiting}' if waiting else 'status'} {run_id}", err=True)
    return ExitCode.REACHED


@command.command(name="show")
@click.argument("cr", metavar="CR")
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(cr: str, run: str | None, as_json: bool) -> int:
    """Show what change request CR asks for, why, and what became of it."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.change_requests import shown_request

    look = shown_request(repository_root(Path.cwd()), cr, run)
    if as_json:
        click.echo(json.dumps(look.plain(), indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    for line in _lines(look):
        click.echo(line)
    following = f"cr approve {cr} {look.run_id}" if look.is_pending else f"status {look.run_id}"
    click.echo(f"next:  fairwitness {following}", err=True)
    return ExitCode.REACHED


@command.command(name="approve")
@click.argument("cr", metavar="CR")
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def approve(cr: str, run: str | None, as_json: bool) -> int:
    """Approve change request CR: the captain plans what it asks for, and the plan grows if that fits."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.change_requests import approve as approve_request

    return _tell(approve_request(repository_root(Path.cwd()), cr, run), as_json=as_json)


@command.command(name="reject")
@click.argument("cr", metavar="CR")
@click.argument("run", required=False)
@click.option("--reason", required=True, help="Why, for whoever asked for it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reject(cr: str, run: str | None, reason: str, as_json: bool) -> int:
    """Reject change request CR: the run goes on by the plan that stands."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.change_requests import reject as reject_request

    return _tell(reject_request(repository_root(Path.cwd()), cr, run, reason), as_json=as_json)


def _tell(decided: "Decided", *, as_json: bool) -> int:
    look = decided.look
    if as_json:
        plain = {**look.plain(), "is_carried": decided.is_carried, "next": decided.following}
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    click.echo(f"{look.run_id}: {look.request.id} is {look.request.status.value}")
    click.echo(f"next:  {decided.following}", err=True)
    return ExitCode.REACHED


def _line(look: "Look") -> str:
    from fairwitness.app.text import shown

    request = look.request
    who = padded(shown(request.emitted_by, 128), _NAMES)
    return cut(f"{request.id}  {request.status.value:<8}  {who}  {shown(request.title, _LONG)}", terminal_width())


def _lines(look: "Look") -> Iterator[str]:
    """Everything about a request, in lines that fit."""
    from fairwitness.app.text import safe_lines, shown

    width, request = terminal_width(), look.request
    yield from wrapped(
        shown(request.title, _LONG), width, first=f"{request.id}  {request.status.value}  ", rest=_MARGIN
    )
    fields = [
        ("asked by", f"{request.emitted_by}, {request.emitted_at}"),
        ("because", request.reason),
        ("affects", ", ".join(request.affected_tasks) or "no task"),
        ("wanted", request.suggested_changes),
        ("decided", f"{request.decided_by}, {request.decided_at}" if request.decided_by is not None else ""),
        ("reason", look.reason or ""),
    ]
    if look.overlay is not None:
        names = ", ".join(node.id for node in look.overlay.addedNodes) or "no node"
        edges = ", ".join(f"{edge.to} waits for {edge.from_}" for edge in look.overlay.addedEdges)
        fields.append(("added", f"{names}{'; ' if edges else ''}{edges}"))
    fields += [("refused", problem) for problems in look.refused for problem in problems]
    for name, text in fields:
        if text:
            yield from wrapped(shown(text, _LONG), width, first=f"{name:<9} ", rest=" " * 10)
    for text in safe_lines(request.body):
        yield from wrapped(text, width, first=_MARGIN, rest=_MARGIN) if text.strip() else ("",)
