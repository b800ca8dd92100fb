"""`fairwitness answer`: answers a question of a run."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.errors import UsageError


@click.command(name="answer", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("words", nargs=-1, metavar="[RUN] OPTION")
@click.option("--text", help="An explanation; some answers require one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(words: tuple[str, ...], text: str | None, as_json: bool) -> int:
    """Answer the question of RUN with OPTION. Without RUN: the only run that waits.

    An answer is final. A run that a worker executes continues at once; otherwise run `fairwitness resume`.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.answer import answer
    from fairwitness.app.views.inbox import ENDING, run_to_answer
    from fairwitness.app.views.workers import worker_on

    if len(words) > 2:
        raise click.UsageError("expected at most a run and an option")
    root = repository_root(Path.cwd())
    run_id = run_to_answer(root, words[0] if len(words) == 2 else None)
    if not words:
        raise UsageError(f"the answer to {run_id} is missing", next_step="fairwitness inbox shows the options")
    answer(root, run_id, words[-1], text)
    is_carried = worker_on(root, run_id) is not None
    if as_json:
        click.echo(json.dumps({"run_id": run_id, "answer": words[-1], "is_carried": is_carried}))
    else:
        click.echo(f"{run_id}: {words[-1]}")
    following = "status" if words[-1] in ENDING else "watch" if is_carried else "resume"
    click.echo(f"next:  fairwitness {following} {run_id}", err=True)
    return ExitCode.REACHED
