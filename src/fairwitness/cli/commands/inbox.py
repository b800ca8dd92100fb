"""`fairwitness inbox`: lists the questions that wait for you."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.prompts import print_question


@click.command(name="inbox", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> int:
    """List the questions that wait for you and how to answer them. Exit code 4 if there is one."""
    from fairwitness.app.repository import database_hint, repository_root
    from fairwitness.app.views.inbox import inbox

    root = repository_root(Path.cwd())
    waiting = inbox(root)
    if as_json:
        questions = [{"run_id": each.run_id, "slug": each.slug, **each.question.plain()} for each in waiting]
        click.echo(json.dumps({"waiting": questions}, indent=2, ensure_ascii=False))
    elif not waiting:
        click.echo("No approvals pending.")
        click.echo(f"next:  {database_hint(root) or 'fairwitness status'}", err=True)
    for each in () if as_json else waiting:
        print_question(each)
        options = "|".join(option.id for option in each.question.options)
        click.echo(f"next:  fairwitness answer {each.run_id} {options}", err=True)
    return ExitCode.WAITS_FOR_PERSON if waiting else ExitCode.REACHED
