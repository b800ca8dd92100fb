"""`assay knowledge`: what runs have learned about this repository, and how to make them forget it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli.columns import terminal_width, wrapped
from assay.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from assay.app.knowledge import Known

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_MARGIN = "    "
_LONG = 4000


@click.group(name="knowledge", context_settings=_SETTINGS)
def command() -> None:
    """What runs have learned; later ones read it as data, never as an order."""


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_all(as_json: bool) -> int:
    """List everything that is known, the newest first."""
    from assay.app.knowledge import file_of, known_in
    from assay.app.status import repository_root

    root = repository_root(Path.cwd())
    known = known_in(root)
    if as_json:
        plain = {"file": str(file_of(root)), "knowledge": [each.plain() for each in known]}
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    if not known:
        click.echo(f"No run has learned anything about {root} yet.")
    for each in known:
        _show(each)
    return ExitCode.REACHED


@command.command(name="forget")
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def forget(key: str, as_json: bool) -> int:
    """Forget what is known under KEY."""
    from assay.app.event_words import shown
    from assay.app.knowledge import forget as forget_key
    from assay.app.status import repository_root

    gone = forget_key(repository_root(Path.cwd()), key)
    if as_json:
        click.echo(json.dumps({"forgotten": gone.plain()}, indent=2, ensure_ascii=False))
    else:
        click.echo(f"Forgotten: {shown(gone.key)}")
    return ExitCode.REACHED


def _show(known: "Known") -> None:
    from assay.app.event_words import shown

    click.echo(f"{shown(known.key, 120)}  {known.type}  {known.run_id}")
    texts = [shown(known.value, _LONG)]
    if known.grounds:
        texts.append(f"shown to no agent: {', '.join(known.grounds)}")
    for text in texts:
        for line in wrapped(text, terminal_width(), first=_MARGIN, rest=_MARGIN):
            click.echo(line)
