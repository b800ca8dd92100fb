"""`fairwitness ledger`: verifies the evidence, shows the gates, and queries the tables."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairwitness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from fairwitness.app.views.gates import CheckText, GateView

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(name="ledger", context_settings=_SETTINGS)
def command() -> None:
    """The evidence ledger: every command that was run, and every check based on one."""


@command.command(name="verify")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--head", "heads", multiple=True, metavar="HEAD", help="A ledger head that you hold; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def verify_command(file: Path | None, heads: tuple[str, ...], as_json: bool) -> int:
    """Check that no row, run or output was edited, deleted, inserted, reordered or truncated.

    Without FILE: every ledger of this repository, against its git refs, the anchors in your state
    directory, the stored outputs and the exports. If the summary of a run differs from its events,
    a new one is written. Exit code 6 if the check fails.

    The printed head commits to every run so far. Keep it elsewhere: with --head the ledger is
    checked against it, on any machine.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.ledger import verify_ledgers

    reports = verify_ledgers(repository_root(Path.cwd()), file, heads=heads)
    found = sum(len(report.findings) for report in reports)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(report) for report in reports], indent=2))
    else:
        for report in reports:
            word = "TAMPERED" if report.findings else "intact"
            about = f"run {report.run_id}  {report.links} links" if report.run_id else "ledger"
            click.echo(f"{word:<8}  {about}  {report.ledger}")
            if report.rebuilt:
                click.echo("          its summary differed from its events and was rebuilt")
            for finding in report.findings:
                click.echo(f"          {finding}")
            for note in report.notes:
                click.echo(f"          note: {note}")
        if reports and reports[0].ledger_head:
            click.echo(f"head {reports[0].ledger_head}")
        click.echo(_verdict(sum(bool(report.run_id) for report in reports), found), err=True)
    return ExitCode.UNTRUSTED if found else ExitCode.REACHED


def _verdict(runs: int, found: int) -> str:
    if found:
        return (
            f"{found} finding{'' if found == 1 else 's'}: do not trust this ledger\n"
            "next:  restore it from a backup; if you changed or brought it yourself: fairwitness adopt --yes"
        )
    return f"{runs} run{'' if runs == 1 else 's'} checked, all as written" if runs else "the ledger holds no run yet"


@command.command(name="gates")
@click.argument("run", default="last")
@click.option(
    "--size", type=click.Choice(["Standard", "Large"]), default="Large", help="The size to assume for the tasks."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def gates_command(run: str, size: str, as_json: bool) -> int:
    """Show every gate of RUN (default: the one with the latest evidence). Exit code 1 if one is blocked.

    The ledger does not hold the size of a task; without --size the stricter threshold applies.
    """
    return show_gates(*gate_views(run, size), as_json=as_json)


def show_gates(run_id: str, views: "tuple[GateView, ...]", *, as_json: bool) -> int:
    """Print every gate of a run and return the exit code: 1 if one is blocked."""
    if as_json:
        click.echo(json.dumps([view.plain() for view in views], indent=2, ensure_ascii=False))
    else:
        names = max((len(view.name) for view in views), default=0) + 1
        for view in views:
            answer = view.answer
            tail = f"  missing: {', '.join(answer.missing)}" if answer.answer == "blocked" else ""
            click.echo(f"{answer.answer.upper():<8} {view.name:<{names}} {answer.count} of {answer.threshold}{tail}")
        click.echo(f"next:  fairwitness gate explain {run_id} GATE", err=True)
    return ExitCode.GATE_SHUT if any(view.answer.answer == "blocked" for view in views) else ExitCode.REACHED


def gate_views(run: str, size: str) -> "tuple[str, tuple[GateView, ...]]":
    """Return the id of a run of this repository, and its gates."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.gates import run_gates
    from fairwitness.app.views.ledger import judged_run, open_ledger
    from fairwitness.contracts.common.vocabulary import Size

    ledger = open_ledger(repository_root(Path.cwd()))
    try:
        run_id = judged_run(ledger, run)
        return run_id, run_gates(ledger, run_id, size=Size(size))
    finally:
        ledger.close()


def checks_behind(run_id: str, view: "GateView") -> "tuple[CheckText, ...]":
    """Return the failed checks that block a gate of a run of this repository."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.gates import failed_checks
    from fairwitness.app.views.ledger import open_ledger

    root = repository_root(Path.cwd())
    ledger = open_ledger(root)
    try:
        return failed_checks(root, ledger, run_id, view)
    finally:
        ledger.close()


@command.command(name="query")
@click.argument("name", required=False)
@click.argument("value", required=False)
@click.option("--list", "list_them", is_flag=True, help="List the queries.")
@click.option("--sql", "show_sql", is_flag=True, help="Print the SQL instead of running it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def query_command(name: str | None, value: str | None, list_them: bool, show_sql: bool, as_json: bool) -> int:
    """Run the query NAME; VALUE is a run, or the file for instruction-history.

    Without VALUE: the run with the latest evidence.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views import ledger as service

    if list_them or name is None:
        _list_queries(service.query_list(), as_json=as_json)
        return ExitCode.REACHED
    query = service.query_named(name)
    if show_sql:
        click.echo(query.sql)
        return ExitCode.REACHED
    if value is None and query.parameters:
        if query.parameters[0] != "run":
            raise click.UsageError(f"the query {name} wants a {query.parameters[0]}")
        value = "last"
    rows = service.run_query(repository_root(Path.cwd()), query, value)
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _print_table(query.columns, rows)
        click.echo(f"{len(rows)} row{'' if len(rows) == 1 else 's'}: {query.about}", err=True)
    return ExitCode.REACHED


def _list_queries(listed: list[dict[str, str]], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(listed, indent=2))
        return
    for query in listed:
        click.echo(f"{query['name']:<24}{query['wants']:<6}{query['about']}")
    click.echo("next:  fairwitness ledger query NAME RUN", err=True)


def _print_table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[index]) for line in cells), 0) for index, column in enumerate(columns)]
    for line in ([*columns], *cells):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)
