"""One migration more, that only the tests know, and a process that applies it.

usage: migrator.py DATABASE; prints how many migrations it applied.
"""

import os
import sys
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from db.ledger_jobs import open_again
from fairwitness.db.base import SqlDialect, Transaction
from fairwitness.db.migrations import Migration, migrate
from fairwitness.ledger.ledger import MIGRATIONS

NOW = "2026-03-01T00:00:00Z"


def add_notes(transaction: Transaction, dialect: SqlDialect) -> None:
    """A table, a row in it, and a column, in words that both databases understand."""
    transaction.run("CREATE TABLE notes (word TEXT NOT NULL)")
    transaction.run("INSERT INTO notes (word) VALUES (?)", (dialect.value,))
    transaction.run("ALTER TABLE executions ADD COLUMN note TEXT")


NEXT = (*MIGRATIONS, Migration("notes", add_notes))


def move(address: str) -> int:
    """Applies what is missing."""
    database = open_again(address)
    try:
        return migrate(database, NEXT, NOW)
    finally:
        database.close()


def move_together(gate: Barrier, address: str, applied: "SimpleQueue[int]") -> None:
    """The same, at the same moment as others."""
    gate.wait(60)
    applied.put(move(address))


if __name__ == "__main__":
    os.write(1, str(move(sys.argv[1])).encode())
