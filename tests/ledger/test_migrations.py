"""Ledgers of earlier versions open, verify and move forward once, after a backup; what is unknown is not touched."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from conftest import OpenDatabase
from db import migrator
from db.ledger_jobs import write
from db.migrator import NEXT, NOW
from fairwitness.contracts.common.evidence import Phase
from fairwitness.db.base import Database, SqlDialect, Transaction
from fairwitness.db.migrations import Migration, migrate, version_of
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.errors import DatabaseUnusable
from fairwitness.ledger.ledger import MIGRATIONS, Ledger
from fairwitness.ledger.tables import CHAINED
from fairwitness.ledger.verify import verify
from ledger.samples import RUN, TASK
from support.fixtures import ROOT
from support.forkserver import SERVER

KNOWN = len(MIGRATIONS)
EVERY_VERSION = range(1, KNOWN + 1)


def fixture_of(version: int) -> Path:
    """The ledger that a version of Fair Witness wrote."""
    return ROOT / "tests" / "fixtures" / "databases" / f"evidence-v{version}.db"


@pytest.fixture(params=EVERY_VERSION, ids=lambda version: f"v{version}")
def kept_version(request: pytest.FixtureRequest) -> int:
    """Every version there has been."""
    return int(request.param)


@pytest.fixture
def kept(kept_version: int, tmp_path: Path) -> Path:
    """A copy of the ledger that this version wrote."""
    return Path(shutil.copy(fixture_of(kept_version), tmp_path / "evidence.db"))


def whole(ledger: Ledger) -> int:
    """How many rows the ledger has; it verifies."""
    for run in ledger.runs():
        assert verify(ledger.database, run, (ledger.head(run),)) == []
    return sum(ledger.database.read(f"SELECT COUNT(*) FROM {table}")[0][0] for table in (*CHAINED, "chain"))


def backup_of(path: Path, version: int) -> Path:
    """The copy that a migration from this version leaves."""
    return path.with_name(f"{path.name}.v{version}.backup")


def tables(database: Database) -> set[str]:
    """The names of all tables."""
    if database.dialect is SqlDialect.SQLITE:
        rows = database.read("SELECT name FROM sqlite_master WHERE type = 'table'")
    else:
        rows = database.read("SELECT table_name FROM information_schema.tables WHERE table_schema = 'fairwitness'")
    return {name for (name,) in rows}


@pytest.mark.req("X2")
def test_a_ledger_kept_from_any_version_is_read_without_a_byte_being_changed(kept: Path, kept_version: int) -> None:
    with closing(Ledger.read_only(kept)) as ledger:
        assert whole(ledger) > 40
        assert [ledger.head(run).links for run in ledger.runs()] == [5, 1]
        (row,) = ledger.tally(RUN, TASK, Phase.AFTER, 2).rows
        assert (row.passed, row.check_name) == (False, "tests")
        assert [event.type for event in ledger.events(RUN)] == ["step_started"] * 3 + ["head_recorded"]
        for table in CHAINED:
            assert ledger.database.read(f"SELECT COUNT(*) FROM {table}") != [(0,)], table
    assert kept.read_bytes() == fixture_of(kept_version).read_bytes()
    assert [path.name for path in kept.parent.iterdir()] == ["evidence.db"]


@pytest.mark.req("X2")
def test_a_ledger_kept_from_any_version_can_be_written_on(kept: Path) -> None:
    with closing(Ledger.open_file(kept)) as ledger:
        before = whole(ledger)
        assert write(ledger, "new") == "written"
        assert whole(ledger) == before + 5


def test_a_fresh_ledger_has_the_shape_of_the_one_kept_from_this_version(tmp_path: Path) -> None:
    """If this fails, tables were changed in place: after a release that must be a migration of its own."""
    Ledger.open_file(tmp_path / "fresh.db").close()
    shapes = []
    for path in (tmp_path / "fresh.db", fixture_of(KNOWN)):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            shapes.append(sorted(connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall(), key=str))
    assert shapes[0] == shapes[1]


@pytest.mark.req("X2")
def test_a_ledger_moves_forward_after_a_backup_and_keeps_every_row(kept: Path, kept_version: int) -> None:
    database = SqliteDatabase(kept)
    before = whole(Ledger(database))
    assert migrate(database, NEXT, NOW) == len(NEXT) - kept_version
    assert migrate(database, NEXT, NOW) == 0
    assert version_of(database) == len(NEXT)
    assert database.read("SELECT word FROM notes") == [("sqlite",)]
    assert whole(Ledger(database)) == before
    database.close()
    backup = backup_of(kept, kept_version)
    with closing(Ledger.read_only(backup)) as ledger:
        assert whole(ledger) == before
        assert version_of(ledger.database) == kept_version
    assert sorted(path.name for path in kept.parent.iterdir()) == ["evidence.db", backup.name]


def test_a_backup_holds_what_stood_last_and_not_what_an_earlier_try_saw(kept: Path) -> None:
    with pytest.raises(LookupError), closing(SqliteDatabase(kept)) as database:
        migrate(database, (*MIGRATIONS, Migration("broken", _break_half_way)), NOW)
    with closing(Ledger.open_file(kept)) as ledger:
        assert write(ledger, "since then") == "written"
    migrator.move(str(kept))
    with closing(Ledger.read_only(backup_of(kept, KNOWN))) as ledger:
        assert ledger.execution_id(RUN, "since then") is not None


def _break_half_way(transaction: Transaction, dialect: SqlDialect) -> None:
    migrator.add_notes(transaction, dialect)
    raise LookupError("half way")


def test_a_migration_that_fails_leaves_the_version_before_it(open_database: OpenDatabase) -> None:
    database = open_database()
    ledger = Ledger.open(database)
    assert write(ledger, "k1") == "written"
    with pytest.raises(LookupError):
        migrate(database, (*MIGRATIONS, Migration("broken", _break_half_way)), NOW)
    assert version_of(database) == KNOWN
    assert "notes" not in tables(database)
    assert whole(ledger) == 5
    assert migrate(database, NEXT, NOW) == 1
    assert whole(ledger) == 5


@pytest.mark.req("P16")
@pytest.mark.parametrize("point", ["db.migration.backed-up", "db.migration.applied"])
def test_a_migration_that_was_killed_is_done_again(kept: Path, kept_version: int, point: str) -> None:
    command = [sys.executable, migrator.__file__, str(kept)]
    killed = subprocess.run(command, env={**os.environ, "FAIRWITNESS_KILL_AT": point}, capture_output=True, check=False)
    assert killed.returncode == -9
    with closing(Ledger.read_only(kept)) as ledger:
        before = whole(ledger)
        assert "notes" not in tables(ledger.database)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == str(len(NEXT) - kept_version)
    with closing(SqliteDatabase(kept, read_only=True)) as database:
        assert whole(Ledger(database)) == before
    with closing(Ledger.read_only(backup_of(kept, kept_version))) as ledger:
        assert whole(ledger) == before


@pytest.mark.req("X4")
def test_of_many_processes_that_migrate_at_once_one_does(
    open_database: OpenDatabase, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database = open_database()
    ledger = Ledger.open(database)
    assert write(ledger, "k1") == "written"
    is_file = database.dialect is SqlDialect.SQLITE
    address = str(tmp_path / "evidence.db") if is_file else str(request.getfixturevalue("postgres_url"))
    gate, applied = SERVER.Barrier(4), SERVER.SimpleQueue()
    movers = [SERVER.Process(target=migrator.move_together, args=(gate, address, applied)) for _ in range(4)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join(60)
    assert [mover.exitcode for mover in movers] == [0] * 4
    assert sorted(applied.get() for _ in movers) == [0, 0, 0, 1]
    assert len(database.read("SELECT word FROM notes")) == 1
    assert whole(ledger) == 5
    if is_file:
        with closing(Ledger.read_only(backup_of(tmp_path / "evidence.db", KNOWN))) as backup:
            assert whole(backup) == 5
    assert not list(tmp_path.glob("*.partial*"))


def test_a_newer_ledger_is_refused_and_not_touched(kept: Path) -> None:
    migrator.move(str(kept))
    before = kept.read_bytes()
    for attempt in (Ledger.open_file, Ledger.read_only):
        with pytest.raises(
            DatabaseUnusable, match=f"version {len(NEXT)}, written by a newer Fair Witness; this one knows {KNOWN}"
        ):
            attempt(kept)
    assert kept.read_bytes() == before


def test_a_newer_ledger_on_any_database_is_refused(open_database: OpenDatabase) -> None:
    Ledger.open(open_database())
    migrate(open_database(), NEXT, NOW)
    with pytest.raises(DatabaseUnusable, match="newer Fair Witness"):
        Ledger.open(open_database())
    assert version_of(open_database()) == len(NEXT)


def test_a_ledger_that_becomes_newer_while_we_wait_for_our_turn_is_refused(open_database: OpenDatabase) -> None:
    ours, theirs = open_database(), open_database()
    errors: list[Exception] = []

    def move() -> None:
        try:
            migrate(ours, MIGRATIONS, NOW)
        except DatabaseUnusable as error:
            errors.append(error)

    thread = threading.Thread(target=move)

    def work(transaction: Transaction) -> None:
        transaction.take_turns("migrations")
        transaction.run("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at TEXT)")
        transaction.run("INSERT INTO migrations (number, name, applied_at) VALUES (?, 'a', '')", (len(NEXT),))
        thread.start()
        thread.join(1)  # by now it has seen an empty database and waits

    theirs.write(work)
    thread.join(20)
    assert [type(error) for error in errors] == [DatabaseUnusable]
    assert "newer Fair Witness" in str(errors[0])


def test_a_foreign_database_is_refused_and_not_touched(open_database: OpenDatabase) -> None:
    database = open_database()
    database.write(lambda transaction: transaction.run("CREATE TABLE songs (title TEXT)"))
    before = tables(database)
    with pytest.raises(DatabaseUnusable, match="tables of something else"):
        Ledger.open(open_database())
    assert tables(database) == before


def test_tables_of_migrations_that_are_not_ours_are_refused(open_database: OpenDatabase) -> None:
    database = open_database()
    database.write(lambda transaction: transaction.run("CREATE TABLE migrations (id TEXT, batch TEXT)"))
    before = tables(database)
    with pytest.raises(DatabaseUnusable, match="number"):
        Ledger.open(open_database())
    assert tables(database) == before
