"""SQLite with write-ahead log and `synchronous=FULL`.

Every write transaction begins IMMEDIATE: one that reads first and writes later can fail with SQLITE_BUSY, which no
timeout prevents. Threads of one process commit as a group (`fairwitness.db.group`). Other processes write directly;
there is no daemon.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
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
    """An open write transaction on the only writing connection."""

    __slots__ = ("_connection", "is_open")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.is_open = True

    def run(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Execute one statement and return its rows."""
        # After some errors (disk full, I/O) SQLite has already rolled back the whole transaction. A later statement
        # would be committed immediately and by itself.
        if not (self.is_open and self._connection.in_transaction):
            raise UsageError("a statement after the end of its transaction", next_step="begin a write of its own")
        return self._connection.execute(sql, values).fetchall()

    def take_turns(self, name: str) -> None:
        """Do nothing: SQLite has only one writer at a time."""


class SqliteDatabase:
    """A database in a file."""

    dialect = SqlDialect.SQLITE

    def __init__(self, path: Path, *, read_only: bool = False, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.path = path
        self._read_only = read_only
        self._busy_timeout_ms = busy_timeout_ms
        self._group = GroupCommit(self._commit)
        self._copies: tempfile.TemporaryDirectory[str] | None = None
        self._reading = threading.Lock()
        self._reader = self._connect()
        self._writer = self._reader if read_only else self._connect()

    @property
    def name(self) -> str:
        """The path of the database file."""
        return str(self.path)

    def _connect(self) -> sqlite3.Connection:
        if not self._read_only:
            # Only a new file is opened here: closing a handle of an existing one would drop the locks that other
            # connections of this process hold on it. SQLite gives its other files the same mode.
            with contextlib.suppress(OSError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            return self._connect_in("rwc")
        if not self.path.exists():
            raise DatabaseUnusable(f"there is no database {self.path}", next_step="check the path")
        try:
            return self._connect_in("ro")
        except DatabaseUnusable as error:
            code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
            if code not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise
            if not os.access(self.path.parent, os.W_OK):
                return self._connect_where_nothing_can_be_written()
            if code != sqlite3.SQLITE_READONLY:
                raise
        # A writer died and left a journal. SQLite must first roll back its transaction, which is a write.
        return self._connect_in("rw")

    def _connect_where_nothing_can_be_written(self) -> sqlite3.Connection:
        """Read a file on a read-only mount, where SQLite cannot make its index of the log.

        If a writer left a log or a journal, the file alone is not what was committed, so copies of both are read.
        """
        left = [self.path.with_name(self.path.name + suffix) for suffix in ("-wal", "-journal")]
        left = [path for path in left if path.exists() and path.stat().st_size]
        if not left:
            return self._connect_in("ro&immutable=1")
        self._copies = tempfile.TemporaryDirectory(prefix="fairwitness-ledger-")
        try:
            for path in (self.path, *left):
                shutil.copyfile(path, Path(self._copies.name) / path.name)
        except OSError as error:
            raise DatabaseUnusable(
                f"{self.path} cannot be read: {error.strerror}", next_step="check the file and the disk"
            ) from error
        return self._connect_in("rw", Path(self._copies.name) / self.path.name)

    def _connect_in(self, mode: str, path: Path | None = None) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                f"{(path or self.path).absolute().as_uri()}?mode={mode}",
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
        connection.execute("SELECT COUNT(*) FROM sqlite_master")  # fails if the file is not a database

    def _turn_on_the_log(self, connection: sqlite3.Connection) -> None:
        """Enable write-ahead logging; SQLite may fail without waiting if another process enables it simultaneously."""
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
        """Return the rows of one query."""
        self._group.refuse_from_within("a read")
        try:
            with self._reading:
                return self._reader.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._typed(error) from error

    def look(self, work: Callable[[ReadQuery], T]) -> T:
        """Run several queries on one snapshot: concurrent writes do not change their answers."""
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
        """Run `work` in one transaction, possibly in the same commit as other writers' work.

        `work` may run in another writer's thread, so it must not wait for anything that this thread holds.
        """
        job = WriteJob(work)
        self._group.submit(job)
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]  # the result of `work`

    def _commit(self, jobs: list[WriteJob]) -> None:
        """Settle every job: its work is committed, or its error says why none of it is."""
        writer = self._writer
        is_last_step = stands = False
        try:
            if writer.in_transaction:  # a second interrupt prevented the last rollback
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
            # An interrupt belongs to the thread that received it. If it came just after the commit, nothing is undone.
            stands = is_last_step and not writer.in_transaction and not isinstance(error.__context__, sqlite3.Error)
            if not stands:
                self._take_back(jobs, error)
            raise
        finally:
            if stands:
                for job in jobs:
                    job.settle()

    def _take_back(self, jobs: list[WriteJob], error: BaseException) -> None:
        """Settle every job of a failed commit with its error, and leave no transaction open."""
        for job in jobs:
            if isinstance(error, sqlite3.Error):
                job.settle(self._typed(error))
            else:
                job.settle(interrupted())
        with contextlib.suppress(
            sqlite3.Error
        ):  # the cause of the failure may prevent the rollback too; the next commit starts with one
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _do(self, job: WriteJob) -> None:
        """Run one writer's work and keep its error in the job."""
        transaction = SqliteTransaction(self._writer)
        try:
            job.result = job.work(transaction)
        except (OverflowError, UnicodeEncodeError) as error:
            job.error = RowRefused(f"{self.path} cannot hold a value: {error}")
        except sqlite3.Error as error:
            job.error = self._typed(error)
        except Exception as error:  # noqa: BLE001  # raised in the thread of the writer that it belongs to
            job.error = error
        finally:
            transaction.is_open = False

    def _do_in_company(self, job: WriteJob) -> None:
        """Run one writer's work in a shared commit; an error rolls back only this writer's part."""
        self._writer.execute("SAVEPOINT job")
        self._do(job)
        if not self._writer.in_transaction and job.error is not None and job.error.__cause__ is not None:
            raise job.error.__cause__  # SQLite has rolled back all jobs, for example because the disk is full
        if job.error is not None:
            self._writer.execute("ROLLBACK TO job")
        self._writer.execute("RELEASE job")

    def close(self) -> None:
        """Close the connections to the file."""
        self._reader.close()
        self._writer.close()
        if self._copies is not None:
            self._copies.cleanup()

    def _typed(self, error: sqlite3.Error) -> FairWitnessError:
        typed = self._translated(error)
        typed.__cause__ = error  # needed because an error kept in a job is not raised here
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
    code = getattr(error, "sqlite_errorcode", None)  # errors of the Python module have no code
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
