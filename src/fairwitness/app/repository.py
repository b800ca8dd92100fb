"""The root, state folder and database of a repository, for reading; loads neither contracts nor the engine.

The state folder is `.fairwitness/` of the repository if this user made it on this machine. One that came with a clone
or an archive is never read: the state is in the user's state directory then (docs/adr/0024)."""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairwitness.errors import DatabaseUnusable, UsageError
from fairwitness.kit.own_folder import KnownFolder, Standing, look
from fairwitness.kit.text import visible
from fairwitness.kit.user_state import user_state_path
from fairwitness.ledger.summary import holds_a_ledger

if TYPE_CHECKING:
    from fairwitness.db.base import Database

FOLDER = ".fairwitness"
DATABASE = "evidence.db"
URL = "FAIRWITNESS_DATABASE_URL"
WAIT = "FAIRWITNESS_DATABASE_WAIT"
"""The variable that says how many minutes a run waits for a lost database server."""


def repository_root(start: Path) -> Path:
    """Return the nearest folder upwards that is a repository or has a ledger, or `start` if there is none."""
    for folder in (start, *start.parents):
        if (folder / ".git").exists() or (folder / FOLDER).is_dir():
            return folder
    return start


def user_state_folder(place: Path) -> Path:
    """Return the folder for the state of a repository that is not writable or has a foreign state folder."""
    name = f"{place.name}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"
    return user_state_path() / "repositories" / name


def state_in(root: Path) -> Path:
    """Return the state folder of a repository for reading, which need not exist; a foreign one is named on stderr.

    A copied or moved folder can be read, and its ledger can be checked. `app.state.state_of` refuses to reuse it.
    """
    inside, outside = look(root / FOLDER), user_state_folder(root)
    if inside.standing in (Standing.OURS, Standing.COPIED):
        return inside.path
    if inside.standing is Standing.FOREIGN:
        say_foreign(inside)
        return outside
    return outside if outside.is_dir() else inside.path


_said: set[Path] = set()
"""The foreign folders that this process has named."""


def say_foreign(folder: KnownFolder) -> None:
    """Print that a foreign state folder is not used, once in a process."""
    if folder.path in _said:
        return
    _said.add(folder.path)
    sys.stderr.write(
        f"fairwitness: {visible(str(folder.path))} {visible(folder.why)}, so it is not used; "
        "if you trust it, run `fairwitness adopt`\n"
    )


def database_hint(root: Path) -> str:
    """Return what to check if runs are missing; empty if nothing suggests that the database setting is wrong."""
    state = state_in(root)
    if os.environ.get(URL):
        has_file = (state / DATABASE).exists()
        return f"{URL} is set: unset it to see the runs in {state / DATABASE}" if has_file else ""
    is_used = state.is_dir() and not (state / DATABASE).exists()
    return f"{URL} is not set: set it if your runs are in Postgres" if is_used else ""


def no_ledger(root: Path) -> DatabaseUnusable:
    """Return the error for a repository without a ledger."""
    return DatabaseUnusable(f"there is no ledger in {root} yet", next_step=database_hint(root) or "fairwitness status")


@contextmanager
def read_database(root: Path) -> Iterator["Database | None"]:
    """Open the database of a repository's ledger for reading: on the server if one is set, else its file.

    Yields None if there is no ledger yet.
    """
    database = _on_server(url) if (url := os.environ.get(URL)) else _in_file(root)
    if database is None:
        yield None
        return
    try:
        yield database if holds_a_ledger(database) else None
    finally:
        database.close()


def _on_server(url: str) -> "Database":
    from fairwitness.db.postgres import PostgresDatabase

    return PostgresDatabase(url, grace_s=0.0)  # those who follow a run say that they wait


def _in_file(root: Path) -> "Database | None":
    file = state_in(root) / DATABASE
    if not file.exists():
        return None
    from fairwitness.db.sqlite import SqliteDatabase

    return SqliteDatabase(file, read_only=True)


def database_wait_s() -> float:
    """Return how many seconds a worker waits for a lost database server."""
    from fairwitness.db.postgres import WAIT_S

    said = os.environ.get(WAIT, "").strip()
    if not said:
        return WAIT_S
    try:
        minutes = float(said)
    except ValueError:
        minutes = -1.0
    if not 0 <= minutes < float("inf"):
        raise UsageError(f"{WAIT} is {said!r}", next_step="set it to a number of minutes, such as 15")
    return minutes * 60.0
