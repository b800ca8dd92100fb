"""Small repositories in memory, and what discovery makes of them."""

from typing import NamedTuple

from fairwitness.contracts.verify.checks import CheckSpec, Discovered, VerifySettings
from fairwitness.verify.discovery.repository_checks import discover
from verify.discovery.tree_files import MappingFiles

Files = dict[str, str]


class Offer(NamedTuple):
    """A repository and the checks it is to offer: id → name in the ledger and format of the report."""

    says: str
    files: Files
    checks: dict[str, tuple[str, str]]


def look(files: Files, settings: VerifySettings | None = None) -> Discovered:
    """What discovery finds in a repository of these files."""
    return discover(MappingFiles({path: text.encode() for path, text in files.items()}), settings or VerifySettings())


def offers(found: Discovered) -> dict[str, tuple[str, str]]:
    """The checks that were found, as an `Offer` says them."""
    return {check.id: (check.name, check.report.value) for check in found.checks}


def check_of(found: Discovered, id_: str) -> CheckSpec:
    """One check that was found."""
    return next(check for check in found.checks if check.id == id_)


def reasons(found: Discovered) -> dict[str, str]:
    """Why something cannot be run, by id."""
    return {each.id: each.reason for each in found.undiscovered}
