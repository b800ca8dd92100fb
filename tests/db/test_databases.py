"""What every database promises: whole writes, no waiting for oneself, and errors of ours only."""

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from conftest import OpenDatabase
from db.openers import open_together
from fairwitness.db.base import Database, ReadQuery, SqlDialect, Transaction
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.errors import DatabaseBusy, DatabaseUnusable, RowRefused, UsageError
from support.forkserver import SERVER


@pytest.fixture
def database(open_database: OpenDatabase) -> Database:
    """A database with one table."""
    database = open_database()
    database.write(lambda transaction: transaction.run("CREATE TABLE said (word TEXT PRIMARY KEY, number BIGINT)"))
    return database


def said(database: Database) -> list[str]:
    return [str(word) for (word,) in database.read("SELECT word FROM said ORDER BY word")]


def test_a_write_or_read_from_within_a_write_is_refused_instead_of_waiting_for_itself(database: Database) -> None:
    def nest(transaction: Transaction) -> None:
        transaction.run("INSERT INTO said (word) VALUES ('outer')")
        with pytest.raises(UsageError, match="a write from within a write") as caught:
            database.write(lambda inner: inner.run("INSERT INTO said (word) VALUES ('inner')"))
        assert "the transaction" in caught.value.next_step
        with pytest.raises(UsageError, match="a read from within a write"):
            database.read("SELECT 1")

    database.write(nest)
    assert said(database) == ["outer"]
    database.write(lambda transaction: transaction.run("INSERT INTO said (word) VALUES ('later')"))
    assert said(database) == ["later", "outer"]


def test_several_questions_are_answered_as_of_one_moment_whoever_writes_meanwhile(database: Database) -> None:
    write = "INSERT INTO said (word) VALUES (?)"
    database.write(lambda transaction: transaction.run(write, ("before",)))

    def twice(read: ReadQuery) -> list[int]:
        first = len(read("SELECT word FROM said"))
        writer = threading.Thread(
            target=lambda: database.write(lambda transaction: transaction.run(write, ("meanwhile",)))
        )
        writer.start()
        writer.join()
        return [first, len(read("SELECT word FROM said WHERE word <> ?", ("nothing",)))]

    assert database.look(twice) == [1, 1]
    assert said(database) == ["before", "meanwhile"]


def test_a_write_from_within_a_write_that_another_thread_leads_is_refused_as_well(database: Database) -> None:
    told: list[BaseException] = []

    def nest(transaction: Transaction) -> None:
        database.write(lambda inner: inner.run("SELECT 1"))

    def submit() -> None:
        try:
            database.write(nest)
        except UsageError as error:
            told.append(error)

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert len(told) == 8


def test_a_transaction_is_of_no_use_after_its_end(database: Database) -> None:
    kept: list[Transaction] = []
    database.write(kept.append)
    with pytest.raises(UsageError, match="after the end of its transaction"):
        kept[0].run("INSERT INTO said (word) VALUES ('late')")

    def use_the_old_one(transaction: Transaction) -> None:
        with pytest.raises(UsageError, match="after the end of its transaction"):
            kept[0].run("INSERT INTO said (word) VALUES ('late')")

    database.write(use_the_old_one)
    assert said(database) == []


@pytest.mark.parametrize(("word", "number"), [("x", 2**70), ("\ud800", 1), (None, "no number"), ("twice", 1)])
def test_what_a_database_cannot_hold_is_refused_with_our_error_and_nothing_of_the_write_stands(
    database: Database, word: str | None, number: int | str
) -> None:
    insert = "INSERT INTO said (word, number) VALUES (?, ?)"

    def work(transaction: Transaction) -> None:
        transaction.run(insert, ("twice", 1))
        if database.dialect is SqlDialect.SQLITE and word is None:
            raise RowRefused("SQLite lets both pass; its tables here say CHECK")
        transaction.run(insert, (word, number))

    with pytest.raises(RowRefused):
        database.write(work)
    assert said(database) == []
    database.write(lambda transaction: transaction.run(insert, ("fine", 1)))
    assert said(database) == ["fine"]


def test_wrong_sql_and_a_closed_database_are_told_in_our_words(database: Database) -> None:
    with pytest.raises(DatabaseUnusable):
        database.read("SELECT nothing FROM nowhere")
    with pytest.raises(DatabaseUnusable):
        database.write(lambda transaction: transaction.run("SELECT nothing FROM nowhere"))
    assert said(database) == []
    database.close()
    with pytest.raises(DatabaseUnusable):
        database.read("SELECT 1")
    with pytest.raises(DatabaseUnusable):
        database.write(lambda transaction: transaction.run("SELECT 1"))


def test_many_processes_can_open_a_file_that_none_has_made_yet(tmp_path: Path) -> None:
    for attempt in range(2):
        gate = SERVER.Barrier(16)
        path = str(tmp_path / f"new-{attempt}.db")
        processes = [SERVER.Process(target=open_together, args=(gate, path)) for _ in range(16)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        assert [process.exitcode for process in processes] == [0] * 16


def test_a_file_that_another_process_keeps_to_itself_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE said (word TEXT)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseBusy, match=r"locked by another process for 0\.2 s"):
            SqliteDatabase(path, busy_timeout_ms=200)
        other.execute("COMMIT")
    SqliteDatabase(path, busy_timeout_ms=200).close()


def test_a_database_opened_to_look_at_is_never_written_to(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    with closing(SqliteDatabase(path)) as database:
        database.write(lambda transaction: transaction.run("CREATE TABLE said (word TEXT)"))
    before = path.read_bytes()
    with closing(SqliteDatabase(path, read_only=True)) as looking:
        with pytest.raises(DatabaseUnusable, match="readonly"):
            looking.write(lambda transaction: transaction.run("INSERT INTO said (word) VALUES ('x')"))
        assert said_nothing(looking)
    assert path.read_bytes() == before


def said_nothing(database: Database) -> bool:
    return database.read("SELECT * FROM said") == []


def test_a_disk_that_cannot_keep_a_log_is_refused() -> None:
    with pytest.raises(DatabaseUnusable):
        SqliteDatabase(Path("/proc/evidence.db"))


@pytest.mark.req("X2")
def test_opening_a_file_again_keeps_the_locks_of_this_process(tmp_path: Path) -> None:
    path = tmp_path / "evidence.db"
    with closing(SqliteDatabase(path)) as first:
        first.write(lambda transaction: transaction.run("CREATE TABLE notes (text TEXT)"))
        with closing(SqliteDatabase(path)):
            program = f"import sqlite3; c = sqlite3.connect({str(path)!r}); c.execute('SELECT * FROM notes'); c.close()"
            subprocess.run([sys.executable, "-c", program], check=True)
            # the last process to leave removes the log; the other one must notice that this one is still there
            assert path.with_name("evidence.db-wal").exists()
            assert first.read("SELECT * FROM notes") == []
