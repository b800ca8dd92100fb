"""`fairwitness report`: writes a run as one HTML file that opens without a server."""

import json
from pathlib import Path

import click

from fairwitness.cli.exit_codes import ExitCode


@click.command(name="report", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", default="last")
@click.option("--out", type=click.Path(path_type=Path), help="The file to write. Default: below .fairwitness/reports.")
@click.option("--force", is_flag=True, help="Replace a file that is not a report.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str, out: Path | None, force: bool, as_json: bool) -> int:
    """Write RUN (default: the latest run) as one HTML file: outcome, changes, evidence, reviews, cost.

    \b
    Examples:
      fairwitness report
      fairwitness report --out run.html
    """
    from fairwitness.app.report.builder import write_report
    from fairwitness.app.repository import repository_root
    from fairwitness.app.text import safe_line

    written = write_report(repository_root(Path.cwd()), run, out=out, force=force)
    if as_json:
        plain = {
            "path": str(written.path),
            "run_id": written.run_id,
            "outcome": written.outcome,
            "ledger_is_sound": written.is_sound,
            "bytes": written.bytes,
        }
        click.echo(json.dumps(plain))
    else:
        click.echo(safe_line(str(written.path), 4096))
    if not written.is_sound:
        click.echo("the ledger of this run was tampered with; the report shows where", err=True)
        click.echo("next:  fairwitness ledger verify", err=True)
        return ExitCode.UNTRUSTED
    if not as_json:
        size = f"{max(1, round(written.bytes / 1000)):,} kB"
        click.echo(f"{safe_line(written.run_id, 128)}: {safe_line(written.outcome, 40)}, {size}", err=True)
        click.echo("next:  open it in a browser; `fairwitness ledger verify` checks its evidence", err=True)
    return ExitCode.REACHED
