"""`fairwitness gate`: explains why a gate is open or blocked."""

import json

import click

from fairwitness.cli.commands.ledger import gate_views
from fairwitness.cli.exit_codes import ExitCode

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(name="gate", context_settings=_SETTINGS)
def command() -> None:
    """A gate is a query of the ledger: it is open, or it says what is missing."""


@command.command(name="explain")
@click.argument("run")
@click.argument("gate")
@click.option(
    "--size", type=click.Choice(["Standard", "Large"]), default="Large", help="The size to assume for the task."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(run: str, gate: str, size: str, as_json: bool) -> int:
    """Show the result of GATE (such as EG-2:task-03) of RUN with the query, values, count and rows behind it."""
    from fairwitness.app.views.gates import one_gate

    view = one_gate(gate_views(run, size), gate)
    answer = view.answer
    if as_json:
        click.echo(json.dumps(view.plain(), indent=2, ensure_ascii=False))
    else:
        click.echo(f"{view.name} is {answer.answer.upper()}: {answer.count} of {answer.threshold}")
        if answer.answer == "blocked":
            click.echo(f"because  {answer.because}")
            for missing in answer.missing:
                click.echo(f"missing  {missing}")
        else:
            click.echo(f"evidence {', '.join(f'row {number}' for number in answer.evidence) or 'none needed'}")
        click.echo(f"asked\n{answer.query.sql}")
        click.echo(f"with     {', '.join(map(repr, answer.query.values))}")
    return ExitCode.GATE_SHUT if answer.answer == "blocked" else ExitCode.REACHED
