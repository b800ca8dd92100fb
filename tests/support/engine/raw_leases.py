"""Which workers of the raw engine live: one row each, and who removes a dead one's row queues its runs again."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from fairwitness.db.base import Database, Transaction
from fairwitness.engine.base import EngineError

_TABLE = """CREATE TABLE IF NOT EXISTS raw_lease (
  executor TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, beat REAL NOT NULL)"""

_DEAD_AFTER_S = 30.0
"""How long a worker on another machine may be silent; on this one its process is looked at."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that takes runs, and how to tell whether it lives."""

    executor: str
    host: str
    pid: int
    started: str


def this_process(executor: str) -> Worker:
    """A worker in this process."""
    return Worker(executor, socket.gethostname(), os.getpid(), _started(os.getpid()))


def _started(pid: int) -> str:
    """When a process began, in ticks since the machine did; empty if it is gone or only waits to be buried."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


class Leases:
    """The rows of all workers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.write(lambda transaction: transaction.run(_TABLE))

    def begin(self, worker: Worker, now: float) -> None:
        """A worker's first sign of life; its name must be its own."""

        def work(transaction: Transaction) -> None:
            if transaction.run("SELECT 1 FROM raw_lease WHERE executor = ?", (worker.executor,)):
                raise EngineError(
                    f"a worker {worker.executor} is at work already", next_step="give this one another name"
                )
            transaction.run(
                "INSERT INTO raw_lease VALUES (?, ?, ?, ?, ?)",
                (worker.executor, worker.host, worker.pid, worker.started, now),
            )

        self._database.write(work)

    def beat(self, worker: Worker, now: float) -> bool:
        """A sign of life; False if somebody took the worker for dead."""
        return self._database.write(
            lambda transaction: bool(
                transaction.run(
                    "UPDATE raw_lease SET beat = ? WHERE executor = ? AND pid = ? AND started = ? RETURNING 1",
                    (now, worker.executor, worker.pid, worker.started),
                )
            )
        )

    def all(self) -> frozenset[str]:
        """Every worker there is a row of."""
        return frozenset(executor for (executor,) in self._database.read("SELECT executor FROM raw_lease"))

    def dead(self, now: float) -> list[Worker]:
        """Workers whose process is gone, or who have been silent for too long elsewhere."""
        here = socket.gethostname()
        rows = self._database.read("SELECT executor, host, pid, started, beat FROM raw_lease")
        return [
            Worker(executor, host, pid, started)
            for executor, host, pid, started, beat in rows
            if (_started(pid) != started if host == here else now - beat > _DEAD_AFTER_S)
        ]

    def end(self, worker: Worker) -> bool:
        """Removes a worker and queues its runs again, in one transaction; False if somebody else did."""

        def work(transaction: Transaction) -> bool:
            removed = transaction.run(
                "DELETE FROM raw_lease WHERE executor = ? AND pid = ? AND started = ? RETURNING 1",
                (worker.executor, worker.pid, worker.started),
            )
            if removed:
                transaction.run(
                    "UPDATE raw_run SET status = 'queued', executor = NULL WHERE status = 'running' AND executor = ?",
                    (worker.executor,),
                )
            return bool(removed)

        return self._database.write(work)
