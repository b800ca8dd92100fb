"""The tables of the engine: ours in a database of an earlier version, and those of the library that we touch."""

import asyncio
import inspect
import threading

from dbos import DBOSClient
from dbos._queue import queue_worker_thread
from dbos._sys_db import WorkflowStatusString, workflow_is_active

from engine.grounds import Ground, Kind
from engine.test_dbos_engine import give, on_both, opened, over, until
from engine.test_dbos_leases import change, database_of, give_to, make
from fairwitness.db.base import Database, SqlDialect
from fairwitness.engine.base import ExecutionStatus, Flow, Json
from fairwitness.engine.dbos_engine import DbosEngine
from fairwitness.engine.leases import Leases
from fairwitness.engine.run_row import ENDED_STATUSES, OPEN_STATUSES
from fairwitness.engine.tables import SCHEMA, Tables, make_tables

TOUCHED = {
    "workflow_uuid": "text",
    "status": "text",
    "executor_id": "text",
    "owner_xid": "text",
    "started_at_epoch_ms": "bigint",
    "queue_name": "text",
}
"""The columns of the library's table of runs that we read or write, or that must stay as they are when we do."""


@on_both
def test_a_database_from_before_a_column_came_is_brought_up_to_date_and_keeps_its_rows(ground: Ground) -> None:
    async def child(flow: Flow, _args: Json) -> Json:
        return await flow.gate("go")

    async def parent(flow: Flow, _args: Json) -> Json:
        async def graph() -> Json:
            await flow.submit("p/child", "child", None)
            while not (found := await flow.silent(["p/child"])):
                await flow.wait((), timeout_s=0.02)
            return list(found)

        return await flow.step("graph", graph)

    async def main() -> None:
        async with opened(ground, {"parent": parent, "child": child}) as engine:
            await engine.submit("p", "parent", None)
            assert await over(engine, "p") == (ExecutionStatus.DONE, ["p/child"], "")

    make(ground)
    with database_of(ground) as (database, tables):
        change(database, f"ALTER TABLE {tables.body} DROP COLUMN beat")
        change(database, f"INSERT INTO {tables.body} (run_id, executor) VALUES ('old', 'somebody')")
    asyncio.run(main())
    with database_of(ground) as (database, tables):
        assert database.read(f"SELECT run_id, executor, stop, beat FROM {tables.body} WHERE run_id = 'old'") == [
            ("old", "somebody", 0, None)
        ]


@on_both
def test_those_who_bring_a_database_up_to_date_at_once_take_turns(ground: Ground) -> None:
    make(ground)
    with database_of(ground) as (database, tables):
        change(database, f"ALTER TABLE {tables.body} DROP COLUMN beat")
    gate, failures = threading.Barrier(4), []

    def bring() -> None:
        with database_of(ground) as (database, _):
            gate.wait()
            try:
                make_tables(database)
            except Exception as error:  # noqa: BLE001  # told by the thread that waits
                failures.append(error)

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def columns(database: Database) -> dict[str, str]:
    """Those of the library's table of runs, with their types."""
    if database.dialect is SqlDialect.SQLITE:
        rows = database.read("SELECT name, type FROM pragma_table_info('workflow_status')")
    else:
        rows = database.read(
            "SELECT column_name, data_type FROM information_schema.columns "
            f"WHERE table_schema = '{SCHEMA}' AND table_name = 'workflow_status'"
        )
    return {name: str(kind).lower() for name, kind in rows}


def row_of(database: Database, tables: Tables, run: str) -> dict[str, object]:
    """Everything that stands in the library's table of a run."""
    names = sorted(columns(database))
    (row,) = database.read(f"SELECT {', '.join(names)} FROM {tables.run} WHERE workflow_uuid = ?", (run,))
    return dict(zip(names, row, strict=True))


@on_both
def test_the_librarys_table_of_runs_has_the_columns_that_we_touch(ground: Ground) -> None:
    make(ground)
    with database_of(ground) as (database, _):
        found = columns(database)
    assert {name: found.get(name, "missing").replace("integer", "bigint") for name in TOUCHED} == TOUCHED


def test_we_know_every_word_for_the_status_of_a_run() -> None:
    words = {status.value for status in WorkflowStatusString}
    assert {*OPEN_STATUSES, *ENDED_STATUSES} == words
    assert set(OPEN_STATUSES) == {word for word in words if workflow_is_active(word)}


def test_the_library_looks_into_a_queue_when_the_event_it_was_given_lets_it() -> None:
    assert list(inspect.signature(queue_worker_thread).parameters) == ["stop_event", "dbos", "queue"]
    names = queue_worker_thread.__code__.co_names
    assert {"is_set", "wait"} <= set(names), "a wake-up stands in for the event"


@on_both
def test_a_child_begins_when_it_is_submitted_or_another_ends_and_not_only_at_the_next_look(ground: Ground) -> None:
    async def child(flow: Flow, args: Json) -> Json:
        return await flow.step("work", lambda: give(args))

    async def parent(flow: Flow, _args: Json) -> Json:
        async def graph() -> Json:
            left = {f"p/{number}" for number in range(6)}
            for child_id in left:
                await flow.submit(child_id, "child", None)
            while left:
                left -= (await flow.wait(left, timeout_s=20)).keys()
            return "all"

        await flow.gate("go")
        return await flow.step("graph", graph)

    async def main() -> None:
        engine = DbosEngine(ground.address, {"parent": parent, "child": child}, cap=1)
        await engine.open(worker=True)
        try:
            await engine.submit("p", "parent", None)
            library = engine._database.control._client
            await library.register_queue_async("fairwitness-children", polling_interval_sec=600, worker_concurrency=1)
            await asyncio.sleep(0.3)  # the look that was due before
            await engine.answer("p", "go", None)
            assert await over(engine, "p") == (ExecutionStatus.DONE, "all", "")
        finally:
            await engine.close()

    asyncio.run(main())


@on_both
def test_a_run_goes_back_to_its_queue_just_as_the_library_would_put_it_there(ground: Ground) -> None:
    make(ground, "ours", "theirs")
    url = f"sqlite:///{ground.address}" if ground.kind is Kind.DBOS_SQLITE else ground.address
    client = DBOSClient(system_database_url=url, dbos_system_schema=SCHEMA)
    try:
        with database_of(ground) as (database, tables):
            give_to(database, tables, "worker", "ours", "theirs")
            change(database, f"UPDATE {tables.run} SET owner_xid = 'x', started_at_epoch_ms = 1")
            Leases(database, tables).give_back("ours", "somebody else")
            assert row_of(database, tables, "ours")["status"] == "PENDING"
            Leases(database, tables).give_back("ours", "worker")
            assert client._sys_db.reenqueue_for_recovery("theirs", ["worker"], "some-queue")
            ours, theirs = (row_of(database, tables, run) for run in ("ours", "theirs"))
    finally:
        client.destroy()
    own = {"workflow_uuid", "created_at", "updated_at", "creator_xid"}
    assert ours["status"] == "ENQUEUED"
    assert {name: value for name, value in ours.items() if name not in own} == {
        name: value for name, value in theirs.items() if name not in own
    }


@on_both
def test_the_library_says_who_took_a_run_and_when_and_counts_its_steps_from_one(ground: Ground) -> None:
    async def body(flow: Flow, _args: Json) -> Json:
        await flow.step("first", lambda: give(1))
        await flow.gate("second")
        return None

    async def main() -> None:
        async with opened(ground, {"body": body}) as engine:
            await engine.submit("r", "body", None)
            with database_of(ground) as (database, tables):
                await until(lambda: row_of(database, tables, "r")["status"] == "PENDING")
                row = row_of(database, tables, "r")
                ((now,),) = database.read(f"SELECT {tables.now}")
                (lease,) = Leases(database, tables).all()
            assert row["executor_id"] == lease.executor
            assert row["owner_xid"] is not None
            assert isinstance(row["started_at_epoch_ms"], int)
            assert 0 <= now - row["started_at_epoch_ms"] / 1000 + 0.01 < 20
            await engine.answer("r", "second", None)
            await over(engine, "r")
            steps = await engine._database.control.steps("r")
            assert steps == [(1, "first", False), (2, "second", False)]

    asyncio.run(main())
