"""`fairwitness doctor`: checks that this machine has what Fair Witness needs."""

import json
import textwrap
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode

_WHAT = 22
_LEFT = 9 + 1 + _WHAT + 1
_WIDTH = 80
_COLOURS = {"ok": "green", "degraded": "yellow", "missing": "yellow", "broken": "red"}


@click.command(name="doctor", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def command(as_json: bool) -> int:
    """Check that this machine has what Fair Witness needs.

    Covers git, the sandbox, the state folder, tool chains, agents and their keys, and says how to install what is
    missing.

    Exit code 3 if no evidence can be produced on this machine.
    """
    from dataclasses import asdict

    from fairwitness.app.doctor import examine, is_fit

    findings = examine(Path.cwd())
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        away = [finding for finding in findings if finding.what.startswith("agent: ") and finding.health == "missing"]
        for finding in findings:
            if finding in away:
                continue
            word = click.style(f"{finding.health.value:<9}", fg=_COLOURS[finding.health.value])
            summary = [finding.found, finding.costs, f"mend: {finding.mend}" if finding.mend else ""]
            lines = [line for text in summary for line in _wrapped(text)]
            if len(finding.what) > _WHAT:
                click.echo(f"{word} {finding.what}")
            else:
                click.echo(f"{word} {finding.what:<{_WHAT}} {lines.pop(0) if lines else ''}".rstrip())
            for line in lines:
                click.echo(f"{'':<{_LEFT}}{line}")
        if away:
            names = ", ".join(finding.what.removeprefix("agent: ") for finding in away)
            lines = _wrapped(f"{names}: `fairwitness doctor --json` says how to get each")
            click.echo(f"{'':<9} {'agents not here':<{_WHAT}} {lines[0]}")
            for line in lines[1:]:
                click.echo(f"{'':<{_LEFT}}{line}")
        click.echo("next:  fairwitness verify" if is_fit(findings) else "next:  fix what is broken", err=True)
    return ExitCode.REACHED if is_fit(findings) else ExitCode.NOT_READY


def _wrapped(text: str) -> list[str]:
    """Return lines that fit beside the names; a path or a command is never cut."""
    return textwrap.wrap(text, _WIDTH - _LEFT, break_long_words=False, break_on_hyphens=False)
