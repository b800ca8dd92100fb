"""`assay demo`: what works today, played for real in a folder of its own."""

import contextlib
import dataclasses
import json
import tempfile
import textwrap
from pathlib import Path

import click

from assay.cli.exit_codes import ExitCode

_WIDTH = 78


@click.command(name="demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Play in this folder and keep it."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(folder: Path | None, as_json: bool) -> int:
    """Read honest and hostile documents, try to spoil store and ledger, verify a good change and a lie.

    No key, no network.
    """
    from assay.app.demo import run_demo

    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-demo-")))
        folder.mkdir(parents=True, exist_ok=True)
        demo = run_demo(folder)
    if as_json:
        click.echo(
            json.dumps(
                {"as_promised": demo.as_promised, "scenes": [dataclasses.asdict(scene) for scene in demo.scenes]}
            )
        )
    else:
        for number, scene in enumerate(demo.scenes, start=1):
            click.echo(f"{number}. {scene.title}: {scene.outcome.upper()}")
            for line in scene.lines:
                click.echo(textwrap.fill(line, _WIDTH, initial_indent="     ", subsequent_indent="       "))
        click.echo("\nContracts, readers, store, ledger, rules, sandbox and `assay verify` work.", err=True)
        click.echo("So does one agent at a time; the pipelines are not built yet.", err=True)
        click.echo("next:  assay verify, in a repository of yours", err=True)
    return ExitCode.REACHED if demo.as_promised else ExitCode.GATE_SHUT
