"""Which runs a repository holds, read from its evidence database without the engine and without writing to it."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from assay.errors import NotReady

DATABASE = Path(".assay") / "evidence.db"


@dataclass(frozen=True, slots=True)
class RepositoryStatus:
    """A repository and the ids of its runs."""

    root: str
    runs: tuple[str, ...]


def repository_status(start: Path) -> RepositoryStatus:
    """The runs of the repository that holds `start`."""
    root = _root(start)
    database = root / DATABASE
    if database.exists() and _tables(database):
        # The ledger comes with a later version; what is there was not written by this one.
        raise NotReady(
            f"{database} was written by another version of Assay, which this one cannot read",
            next_step="use the version that wrote it",
        )
    return RepositoryStatus(str(root), ())


def _root(start: Path) -> Path:
    for folder in (start, *start.parents):
        if (folder / ".git").exists() or (folder / ".assay").is_dir():
            return folder
    return start


def _tables(database: Path) -> list[str]:
    try:
        connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
        try:
            return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise NotReady(
            f"{database} cannot be read as an evidence database ({error})",
            next_step="restore it from a backup, or move it away to begin anew",
        ) from None
