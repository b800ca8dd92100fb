"""`fairwitness gate`: explains why a gate is open or blocked."""

import json
from typing import TYPE_CHECKING

import click

from fairwitness.cli.commands.ledger import checks_behind, gate_views, show_gates
from fairwitness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from fairwitness.app.views.gates import GateView

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(name="gate", context_settings=_SETTINGS)
def command() -> None:
    """A gate is a question to the ledger: it is open, or it says what is missing."""


@command.command(name="explain")
@click.argument("names", metavar="[RUN] [GATE]", nargs=-1)
@click.option(
    "--size", type=click.Choice(["Standard", "Large"]), default="Large", help="The size to assume for the task."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(names: tuple[str, ...], size: str, as_json: bool) -> int:
    """Show the result of GATE with the failing tests, query, values, count and rows behind it.

    GATE is a name that the log shows, such as EG-2:task-03, cr-001 or phase:3. Without RUN: the run
    with the latest evidence. Without GATE: all its gates.
    """
    from fairwitness.app.views.gates import one_gate

    if len(names) > 2:
        raise click.UsageError(f"expected [RUN] [GATE], found {len(names)} names")
    run_id, views = gate_views(names[0] if len(names) == 2 else "last", size)
    if not names:
        return show_gates(run_id, views, as_json=as_json)
    view = one_gate(run_id, views, names[-1])
    failed = checks_behind(run_id, view)
    if as_json:
        told = [{"check": each.name, "failing": list(each.failing), "text": str(each)} for each in failed]
        click.echo(json.dumps({**view.plain(), "failed_checks": told}, indent=2, ensure_ascii=False))
    else:
        _show(view, [str(each) for each in failed])
    return ExitCode.GATE_SHUT if view.answer.answer == "blocked" else ExitCode.REACHED


def _show(view: "GateView", failed: list[str]) -> None:
    from fairwitness.app.text import safe_lines
    from fairwitness.app.views.gates import BY_EVENTS

    answer = view.answer
    click.echo(f"{view.name} is {answer.answer.upper()}: {answer.count} of {answer.threshold}")
    if answer.answer == "blocked":
        if answer.because != answer.missing[0]:
            click.echo(f"because  {answer.because}")
        for missing in answer.missing:
            click.echo(f"missing  {missing}")
    else:
        kind = "event" if answer.gate in BY_EVENTS else "row"
        click.echo(f"evidence {', '.join(f'{kind} {number}' for number in answer.evidence) or 'none needed'}")
    for text in failed:
        for place, line in enumerate(safe_lines(text)):
            click.echo(f"{'' if place else 'failed':<9}{line}")
    for before in view.earlier:
        why = f": {', '.join(before.answer.missing)}" if before.answer.answer == "blocked" else ""
        click.echo(f"before   {before.answer.answer} at {before.when}{why}")
    click.echo(f"asked\n{answer.query.sql}")
    click.echo(f"with     {', '.join(map(repr, answer.query.values))}")
