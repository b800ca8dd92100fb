"""Who is dead, who takes over, and that of a run there is never more than one body."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.grounds import Ground, Kind
from engine.test_dbos_engine import on_a_file, on_both, one_step, opened, over, until
from fairwitness.db.base import Database, Value
from fairwitness.db.postgres import PostgresDatabase
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.engine.base import EngineError, ExecutionStatus, Flow, Json, RunInfo
from fairwitness.engine.database import Bodies
from fairwitness.engine.dbos_engine import stranded
from fairwitness.engine.gates import Gates
from fairwitness.engine.leases import DEAD_AFTER_S, Leases
from fairwitness.engine.locks import FileLock, ProcessIdentity, is_gone, this_process
from fairwitness.engine.tables import Tables, tables_of

ELSEWHERE = ProcessIdentity("another-machine", 4711, "1")


@contextlib.contextmanager
def database_of(ground: Ground) -> Iterator[tuple[Database, Tables]]:
    """The engine's database, looked at from beside it."""
    is_server = ground.kind is Kind.DBOS_POSTGRES
    database = PostgresDatabase(ground.address) if is_server else SqliteDatabase(Path(ground.address))
    try:
        yield database, tables_of(database.dialect)
    finally:
        database.close()


def change(database: Database, sql: str, *values: Value) -> None:
    """Does something to it that no engine does."""
    database.write(lambda transaction: transaction.run(sql, values))


def make(ground: Ground, *runs: str) -> None:
    """The tables, and runs in the queue."""

    async def main() -> None:
        async with opened(ground, {"one": one_step}, worker=False) as engine:
            for run in runs:
                await engine.submit(run, "one", None)

    asyncio.run(main())


def status_of(database: Database, tables: Tables, run: str) -> str:
    """How the library has a run."""
    ((status,),) = database.read(f"SELECT status FROM {tables.run} WHERE workflow_uuid = ?", (run,))
    return str(status)


def give_to(database: Database, tables: Tables, executor: str, *runs: str) -> None:
    """As if a worker had taken them."""
    taken = f"UPDATE {tables.run} SET status = 'PENDING', executor_id = ? WHERE workflow_uuid = ?"
    for run in runs:
        change(database, taken, executor, run)


def test_a_process_is_gone_when_it_ended_or_its_number_is_anothers() -> None:
    me = this_process()
    assert is_gone(me) is False
    assert is_gone(replace(me, started="1")) is True
    assert is_gone(replace(me, host="another-machine")) is None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        other = replace(me, pid=child.pid, started=Path(f"/proc/{child.pid}/stat").read_text().split()[21])
        assert is_gone(other) is False
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(other) is True, "also while nobody has buried it"
    assert is_gone(other) is True


def test_a_lock_on_a_file_is_one_mans_and_goes_with_him(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    one, two = FileLock(path), FileLock(path)
    assert one.try_acquire()
    assert one.try_acquire(), "it is his already"
    assert not two.try_acquire()
    with pytest.raises(EngineError, match="another process has held"):
        asyncio.run(two.acquire(0.05))
    one.release()
    assert two.try_acquire()
    two.release()
    program = (
        "import time; from pathlib import Path; from fairwitness.engine.locks import FileLock\n"
        f"lock = FileLock(Path({str(path)!r})); lock.try_acquire(); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert not one.try_acquire()
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert one.try_acquire()
    one.release()


@on_both
def test_silence_is_death_elsewhere_and_a_sign_of_life_is_never_overlooked(ground: Ground) -> None:
    make(ground, "r")
    with database_of(ground) as (database, tables):
        leases = Leases(database, tables)
        leases.join("far", ELSEWHERE, 4)
        leases.join("near", this_process(), 4)
        give_to(database, tables, "far", "r")
        assert [lease.is_dead for lease in leases.all()] == [False, False]
        change(database, f"UPDATE {tables.lease} SET heartbeat = heartbeat - ?", DEAD_AFTER_S + 1)
        dead = {lease.executor: lease for lease in leases.all() if lease.is_dead}
        assert list(dead) == ["far"], "a silent process of this machine lives as long as it is there"
        assert leases.beat("far")
        assert not leases.take_over(dead["far"]), "it was heard of meanwhile"
        assert status_of(database, tables, "r") == "PENDING"
        change(database, f"UPDATE {tables.lease} SET heartbeat = heartbeat - ?", DEAD_AFTER_S + 1)
        (far,) = [lease for lease in leases.all() if lease.is_dead]
        assert leases.take_over(far)
        assert status_of(database, tables, "r") == "ENQUEUED"
        assert not leases.beat("far"), "so it learns of it"
        with pytest.raises(EngineError, match="near is at work already"):
            leases.join("near", this_process(), 4)


@on_both
def test_of_many_takers_one_takes_and_what_it_runs_is_not_queued_again(ground: Ground) -> None:
    runs = [f"r{number}" for number in range(5)]
    make(ground, *runs)
    takers = 6
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(database_of(ground)) for _ in range(takers)]
        database, tables = connections[0]
        Leases(database, tables).join("dead", replace(this_process(), started="1"), 4)
        give_to(database, tables, "dead", *runs)
        seen = [Leases(*connected).all()[0] for connected in connections]
        gate = threading.Barrier(takers)
        took: list[int] = []

        def take(number: int) -> None:
            gate.wait()
            if Leases(*connections[number]).take_over(seen[number]):
                took.append(number)
                give_to(*connections[number], f"taker-{number}", *runs)

        threads = [threading.Thread(target=take, args=(number,)) for number in range(takers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(took) == 1
        assert {status_of(database, tables, run) for run in runs} == {"PENDING"}


@on_both
def test_a_worker_elsewhere_that_fell_silent_is_taken_over_by_one_that_works(ground: Ground) -> None:
    make(ground, "r", "theirs")
    with database_of(ground) as (database, tables):
        leases = Leases(database, tables)
        leases.join("silent", ELSEWHERE, 4)
        leases.join("busy", replace(ELSEWHERE, pid=4712), 4)
        give_to(database, tables, "silent", "r")
        give_to(database, tables, "busy", "theirs")

        async def main() -> None:
            async with opened(ground, {"one": one_step}) as engine:
                await asyncio.sleep(0.8)
                assert await engine.outcome("r") is None, "it is given its time"
                change(database, f"UPDATE {tables.lease} SET heartbeat = heartbeat - 31 WHERE executor = 'silent'")
                assert (await over(engine, "r"))[0] is ExecutionStatus.DONE
                assert await engine.outcome("theirs") is None
                assert await engine.audit() == ()

        asyncio.run(main())
        assert [lease.executor for lease in leases.all()] == ["busy"]


@on_a_file
def test_a_worker_taken_for_dead_stops_what_it_runs_and_goes_on_as_if_it_had_just_come(ground: Ground) -> None:
    told: list[str] = []

    async def body(flow: Flow, _args: Json) -> Json:
        async def work() -> Json:
            told.append("begin")
            try:
                await asyncio.sleep(0.2 if len(told) > 1 else 60)
            except asyncio.CancelledError:
                await asyncio.sleep(0.1)
                told.append("stopped")
                raise
            told.append("end")
            return 1

        return await flow.step("long", work)

    async def main() -> None:
        async with opened(ground, {"body": body}) as engine:
            await engine.submit("r", "body", None)
            await until(lambda: told == ["begin"])
            with database_of(ground) as (database, tables):
                leases = Leases(database, tables)
                (lease,) = leases.all()
                while not await asyncio.to_thread(leases.take_over, lease):
                    (lease,) = leases.all()
            assert await over(engine, "r") == (ExecutionStatus.DONE, 1, "")
            with database_of(ground) as (database, tables):
                await until(lambda: [one.executor for one in Leases(database, tables).all()] == [lease.executor])

    asyncio.run(main())
    assert told == ["begin", "stopped", "begin", "end"], "never two at once"


@on_both
def test_a_run_whose_worker_left_no_trace_is_named_and_can_be_resumed(ground: Ground) -> None:
    make(ground, "r", "s")
    with database_of(ground) as (database, tables):
        give_to(database, tables, "nobody", "r")
        Leases(database, tables).join("somebody", this_process(), 4)
        give_to(database, tables, "somebody", "s")

    async def main() -> None:
        async with opened(ground, {"one": one_step}) as engine:
            (found,) = await engine.audit()
            assert (found.run_id, found.reason) == ("r", "its worker nobody is dead")
            assert found.next_step == "fairwitness resume r"
            await engine.resume("r")
            await engine.resume("s")
            assert (await over(engine, "r"))[0] is ExecutionStatus.DONE
            await engine.resume("r")
            assert (await over(engine, "r"))[0] is ExecutionStatus.DONE
            assert await engine.outcome("s") is None, "a living worker's run is left alone"

    asyncio.run(main())


@on_both
def test_of_one_run_only_one_body_has_a_place(ground: Ground) -> None:
    make(ground)
    with database_of(ground) as (database, tables):
        leases, bodies = Leases(database, tables), Bodies(database, tables)
        leases.join("one", this_process(), 4)
        leases.join("two", this_process(), 4)
        assert bodies.enter("r", "one")
        assert bodies.enter("r", "one"), "whoever was cut off and does not know may ask again"
        assert not bodies.enter("r", "two")
        assert bodies.kept("one") == {"r"}
        bodies.stop(["r", "unknown"])
        assert bodies.kept("one") == frozenset()
        assert not bodies.enter("r", "two"), "not before it has ended"
        bodies.leave("r", "two")
        assert not bodies.enter("r", "two"), "a stranger cannot end it"
        bodies.leave("r", "one")
        assert bodies.enter("r", "two")
        leases.leave("two")
        assert bodies.enter("r", "one"), "with its worker it is gone"
        change(database, f"DELETE FROM {tables.lease}")
        leases.join("three", this_process(), 4)
        assert bodies.enter("r", "three"), "and what nobody answers for is no hindrance"


@on_both
def test_a_gate_keeps_the_first_answer_and_its_first_time(ground: Ground) -> None:
    make(ground)
    with database_of(ground) as (database, tables):
        gates = Gates(database, tables)
        gates.ask("r", "brief", 0.001)
        gates.ask("r", "brief", 1000.0)
        gates.ask("r", "long", 1000.0)
        gates.ask("r", "endless", None)
        assert gates.answer("r", "early", '"yes"')
        assert not gates.answer("r", "early", '"no"')
        gates.ask("r", "early", None)
        assert gates.answered([]) == []
        assert gates.answered(["other"]) == []
        assert sorted(gates.answered(["r", "other"])) == [("r", "brief", None), ("r", "early", '"yes"')]
        assert gates.answer("r", "brief", "null")
        gates.forget("r", ["early"])
        assert gates.answered(["r"]) == [("r", "brief", "null")]
        assert gates.answer("r", "early", "1")


@on_both
def test_a_run_waits_as_long_as_a_gate_that_it_opened_has_no_answer(ground: Ground) -> None:
    make(ground)
    with database_of(ground) as (database, tables):
        gates = Gates(database, tables)
        gates.answer("r", "early", '"yes"')
        assert not gates.is_waiting("r"), "an answer is not a question"
        gates.ask("r", "early", None)
        assert not gates.is_waiting("r")
        gates.ask("r", "go", None)
        assert (gates.is_waiting("r"), gates.is_waiting("other")) == (True, False)
        gates.answer("r", "go", "1")
        assert not gates.is_waiting("r")


@on_a_file
def test_one_worker_on_a_file_takes_over_and_another_when_it_is_gone(ground: Ground) -> None:
    make(ground, "r")
    lock = FileLock(Path(f"{ground.address}-recovery"))
    assert lock.try_acquire()
    with database_of(ground) as (database, tables):
        Leases(database, tables).join("dead", replace(this_process(), started="1"), 4)
        give_to(database, tables, "dead", "r")

        async def main() -> None:
            async with opened(ground, {"one": one_step}) as engine:
                await asyncio.sleep(0.8)
                assert status_of(database, tables, "r") == "PENDING"
                (found,) = await engine.audit()
                assert found.reason == "its worker dead is dead"
                lock.release()
                assert (await over(engine, "r"))[0] is ExecutionStatus.DONE

        asyncio.run(main())


@on_a_file
def test_a_child_of_a_cancelled_parent_does_not_begin(ground: Ground) -> None:
    ran: list[Json] = []

    async def child(flow: Flow, args: Json) -> Json:
        async def work() -> Json:
            ran.append(args)
            return None

        return await flow.step("work", work)

    async def parent(flow: Flow, _args: Json) -> Json:
        return await flow.gate("never")

    async def main() -> None:
        flows = {"parent": parent, "child": child, "one": one_step}
        async with opened(ground, flows, worker=False) as engine:
            await engine.submit("p", "parent", None)
            await engine.cancel("p")
            connected = engine._database
            await connected.submit("p/late", "child", 1, ("p",))
            await connected.submit("p/late/1", "child", 2, ("p", "p/late"))
        async with opened(ground, flows) as engine:
            assert (await over(engine, "p/late"))[0] is ExecutionStatus.CANCELLED
            assert (await over(engine, "p/late/1"))[0] is ExecutionStatus.CANCELLED
        assert ran == []

    asyncio.run(main())


def test_the_audit_names_what_goes_on_no_more_and_nothing_else() -> None:
    def run(name: str, status: ExecutionStatus, version: str = "1", flow: str = "f") -> RunInfo:
        return RunInfo(name, flow, status, version, "alive" if name != "lost" else "dead")

    runs = [
        run("queued", ExecutionStatus.QUEUED),
        run("running", ExecutionStatus.RUNNING),
        run("lost", ExecutionStatus.RUNNING),
        run("old", ExecutionStatus.QUEUED, version="0"),
        run("old but done", ExecutionStatus.DONE, version="0"),
        run("without a body", ExecutionStatus.RUNNING, flow="gone"),
        run("misfit", ExecutionStatus.FAILED),
        run("failed", ExecutionStatus.FAILED),
    ]
    found = {one.run_id: one for one in stranded(runs, {"misfit"}, {"alive"}, {"f"}, "1")}
    assert set(found) == {"lost", "old", "without a body", "misfit"}
    assert found["old"].reason == "it is of version 0, and this engine of version 1"
    assert found["without a body"].next_step.endswith("fairwitness cancel without a body")
    assert all(one.next_step for one in found.values())
