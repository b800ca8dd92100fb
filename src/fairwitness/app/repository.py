"""The root, state folder and database of a repository, for reading; loads neither contracts nor the engine."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairwitness.errors import DatabaseUnusable
from fairwitness.ledger.summary import holds_a_ledger

if TYPE_CHECKING:
    from fairwitness.db.base import Database

FOLDER = ".fairwitness"
DATABASE = "evidence.db"
URL = "FAIRWITNESS_DATABASE_URL"


def repository_root(start: Path) -> Path:
    """Return the nearest folder upwards that is a repository or has a ledger, or `start` if there is none."""
    for folder in (start, *start.parents):
        if (folder / ".git").exists() or (folder / FOLDER).is_dir():
            return folder
    return start


def user_state_folder(place: Path) -> Path:
    """Return the folder for the state of a repository that is not writable."""
    from platformdirs import user_state_path

    name = f"{place.name}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"
    return user_state_path("fairwitness") / "repositories" / name


def state_in(root: Path) -> Path:
    """Return the state folder of a repository, which need not exist."""
    inside = root / FOLDER
    if inside.is_dir():
        return inside
    outside = user_state_folder(root)
    return outside if outside.is_dir() else inside


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

    return PostgresDatabase(url)


def _in_file(root: Path) -> "Database | None":
    file = state_in(root) / DATABASE
    if not file.exists():
        return None
    from fairwitness.db.sqlite import SqliteDatabase

    return SqliteDatabase(file, read_only=True)
