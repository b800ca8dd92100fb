"""`fairwitness trust`: shows the settings of a repository that need your trust, and records it."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.columns import terminal_width, wrapped

if TYPE_CHECKING:
    from fairwitness.app.settings.review import RepositoryTrust

_LONG = 400


@click.command(name="trust", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--yes", is_flag=True, help="Trust the settings without asking.")
@click.option("--revoke", is_flag=True, help="End your trust in every version of this repository's file.")
@click.option("--at", metavar="COMMIT", help="Look at the file of this commit instead of the checkout's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; records nothing without --yes.")
def command(yes: bool, revoke: bool, at: str | None, as_json: bool) -> int:
    """Show the settings of fairwitness.toml that need your trust, what each can do, and ask whether they count.

    Settings that weaken a check, spend your money, choose who receives your code or act on your checkout count only
    from a file that you trust. Trust is for one repository and one content of the file: a changed file asks again. Your
    own configuration needs no trust.

    Where nobody can be asked, such as in CI, set FAIRWITNESS_TRUST to the SHA-256 that this command shows.

    Exit code 0: trusted, or nothing needs trust. 4: not trusted.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.settings.review import look_at_trust, revoke_trust, trust_file

    root = repository_root(Path.cwd())
    if revoke:
        if yes or at:
            raise click.UsageError("--revoke goes alone: it ends your trust in every version of the file")
        return _say_revoked(revoke_trust(root), as_json=as_json)
    found = look_at_trust(root, at)
    review = found.review
    is_new = bool(review.asking) and not review.is_trusted
    if not as_json:
        _show(found)
    if is_new and (yes or (not as_json and _agreed())):
        trust_file(found)
        is_new = False
        if not as_json:
            click.echo(f"trusted: {_place(found)}")
    if as_json:
        click.echo(json.dumps(_plain(found, is_trusted=not is_new), indent=2))
    elif is_new:
        click.echo("not trusted: these settings are not in force", err=True)
    return ExitCode.WAITS_FOR_PERSON if is_new else ExitCode.REACHED


def _place(found: "RepositoryTrust") -> str:
    """Return the file with its repository, whose git directory identifies it: its worktrees share trust."""
    return f"{found.file.place} in {found.repository.removesuffix('/.git')}"


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm("Trust these settings?", default=False, err=True)


def _show(found: "RepositoryTrust") -> None:
    from fairwitness.app.text import safe_line

    review = found.review
    for text in (_place(found), f"sha256 {found.file.sha256}"):
        click.echo(safe_line(text, _LONG))
    if not review.asking:
        click.echo("nothing in it needs your trust")
        return
    click.echo("trusted already; in force:" if review.is_trusted else "not in force until you trust it:")
    for setting in review.asking:
        value = safe_line(json.dumps(setting.value, ensure_ascii=False), _LONG)
        below = "" if setting.instead in (None, [], {}) else f" (without it: {safe_line(json.dumps(setting.instead))})"
        for line in wrapped(f"{safe_line(setting.name)} = {value}{below}", terminal_width(), first="  ", rest="      "):
            click.echo(line)
        for line in wrapped(setting.trust.effect, terminal_width(), first="      ", rest="      "):
            click.echo(line)


def _plain(found: "RepositoryTrust", *, is_trusted: bool) -> dict[str, Any]:
    return {
        "repository": found.repository,
        "file": found.file.place,
        "sha256": found.file.sha256,
        "trusted": is_trusted,
        "settings": [
            {
                "name": setting.name,
                "value": setting.value,
                "without_it": setting.instead,
                "effect": setting.trust.effect,
                "without_trust": setting.trust.without.value,
            }
            for setting in found.review.asking
        ],
    }


def _say_revoked(hashes: tuple[str, ...], *, as_json: bool) -> ExitCode:
    if as_json:
        click.echo(json.dumps({"revoked": list(hashes)}, indent=2))
    else:
        click.echo("\n".join(f"revoked: {sha256}" for sha256 in hashes) or "no file of this repository was trusted")
    return ExitCode.REACHED
