"""`assay demo`: a whole run, from a request to a commit, with a recorded team."""

from pathlib import Path

import click

from assay.cli.exit_codes import ExitCode


@click.command(name="demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Unpack here; without it, somewhere new."
)
@click.option("--lie", is_flag=True, help="With an implementer that claims green on red tests.")
@click.option("--forge", is_flag=True, help="A captain, workers and refineries instead of the feature pipeline.")
@click.option("--plain", is_flag=True, help="Print lines, also in a terminal.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as one JSON object a line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def command(folder: Path | None, lie: bool, forge: bool, plain: bool, as_lines: bool, as_json: bool) -> int:
    """Play a whole feature run on a small library with tests, a linter and a type checker, or with --forge a graph.

    The models are recorded; repository, tools, sandbox, checks, gates and commit are real. No key, no network. The
    folder is kept; killed, it goes on with `assay resume` in it. With --lie the gates stop it: exit code 1.
    """
    from assay.app.demo import prepare, prepare_forge
    from assay.cli.carrying import carry_here
    from assay.cli.run_screen import how

    asked = how(plain, as_lines, as_json)
    if lie and forge:
        raise click.UsageError("--lie and --forge are two demos; choose one")
    prepared = prepare_forge(folder) if forge else prepare(folder, lie=lie)
    is_told = not (as_lines or as_json)
    if is_told:
        click.echo(f"unpacked in {prepared.repository}")
        if lie:
            click.echo("one implementer of this team claims green on red tests")
    code = carry_here(prepared.repository, prepared.run_id, asked)
    if is_told and code in (ExitCode.REACHED, ExitCode.GATE_SHUT):
        click.echo(f"       cd {prepared.repository} to look around", err=True)
    return code
