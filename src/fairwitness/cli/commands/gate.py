"""`fairwitness gate`: explains why a gate is open or blocked."""

import json

import click

from fairwitness.cli.commands.ledger import gate_views, show_gates
from fairwitness.cli.exit_codes import ExitCode

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(name="gate", context_settings=_SETTINGS)
def command() -> None:
    """A gate is a query of the ledger: it is open, or it says what is missing."""


@command.command(name="explain")
@click.argument("names", metavar="[RUN] [GATE]", nargs=-1)
@click.option(
    "--size", type=click.Choice(["Standard", "Large"]), default="Large", help="The size to assume for the task."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(names: tuple[str, ...], size: str, as_json: bool) -> int:
    """Show the result of GATE (such as EG-2:task-03) with the query, values, count and rows behind it.

    Without RUN: the run with the latest evidence. Without GATE: all its gates.
    """
    from fairwitness.app.views.gates import one_gate

    if len(names) > 2:
        raise click.UsageError(f"expected [RUN] [GATE], found {len(names)} names")
    run_id, views = gate_views(names[0] if len(names) == 2 else "last", size)
    if not names:
        return show_gates(run_id, views, as_json=as_json)
    view = one_gate(run_id, views, names[-1])
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
