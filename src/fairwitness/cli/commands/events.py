"""`fairwitness events`: lists the events of a run."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode


@click.command(name="events", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", default="last")
@click.option("--after", type=click.IntRange(min=0), default=0, help="Start after this sequence number.")
@click.option("--follow", is_flag=True, help="Wait for new events; stop with Ctrl-C.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print one JSON object a line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def command(run: str, after: int, follow: bool, as_lines: bool, as_json: bool) -> int:
    """Show the events of RUN (default: the latest run)."""
    from fairwitness.app.repository import repository_root
    from fairwitness.app.views.ledger import event_line, follow_events, known_run, open_ledger

    if follow and as_json:
        raise click.UsageError("--follow never ends, so --json cannot print one array; use --jsonl")
    ledger = open_ledger(repository_root(Path.cwd()))
    try:
        events = follow_events(ledger, known_run(ledger, run), after=after, keep_on=follow)
        if as_json:
            click.echo(json.dumps([event.plain() for event in events], indent=2, ensure_ascii=False))
        else:
            for event in events:
                click.echo(json.dumps(event.plain(), ensure_ascii=False) if as_lines else event_line(event))
    finally:
        ledger.close()
    return ExitCode.REACHED
