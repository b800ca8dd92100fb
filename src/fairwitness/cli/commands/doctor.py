"""`fairwitness doctor`: checks that this machine has what Fair Witness needs."""

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import cells, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairwitness.app.doctor import MachineFinding

_STATE, _NAMES = 10, 20
_AGENT, _KEY = "agent: ", "key: "
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
        _show(findings, is_fit=is_fit(findings))
    return ExitCode.REACHED if is_fit(findings) else ExitCode.NOT_READY


def _show(findings: "tuple[MachineFinding, ...]", *, is_fit: bool) -> None:
    rows = list(_rows(findings))
    names = min(_NAMES, max(cells(what) for _, what, _ in rows))
    for word, what, texts in rows:
        state = click.style(word, fg=_COLOURS.get(word)) + " " * (_STATE - len(word))
        first, *rest = [line for text in texts for line in _wrapped(text, names)] or [""]
        if cells(what) > names:
            click.echo(f"{state}{what}")
            state, what = " " * _STATE, ""
        click.echo(f"{state}{what}{' ' * (names - cells(what))}  {first}".rstrip())
        for line in rest:
            click.echo(f"{' ' * (_STATE + names + 2)}{line}")
    broken = [finding.what for finding in findings if finding.health == "broken"]
    has_agent = not any(finding.what == "agents" and finding.health == "missing" for finding in findings)
    click.echo()
    if not is_fit:
        click.echo(f"{click.style('NOT READY', fg='red', bold=True)}: no evidence without {' and '.join(broken)}")
        click.echo("next:  fix what is broken", err=True)
        return
    rest_of_it = "and agents can be used" if has_agent else "but no agent can be used"
    click.echo(f"{click.style('READY', fg='green', bold=True)}: this machine can produce evidence, {rest_of_it}")
    click.echo(f"next:  fairwitness {'feature REQUEST' if has_agent else 'demo'}", err=True)


def _rows(findings: "tuple[MachineFinding, ...]") -> "Iterator[tuple[str, str, list[str]]]":
    """Yield state, name and texts of each row; tools that were found share a row, so do missing keys and agents."""
    from fairwitness.app.doctor import TOOLS

    tools = [finding.what for finding in findings if finding.what in TOOLS and finding.health == "ok"]
    missing = [finding for finding in findings if finding.health == "missing"]
    away = [finding for finding in missing if finding.what.startswith(_AGENT)]
    keys = [finding for finding in missing if finding.what.startswith(_KEY)]
    for finding in findings:
        if tools and finding.what == tools[0]:
            yield "ok", "tools", [", ".join(tools)]
        if keys and finding is keys[0]:
            names = ", ".join(key.what.removeprefix(_KEY) for key in keys)
            yield "missing", "keys", [f"not found: {names}", f"fix: {', or '.join(key.mend for key in keys)}"]
        if finding.what not in tools and finding not in (*away, *keys):
            texts = ["; ".join(filter(None, (finding.found, finding.costs)))]
            yield finding.health.value, finding.what, [*texts, *([f"fix: {finding.mend}"] if finding.mend else [])]
    if away:
        names = ", ".join(finding.what.removeprefix(_AGENT) for finding in away)
        yield "missing", "other agents", [names, "`fairwitness doctor --json` says how to install each"]


def _wrapped(text: str, names: int) -> list[str]:
    """Return lines that fit beside the names; a path or a command is never cut."""
    width = terminal_width() - _STATE - names - 2
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
