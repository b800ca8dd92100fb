"""`fairwitness cancel`: cancels a run and keeps what it made."""

import json
import sys
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import terminal_width, wrapped

_MOST = 10


@click.command(name="cancel", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str, yes: bool, as_json: bool) -> int:
    """Cancel RUN (an id, or `last`) on whichever worker executes it, and remove its worktrees.

    No work is lost: merged work is on the run's branch, and the rest is kept under refs/fairwitness/quarantine/. A run
    that has ended is not changed.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.detail import open_database, read_detail, resolve_run

    root = repository_root(Path.cwd())
    with open_database(root) as database:
        view = read_detail(database, resolve_run(database, run)).view
    if view.is_over:
        return _say_over(view.run_id, view.word, as_json=as_json)
    if not yes and not _agreed(view.run_id):
        click.echo("nothing was changed", err=True)
        return ExitCode.REACHED
    from fairwitness.app.runs.cancel import cancel
    from fairwitness.app.runs.drive import refuse_undrivable
    from fairwitness.app.text import safe_line

    refuse_undrivable(root, view)
    done = cancel(root, view)
    if done is None:
        return _say_over(view.run_id, "over", as_json=as_json)
    if as_json:
        fields = {name: getattr(done, name) for name in done.__slots__}
        click.echo(json.dumps({"run_id": view.run_id, "changed": True, **fields}, indent=2))
        return ExitCode.REACHED
    for line in wrapped(f"{view.run_id} is {safe_line(done.reason)}", terminal_width(), rest="  "):
        click.echo(line)
    if done.target is not None:
        click.echo(f"merged    {done.target}")
    for ref in done.kept[:_MOST]:
        for line in wrapped(ref, terminal_width(), first="kept      ", rest=" " * 10):
            click.echo(line)
    if len(done.kept) > _MOST:
        click.echo(f"          and {len(done.kept) - _MOST} more: git for-each-ref refs/fairwitness/quarantine")
    for branch in done.left:
        click.echo(f"left      {branch}: it is checked out in a worktree")
    click.echo(f"next:  fairwitness resume {view.run_id} goes on with it after all", err=True)
    return ExitCode.REACHED


def _say_over(run_id: str, word: str, *, as_json: bool) -> ExitCode:
    if as_json:
        click.echo(json.dumps({"run_id": run_id, "changed": False, "status": word}))
    else:
        click.echo(f"{run_id} is {word} already; nothing was changed")
        click.echo(f"next:  fairwitness status {run_id}", err=True)
    return ExitCode.REACHED


def _agreed(run_id: str) -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("cannot ask for confirmation without a terminal; add --yes to cancel the run")
    return click.confirm(f"End {run_id}? Its agents are stopped; what they made is kept.", err=True)
