"""`fairwitness rollback`: undoes the commit of a run and keeps a reference to it."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import terminal_width, wrapped


@click.command(name="rollback", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run")
@click.option("--revert", is_flag=True, help="If later commits build on it: create a revert commit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str, revert: bool, as_json: bool) -> int:
    """Return the repository to the state before RUN (an id, or `last`) committed.

    The commit is kept under refs/fairwitness/rolled-back/.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.rollback import roll_back

    done = roll_back(repository_root(Path.cwd()), run, revert=revert)
    if as_json:
        click.echo(json.dumps(done._asdict(), indent=2))
        return ExitCode.REACHED
    summary = ["it was rolled back before"] if done.was_done else [f"the checkout is on {done.now_on}"]
    summary += [f"branch {branch} is gone" for branch in done.branches]
    summary += [f"{done.reverted_by[:12]} takes it back"] if done.reverted_by else []
    summary += [f"commit {done.commit[:12]} is kept at {done.kept}"]
    for text in summary:
        for line in wrapped(text, terminal_width(), rest="  "):
            click.echo(line)
    click.echo(f"next:  {done.restore or 'git log'}", err=True)
    return ExitCode.REACHED
