"""Leases of workers: a row with a heartbeat for each, and the transaction that takes over the runs of a dead worker.

`LeaseKeeper` sends the heartbeats in a thread, so that a busy event loop cannot delay them. `SilenceWatch` measures how
long signs of life are missing, without comparing clocks. `FencedDatabase` refuses the writes of a worker that was taken
over.
"""

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fairwitness.db.base import Database, ReadQuery, Row, SqlDialect, Transaction, Value
from fairwitness.engine.base import EngineError
from fairwitness.engine.locks import FileLock, ProcessIdentity, end_stopped, is_gone, this_process
from fairwitness.engine.tables import Tables
from fairwitness.errors import NotReady
from fairwitness.kit.killpoints import killpoint

T = TypeVar("T")

HEARTBEAT_S = 5.0
DEAD_AFTER_S = 30.0
"""How long a worker on another machine may be silent; on this machine its process is checked instead."""
_CONFIRMED_S = 2.5 * HEARTBEAT_S
"""How long a worker must be seen to be silent if the database's clock says that it has been for long."""
_LONGEST_GAP_S = 2 * HEARTBEAT_S
"""The most that the time between two looks counts: beyond it the observer itself slept, or had no database."""


class SilenceWatch:
    """Measures how long signs of life are missing, by the time that the observer itself was awake and looking.

    A sign of life is any change of a mark. Clocks of different machines are not compared, and a clock that is set, a
    closed laptop lid, a stopped observer and a lost database count as one look at the most.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._looked: float | None = None
        self._seen: dict[str, tuple[Hashable, float]] = {}

    def look(self, marks: Mapping[str, Hashable]) -> dict[str, float]:
        """Take in the present marks; return the seconds for which each has not changed."""
        now = self._now()
        passed = 0.0 if self._looked is None else max(0.0, min(now - self._looked, _LONGEST_GAP_S))
        self._looked = now
        seen = {name: (mark, self._silent(name, mark, passed)) for name, mark in marks.items()}
        self._seen = seen
        return {name: silent_s for name, (_, silent_s) in seen.items()}

    def _silent(self, name: str, mark: Hashable, passed: float) -> float:
        before = self._seen.get(name)
        return before[1] + passed if before is not None and before[0] == mark else 0.0


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
        """Return whether the process is gone from this machine, or silent for too long on another by the database's
        clock. This is for display; before its runs are taken over, its silence is observed."""
        gone = is_gone(self.process)
        return self.silent_s > DEAD_AFTER_S if gone is None else gone

    def is_lost(self, observed_s: float) -> bool:
        """Return whether the worker's runs may be taken over, after observing its silence for a time."""
        gone = is_gone(self.process)
        if gone is not None:
            return gone
        return observed_s > (_CONFIRMED_S if self.silent_s > DEAD_AFTER_S else DEAD_AFTER_S)


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


class Fenced(NotReady):
    """This worker was taken over; nothing that it still does is written."""


class Fence:
    """The right of one worker to write: its lease. While a write holds it, nobody can take the worker over."""

    def __init__(self, dialect: SqlDialect, tables: Tables, executor: str) -> None:
        self.executor = executor
        lock = " FOR KEY SHARE" if dialect is SqlDialect.POSTGRES else ""  # heartbeats pass, a takeover waits
        self._holds = f"SELECT 1 FROM {tables.lease} WHERE executor = ?{lock}"  # noqa: S608

    def check(self, transaction: Transaction) -> None:
        """Raise `Fenced` if the lease is gone; otherwise it stays until the transaction ends."""
        if not transaction.run(self._holds, (self.executor,)):
            raise Fenced(
                f"worker {self.executor} was silent for too long and another one continues its runs",
                next_step="let this process end, or wait until it joins again",
            )


class FenceHolder:
    """Holds the fence of the worker in this process, for all databases that it writes to; None before it joined."""

    def __init__(self) -> None:
        self.fence: Fence | None = None


class FencedDatabase:
    """A database in which a worker writes only while it has its lease; a process without a worker always writes."""

    def __init__(self, database: Database, holder: FenceHolder) -> None:
        self._database = database
        self._holder = holder

    @property
    def dialect(self) -> SqlDialect:
        """The SQL dialect of this database."""
        return self._database.dialect

    @property
    def name(self) -> str:
        """A name to show to people; never contains a password."""
        return self._database.name

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of one query."""
        return self._database.read(sql, values)

    def look(self, work: Callable[[ReadQuery], T]) -> T:
        """Run several queries on one snapshot: concurrent writes do not change their answers."""
        return self._database.look(work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction that holds the fence."""
        fence = self._holder.fence
        if fence is None:
            return self._database.write(work)

        def fenced(transaction: Transaction) -> T:
            fence.check(transaction)
            return work(transaction)

        return self._database.write(fenced)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


_LOOK_S = 0.5
_GIVE_UP_S = DEAD_AFTER_S - HEARTBEAT_S
"""After this time without a heartbeat workers of other machines may take over, so the bodies here are stopped first."""


class LeaseKeeper:
    """Keeps the lease of one worker alive, and takes over the runs of dead workers."""

    def __init__(
        self,
        leases: Leases,
        executor: str,
        cap: int,
        lock: FileLock | None,
        lost: Callable[[], None],
        is_idle: Callable[[], bool],
    ) -> None:
        self._leases = leases
        self._executor = executor
        self._process = this_process()
        self._cap = cap
        self._lock = lock
        self._lost = lost
        self._is_idle = is_idle
        self._silence = SilenceWatch()
        self._has_rivals = False
        """Whether a worker of another machine had a lease when the database last answered."""
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
        leases = self._leases.all()
        silent = self._silence.look({lease.executor: lease.epoch for lease in leases})
        self._has_rivals = any(is_gone(lease.process) is None for lease in leases)
        others = [lease for lease in leases if lease.executor != self._executor]
        for lease in others:
            if silent[lease.executor] > DEAD_AFTER_S:
                end_stopped(lease.process)  # it may hold the lock below
        if self._lock is None or self._lock.try_acquire():
            for lease in others:
                if lease.is_lost(silent[lease.executor]):
                    self._leases.take_over(lease)
                    killpoint("engine.lease.taken-over")

    def _keep(self) -> None:
        heard = time.monotonic()
        while not self._end.wait(_LOOK_S):
            try:
                if time.monotonic() - heard >= HEARTBEAT_S:
                    if not self._leases.beat(self._executor) and not self._rejoins():
                        continue
                    killpoint("engine.lease.beat")
                    heard = time.monotonic()
                self.take_over()
            except Exception:  # noqa: BLE001  # database or disk busy or unreachable; the next round may succeed
                if self._has_rivals and time.monotonic() - heard > _GIVE_UP_S:
                    self._lost()

    def _rejoins(self) -> bool:
        """Stop all bodies after this worker was taken for dead; join again when the last of them has ended."""
        self._lost()
        if not self._is_idle():
            return False
        self._leases.join(self._executor, self._process, self._cap)
        return True
