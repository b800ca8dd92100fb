"""The engine's database: the tables of the library, Fair Witness's own tables, and threads for blocking calls."""

import asyncio
import functools
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairwitness.db.base import Database
from fairwitness.db.postgres import PostgresDatabase
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
from fairwitness.engine.bodies import Bodies
from fairwitness.engine.connections import is_away
from fairwitness.engine.dbos_library import DbosControl, JournalStore
from fairwitness.engine.gates import Gates
from fairwitness.engine.json_values import RecordedError, check_name, decode, encode
from fairwitness.engine.leases import Leases
from fairwitness.engine.locks import FileLock
from fairwitness.engine.run_row import RunRow
from fairwitness.engine.tables import is_prepared, make_tables
from fairwitness.errors import DatabaseBusy, FairWitnessError
from fairwitness.kit.killpoints import killpoint

P = ParamSpec("P")
T = TypeVar("T")

ENDED = frozenset({ExecutionStatus.DONE, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED})
_BUSY_TIMEOUT_MS = 30_000
_AWAY_S = 0.25
_OWN_ERRORS = frozenset(error.__name__ for error in (EngineError, RepeatedKey, ChangedOrder, StepError))


class EngineDatabase:
    """The open database, as workers and control clients use it. All blocking calls run in its threads."""

    def __init__(self, location: Path | str, flows: Collection[str], version: str, threads: ThreadPoolExecutor) -> None:
        self.location = location
        self.flows = frozenset(flows)
        self.version = version
        self._threads = threads
        self.cap = 1
        """The cap of the worker in this process, if there is one."""
        self._deepest = 1
        """The deepest generation of children whose queue is known to exist."""
        self._is_closed = False
        self.is_patient = False
        """Whether calls wait for an unreachable server, as the library's own calls do."""
        self.is_new = False
        """Whether its queues must still be created."""
        if isinstance(location, Path):
            if not location.exists():
                dbos_library.make_file(location)
                self.is_new = True
            self._database: Database = SqliteDatabase(location, busy_timeout_ms=_BUSY_TIMEOUT_MS)
        else:
            self._database = PostgresDatabase(location)
        try:
            if not is_prepared(self._database):
                if isinstance(location, Path):
                    raise EngineError(
                        f"{location} is not an engine's database",
                        next_step="name another file; this one was not touched",
                    )
                dbos_library.make_schema(location)
                self.is_new = True
            tables = make_tables(self._database)
            self.leases = Leases(self._database, tables)
            self.bodies = Bodies(self._database, tables)
            self.gates = Gates(self._database, tables)
            self.store = JournalStore(location)
            self.control = DbosControl(self.store)
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self._is_closed = True
        self.control.destroy()
        self.store.dispose()
        self._database.close()

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
                is_passing = isinstance(error, DatabaseBusy) or is_away(error.__cause__ or error.__context__)
                if not (self.is_patient and is_passing):
                    raise
            await asyncio.sleep(_AWAY_S)

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
