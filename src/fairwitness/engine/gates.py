"""The answers of gates: the first answer to each is kept, whether or not a body waits for it yet.

The library has messages for this, but they do not tell which came first, are recorded without a key, and block a
cancelled body. A row with a primary key has none of these problems.
"""

from collections.abc import Collection
from typing import NamedTuple

from fairwitness.db.base import Database, Transaction
from fairwitness.engine.tables import Tables

NO_ANSWER = "null"
"""The answer of a gate whose time is up; every later answer is too late."""


class GateAnswer(NamedTuple):
    """A gate and its answer; None if its time is up."""

    run_id: str
    gate: str
    answer: str | None


class Gates:
    """The rows of all gates."""

    def __init__(self, database: Database, tables: Tables) -> None:
        self._database = database
        self._tables = tables

    def ask(self, run_id: str, gate: str, timeout_s: float | None) -> None:
        """Open a gate. Its deadline is set the first time, so that a restart does not extend it."""
        table, now = self._tables.gate, self._tables.now
        until = "NULL" if timeout_s is None else f"{now} + ?"
        self._database.write(
            lambda transaction: transaction.run(
                f"INSERT INTO {table} AS g (run_id, gate, until) VALUES (?, ?, {until}) "  # noqa: S608
                "ON CONFLICT (run_id, gate) DO UPDATE SET until = COALESCE(g.until, excluded.until)",
                (run_id, gate) if timeout_s is None else (run_id, gate, timeout_s),
            )
        )

    def answer(self, run_id: str, gate: str, text: str) -> bool:
        """Store an answer if it is the first; return whether it is."""
        return bool(
            self._database.write(
                lambda transaction: transaction.run(
                    f"INSERT INTO {self._tables.gate} AS g (run_id, gate, answer) VALUES (?, ?, ?) "  # noqa: S608
                    "ON CONFLICT (run_id, gate) DO UPDATE SET answer = excluded.answer "
                    "WHERE g.answer IS NULL RETURNING 1",
                    (run_id, gate, text),
                )
            )
        )

    def answered(self, run_ids: Collection[str]) -> list[GateAnswer]:
        """Return the gates of these runs that were answered or have no time left."""
        if not run_ids:
            return []
        signs = ", ".join("?" * len(run_ids))
        rows = self._database.read(
            f"SELECT run_id, gate, answer FROM {self._tables.gate} WHERE run_id IN ({signs}) "  # noqa: S608
            f"AND (answer IS NOT NULL OR until <= {self._tables.now})",
            tuple(run_ids),
        )
        return [GateAnswer(*row) for row in rows]

    def is_waiting(self, run_id: str) -> bool:
        """Return whether a run has opened a gate that has no answer yet."""
        sql = f"SELECT 1 FROM {self._tables.gate} WHERE run_id = ? AND answer IS NULL LIMIT 1"  # noqa: S608
        return bool(self._database.read(sql, (run_id,)))

    def forget(self, run_id: str, gates: Collection[str]) -> None:
        """Delete gates as if they had never been opened, and all gates of the run without an answer."""
        table = self._tables.gate

        def work(transaction: Transaction) -> None:
            transaction.run(f"DELETE FROM {table} WHERE run_id = ? AND answer IS NULL", (run_id,))  # noqa: S608
            for gate in gates:
                transaction.run(f"DELETE FROM {table} WHERE run_id = ? AND gate = ?", (run_id, gate))  # noqa: S608

        self._database.write(work)
