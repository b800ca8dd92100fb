"""Migrate databases by numbered functions, each applied once, after a backup; there are no downgrades."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from fairwitness.db.base import Database, SqlDialect, Transaction
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.errors import DatabaseUnusable
from fairwitness.kit.killpoints import killpoint

_TABLE = """
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL
)
"""


class Migration(NamedTuple):
    """One step to the next version of the schema."""

    name: str
    apply: Callable[[Transaction, SqlDialect], None]


def version_of(database: Database) -> int:
    """Return how many migrations a database has had, 0 for an empty one; raise if another program owns its tables."""
    tables = _tables(database)
    if "migrations" not in tables:
        if tables:
            raise DatabaseUnusable(
                f"{database.name} holds tables of something else ({', '.join(sorted(tables)[:3])})",
                next_step="name another database; this one was not touched",
            )
        return 0
    ((number,),) = database.read("SELECT COALESCE(MAX(number), 0) FROM migrations")
    return int(number)


def _tables(database: Database) -> set[str]:
    if database.dialect is SqlDialect.SQLITE:
        rows = database.read("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    else:
        rows = database.read("SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()")
    return {str(name) for (name,) in rows}


def check_version(database: Database, known: int) -> int:
    """Return the database's version; raise if this program is too old to read it."""
    version = version_of(database)
    if version > known:
        raise _newer(database, version, known)
    return version


def migrate(database: Database, migrations: Sequence[Migration], now: str) -> int:
    """Apply the missing migrations in one transaction; return how many were applied."""
    if check_version(database, len(migrations)) == len(migrations):
        return 0

    def move_forward(transaction: Transaction) -> int:
        transaction.take_turns("migrations")
        transaction.run(_TABLE)
        # Another process may have migrated the database while this one waited for its turn.
        ((done,),) = transaction.run("SELECT COALESCE(MAX(number), 0) FROM migrations")
        if done > len(migrations):
            raise _newer(database, done, len(migrations))
        if 0 < done < len(migrations) and isinstance(database, SqliteDatabase):
            # No other process can write now, and a second connection still sees the state before this transaction.
            _back_up(database.path, done)
            killpoint("db.migration.backed-up")
        for number, migration in enumerate(migrations[done:], start=done + 1):
            migration.apply(transaction, database.dialect)
            transaction.run(
                "INSERT INTO migrations (number, name, applied_at) VALUES (?, ?, ?)", (number, migration.name, now)
            )
            killpoint("db.migration.applied")
        return len(migrations) - int(done)

    return database.write(move_forward)


def _newer(database: Database, version: int, known: int) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"{database.name} has version {version}, written by a newer Fair Witness; this one knows {known}",
        next_step="use the newer Fair Witness; the database was not touched",
    )


def _back_up(path: Path, version: int) -> None:
    """Copy the database to a file beside it, through SQLite so that it is consistent; replace an earlier copy."""
    copy = path.with_name(f"{path.name}.v{version}.backup")
    partial = path.with_name(f"{copy.name}.partial")
    partial.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(partial)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode=DELETE")  # a single file, without a write-ahead log beside it
    partial.replace(copy)
