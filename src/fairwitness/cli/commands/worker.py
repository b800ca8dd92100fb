"""`fairwitness worker`: executes runs until it is stopped."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.foreground import StopSignal
from fairwitness.cli.screens.columns import terminal_width, wrapped

if TYPE_CHECKING:
    from fairwitness.app.runs.worker import StrandedRun


@click.command(name="worker", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--once", is_flag=True, help="Exit when no work is left.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print each event of this worker as a JSON object on its own line."
)
def command(once: bool, as_json: bool) -> int:
    """Execute the runs of this repository's database, or of the one that FAIRWITNESS_DATABASE_URL names.

    Several workers may share a database. Ctrl-C stops this worker; another one continues its runs.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.worker import run_worker

    output = _WorkerOutput(as_json=as_json)
    root = repository_root(Path.cwd())
    number = run_worker(root, once=once, on_event=output.happened, audit=output.audited, note=output.noted)
    if number is None:
        click.echo("no work is left", err=True)
        click.echo("next:  fairwitness status", err=True)
        return ExitCode.REACHED
    click.echo("stopped; the next worker continues its runs", err=True)
    click.echo("next:  fairwitness worker", err=True)
    return StopSignal(number).exit_code


class _WorkerOutput:
    """Prints the events of a worker as lines or as JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def happened(self, word: str, id_: str) -> None:
        """Print that the worker took or released a run."""
        from fairwitness.app.runs.worker import run_label
        from fairwitness.app.text import safe_line
        from fairwitness.app.views.event_lines import now_time

        if self._as_json:
            self._json({"time": now_time(), "what": word, "id": id_})
        else:
            click.echo(f"{now_time()}  {word} {safe_line(run_label(id_), 200)}")

    def noted(self, text: str) -> None:
        """Print what keeps the worker from working."""
        from fairwitness.app.text import safe_line
        from fairwitness.app.views.event_lines import now_time

        if self._as_json:
            self._json({"time": now_time(), "what": "note", "text": text})
        else:
            click.echo(f"{now_time()}  {safe_line(text, 400)}")

    def audited(self, found: "tuple[StrandedRun, ...]") -> None:
        """Print the runs that need attention before they can continue."""
        from fairwitness.app.text import safe_line

        for one in found:
            if self._as_json:
                self._json({"what": "stranded", "id": one.run_id, "reason": one.reason, "next": one.next_step})
                continue
            width = terminal_width()
            for line in wrapped(f"stranded: {safe_line(one.run_id)}: {safe_line(one.reason)}", width, rest="  "):
                click.echo(line)
            for line in wrapped(safe_line(one.next_step), width, first="  mend:  ", rest=" " * 9):
                click.echo(line)
        if not self._as_json:
            click.echo("waiting for runs; Ctrl-C stops this worker" if not found else "working", err=True)

    def _json(self, line: dict[str, str]) -> None:
        import json

        click.echo(json.dumps(line))
