"""`fairwitness adopt`: makes a copied, moved or foreign state folder yours."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from fairwitness.app.state import Adoption


@click.command(name="adopt", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(yes: bool, as_json: bool) -> int:
    """Use the state folder of this repository although it was copied, moved or made by somebody else.

    Only adopt a folder whose origin you know: its ledger then counts as yours. Ledger, outputs and reports are kept.
    Git directories, environments and caches in it are removed and made again, because they are run or reused. For a
    folder that you did not make on this machine you are asked first.

    The heads of its runs are anchored as they are. With --yes this is also done for a folder that is yours: for a
    ledger that you restored from a backup, or whose missing runs you accept.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.state import adopt, adoption_of
    from fairwitness.app.text import safe_line
    from fairwitness.app.views.ledger import adopt_present

    root = repository_root(Path.cwd())
    adoption = adoption_of(root)
    was = adoption.folder.standing.value
    if was == "ours" and yes:
        head = adopt_present(root)
        _print(adoption, changed=False, as_json=as_json)
        click.echo(f"its ledger is accepted as it is{f': head {head}' if head else ''}", err=True)
        return ExitCode.REACHED
    if was == "ours":
        _print(adoption, changed=False, as_json=as_json)
        return ExitCode.REACHED
    if was == "foreign" and not yes:
        click.echo(f"{safe_line(str(adoption.folder.path))} {safe_line(adoption.folder.why)}", err=True)
        click.echo(f"kept      {safe_line(', '.join(adoption.kept)) or 'nothing'}", err=True)
        click.echo(f"removed   {safe_line(', '.join(adoption.removed)) or 'nothing'}", err=True)
        if not sys.stdin.isatty():
            raise click.UsageError("cannot ask for confirmation without a terminal; add --yes to adopt the folder")
        if not click.confirm("Adopt it? Its ledger then counts as yours.", err=True):
            click.echo("nothing was changed", err=True)
            return ExitCode.REACHED
    adopt(adoption)
    adopt_present(root)
    _print(adoption, changed=True, as_json=as_json)
    click.echo("next:  fairwitness ledger verify", err=True)
    return ExitCode.REACHED


def _print(adoption: "Adoption", *, changed: bool, as_json: bool) -> None:
    from fairwitness.app.text import safe_line

    folder = adoption.folder
    if as_json:
        told = {
            "folder": str(folder.path),
            "was": folder.standing.value,
            "changed": changed,
            "removed": list(adoption.removed),
            "kept": list(adoption.kept),
        }
        click.echo(json.dumps(told, indent=2))
    elif changed:
        click.echo(f"{safe_line(str(folder.path))} is yours now")
        for name in adoption.removed:
            click.echo(f"removed   {safe_line(name)}")
    else:
        click.echo(f"{safe_line(str(folder.path))} is yours already; nothing was changed")
