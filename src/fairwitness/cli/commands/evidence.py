"""`fairwitness evidence`: shows what was run, in which sandbox, and its output."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.progress import spell_seconds

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(name="evidence", context_settings=_SETTINGS, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """The commands that Fair Witness ran itself, and their output, protected by hashes.

    Without a command: print the bundle of the latest feature run.
    """
    if context.invoked_subcommand is not None:
        return ExitCode.REACHED
    return int(context.invoke(bundle, run="last", as_json=False))


@command.command(name="bundle")
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bundle(run: str, as_json: bool) -> int:
    """Print the evidence bundle of RUN (default: the latest feature run) that its commit names."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.text import safe_lines
    from fairwitness.app.views.evidence import bundle_of

    found = bundle_of(repository_root(Path.cwd()), run)
    if as_json:
        click.echo(json.dumps(found._asdict(), indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    for line in safe_lines(found.text.rstrip()):
        click.echo(line)
    click.echo(f"sha256 {found.sha256}", err=True)
    click.echo(f"next:  fairwitness report {found.run_id}", err=True)
    return ExitCode.REACHED


@command.command(name="show")
@click.argument("number", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(number: int, as_json: bool) -> int:
    """Show execution NUMBER of this repository's ledger with its full output."""
    from fairwitness.app.repository import repository_root, state_in
    from fairwitness.app.text import safe_lines
    from fairwitness.app.views.evidence import read_execution

    root = repository_root(Path.cwd())
    shown = read_execution(root, state_in(root), number)
    if as_json:
        click.echo(json.dumps(shown._asdict(), indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    ran = shown.execution
    ended = f"exit code {ran['exit_code']}" if ran["exit_code"] is not None else f"signal {ran['signal']}"
    click.echo(f"run        {ran['run_id']}")
    click.echo(f"command    {shown.command}")
    click.echo(f"tree       {ran['tree']}  in {ran['cwd']}")
    click.echo(f"tool       {ran['tool']} {ran['tool_version'] or ''}")
    click.echo(f"sandbox    {ran['sandbox']}")
    click.echo(f"came to    {ran['assessment']}  ({ended}, {spell_seconds(ran['duration_ms'] / 1000)})")
    if reason := shown.detail.get("reason"):
        click.echo(f"because    {reason}")
    for name, text in (("stdout", shown.stdout), ("stderr", shown.stderr)):
        if text:
            click.echo(f"--- {name}")
            for line in safe_lines(text):
                click.echo(line)
    return ExitCode.REACHED
