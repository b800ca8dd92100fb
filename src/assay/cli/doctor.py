"""`assay doctor`: what is missing on this machine, what that costs, and how to mend it."""

import json
from pathlib import Path

import click

from assay.cli.exit_codes import ExitCode

_COLOURS = {"ok": "green", "degraded": "yellow", "missing": "yellow", "broken": "red"}


@click.command(name="doctor", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def command(as_json: bool) -> int:
    """Look at git, the sandbox, the state folder and the tool chains. Exit code 3 if nothing can be proven here."""
    from dataclasses import asdict

    from assay.app.doctor import examine, is_fit

    findings = examine(Path.cwd())
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            word = click.style(f"{finding.health.value:<9}", fg=_COLOURS[finding.health.value])
            click.echo(f"{word} {finding.what:<28} {finding.found}")
            if finding.costs:
                click.echo(f"{'':<10}{'':<28} {finding.costs}")
            if finding.mend:
                click.echo(f"{'':<10}{'':<28} mend: {finding.mend}")
        click.echo("next:  assay verify" if is_fit(findings) else "next:  mend what is broken", err=True)
    return ExitCode.REACHED if is_fit(findings) else ExitCode.NOT_READY
