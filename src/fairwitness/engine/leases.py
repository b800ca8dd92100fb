"""Leases of workers: a row with a heartbeat for each, and the transaction that takes over the runs of a dead worker.

`LeaseKeeper` sends the heartbeats in a thread, so that a busy event loop cannot delay them.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from fairwitness.db.base import Database, Transaction
from fairwitness.engine.base import EngineError
from fairwitness.engine.locks import FileLock, ProcessIdentity, is_gone, this_process
from fairwitness.engine.tables import Tables
from fairwitness.kit.killpoints import killpoint

HEARTBEAT_S = 5.0
DEAD_AFTER_S = 30.0
"""How long a worker on another machine may be silent; on this machine its process is checked instead."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One worker, the time since its last heartbeat, and the number of that heartbeat."""

    executor: str
    process: ProcessIdentity
    silent_s: float
    epoch: int
    cap: int
    """How many children it runs at a time."""

    @property
    def is_dead(self) -> bool:
        """Return whether the process is gone from this machine, or silent for too long on another."""
        gone = is_gone(self.process)
        return self.silent_s > DEAD_AFTER_S if gone is None else gone


class Leases:
    """The rows of all workers."""

    def __init__(self, database: Database, tables: Tables) -> None:
        self._database = database
        self._tables = tables

    def join(self, executor: str, process: ProcessIdentity, cap: int) -> None:
        """Add the row of a worker. This comes before it takes anything from a queue."""
        table, now = self._tables.lease, self._tables.now
        joined = self._database.write(
            lambda transaction: transaction.run(
                f"INSERT INTO {table} (executor, host, pid, started, heartbeat, epoch, cap) "  # noqa: S608
                f"VALUES (?, ?, ?, ?, {now}, 1, ?) ON CONFLICT (executor) DO NOTHING RETURNING 1",
                (executor, process.host, process.pid, process.started, cap),
            )
        )
        if not joined:
            raise EngineError(
                f"a worker {executor} is at work already", next_step="give this one another name, or end the other"
            )

    def beat(self, executor: str) -> bool:
        """Record a heartbeat; return False if this worker was taken for dead and its runs were taken over."""
        table, now = self._tables.lease, self._tables.now
        return bool(
            self._database.write(
                lambda transaction: transaction.run(
                    f"UPDATE {table} SET heartbeat = {now}, epoch = epoch + 1 WHERE executor = ? RETURNING 1",  # noqa: S608
                    (executor,),
                )
            )
        )

    def all(self) -> list[Lease]:
        """Return all workers that have a row."""
        rows = self._database.read(
            f"SELECT executor, host, pid, started, {self._tables.now} - heartbeat, epoch, cap "  # noqa: S608
            f"FROM {self._tables.lease}"
        )
        return [
            Lease(executor, ProcessIdentity(host, pid, started), silent_s, epoch, cap)
            for executor, host, pid, started, silent_s, epoch, cap in rows
        ]

    def take_over(self, lease: Lease) -> bool:
        """Remove a worker and queue its runs again, atomically; return False if it lives or another process was faster.

        The library's own calls for this do not check who has a run now, so the slower of two processes would restart
        what the faster one already runs. Here only the runs that the dead worker still has are queued.
        """

        def work(transaction: Transaction) -> bool:
            removed = transaction.run(
                f"DELETE FROM {self._tables.lease} WHERE executor = ? AND epoch = ? RETURNING 1",  # noqa: S608
                (lease.executor, lease.epoch),
            )
            if removed:
                self._queue_again(transaction, lease.executor)
            return bool(removed)

        return self._database.write(work)

    def leave(self, executor: str) -> None:
        """Remove the row of a worker that ends; its unfinished runs are queued for other workers."""

        def work(transaction: Transaction) -> None:
            if transaction.run(f"DELETE FROM {self._tables.lease} WHERE executor = ? RETURNING 1", (executor,)):  # noqa: S608
                self._queue_again(transaction, executor)

        self._database.write(work)

    def _queue_again(self, transaction: Transaction, executor: str) -> None:
        transaction.run(f"DELETE FROM {self._tables.body} WHERE executor = ?", (executor,))  # noqa: S608
        transaction.run(f"{self._queued} AND executor_id = ?", (executor,))

    def give_back(self, run_id: str, executor: str) -> None:
        """Queue a run again that a worker has taken but has no body for."""

        def work(transaction: Transaction) -> None:
            transaction.run(
                f"DELETE FROM {self._tables.body} WHERE run_id = ? AND executor = ?",  # noqa: S608
                (run_id, executor),
            )
            transaction.run(f"{self._queued} AND workflow_uuid = ? AND executor_id = ?", (run_id, executor))

        self._database.write(work)

    def adopt(self, run_id: str) -> None:
        """Queue a run again whose worker has no row, as after a database was restored from a backup."""
        living = f"SELECT executor FROM {self._tables.lease}"  # noqa: S608
        statement = f"{self._queued} AND workflow_uuid = ? AND executor_id NOT IN ({living})"
        self._database.write(lambda transaction: transaction.run(statement, (run_id,)))

    @property
    def _queued(self) -> str:
        """Return the statement that queues runs again; the caller adds a condition on run and current worker."""
        return (
            f"UPDATE {self._tables.run} SET status = 'ENQUEUED', owner_xid = NULL, started_at_epoch_ms = NULL "  # noqa: S608
            "WHERE status = 'PENDING'"
        )


_LOOK_S = 0.5
_GIVE_UP_S = DEAD_AFTER_S - HEARTBEAT_S
"""After this time without a heartbeat other workers are about to take over, so the bodies here are stopped first."""


class LeaseKeeper:
    """Keeps the lease of one worker alive, and takes over the runs of dead workers."""

    def __init__(
        self, leases: Leases, executor: str, cap: int, lock: FileLock | None, lost: Callable[[], None]
    ) -> None:
        self._leases = leases
        self._executor = executor
        self._process = this_process()
        self._cap = cap
        self._lock = lock
        self._lost = lost
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="fairwitness-engine-lease", daemon=True)

    def join(self) -> int:
        """Take over the runs of dead workers and become a worker; return the largest cap of all workers."""
        self.take_over()
        self._leases.join(self._executor, self._process, self._cap)
        killpoint("engine.lease.joined")
        self._thread.start()
        return max(lease.cap for lease in self._leases.all())

    def leave(self, *, hand_over: bool) -> None:
        """Stop being a worker. Runs that are not handed over stay with this process until it ends."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        if hand_over:
            self._leases.leave(self._executor)
            killpoint("engine.lease.left")
        if self._lock is not None:
            self._lock.release()

    def take_over(self) -> None:
        """Queue the runs of dead workers again. On a file only one worker at a time does this."""
        if self._lock is None or self._lock.try_acquire():
            for lease in self._leases.all():
                if lease.is_dead:
                    self._leases.take_over(lease)
                    killpoint("engine.lease.taken-over")

    def _keep(self) -> None:
        heard = time.monotonic()
        while not self._end.wait(_LOOK_S):
            try:
                if time.monotonic() - heard >= HEARTBEAT_S:
                    if not self._leases.beat(self._executor):
                        # It was taken for dead: its bodies lose their rows and stop, and the worker joins again as a
                        # new one.
                        self._leases.join(self._executor, self._process, self._cap)
                    killpoint("engine.lease.beat")
                    heard = time.monotonic()
                self.take_over()
            except Exception:  # noqa: BLE001  # database or disk busy or unreachable; the next round may succeed
                if self._lock is None and time.monotonic() - heard > _GIVE_UP_S:
                    self._lost()
