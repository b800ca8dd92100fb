"""The engine's database: the tables of the library, Fair Witness's own tables, and threads for blocking calls."""

import asyncio
import functools
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairwitness.db.base import Database, Transaction
from fairwitness.db.postgres import Outage, PostgresDatabase
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.engine import dbos_library
from fairwitness.engine.base import (
    DEEPEST_GENERATION,
    ChangedOrder,
    EngineError,
    ExecutionStatus,
    Json,
    RepeatedKey,
    RunOutcome,
    StepError,
)
from fairwitness.engine.dbos_library import DbosControl, JournalStore
from fairwitness.engine.gates import Gates
from fairwitness.engine.json_values import RecordedError, check_name, decode, encode
from fairwitness.engine.leases import Fence, FencedDatabase, FenceHolder, Leases
from fairwitness.engine.locks import FileLock
from fairwitness.engine.run_row import ENDED_STATUSES, RunRow
from fairwitness.engine.tables import Tables, batched, is_prepared, make_tables
from fairwitness.errors import DatabaseBusy, FairWitnessError
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.kit.killpoints import killpoint


class Bodies:
    """The rows of the bodies that run now, in any process."""

    def __init__(self, database: Database, tables: Tables) -> None:
        self._database = database
        self._tables = tables

    def enter(self, run_id: str, executor: str) -> bool:
        """Claim the row of a run, possibly again; return False while a body in another process has not ended."""
        body, lease, now = self._tables.body, self._tables.lease, self._tables.now

        def work(transaction: Transaction) -> bool:
            transaction.run(
                f"DELETE FROM {body} WHERE run_id = ? AND executor NOT IN (SELECT executor FROM {lease})",  # noqa: S608
                (run_id,),
            )
            return bool(
                transaction.run(
                    f"INSERT INTO {body} AS b (run_id, executor, beat) VALUES (?, ?, {now}) "  # noqa: S608
                    "ON CONFLICT (run_id) DO UPDATE SET stop = 0, beat = excluded.beat "
                    "WHERE b.executor = excluded.executor RETURNING 1",
                    (run_id, executor),
                )
            )

        return self._database.write(work)

    def leave(self, run_id: str, executor: str) -> None:
        """Release the row of a run, if this worker still has it."""
        self._database.write(
            lambda transaction: transaction.run(
                f"DELETE FROM {self._tables.body} WHERE run_id = ? AND executor = ?",  # noqa: S608
                (run_id, executor),
            )
        )

    def stop(self, run_ids: Collection[str]) -> None:
        """Tell bodies to stop, in whichever process they run."""
        wanted = [(run_id,) for run_id in run_ids]

        def work(transaction: Transaction) -> None:
            for values in wanted:
                transaction.run(f"UPDATE {self._tables.body} SET stop = 1 WHERE run_id = ?", values)  # noqa: S608

        self._database.write(work)

    def beat(self, executor: str) -> None:
        """Record a heartbeat for all bodies of a worker. It must come from the event loop on which they run."""
        self._database.write(
            lambda transaction: transaction.run(
                f"UPDATE {self._tables.body} SET beat = {self._tables.now}, beats = beats + 1 WHERE executor = ?",  # noqa: S608
                (executor,),
            )
        )

    def marks(self) -> dict[str, tuple[str | None, int | None, int | None]]:
        """Return a mark of each run that a worker has taken; it changes with every heartbeat and every new worker.

        A run whose body has not started has a mark too: an event loop that hangs starts nothing, while the library
        continues to take runs for it.
        """
        run, body = self._tables.run, self._tables.body
        rows = self._database.read(
            f"SELECT r.workflow_uuid, r.executor_id, r.started_at_epoch_ms, b.beats FROM {run} AS r "  # noqa: S608
            f"LEFT JOIN {body} AS b ON b.run_id = r.workflow_uuid AND b.executor = r.executor_id "
            "WHERE r.status = 'PENDING'"
        )
        return {run_id: (executor, started, beats) for run_id, executor, started, beats in rows}

    def ended(self, run_ids: Collection[str]) -> frozenset[str]:
        """Return those of the runs that have ended."""
        return self._standing(run_ids, ENDED_STATUSES)

    def cancelled(self, run_ids: Collection[str]) -> frozenset[str]:
        """Return those of the runs that were cancelled."""
        return self._standing(run_ids, ["CANCELLED"])

    def _standing(self, run_ids: Collection[str], words: list[str]) -> frozenset[str]:
        found: set[str] = set()
        for ids in batched(run_ids):
            rows = self._database.read(
                f"SELECT workflow_uuid FROM {self._tables.run} WHERE status IN ({', '.join('?' * len(words))}) "  # noqa: S608
                f"AND workflow_uuid IN ({', '.join('?' * len(ids))})",
                [*words, *ids],
            )
            found |= {run_id for (run_id,) in rows}
        return frozenset(found)

    def taken(self, executor: str) -> frozenset[str]:
        """Return the runs that a worker has taken, whether or not they have a body."""
        rows = self._database.read(
            f"SELECT workflow_uuid FROM {self._tables.run} WHERE status = 'PENDING' AND executor_id = ?",  # noqa: S608
            (executor,),
        )
        return frozenset(run_id for (run_id,) in rows)

    def kept(self, executor: str) -> frozenset[str]:
        """Return the runs whose bodies a worker may continue."""
        rows = self._database.read(
            f"SELECT run_id FROM {self._tables.body} WHERE executor = ? AND stop = 0",  # noqa: S608
            (executor,),
        )
        return frozenset(str(run_id) for (run_id,) in rows)


P = ParamSpec("P")
T = TypeVar("T")

ENDED = frozenset({ExecutionStatus.DONE, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED})
_BUSY_TIMEOUT_MS = 30_000
_BUSY_S = 0.25
_OWN_ERRORS = frozenset(error.__name__ for error in (EngineError, RepeatedKey, ChangedOrder, StepError))


class EngineDatabase:
    """The open database, as workers and control clients use it. All blocking calls run in its threads."""

    def __init__(
        self,
        location: Path | str,
        flows: Collection[str],
        version: str,
        threads: ThreadPoolExecutor,
        outage: Outage,
        fences: FenceHolder,
        disk: DiskWatch | None = None,
    ) -> None:
        self.location = location
        self.outage = outage
        self.disk = disk
        """The disks that calls wait for, as they wait for an unreachable server."""
        self.flows = frozenset(flows)
        self.version = version
        self._threads = threads
        self.cap = 1
        """The cap of the worker in this process, if there is one."""
        self._deepest = 1
        """The deepest generation of children whose queue is known to exist."""
        self._is_closed = False
        self.is_patient = False
        """Whether calls wait for a file that another process has locked."""
        self.is_new = False
        """Whether its queues must still be created."""
        if isinstance(location, Path):
            if not location.exists():
                dbos_library.make_file(location)
                self.is_new = True
            self._database: Database = SqliteDatabase(location, busy_timeout_ms=_BUSY_TIMEOUT_MS)
            patient: Database = self._database
        else:
            self._database = PostgresDatabase(location, grace_s=2.0)
            patient = PostgresDatabase(location, outage=outage)
        self._fenced, self._fences = FencedDatabase(patient, fences), fences
        try:
            if not is_prepared(self._database):
                if isinstance(location, Path):
                    raise EngineError(
                        f"{location} is not an engine's database",
                        next_step="name another file; this one was not touched",
                    )
                dbos_library.make_schema(location, outage)
                self.is_new = True
            self._tables = tables = make_tables(self._database)
            # Not patient: the keeper of the lease has to notice that the server is lost.
            self.leases = Leases(self._database, tables)
            self.bodies = Bodies(self._fenced, tables)
            self.gates = Gates(self._fenced, tables)
            self.store = JournalStore(location, outage, disk)
            self.control = DbosControl(self.store)
        except BaseException:
            self._close_databases()
            raise

    def join(self, executor: str) -> None:
        """Make every write of this process depend on the lease of its worker."""
        self._fences.fence = Fence(self._database.dialect, self._tables, executor)

    def _close_databases(self) -> None:
        self._fenced.close()
        self._database.close()

    def close(self) -> None:
        """Close the database."""
        self._is_closed = True
        self.control.destroy()
        self.store.dispose()
        self._close_databases()

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking database call in a thread.

        All such calls must be repeatable: an interrupted call may or may not have been executed.
        """
        loop = asyncio.get_running_loop()
        while True:
            if self._is_closed:  # work that did not end in time may call after the close
                raise EngineError("the engine is closed", next_step="open it again")
            try:
                return await loop.run_in_executor(self._threads, functools.partial(function, *args, **kwargs))
            except FairWitnessError as error:
                is_passing = isinstance(error, DatabaseBusy) or (self.disk is not None and self.disk.excuses(error))
                if not (self.is_patient and is_passing):
                    raise
            await asyncio.sleep(_BUSY_S)

    async def submit(self, run_id: str, flow: str, args: Json, above: tuple[str, ...] = ()) -> None:
        """Queue a run or a child, once; `above` are its ancestors."""
        if flow not in self.flows:
            raise EngineError(f"there is no flow {flow}", next_step=f"there are {', '.join(sorted(self.flows))}")
        check_name(run_id)
        value = decode(encode(args))
        generation = len(above)
        if generation > DEEPEST_GENERATION:
            raise EngineError(
                f"{run_id} would be a child of the {generation}th generation", next_step="submit it from further above"
            )
        if generation > self._deepest:
            leases = await self.call(self.leases.all)
            await self.control.make_queue(generation, max([self.cap, *(lease.cap for lease in leases)]))
            self._deepest = generation
        await self.control.enqueue(run_id, flow, value, self.version, above)
        killpoint("engine.queued")

    async def known(self, run_id: str, *, whole: bool = False) -> RunRow:
        """Return a run; raise `EngineError` if there is none."""
        check_name(run_id)
        found = await self.control.find(run_id, whole=whole)
        if found is None:
            raise EngineError(f"there is no run {run_id}", next_step="look at the list of runs")
        return found

    async def outcome(self, run_id: str) -> RunOutcome | None:
        """Return the result of a run, or None if it has not ended."""
        return (await self.outcomes([run_id])).get(run_id)

    async def outcomes(self, run_ids: Collection[str]) -> dict[str, RunOutcome]:
        """Return the results of those of the runs that have ended."""
        return {found.id: _outcome(found) for found in await self.control.ended(run_ids)}

    async def cancel(self, run_id: str) -> None:
        """Cancel a run and all its descendants, and tell their bodies to stop."""
        ended: set[str] = set()
        doomed = {run_id}
        while doomed:
            await self.control.cancel(doomed)
            killpoint("engine.cancelled")
            await self.call(self.bodies.stop, doomed)
            ended |= doomed
            doomed = {child.id for child in await self.control.waiting_children() if child.parent in ended} - ended


def _outcome(found: RunRow) -> RunOutcome:
    value = found.value if found.status is ExecutionStatus.DONE else None
    return RunOutcome(found.status, value, error_text(found.error) or "")


def error_text(error: RecordedError | None) -> str | None:
    """Return an error as text; for the engine's own errors the message is enough."""
    if error is None:
        return None
    return error.message if error.kind in _OWN_ERRORS else f"{error.kind}: {error.message}"


def recovery_lock(location: Path | str) -> FileLock | None:
    """Return the lock of the one worker on a file that takes over runs of dead workers; a server needs none."""
    return FileLock(location.with_name(f"{location.name}-recovery")) if isinstance(location, Path) else None


def set_up_lock(location: Path | str) -> FileLock | None:
    """Return the lock for opening a file, since the library changes its tables outside a transaction."""
    return FileLock(location.with_name(f"{location.name}-setup")) if isinstance(location, Path) else None
