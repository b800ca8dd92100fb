"""Many processes and threads on one ledger: no record is lost, none is doubled, and nobody waits for a reader."""

import sqlite3
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from conftest import OpenDatabase
from db.ledger_jobs import assert_whole, open_again, write, write_many
from fairwitness.db.postgres import PostgresDatabase
from fairwitness.db.sqlite import BUSY_TIMEOUT_MS, SqliteDatabase
from fairwitness.errors import DatabaseBusy
from fairwitness.ledger.ledger import Ledger
from ledger.samples import RUN
from support.forkserver import SERVER
from support.ladder import SWEEP

WRITERS = 16
ROWS = 1000 if SWEEP else 60


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a database is that nobody has opened yet."""
    if request.param == "sqlite":
        return str(tmp_path / "evidence.db")
    return str(request.getfixturevalue("empty_postgres"))


@pytest.mark.req("X2", "X4")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("runs", [1, 4], ids=["one run", "four runs"])
def test_of_many_processes_that_begin_and_fill_one_ledger_no_row_is_lost_or_doubled(address: str, runs: int) -> None:
    gate, refusals = SERVER.Barrier(WRITERS), SERVER.SimpleQueue()
    processes = [
        SERVER.Process(target=write_many, args=(gate, address, writer, ROWS, runs, refusals))
        for writer in range(WRITERS)
    ]
    began = time.perf_counter()
    for process in processes:
        process.start()
    for process in processes:
        process.join(500)
    assert [process.exitcode for process in processes] == [0] * WRITERS
    taken = time.perf_counter() - began
    refused = sum(refusals.get() for _ in processes)
    sys.stdout.write(f"{WRITERS * ROWS} records in {taken:.1f} s, refused as busy and asked again: {refused}\n")
    with closing(Ledger.open(open_again(address))) as ledger:
        keys = assert_whole(ledger)
        assert keys == {f"{writer}-{number}" for writer in range(WRITERS) for number in range(ROWS)}
        assert ledger.database.read("SELECT COUNT(*) FROM chain") == [(WRITERS * ROWS,)]
        for run in ledger.runs():
            numbers = [event.seq for event in ledger.events(run)]
            assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.req("X2")
def test_of_many_threads_that_share_one_ledger_no_row_is_lost_or_doubled(ledger: Ledger) -> None:
    answers: list[str] = []

    def work(writer: int) -> None:
        for number in range(20):
            while (answer := write(ledger, f"{writer}-{number}")).startswith(DatabaseBusy.__name__):
                pass  # on a loaded machine sixteen writers may wait longer than the busy timeout; nothing was written
            answers.append(answer)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert answers == ["written"] * (WRITERS * 20)
    assert len(assert_whole(ledger)) == WRITERS * 20


@pytest.mark.req("P16")
def test_of_many_threads_that_repeat_one_step_exactly_one_writes_it(ledger: Ledger) -> None:
    answers: list[str] = []
    gate = threading.Barrier(WRITERS)

    def work() -> None:
        gate.wait(60)
        answers.append(write(ledger, "the same"))

    threads = [threading.Thread(target=work) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers.count("written") == 1
    assert all(
        answer in ("written", "adopted") or answer.startswith(("RowRefused", "DatabaseBusy")) for answer in answers
    )
    assert assert_whole(ledger) == {"the same"}


@pytest.mark.req("X4")
def test_a_reader_sees_the_last_commit_while_somebody_else_writes(open_database: OpenDatabase) -> None:
    ledger = Ledger.open(open_database())
    write(ledger, "before")
    other = Ledger(open_database())
    seen: list[int] = []

    def look_while_writing(ledger_to_ask: Ledger) -> None:
        # A reader that waited for the writer would be refused as busy and see nothing: the writer waits for it.
        seen.append(ledger_to_ask.head(RUN).links)
        seen.append(len(ledger_to_ask.runs()))

    def slow_work() -> None:
        for one in (ledger, other):
            thread = threading.Thread(target=look_while_writing, args=(one,))
            thread.start()
            thread.join(60)
            assert not thread.is_alive()

    ledger.record(RUN, lambda record: slow_work())
    assert seen == [1, 1, 1, 1]


@pytest.mark.req("X4")
def test_a_ledger_locked_for_too_long_says_so_and_writes_nothing(tmp_path: Path) -> None:
    assert BUSY_TIMEOUT_MS == 5000
    path = tmp_path / "evidence.db"
    ledger = Ledger.open(SqliteDatabase(path, busy_timeout_ms=500))
    assert write(ledger, "before") == "written"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.perf_counter()
        with pytest.raises(DatabaseBusy, match=r"locked by another process for 0\.5 s") as caught:
            ledger.record(RUN, lambda record: pytest.fail("the work must not begin"))
        assert time.perf_counter() - began > 0.4
        assert caught.value.next_step
        other.execute("ROLLBACK")
    assert assert_whole(ledger) == {"before"}
    assert write(ledger, "after") == "written"
    assert assert_whole(ledger) == {"before", "after"}
    ledger.close()


@pytest.mark.req("X4")
def test_a_run_that_another_worker_holds_for_too_long_is_busy_and_other_runs_go_on(empty_postgres: str) -> None:
    holder = Ledger.open(PostgresDatabase(empty_postgres))
    waiter = Ledger.open(PostgresDatabase(empty_postgres, busy_timeout_ms=300))

    def hold() -> None:
        assert write(waiter, "x", "run-held").startswith("DatabaseBusy")
        assert write(waiter, "y", "run-free") == "written"

    holder.record("run-held", lambda record: hold())
    assert waiter.execution_id("run-held", "x") is None
    assert write(waiter, "x", "run-held") == "written"
    holder.close()
    waiter.close()
