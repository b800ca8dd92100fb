"""`fairwitness retry`: gives a failed task more attempts."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode


@click.command(name="retry", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("task")
@click.argument("run", required=False, default="last")
@click.option(
    "--attempts", type=click.IntRange(1, 20), default=1, help="The number of additional attempts.", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(task: str, run: str, attempts: int, as_json: bool) -> int:
    """Give TASK of RUN (an id; default: the last run) more attempts after it failed.

    Its earlier work is kept. A worker that executes the run starts the attempt; otherwise run `fairwitness resume`.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.run_records.forge import retry
    from fairwitness.app.views.detail import resolve_run_at
    from fairwitness.app.views.workers import worker_on

    root = repository_root(Path.cwd())
    run_id = resolve_run_at(root, run)
    number = retry(root, run_id, task, more=attempts)
    if as_json:
        click.echo(json.dumps({"run_id": run_id, "task": task, "attempt": number}))
    else:
        click.echo(f"{task} of {run_id} waits for attempt {number}")
    click.echo(f"next:  fairwitness {'watch' if worker_on(root, run_id) is not None else 'resume'} {run_id}", err=True)
    return ExitCode.REACHED
