"""The only module that uses DBOS: its settings, its calls and its errors, translated to Fair Witness's types.

DBOS is imported inside functions only, since that takes half a second: a process that does not work on a queue never
loads it.

Everything uses its public calls, except what they cannot do in one statement with Fair Witness's own tables. An upgrade
of DBOS must be checked against this list; `tests/engine/test_dbos_tables.py` does so for the installed version:

- we write `workflow_status`: a run that is PENDING goes back to its queue as ENQUEUED, with `owner_xid` and
  `started_at_epoch_ms` empty, if its `executor_id` is still the one we saw (`leases.py`);
- we read `workflow_status`: `workflow_uuid`, `status`, `executor_id`, and `started_at_epoch_ms` as the time when a run
  was taken (`bodies.py`); and whether there is such a table (`tables.py`);
- we know all values of a status, and which of them mean that a run has ended (`run_row.py`);
- we call `queue_worker_thread` of its module `_queue`, with a wake-up in place of the event that ends it
  (`queue_wakeup.py`);
- we rely on the `function_id` of steps counting from 1 in the order in which a body calls them (`dbos_flow.py`).
"""

import asyncio
import contextlib
import logging
import os
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from fairwitness.db.postgres import Outage, is_away
from fairwitness.engine.base import DEEPEST_GENERATION, ChangedOrder, EngineError, Json
from fairwitness.engine.connections import connect
from fairwitness.engine.json_values import Encoded, JsonSerializer
from fairwitness.engine.queue_wakeup import QueueWakeup, QueueWakeups
from fairwitness.engine.run_row import ENDED_STATUSES, OPEN_STATUSES, RUNS, RunRow, queue_of, run_row
from fairwitness.engine.tables import SCHEMA, batched
from fairwitness.errors import DatabaseAway
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.kit.killpoints import killpoint

_NAME = "fairwitness"
_QUEUE_POLL_S = 0.1
_NOTICE_POLL_S = 0.25

Start = Callable[[str, str, Json, tuple[str, ...]], Awaitable[Encoded]]
"""Starts a run that was taken from a queue; the arguments are its id, its flow, its arguments and its ancestors."""


def make_file(path: Path) -> None:
    """Create the library's tables in a new file. The file appears complete: the library's migration is not atomic."""
    from dbos import DBOS

    _quiet()
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="fairwitness-engine-") as folder:
        made = Path(folder) / "engine.db"
        DBOS.migrate(f"sqlite:///{made}")
        with contextlib.closing(sqlite3.connect(made)) as source, contextlib.closing(sqlite3.connect(partial)) as copy:
            partial.chmod(0o600)
            source.backup(copy)
    partial.replace(path)
    killpoint("engine.file.made")
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_schema(url: str, outage: Outage) -> None:
    """Create the library's tables on a server; if the connection is lost meanwhile, begin again."""
    from dbos import DBOS

    _quiet()
    while True:
        try:
            with _our_errors():
                return DBOS.migrate(url, schema=SCHEMA)
        except DatabaseAway as error:
            outage.wait(error)


def _quiet() -> None:
    """Silence the library's log, since even a cancelled run would print a traceback."""
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.CRITICAL)
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


class JournalStore:
    """The library's journal: a file or a server."""

    def __init__(self, location: Path | str, outage: Outage, disk: DiskWatch | None = None) -> None:
        _quiet()
        self.outage = outage
        self.engine = connect(location, outage, disk)

    def dispose(self) -> None:
        """Close the connections."""
        self.engine.dispose()


class DbosControl:
    """The calls that need no worker."""

    def __init__(self, store: JournalStore) -> None:
        from dbos import DBOSClient

        self._outage = store.outage
        with _our_errors():
            self._client = DBOSClient(
                system_database_engine=store.engine,
                dbos_system_schema=SCHEMA,
                serializer=_serializer(),
                application_name=_NAME,
            )

    async def _call(self, name: str, *args: object, **settings: object) -> Any:
        """Call the library's client; if the connection is lost meanwhile, call again. All calls can be repeated."""
        while True:
            try:
                with _our_errors():
                    return await getattr(self._client, name)(*args, **settings)
            except DatabaseAway as error:
                await asyncio.to_thread(self._outage.wait, error)

    def destroy(self) -> None:
        """Close the client's connections."""
        self._client.destroy()

    async def make_queues(self, cap: int) -> None:
        """Create the queues of runs and of their children, and set this cap on existing queues of later generations."""
        await self._call("register_queue_async", RUNS, polling_interval_sec=_QUEUE_POLL_S)
        killpoint("engine.queue.made")
        known = {
            queue.name
            for queue in await self._call(
                "list_queues_async",
            )
        }
        for generation in range(1, DEEPEST_GENERATION + 1):
            if generation == 1 or queue_of(generation) in known:
                await self.make_queue(generation, cap)

    async def make_queue(self, generation: int, cap: int) -> None:
        """Create the queue of one generation of children; each worker takes at most `cap` of them at a time."""
        await self._call(
            "register_queue_async", queue_of(generation), polling_interval_sec=_QUEUE_POLL_S, worker_concurrency=cap
        )
        killpoint("engine.queue.made")

    async def enqueue(self, run_id: str, flow: str, args: Json, version: str, above: tuple[str, ...]) -> None:
        """Queue a run, once."""
        with _our_errors():
            await self._call(
                "enqueue_async",
                {
                    "workflow_name": flow,
                    "queue_name": queue_of(len(above)),
                    "workflow_id": run_id,
                    "app_version": version,
                    "attributes": {"parent": above[-1] if above else None, "generation": len(above)},
                },
                args,
                list(above),
            )

    async def find(self, run_id: str, *, whole: bool = True) -> RunRow | None:
        """Return one run, or None."""
        listed = await self._call("list_workflows_async", workflow_ids=[run_id], load_input=False, load_output=whole)
        return run_row(listed[0]) if listed else None

    async def ended(self, run_ids: Collection[str]) -> list[RunRow]:
        """Return those of the runs that have ended, with their results."""
        listed = []
        for ids in batched(run_ids):
            listed += await self._call(
                "list_workflows_async", workflow_ids=ids, status=ENDED_STATUSES, load_input=False
            )
        return [run_row(one) for one in listed]

    async def all(self) -> list[RunRow]:
        """Return all runs, oldest first; only failed ones include their error."""
        listed = await self._call("list_workflows_async", load_input=False, load_output=False)
        failed = await self._call("list_workflows_async", status="ERROR", load_input=False)
        errors = {one.workflow_id: run_row(one) for one in failed}
        return [errors.get(one.workflow_id) or run_row(one) for one in listed]

    async def waiting_children(self) -> list[RunRow]:
        """Return the children that have not ended."""
        queues = [queue_of(generation) for generation in range(1, DEEPEST_GENERATION + 1)]
        listed = await self._call(
            "list_workflows_async", queue_name=queues, status=OPEN_STATUSES, load_input=False, load_output=False
        )
        return [run_row(one) for one in listed]

    async def steps(self, run_id: str, *, whole: bool = True) -> list[tuple[int, str, bool]]:
        """Return position, key and failure of each recorded step; unless `whole`, the failure is not loaded."""
        listed = await self._call("list_workflow_steps_async", run_id, load_output=whole)
        return [
            (one["function_id"], one["function_name"], whole and not _is_good(one["output"]))
            for one in sorted(listed, key=lambda one: one["function_id"])
        ]

    async def cancel(self, run_ids: Collection[str]) -> None:
        """Cancel those of the runs that have not ended."""
        await self._call("cancel_workflows_async", list(run_ids))

    async def rewind(self, run: RunRow, position: int, version: str) -> None:
        """Delete what an ended run recorded from a position on, and queue it."""
        with _our_errors():
            await self._call(
                "rewind_workflow_async",
                run.id,
                start_step=position,
                application_version=version,
                queue_name=queue_of(run.generation),
            )
        killpoint("engine.rewound")


def _is_good(output: object) -> bool:
    return isinstance(output, dict) and output.get("ok") is True


def _serializer() -> Any:
    return JsonSerializer()


class DbosWorker:
    """The library's worker in this process. There can be only one: the library keeps it in a module variable."""

    def __init__(self, store: JournalStore, executor: str, version: str) -> None:
        from dbos import DBOS, DBOSConfig

        config = DBOSConfig(
            name=_NAME,
            dbos_system_schema=SCHEMA,
            application_version=version,
            executor_id=executor,
            log_level="CRITICAL",
            enable_otlp=False,
            serializer=_serializer(),
            system_database_engine=store.engine,
            notification_listener_polling_interval_sec=_NOTICE_POLL_S,
        )
        self._library = DBOS
        self._instance = DBOS(config=config)
        self._wakeups = QueueWakeups(self._look)

    def launch(self, flows: Collection[str], start: Start) -> None:
        """Start to take runs; they run on the event loop of the caller."""
        for flow in flows:
            self._register(flow, start)
        with _our_errors():
            self._library.launch()

    def _register(self, flow: str, start: Start) -> None:
        library = self._library

        # A run may be started any number of times: each restart while it waits for a person is one.
        @library.workflow(name=flow, max_recovery_attempts=None)
        async def run(args: Json, above: list[str] | str | None) -> Encoded:
            run_id = library.workflow_id
            assert run_id is not None
            if not isinstance(above, list):  # queued by an earlier version
                above = [] if above is None else [above]
            return await start(run_id, flow, args, tuple(above))

    async def record(self, key: str, work: Callable[[], Awaitable[Encoded]]) -> object:
        """Run the work as the next step of the calling body's run, or return its recorded result."""
        from dbos import error

        async def named() -> Encoded:
            return await work()

        try:
            return await self._library.run_step_async({"name": key}, named)
        except error.DBOSUnexpectedStepError as unexpected:
            raise ChangedOrder(str(unexpected), next_step="put the steps back as they were") from unexpected
        except (error.DBOSWorkflowCancelledError, error.DBOSWorkflowConflictIDError) as lost:
            raise asyncio.CancelledError(str(lost)) from None

    def wake(self, generation: int) -> None:
        """Poll the queue of a generation now, because there is room for children."""
        self._wakeups.wake(generation)

    def _look(self, wakeup: QueueWakeup, generation: int) -> None:
        from dbos._queue import queue_worker_thread

        queue = self._library.retrieve_queue(queue_of(generation))
        if queue is not None:
            queue_worker_thread(wakeup, self._instance, queue)

    def destroy(self) -> None:
        """End the library's threads. Do not call this on the event loop, for which they may be waiting."""
        self._wakeups.end()
        self._library.destroy(destroy_registry=True)


@contextlib.contextmanager
def _our_errors() -> Iterator[None]:
    from dbos import error
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as lost:
        if not is_away(lost.orig):
            raise
        raise DatabaseAway(f"the database cannot be reached: {type(lost.orig).__name__}") from lost
    except error.DBOSException as refused:
        raise EngineError(f"the engine refused: {refused}", next_step="look at the list of runs") from refused
