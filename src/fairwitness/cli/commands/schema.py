"""`fairwitness schema`: lists and exports contracts, and checks documents against them."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode

if TYPE_CHECKING:  # the real import waits until a command needs it
    from fairwitness.app.schemas import DocumentReport

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(name="schema", context_settings=_SETTINGS)
def command() -> None:
    """The contracts of the documents that agents exchange."""


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_contracts(as_json: bool) -> None:
    """List every contract by name."""
    from fairwitness.contracts.catalog import catalog

    entries = tuple(catalog().values())

    if as_json:
        rows = [
            {"name": entry.name, "workflow": entry.workflow, "version": entry.version, "format": entry.written_as}
            for entry in entries
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        click.echo(f"{entry.name:<{width}}  {entry.version}  {entry.workflow:<9}  {entry.written_as}")
    click.echo(
        f"\n{len(entries)} contracts. Next: fairwitness schema check FILE, or fairwitness schema export DIR", err=True
    )


@command.command(name="export")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Overwrite an exported version that has different content.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export_schemas(folder: Path, replace: bool, as_json: bool) -> int:
    """Write every contract as JSON Schema (2020-12) to FOLDER, one file per version."""
    from fairwitness.app import schemas

    done = schemas.export(folder, replace=replace)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(done), indent=2))
    else:
        for name in done.written:
            click.echo(f"written    {name}")
        for name in done.refused:
            click.echo(f"refused    {name}: this version exists with different content")
        click.echo(
            f"{len(done.written)} written, {len(done.unchanged)} unchanged, {len(done.refused)} refused", err=True
        )
    if done.refused:
        click.echo("next:  give the changed contract a new version in contracts/catalog.py", err=True)
        return ExitCode.GATE_SHUT
    return ExitCode.REACHED


@command.command(name="check")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--as", "contract", metavar="NAME", help="The contract to check the documents against.")
@click.option("--strict", is_flag=True, help="Treat broken rules between fields as errors.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.option("--quiet", is_flag=True, help="Print violations only.")
def check_documents(paths: tuple[Path, ...], contract: str | None, strict: bool, as_json: bool, quiet: bool) -> int:
    """Check documents against their contracts; a folder means every document below it.

    Exit code 0: all are valid. 1: at least one is invalid. 2: at least one could not be checked.
    """
    from fairwitness.app import schemas

    reports = schemas.check(paths, contract=contract, strict=strict)
    if not reports:
        raise click.UsageError("no document (.yaml, .yml, .json, .jsonl, .md) found there")
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(report) for report in reports], indent=2, ensure_ascii=False))
    else:
        for report in reports:
            _print_report(report, quiet=quiet)
    unread = sum(report.unread is not None for report in reports)
    refused = sum(report.errors > 0 for report in reports)
    if not quiet and not as_json:
        valid = len(reports) - refused - unread
        parts = [f"{valid} valid", f"{refused} refused", *([f"{unread} could not be checked"] if unread else [])]
        click.echo(f"{_count(len(reports), 'document')}: {', '.join(parts)}", err=True)
    if unread:
        return ExitCode.USAGE
    return ExitCode.GATE_SHUT if refused else ExitCode.REACHED


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _print_report(report: "DocumentReport", *, quiet: bool) -> None:
    if report.unread is not None:
        click.echo(f"unread   {report.unread}", err=True)
        if report.next_step:
            click.echo(f"next:    {report.next_step}", err=True)
        return
    if not quiet:
        word = "refused" if report.errors else "valid"
        warnings = len(report.violations) - report.errors
        counts = [_count(number, noun) for number, noun in ((report.errors, "error"), (warnings, "warning")) if number]
        click.echo(f"{word:<8} {report.path} ({', '.join([report.contract or 'unreadable', *counts])})")
    for violation in report.violations:
        click.echo(
            f"{report.path}:{violation.line}:{violation.column}: {violation.level.value}: {violation.field}: "
            f"expected {violation.expected}; found {violation.found}"
        )
