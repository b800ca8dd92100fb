"""When the power is cut at any moment, every acknowledged record is there, none is there by half, nothing is corrupt.

The statements are those that the real ledger issues; they are replayed on a disk that can be cut (`db.power`).
"""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from db.ledger_jobs import assert_whole, write
from db.power import Image, Operation, cuts, replay
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.errors import DatabaseUnusable
from fairwitness.ledger.ledger import Ledger
from support.ladder import SWEEP

RECORDS = 30
FIRST = 2
"""Commits before the first record: they make the tables, and announce the run."""
SETTINGS = ("journal_mode", "synchronous", "foreign_keys")


def _statements(folder: Path) -> list[str]:
    """Everything the ledger's writing connection is asked to do, from its settings to the last commit."""
    database = SqliteDatabase(folder / "recorded.db")
    connection = database._writer  # the statements cannot be had in any other way
    asked = [f"PRAGMA {name}={connection.execute(f'PRAGMA {name}').fetchone()[0]}" for name in SETTINGS]
    connection.set_trace_callback(asked.append)
    ledger = Ledger.open(database)
    for number in range(RECORDS):
        assert write(ledger, f"k{number}") == "written"
    connection.set_trace_callback(None)
    ledger.close()
    assert asked[1] == "PRAGMA synchronous=2"
    return [statement for statement, _ in groupby(asked)]  # a statement is told once more for each trigger it fires


@pytest.fixture(scope="module")
def statements(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the real ledger asks of SQLite."""
    return _statements(tmp_path_factory.mktemp("recorded"))


def _operations(statements: list[str], path: Path, change: Callable[[str], str] = str) -> list[Operation]:
    # moving the log into the database every few records, so that cuts strike there too
    return replay(["PRAGMA wal_autocheckpoint=100", *map(change, statements)], path)


def _put(image: Image, folder: Path) -> Path:
    for old in folder.iterdir():
        old.unlink()
    for name, content in image.items():
        (folder / name).write_bytes(content)
    return folder / "evidence.db"


def _keys_after(path: Path, *, opened_to_write: bool) -> set[str]:
    """The keys of the records that are there; the ledger is whole."""
    try:
        ledger = Ledger.open_file(path) if opened_to_write else Ledger.read_only(path)
    except DatabaseUnusable as error:
        if opened_to_write or ("holds no ledger" not in error.what and "there is no database" not in error.what):
            raise
        return set()
    try:
        return assert_whole(ledger)
    finally:
        ledger.close()


@pytest.mark.req("X2", "P16")
@pytest.mark.timeout(900)  # the full sweep, on a busy machine
def test_a_power_cut_takes_back_no_acknowledged_record_and_corrupts_nothing(
    statements: list[str], tmp_path: Path
) -> None:
    disk, folder = tmp_path / "disk", tmp_path / "after"
    disk.mkdir()
    folder.mkdir()
    operations = _operations(statements, disk / "evidence.db")
    points: set[int] = set()
    for tried, (number, commits, image) in enumerate(cuts(operations, 1 if SWEEP else 4, seed=7)):
        found = _keys_after(_put(image, folder), opened_to_write=tried % 4 == 3)
        safe = {f"k{record}" for record in range(commits - FIRST)}
        assert safe <= found, f"lost at operation {number}"
        assert found <= safe | {f"k{len(safe)}"}, f"out of order at operation {number}"
        points.add(number)
    assert len(points) >= 200
    assert commits == RECORDS + FIRST


def _damage(operations: list[Operation], folder: Path) -> tuple[int, int]:
    """In how many tries an acknowledged record was lost, and in how many the database was corrupt."""
    lost = corrupt = 0
    for _, commits, image in cuts(operations, 25, seed=7):
        safe = {f"k{record}" for record in range(commits - FIRST)}
        try:
            lost += not safe <= _keys_after(_put(image, folder), opened_to_write=False)
        except (AssertionError, DatabaseUnusable):
            corrupt += 1
    return lost, corrupt


@pytest.mark.parametrize("setting", ["OFF", "NORMAL"])
def test_the_same_cuts_do_harm_where_less_is_synced(statements: list[str], tmp_path: Path, setting: str) -> None:
    disk, folder = tmp_path / "disk", tmp_path / "after"
    disk.mkdir()
    folder.mkdir()
    weaker = f"PRAGMA synchronous={setting}"
    operations = _operations(
        statements, disk / "evidence.db", lambda sql: weaker if sql == "PRAGMA synchronous=2" else sql
    )
    lost, corrupt = _damage(operations, folder)
    assert lost > 0
    assert (corrupt > 0) is (setting == "OFF")
