"""`fairwitness verdict`: records your verdict on a phase that no command could decide."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode


@click.command(name="verdict", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("phase")
@click.argument("verdict", type=click.Choice(["pass", "fail", "issues"]))
@click.option("--issue", "issues", multiple=True, metavar="TEXT", help="A problem you found; may be repeated.")
@click.option("--run", metavar="RUN", help="The run (an id, or `last`). Default: the latest in which the phase waits.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(phase: str, verdict: str, issues: tuple[str, ...], run: str | None, as_json: bool) -> int:
    """Decide whether PHASE, which an autopilot run deferred to you, passes.

    `pass` completes the phase, so that phases that depend on it can run; `fail` and `issues` fail it, and they are not
    run. A verdict is final. A run that a worker executes continues at once; otherwise run `fairwitness resume`.

    \b
    Examples:
      fairwitness verdict 3 pass
      fairwitness verdict 3 issues --issue "the total is wrong for two vouchers"
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.verdict import give_verdict

    given = give_verdict(repository_root(Path.cwd()), phase, verdict, issues, run)
    if as_json:
        click.echo(json.dumps(given.plain(), ensure_ascii=False))
        return ExitCode.REACHED
    said = given.recorded
    click.echo(f"{said.run_id}: phase {said.phase} {said.verdict.value.replace('_', ' ')}")
    if said.new_limit != said.old_limit:
        less = "less" if said.new_limit < said.old_limit else "more"
        click.echo(f"you will be asked {less}: below confidence {said.new_limit:g}, was {said.old_limit:g}")
    if said.warning is not None:
        click.echo(said.warning, err=True)
    click.echo(f"next:  {given.following}", err=True)
    return ExitCode.REACHED
