"""Exports the ledger of one run as a separate file, `verification-ledger.db`, from any kind of database."""

import sqlite3
import tempfile
from pathlib import Path

from fairwitness.db.base import Database, Transaction
from fairwitness.db.migrations import migrate
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.errors import UsageError
from fairwitness.ledger.anchors import copy_anchors
from fairwitness.ledger.ledger import MIGRATIONS
from fairwitness.ledger.summary import rebuild_summary
from fairwitness.ledger.tables import CHAINED


def exported(database: Database, run_id: str, now: str) -> bytes:
    """Return a SQLite file with the rows of one run, their ids and their chain; the caller writes it atomically."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-export-") as folder:
        path = Path(folder) / "verification-ledger.db"
        target = SqliteDatabase(path)
        try:
            migrate(target, MIGRATIONS, now)
            if target.write(lambda transaction: _copy(database, transaction, run_id)) == 0:
                raise UsageError(f"the ledger has no run {run_id!r}", next_step="fairwitness status")
        finally:
            target.close()
        # One self-contained file: without a write-ahead log and without empty pages left by the copying.
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("VACUUM")
        finally:
            connection.close()
        return path.read_bytes()


def _copy(database: Database, transaction: Transaction, run_id: str) -> int:
    """Copy table by table, sources before the rows that refer to them; return the number of links."""
    order = [name for name in CHAINED if name != "check_sources"] + ["check_sources"]
    for name in order:
        columns = ", ".join(CHAINED[name].columns)
        _copy_rows(database, transaction, run_id, name, columns, CHAINED[name].key)
    rebuild_summary(transaction, run_id)
    copy_anchors(database, transaction, run_id)
    return _copy_rows(database, transaction, run_id, "chain", "run_id, seq, members, prev_hash, hash", "seq")


def _copy_rows(database: Database, transaction: Transaction, run_id: str, table: str, columns: str, key: str) -> int:
    rows = database.read(f"SELECT {columns} FROM {table} WHERE run_id = ? ORDER BY {key}", (run_id,))
    marks = ", ".join("?" * len(columns.split(", ")))
    for row in rows:
        transaction.run(f"INSERT INTO {table} ({columns}) VALUES ({marks})", row)
    return len(rows)
