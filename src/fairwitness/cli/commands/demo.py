"""`fairwitness demo`: a whole run, from a request to a commit, with a recorded team."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from fairwitness.cli.screens.run import OutputMode
    from fairwitness.demo.start import Prepared


@click.command(name="demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Unpack here; without it, somewhere new."
)
@click.option("--lie", is_flag=True, help="With an implementer that claims green on red tests.")
@click.option("--forge", is_flag=True, help="A captain, workers and refineries instead of the feature pipeline.")
@click.option("--autopilot", is_flag=True, help="A roadmap of five phases, one of which fails and one asks a person.")
@click.option("--plain", is_flag=True, help="Print lines, also in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as one JSON object a line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    folder: Path | None, lie: bool, forge: bool, autopilot: bool, plain: bool, as_lines: bool, as_json: bool
) -> int:
    """Play a whole feature run on a small library with tests and a linter, or a graph of tasks, or a roadmap.

    The models are recorded; repository, tools, sandbox, checks, gates and commit are real. No key, no network. The
    folder is kept; killed, it goes on with `fairwitness resume` in it. With --lie the gates stop it: exit code 1.
    """
    from fairwitness.cli.foreground import drive_here
    from fairwitness.cli.screens.run import output_mode
    from fairwitness.demo.start import prepare

    asked = output_mode(plain, as_lines, as_json)
    if lie + forge + autopilot > 1:
        raise click.UsageError("--lie, --forge and --autopilot are three demos; choose one")
    prepared = prepare("autopilot" if autopilot else "forge" if forge else "feature", folder, lie=lie)
    is_told = not (as_lines or as_json)
    if is_told:
        click.echo(f"unpacked in {prepared.repository}")
        if lie:
            click.echo("one implementer of this team claims green on red tests")
    code = _roadmap(prepared, asked) if autopilot else drive_here(prepared.repository, prepared.run_id, asked)
    if is_told and code in (ExitCode.REACHED, ExitCode.GATE_SHUT):
        click.echo(f"       cd {prepared.repository} to look around", err=True)
    return code


def _roadmap(prepared: "Prepared", asked: "OutputMode") -> int:
    """The roadmap up to the person it asks; then with that person's verdict to its end, which is a failed phase."""
    from fairwitness.cli.foreground import drive_here
    from fairwitness.demo.start import ends_as_scripted, say_verdict

    root, run_id = prepared.repository, prepared.run_id
    code = drive_here(root, run_id, asked, is_asking=False)
    if code is not ExitCode.WAITS_FOR_PERSON:
        return code
    told = say_verdict(root, run_id)
    if not (asked.as_json or asked.as_lines):
        click.echo(f"the person of this demo says: {told}")
    code = drive_here(root, run_id, asked)
    return ExitCode.REACHED if code is ExitCode.GATE_SHUT and ends_as_scripted(root, run_id) else code
