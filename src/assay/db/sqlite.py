"""SQLite: write-ahead log, `synchronous=FULL`, every write begun at once as a write.

A transaction that reads first and writes later meets SQLITE_BUSY which no timeout cures, so each begins IMMEDIATE.
Threads of one process commit as a group (`assay.db.group`); other processes write directly, there is no daemon.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from assay.db.base import Dialect, Row, Transaction, Value
from assay.db.group import GroupCommit, Job
from assay.errors import DatabaseBusy, DatabaseUnusable, RowRefused

T = TypeVar("T")

BUSY_TIMEOUT_MS = 5000
_REQUIRED = {"journal_mode": "wal", "synchronous": 2, "busy_timeout": BUSY_TIMEOUT_MS, "foreign_keys": 1}


class SqliteTransaction:
    """An open write transaction on the one writing connection."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Executes one statement and returns the rows it gives back."""
        return self._connection.execute(sql, values).fetchall()

    def take_turns(self, name: str) -> None:
        """Nothing to do: SQLite has one writer at a time."""


class SqliteDatabase:
    """A database in a file."""

    dialect = Dialect.SQLITE

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._read_only = read_only
        self._group = GroupCommit(self._commit)
        self._reading = threading.Lock()
        with self._typed_errors():
            self._reader = self._connect()
            self._writer = self._reader if read_only else self._connect()

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    def _connect(self) -> sqlite3.Connection:
        if self._read_only and not self.path.exists():
            raise DatabaseUnusable(f"there is no database {self.path}", next_step="check the path")
        mode = "ro" if self._read_only else "rwc"
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_TIMEOUT_MS / 1000,
            cached_statements=256,
        )
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        if self._read_only:
            connection.execute("PRAGMA query_only=ON")
        else:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            self._check_settings(connection)
        connection.execute("SELECT COUNT(*) FROM sqlite_master")  # a file that is no database says so here
        return connection

    def _check_settings(self, connection: sqlite3.Connection) -> None:
        for setting, wanted in _REQUIRED.items():
            (found,) = connection.execute(f"PRAGMA {setting}").fetchone()
            if found != wanted:
                raise DatabaseUnusable(
                    f"{self.path}: {setting} is {found!r} and cannot be set to {wanted!r}",
                    next_step="put the database on a local disk that supports write-ahead logging",
                )

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """The rows of one query."""
        with self._typed_errors(), self._reading:
            return self._reader.execute(sql, values).fetchall()

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Runs the work in one transaction, maybe together with others' in the same commit."""
        job = Job(work)
        self._group.submit(job)
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]  # the result of this very work

    def _commit(self, jobs: list[Job]) -> None:
        try:
            with self._typed_errors():
                self._writer.execute("BEGIN IMMEDIATE")
                for job in jobs:
                    self._do(job, alone=len(jobs) == 1)
                lone_failure = len(jobs) == 1 and jobs[0].error is not None
                self._writer.execute("ROLLBACK" if lone_failure else "COMMIT")
        except BaseException as error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            for job in jobs:
                job.error = job.error or _shared(error)
            if not isinstance(error, Exception):
                raise  # an interrupt belongs to the thread it struck

    def _do(self, job: Job, *, alone: bool) -> None:
        """One writer's work; in company its failure takes back only its own part."""
        if not alone:
            self._writer.execute("SAVEPOINT job")
        try:
            with self._typed_errors():
                job.result = job.work(SqliteTransaction(self._writer))
        except Exception as error:  # noqa: BLE001  # handed to the writer it belongs to
            job.error = error
            if not alone:
                self._writer.execute("ROLLBACK TO job")
        if not alone:
            self._writer.execute("RELEASE job")

    def close(self) -> None:
        """Lets go of the file."""
        self._reader.close()
        self._writer.close()

    @contextlib.contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise DatabaseBusy(
                    f"{self.path} has been locked by another process for {BUSY_TIMEOUT_MS // 1000} s",
                    next_step="wait for the other process, then try again",
                ) from error
            raise self._unusable(error) from error
        except sqlite3.IntegrityError as error:
            raise RowRefused(f"{self.path} refused a row: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> DatabaseUnusable:
        return DatabaseUnusable(
            f"{self.path} cannot be used as a database: {error}",
            next_step="check the file and the disk; restore it from a backup if it is damaged",
        )


def _shared(error: BaseException) -> Exception:
    """What the other writers of a failed commit are told."""
    if isinstance(error, Exception):
        return error
    return DatabaseBusy("the commit was interrupted and nothing of it was written", next_step="try again")
