"""`assay status`: the runs of this repository."""

import json
from pathlib import Path

import click

from assay.cli.exit_codes import ExitCode


@click.command(name="status", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> int:
    """Show the runs of this repository and where each stands."""
    from assay.app.status import repository_root, runs_of

    root = repository_root(Path.cwd())
    runs = runs_of(root)
    if as_json:
        listed = [{name: getattr(run, name) for name in run.__slots__} for run in runs]
        click.echo(json.dumps({"root": str(root), "runs": listed}))
    elif not runs:
        click.echo(f"No runs in {root} yet.")
        click.echo("next:  assay demo", err=True)
    else:
        for run in runs:
            click.echo(f"{run.run_id}  {run.workflow:<9}  {run.last_event}  {run.last_time}  ({run.events} events)")
        click.echo(f"next:  assay events {runs[0].run_id}", err=True)
    return ExitCode.REACHED
