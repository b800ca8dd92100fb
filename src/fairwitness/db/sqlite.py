"""SQLite: write-ahead log, `synchronous=FULL`, every write begun at once as a write.

A transaction that reads first and writes later meets SQLITE_BUSY which no timeout cures, so each begins IMMEDIATE.
Threads of one process commit as a group (`fairwitness.db.group`); other processes write directly, there is no daemon.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from fairwitness.db.base import ReadQuery, Row, SqlDialect, Transaction, Value
from fairwitness.db.group import GroupCommit, WriteJob, interrupted
from fairwitness.errors import DatabaseBusy, DatabaseUnusable, FairWitnessError, RowRefused, UsageError

T = TypeVar("T")

BUSY_TIMEOUT_MS = 5000
_PAUSE_MS = 20


class SqliteTransaction:
    """An open write transaction on the one writing connection."""

    __slots__ = ("_connection", "is_open")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.is_open = True

    def run(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Executes one statement and returns the rows it gives back."""
        # After some errors (disk full, I/O) SQLite has taken the whole transaction back by itself. A statement that
        # came after it would be committed at once and alone.
        if not (self.is_open and self._connection.in_transaction):
            raise UsageError("a statement after the end of its transaction", next_step="begin a write of its own")
        return self._connection.execute(sql, values).fetchall()

    def take_turns(self, name: str) -> None:
        """Nothing to do: SQLite has one writer at a time."""


class SqliteDatabase:
    """A database in a file."""

    dialect = SqlDialect.SQLITE

    def __init__(self, path: Path, *, read_only: bool = False, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.path = path
        self._read_only = read_only
        self._busy_timeout_ms = busy_timeout_ms
        self._group = GroupCommit(self._commit)
        self._reading = threading.Lock()
        self._reader = self._connect()
        self._writer = self._reader if read_only else self._connect()

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    def _connect(self) -> sqlite3.Connection:
        if not self._read_only:
            return self._connect_in("rwc")
        if not self.path.exists():
            raise DatabaseUnusable(f"there is no database {self.path}", next_step="check the path")
        try:
            return self._connect_in("ro")
        except DatabaseUnusable as error:
            # A writer died and left a journal. SQLite must first take its half of a transaction back.
            if getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_READONLY:
                raise
        return self._connect_in("rw")

    def _connect_in(self, mode: str) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=self._busy_timeout_ms / 1000,
                cached_statements=256,
            )
        except sqlite3.Error as error:
            raise self._typed(error) from error
        try:
            self._set_up(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise self._typed(error) from error
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        if self._read_only:
            connection.execute("PRAGMA query_only=ON")
        else:
            self._turn_on_the_log(connection)
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            self._check_settings(connection)
        connection.execute("SELECT COUNT(*) FROM sqlite_master")  # a file that is no database says so here

    def _turn_on_the_log(self, connection: sqlite3.Connection) -> None:
        """Write-ahead logging; where others turn it on at the same moment, SQLite may refuse without waiting."""
        connection.execute("PRAGMA busy_timeout=0")
        for patience in range(self._busy_timeout_ms // _PAUSE_MS, -1, -1):
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:
                if not (_is_busy(error) and patience):
                    raise
                time.sleep(_PAUSE_MS / 1000)
        connection.execute(f"PRAGMA busy_timeout={self._busy_timeout_ms}")

    def _check_settings(self, connection: sqlite3.Connection) -> None:
        required = {
            "journal_mode": "wal",
            "synchronous": 2,
            "busy_timeout": self._busy_timeout_ms,
            "foreign_keys": 1,
        }
        for setting, wanted in required.items():
            (found,) = connection.execute(f"PRAGMA {setting}").fetchone()
            if found != wanted:
                raise DatabaseUnusable(
                    f"{self.path}: {setting} is {found!r} and cannot be set to {wanted!r}",
                    next_step="put the database on a local disk that supports write-ahead logging",
                )

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """The rows of one query."""
        self._group.refuse_from_within("a read")
        try:
            with self._reading:
                return self._reader.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._typed(error) from error

    def look(self, work: Callable[[ReadQuery], T]) -> T:
        """Runs work that asks several questions; all are answered as of one moment, whoever writes meanwhile."""
        self._group.refuse_from_within("a read")

        def read(sql: str, values: Sequence[Value] = ()) -> list[Row]:
            return self._reader.execute(sql, values).fetchall()

        try:
            with self._reading:
                self._reader.execute("BEGIN")
                try:
                    return work(read)
                finally:
                    self._reader.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._typed(error) from error

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Runs the work in one transaction, maybe together with others' in the same commit.

        The work may run in another writer's thread, so it must not wait for anything that this thread holds.
        """
        job = WriteJob(work)
        self._group.submit(job)
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]  # the result of this very work

    def _commit(self, jobs: list[WriteJob]) -> None:
        """Settles every job: its work stands, or its error says why nothing of it does."""
        writer = self._writer
        is_last_step = stands = False
        try:
            if writer.in_transaction:  # an interrupt came twice and kept us from taking the last one back
                writer.execute("ROLLBACK")
            writer.execute("BEGIN IMMEDIATE")
            if len(jobs) == 1:
                self._do(jobs[0])
            else:
                for job in jobs:
                    self._do_in_company(job)
            is_last_step = True
            writer.execute("ROLLBACK" if all(job.error for job in jobs) and writer.in_transaction else "COMMIT")
            stands = True
        except sqlite3.Error as error:
            self._take_back(jobs, error)
        except BaseException as error:
            # An interrupt belongs to the thread it struck. One that struck just after the commit undoes nothing.
            stands = is_last_step and not writer.in_transaction and not isinstance(error.__context__, sqlite3.Error)
            if not stands:
                self._take_back(jobs, error)
            raise
        finally:
            if stands:
                for job in jobs:
                    job.settle()

    def _take_back(self, jobs: list[WriteJob], error: BaseException) -> None:
        """Tells each writer of a failed commit, and leaves no transaction open."""
        for job in jobs:
            if isinstance(error, sqlite3.Error):
                job.settle(self._typed(error))
            else:
                job.settle(interrupted())
        with contextlib.suppress(
            sqlite3.Error
        ):  # what refused the commit may refuse this; the next commit begins with it
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _do(self, job: WriteJob) -> None:
        """One writer's work; an error of its own is kept for it."""
        transaction = SqliteTransaction(self._writer)
        try:
            job.result = job.work(transaction)
        except (OverflowError, UnicodeEncodeError) as error:
            job.error = RowRefused(f"{self.path} cannot hold a value: {error}")
        except sqlite3.Error as error:
            job.error = self._typed(error)
        except Exception as error:  # noqa: BLE001  # handed to the writer it belongs to
            job.error = error
        finally:
            transaction.is_open = False

    def _do_in_company(self, job: WriteJob) -> None:
        """The same beside others in one commit: an error takes back only this writer's part."""
        self._writer.execute("SAVEPOINT job")
        self._do(job)
        if not self._writer.in_transaction and job.error is not None and job.error.__cause__ is not None:
            raise job.error.__cause__  # SQLite has taken everybody's part back: the disk is full, or worse
        if job.error is not None:
            self._writer.execute("ROLLBACK TO job")
        self._writer.execute("RELEASE job")

    def close(self) -> None:
        """Lets go of the file."""
        self._reader.close()
        self._writer.close()

    def _typed(self, error: sqlite3.Error) -> FairWitnessError:
        typed = self._translated(error)
        typed.__cause__ = error  # also where it is kept for a writer and not raised at once
        return typed

    def _translated(self, error: sqlite3.Error) -> FairWitnessError:
        if isinstance(error, sqlite3.IntegrityError):
            return RowRefused(f"{self.path} refused a row: {error}")
        if _is_busy(error):
            return DatabaseBusy(
                f"{self.path} has been locked by another process for {self._busy_timeout_ms / 1000:g} s",
                next_step="wait for the other process, then try again",
            )
        return DatabaseUnusable(
            f"{self.path} cannot be used as a database: {error}",
            next_step="check the file and the disk; restore it from a backup if it is damaged",
        )


def _is_busy(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # the module's own errors carry none
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
