"""`fairwitness demo`: a whole run, from a request to a commit, with recorded agents."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from fairwitness.cli.screens.run import OutputMode
    from fairwitness.demo.start import StartedDemo


@click.command(name="demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Unpack into this empty folder instead of a temporary one.",
)
@click.option("--lie", is_flag=True, help="Use an implementer that reports failing tests as passed.")
@click.option("--light", is_flag=True, help="Run a small feature on the light path, with five calls of agents.")
@click.option("--forge", is_flag=True, help="Run a forge: a captain, workers and refineries.")
@click.option("--autopilot", is_flag=True, help="Run a roadmap of five phases: one fails, one waits for a person.")
@click.option("--plain", is_flag=True, help="Print lines, also in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as one JSON object a line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(
    folder: Path | None,
    lie: bool,
    light: bool,
    forge: bool,
    autopilot: bool,
    plain: bool,
    as_lines: bool,
    as_json: bool,
) -> int:
    """Run a whole feature pipeline on a small bundled library, without an API key and without network.

    Only the answers of the models are recorded: repository, tools, sandbox, checks, gates and commit are real. The
    folder is kept. If you interrupt the demo, continue with `fairwitness resume` in that folder. With --lie the gates
    block the commit and the exit code is 1.
    """
    from fairwitness.cli.foreground import drive_here
    from fairwitness.cli.screens.run import output_mode
    from fairwitness.demo.start import start

    mode = output_mode(plain, as_lines, as_json)
    if lie + light + forge + autopilot > 1:
        raise click.UsageError("--lie, --light, --forge and --autopilot are four demos; choose one")
    name = "autopilot" if autopilot else "forge" if forge else "light" if light else "feature"
    demo = start(name, folder, lie=lie)
    if not (as_lines or as_json):
        click.echo("Only the answers of the models are recorded; everything else is real.")
        if lie:
            click.echo("One implementer of this team reports failing tests as passed.")
        click.echo(f"repository  {demo.repository}\n")
    return _drive_roadmap(demo, mode) if autopilot else drive_here(demo.repository, demo.run_id, mode)


def _drive_roadmap(demo: "StartedDemo", mode: "OutputMode") -> int:
    """Drive the roadmap until it waits for a person, give that person's verdict, and drive it to its end.

    One phase of the roadmap fails on purpose; the demo succeeds if all phases end as its recordings have it.
    """
    from fairwitness.app.views.followed_run import follow_run
    from fairwitness.cli.foreground import drive_here
    from fairwitness.demo.start import ends_as_scripted, give_demo_verdict

    root, run_id = demo.repository, demo.run_id
    code = drive_here(root, run_id, mode, is_asking=False)
    if code is not ExitCode.WAITS_FOR_PERSON:
        return code
    with follow_run(root, run_id) as followed:
        shown = followed.view.seq
    verdict = give_demo_verdict(root, run_id)
    if not (mode.as_json or mode.as_lines):
        click.echo(f"\nThe demo answers for you: {verdict}\n")
    code = drive_here(root, run_id, mode, shown=shown)
    return ExitCode.REACHED if code is ExitCode.GATE_SHUT and ends_as_scripted(root, run_id) else code
