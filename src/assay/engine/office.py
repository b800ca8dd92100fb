"""The engine's database, opened: the library's part of it, our part, and a few threads for the calls that wait."""

import asyncio
import functools
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from assay.db.base import Database
from assay.db.postgres import PostgresDatabase
from assay.db.sqlite import SqliteDatabase
from assay.engine import dbos_library
from assay.engine.base import EngineError, Json, Outcome, RunStatus
from assay.engine.bodies import Bodies
from assay.engine.dbos_library import Control, Found, Store
from assay.engine.gates import Gates
from assay.engine.json_values import RecordedError, check_name, decode, encode
from assay.engine.leases import Leases
from assay.engine.locks import FileLock
from assay.engine.tables import is_prepared, make_tables

P = ParamSpec("P")
T = TypeVar("T")

ENDED = frozenset({RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED})
_BUSY_TIMEOUT_MS = 30_000
_OWN_ERRORS = frozenset({"EngineError", "RepeatedKey", "ChangedOrder", "StepFailed"})


class Office:
    """What both a worker and a mere client need. All calls that wait do so in its threads."""

    def __init__(self, place: Path | str, flows: Collection[str], version: str, threads: ThreadPoolExecutor) -> None:
        self.place = place
        self.flows = frozenset(flows)
        self.version = version
        self._threads = threads
        self.is_new = False
        """Whether its queues have yet to be made."""
        if isinstance(place, Path):
            if not place.exists():
                dbos_library.make_file(place)
                self.is_new = True
            self._database: Database = SqliteDatabase(place, busy_timeout_ms=_BUSY_TIMEOUT_MS)
        else:
            self._database = PostgresDatabase(place)
        try:
            if not is_prepared(self._database):
                if isinstance(place, Path):
                    raise EngineError(
                        f"{place} is not an engine's database", next_step="name another file; this one was not touched"
                    )
                dbos_library.make_schema(place)
                self.is_new = True
            tables = make_tables(self._database)
            self.leases = Leases(self._database, tables)
            self.bodies = Bodies(self._database, tables)
            self.gates = Gates(self._database, tables)
            self.store = Store(place)
            self.control = Control(self.store)
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Lets go of the database."""
        self.control.destroy()
        self.store.dispose()
        self._database.close()

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A call that waits for the database, off the loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, functools.partial(function, *args, **kwargs))

    async def submit(self, run_id: str, flow: str, args: Json, parent: str | None = None) -> None:
        """Queues a run or a child, once."""
        if flow not in self.flows:
            raise EngineError(f"there is no flow {flow}", next_step=f"there are {', '.join(sorted(self.flows))}")
        check_name(run_id)
        await self.control.enqueue(run_id, flow, decode(encode(args)), self.version, parent)

    async def known(self, run_id: str, *, whole: bool = False) -> Found:
        """A run there must be."""
        check_name(run_id)
        found = await self.control.find(run_id, whole=whole)
        if found is None:
            raise EngineError(f"there is no run {run_id}", next_step="look at the list of runs")
        return found

    async def outcome(self, run_id: str) -> Outcome | None:
        """How a run ended; None while it has not."""
        found = await self.control.find(run_id)
        if found is None or found.status not in ENDED:
            return None
        value = found.value if found.status is RunStatus.DONE else None
        return Outcome(found.status, value, told(found.error) or "")

    async def cancel(self, run_id: str) -> None:
        """Ends a run and whatever came of it, and tells their bodies."""
        ended: set[str] = set()
        doomed = {run_id}
        while doomed:
            await self.control.cancel(doomed)
            await self.call(self.bodies.stop, doomed)
            ended |= doomed
            doomed = {child.id for child in await self.control.waiting_children() if child.parent in ended} - ended


def told(error: RecordedError | None) -> str | None:
    """An error in words; of our own ones their sentence is enough."""
    if error is None:
        return None
    return error.message if error.kind in _OWN_ERRORS else f"{error.kind}: {error.message}"


def recovery_lock(place: Path | str) -> FileLock | None:
    """Whoever holds it is the one worker on a file that takes over from the dead; a server needs none."""
    return FileLock(place.with_name(f"{place.name}-recovery")) if isinstance(place, Path) else None


def set_up_lock(place: Path | str) -> FileLock | None:
    """Held while a file is opened, since the library changes its tables outside of any transaction."""
    return FileLock(place.with_name(f"{place.name}-setup")) if isinstance(place, Path) else None
