"""`assay status`: the runs of this repository."""

import json
from pathlib import Path

import click

from assay.cli.exit_codes import ExitCode


@click.command(name="status", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> int:
    """Show the runs of this repository and where each stands."""
    from assay.app.status import repository_status

    status = repository_status(Path.cwd())
    if as_json:
        click.echo(json.dumps({"root": status.root, "runs": list(status.runs)}))
    else:
        click.echo(f"No runs in {status.root} yet.")
        click.echo("next:  assay demo", err=True)
    return ExitCode.REACHED
