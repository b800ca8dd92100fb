"""`assay demo`: a whole run, from a request to a commit, with a recorded team."""

from pathlib import Path

import click

from assay.cli.exit_codes import ExitCode


@click.command(name="demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Unpack here; without it, somewhere new."
)
@click.option("--lie", is_flag=True, help="With an implementer that claims green on red tests.")
@click.option("--plain", is_flag=True, help="Print lines, also in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as one JSON object a line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(folder: Path | None, lie: bool, plain: bool, as_lines: bool, as_json: bool) -> int:
    """Play a whole feature run on a small library with tests, a linter and a type checker.

    The models are recorded; repository, tools, sandbox, checks, gates and commit are real. No key, no network. The
    folder is kept; killed, it goes on with `assay resume` in it. With --lie the gates stop it: exit code 1.
    """
    from assay.app.demo import prepare
    from assay.cli.feature import carry_feature
    from assay.cli.run_screen import how

    asked = how(plain, as_lines, as_json)
    prepared = prepare(folder, lie=lie)
    is_told = not (as_lines or as_json)
    if is_told:
        click.echo(f"unpacked in {prepared.repository}")
        if lie:
            click.echo("one implementer of this team claims green on red tests")
    code = carry_feature(prepared.repository, prepared.run.run_id, asked)
    if is_told and code in (ExitCode.REACHED, ExitCode.GATE_SHUT):
        click.echo(f"       cd {prepared.repository} to look around", err=True)
    return code
