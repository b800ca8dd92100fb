"""The one module that knows DBOS: its settings, its calls and its errors, in our words.

It is imported inside functions only, since it costs half a second: whoever does not work a queue never loads it.
"""

import asyncio
import contextlib
import logging
import os
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.engine.base import ChangedOrder, EngineError, Json, RunStatus
from assay.engine.json_values import Encoded, JsonSerializer, RecordedError
from assay.engine.tables import SCHEMA

RUNS, CHILDREN = "assay-runs", "assay-children"
"""Runs wait for their children and for people, so they have a queue without a limit and children one with the cap."""

_NAME = "assay"
_QUEUE_POLL_S = 0.1
_NOTICE_POLL_S = 0.25
_POOL = 8
_CLIENT_POOL = 4
_BUSY_TIMEOUT_MS = 30_000
_STATUS = {
    "ENQUEUED": RunStatus.QUEUED,
    "DELAYED": RunStatus.QUEUED,
    "PENDING": RunStatus.RUNNING,
    "SUCCESS": RunStatus.DONE,
    "ERROR": RunStatus.FAILED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": RunStatus.FAILED,
    "CANCELLED": RunStatus.CANCELLED,
}
_WAITING = ["ENQUEUED", "DELAYED", "PENDING"]

Start = Callable[[str, str, Json, str | None], Awaitable[Encoded]]
"""What a run that was taken from a queue begins with: its id, its flow, its arguments and its parent."""


@dataclass(frozen=True, slots=True)
class Found:
    """One run as the library has it."""

    id: str
    flow: str
    status: RunStatus
    version: str
    executor: str | None
    parent: str | None
    value: Json = None
    error: RecordedError | None = None


def make_file(path: Path) -> None:
    """Makes the library's tables in a new file. It appears whole: the library's own way is no transaction."""
    from dbos import DBOS

    _quiet()
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="assay-engine-") as folder:
        made = Path(folder) / "engine.db"
        DBOS.migrate(f"sqlite:///{made}")
        with contextlib.closing(sqlite3.connect(made)) as source, contextlib.closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
    partial.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_schema(url: str) -> None:
    """Makes the library's tables on a server."""
    from dbos import DBOS

    _quiet()
    DBOS.migrate(url, schema=SCHEMA)


def _quiet() -> None:
    """Nothing is printed: even a cancelled run would leave a trace on the screen."""
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.CRITICAL)
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


class Store:
    """Where the library keeps its journal: a file or a server."""

    def __init__(self, place: Path | str) -> None:
        _quiet()
        self.url = place if isinstance(place, str) else None
        self.engine = _file_engine(place) if isinstance(place, Path) else None

    def dispose(self) -> None:
        """Lets go of the file."""
        if self.engine is not None:
            self.engine.dispose()


def _file_engine(path: Path) -> Any:
    """The connections to a file. Left to itself, the library would not ask for FULL."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(
        sqlalchemy.URL.create("sqlite", database=str(path)), pool_size=_POOL + _CLIENT_POOL, max_overflow=0
    )

    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        for setting in (f"busy_timeout={_BUSY_TIMEOUT_MS}", "foreign_keys=ON", "synchronous=FULL"):
            connection.execute(f"PRAGMA {setting}")

    sqlalchemy.event.listen(engine, "connect", set_up)
    return engine


class Control:
    """The calls that need no worker."""

    def __init__(self, store: Store) -> None:
        from dbos import DBOSClient

        self._client = DBOSClient(
            system_database_url=store.url,
            system_database_engine=store.engine,
            dbos_system_schema=SCHEMA,
            serializer=_serializer(),
            system_database_pool_size=_CLIENT_POOL,
            application_name=_NAME,
        )

    def destroy(self) -> None:
        """Closes its connections."""
        self._client.destroy()

    async def make_queues(self, cap: int) -> None:
        """Both are polled; of children each worker takes at most so many at a time."""
        await self._client.register_queue_async(RUNS, polling_interval_sec=_QUEUE_POLL_S)
        await self._client.register_queue_async(CHILDREN, polling_interval_sec=_QUEUE_POLL_S, worker_concurrency=cap)

    async def enqueue(self, run_id: str, flow: str, args: Json, version: str, parent: str | None) -> None:
        """Queues a run, once."""
        with _our_errors():
            await self._client.enqueue_async(
                {
                    "workflow_name": flow,
                    "queue_name": RUNS if parent is None else CHILDREN,
                    "workflow_id": run_id,
                    "app_version": version,
                    "attributes": {"parent": parent},
                },
                args,
                parent,
            )

    async def find(self, run_id: str, *, whole: bool = True) -> Found | None:
        """One run."""
        listed = await self._client.list_workflows_async(workflow_ids=[run_id], load_input=False, load_output=whole)
        return _found(listed[0]) if listed else None

    async def all(self) -> list[Found]:
        """Every run, oldest first. Only of failed ones is it told what they left."""
        listed = await self._client.list_workflows_async(load_input=False, load_output=False)
        failed = await self._client.list_workflows_async(status="ERROR", load_input=False)
        errors = {one.workflow_id: _found(one) for one in failed}
        return [errors.get(one.workflow_id) or _found(one) for one in listed]

    async def waiting_children(self) -> list[Found]:
        """Children that have not ended."""
        listed = await self._client.list_workflows_async(
            queue_name=CHILDREN, status=_WAITING, load_input=False, load_output=False
        )
        return [_found(one) for one in listed]

    async def steps(self, run_id: str, *, whole: bool = True) -> list[tuple[int, str, bool]]:
        """Position, key and failure of each recorded step; not whole, the failure is not looked at."""
        listed = await self._client.list_workflow_steps_async(run_id, load_output=whole)
        return [
            (one["function_id"], one["function_name"], whole and not _is_good(one["output"]))
            for one in sorted(listed, key=lambda one: one["function_id"])
        ]

    async def cancel(self, run_ids: Collection[str]) -> None:
        """Ends runs that have not ended."""
        await self._client.cancel_workflows_async(list(run_ids))

    async def rewind(self, run: Found, position: int, version: str) -> None:
        """Forgets what an ended run recorded from a position on, and queues it."""
        with _our_errors():
            await self._client.rewind_workflow_async(
                run.id,
                start_step=position,
                application_version=version,
                queue_name=RUNS if run.parent is None else CHILDREN,
            )


def _is_good(output: object) -> bool:
    return isinstance(output, dict) and output.get("ok") is True


def _found(status: Any) -> Found:
    error = status.error
    if status.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        error = RecordedError("EngineError", "it was begun too often")
    return Found(
        id=status.workflow_id,
        flow=status.name,
        status=_STATUS[status.status],
        version=status.app_version or "",
        executor=status.executor_id,
        parent=(status.attributes or {}).get("parent"),
        value=status.output,
        error=error if error is None or isinstance(error, RecordedError) else RecordedError("EngineError", str(error)),
    )


def _serializer() -> Any:
    return JsonSerializer()


class Worker:
    """The library at work in this process. There can be one: it keeps itself in a variable of its module."""

    def __init__(self, store: Store, executor: str, version: str) -> None:
        from dbos import DBOS, DBOSConfig

        config = DBOSConfig(
            name=_NAME,
            dbos_system_schema=SCHEMA,
            application_version=version,
            executor_id=executor,
            log_level="CRITICAL",
            enable_otlp=False,
            serializer=_serializer(),
            sys_db_pool_size=_POOL,
            notification_listener_polling_interval_sec=_NOTICE_POLL_S,
        )
        if store.engine is not None:
            config["system_database_engine"] = store.engine
        else:
            config["system_database_url"] = store.url
        self._library = DBOS
        DBOS(config=config)

    def launch(self, flows: Collection[str], start: Start) -> None:
        """Begins to take runs. They run on the loop of whoever calls."""
        for flow in flows:
            self._register(flow, start)
        self._library.launch()

    def _register(self, flow: str, start: Start) -> None:
        library = self._library

        # A run may be begun any number of times: every restart while it waits for a person is one.
        @library.workflow(name=flow, max_recovery_attempts=None)
        async def run(args: Json, parent: str | None) -> Encoded:
            run_id = library.workflow_id
            assert run_id is not None
            return await start(run_id, flow, args, parent)

    async def record(self, key: str, work: Callable[[], Awaitable[Encoded]]) -> object:
        """The work as the next step of the run whose body calls."""
        from dbos import error

        async def named() -> Encoded:
            return await work()

        try:
            return await self._library.run_step_async({"name": key}, named)
        except error.DBOSUnexpectedStepError as unexpected:
            raise ChangedOrder(str(unexpected), next_step="put the steps back as they were") from unexpected
        except (error.DBOSWorkflowCancelledError, error.DBOSWorkflowConflictIDError) as lost:
            raise asyncio.CancelledError(str(lost)) from None

    def destroy(self) -> None:
        """Ends its threads. Not on the loop, which they may be waiting for."""
        self._library.destroy(destroy_registry=True)


@contextlib.contextmanager
def _our_errors() -> Iterator[None]:
    from dbos import error

    try:
        yield
    except error.DBOSException as refused:
        raise EngineError(f"the engine refused: {refused}", next_step="look at the list of runs") from refused
