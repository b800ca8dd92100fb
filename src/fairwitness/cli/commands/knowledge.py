"""`fairwitness knowledge`: shows what runs learned about this repository, and forgets it on request."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import terminal_width, wrapped
from fairwitness.cli.screens.prompts import show_proposal

if TYPE_CHECKING:
    from fairwitness.app.runs.knowledge import KnowledgeEntry

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_MARGIN = "    "
_LONG = 4000


@click.group(name="knowledge", context_settings=_SETTINGS, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """What runs learned about this repository. Later runs read it as data, never as instructions.

    Without a command: list it.
    """
    return int(context.invoke(list_all, as_json=False)) if context.invoked_subcommand is None else ExitCode.REACHED


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_all(as_json: bool) -> int:
    """List all entries, the newest first."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.knowledge import file_of, knowledge_in

    root = repository_root(Path.cwd())
    known = knowledge_in(root)
    if as_json:
        plain = {"file": str(file_of(root)), "knowledge": [each.plain() for each in known]}
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    if not known:
        click.echo(f"No run has learned anything about {root} yet.")
    for each in known:
        _show(each)
    return ExitCode.REACHED


@command.command(name="forget")
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def forget(key: str, as_json: bool) -> int:
    """Remove the entry KEY."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.knowledge import forget as forget_key
    from fairwitness.app.text import safe_line

    gone = forget_key(repository_root(Path.cwd()), key)
    if as_json:
        click.echo(json.dumps({"forgotten": gone.plain()}, indent=2, ensure_ascii=False))
    else:
        click.echo(f"Forgotten: {safe_line(gone.key)}")
    return ExitCode.REACHED


@command.command(name="proposals")
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def proposals(run: str, as_json: bool) -> int:
    """Show the changes to instruction files that RUN proposed and that are not applied.

    Without RUN: the latest feature run.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.knowledge import pending_proposals

    waiting = pending_proposals(repository_root(Path.cwd()), run)
    if as_json:
        click.echo(json.dumps({"proposals": [each.plain() for each in waiting]}, indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    if not waiting:
        click.echo("No proposals pending.")
    for each in waiting:
        show_proposal(each)
        click.echo(f"next:  fairwitness knowledge apply {run} {each.number}", err=True)
    return ExitCode.REACHED


@command.command(name="apply")
@click.argument("run")
@click.argument("number", type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def apply(run: str, number: int, as_json: bool) -> int:
    """Apply proposal NUMBER of RUN to your checkout. The ledger records you as the approver."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.knowledge import apply_proposal
    from fairwitness.app.text import safe_line

    file = apply_proposal(repository_root(Path.cwd()), run, number)
    if as_json:
        click.echo(json.dumps({"applied": file}))
    else:
        click.echo(f"applied to {safe_line(file)}")
        click.echo("next:  git diff", err=True)
    return ExitCode.REACHED


def _show(known: "KnowledgeEntry") -> None:
    from fairwitness.app.text import safe_line

    click.echo(f"{safe_line(known.key, 120)}  {known.type}  {known.run_id}")
    texts = [safe_line(known.value, _LONG)]
    if known.grounds:
        texts.append(f"shown to no agent: {', '.join(known.grounds)}")
    for text in texts:
        for line in wrapped(text, terminal_width(), first=_MARGIN, rest=_MARGIN):
            click.echo(line)
