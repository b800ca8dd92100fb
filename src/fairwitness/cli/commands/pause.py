"""`fairwitness pause`: pauses a run until it is resumed."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode


@click.command(name="pause", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", required=False)
@click.option("--reason", help="The reason; it is recorded in the run's events.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str | None, reason: str | None, as_json: bool) -> int:
    """Pause RUN (an id, or `last`; default: the only unfinished run). Running tasks finish, no new ones start."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.run_records.forge import pause
    from fairwitness.app.views.detail import resolve_run_at

    root = repository_root(Path.cwd())
    run_id = resolve_run_at(root, run)
    is_new = pause(root, run_id, reason)
    if as_json:
        click.echo(json.dumps({"run_id": run_id, "status": "paused", "changed": is_new}))
    else:
        click.echo(f"{run_id} is paused{'' if is_new else ' already'}; running tasks may finish")
    click.echo(f"next:  fairwitness resume {run_id}", err=True)
    return ExitCode.REACHED
