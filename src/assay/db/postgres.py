"""Postgres: the same calls on a server, for workers on several machines; everything lives in the schema `assay`."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from assay.db.base import Dialect, Row, Transaction, Value
from assay.errors import DatabaseBusy, DatabaseUnusable, NotReady, RowRefused

T = TypeVar("T")

SCHEMA = "assay"
_BUSY = frozenset({"55P03", "40001", "40P01", "57014"})
"""Lock not available, serialization failure, deadlock, cancelled by a time-out: trying again may help."""


@lru_cache(maxsize=256)
def _translated(sql: str) -> str:
    """The statement with psycopg's sign for a value; our SQL uses '?' for nothing else."""
    return sql.replace("%", "%%").replace("?", "%s")


class PostgresTransaction:
    """An open write transaction."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def run(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Executes one statement and returns the rows it gives back."""
        self._cursor.execute(_translated(sql), tuple(values))
        return self._cursor.fetchall() if self._cursor.description is not None else []

    def take_turns(self, name: str) -> None:
        """Waits until no other transaction holds this name; the end of the transaction lets it go."""
        self._cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{SCHEMA}:{name}",))


class PostgresDatabase:
    """A database on a server."""

    dialect = Dialect.POSTGRES

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise NotReady(
                "this needs the Postgres driver, which is not installed", next_step="pip install 'assay[postgres]'"
            ) from None
        self._driver: Any = psycopg
        self._guard = threading.Lock()
        with self._typed_errors():
            self._connection: Any = psycopg.connect(url, autocommit=True, connect_timeout=10)
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            self._connection.execute(f"SET search_path TO {SCHEMA}")
            self._connection.execute("SET lock_timeout TO '30s'")
            self._check_settings()

    @property
    def name(self) -> str:
        """Host and database, without user and password."""
        info = self._connection.info
        return f"postgres {info.host}:{info.port}/{info.dbname}"

    def _check_settings(self) -> None:
        for setting in ("fsync", "synchronous_commit"):
            (found,) = self._connection.execute(f"SHOW {setting}").fetchone()
            if found == "off":
                raise DatabaseUnusable(
                    f"{self.name}: {setting} is off, so a power cut could take back evidence",
                    next_step=f"set {setting} to on for this server or role",
                )

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """The rows of one query."""
        with self._typed_errors(), self._guard:
            return self._connection.execute(_translated(sql), tuple(values)).fetchall()  # type: ignore[no-any-return]  # the driver is loaded at run time

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Runs the work in one transaction."""
        with self._typed_errors(), self._guard, self._connection.transaction():
            return work(PostgresTransaction(self._connection.cursor()))

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    @contextlib.contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver.IntegrityError as error:
            raise RowRefused(f"{self.name} refused a row: {str(error).splitlines()[0]}") from error
        except self._driver.Error as error:
            state = getattr(error, "sqlstate", None)
            sentence = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            if state in _BUSY:
                raise DatabaseBusy(f"Postgres: {sentence}", next_step="try again") from error
            raise DatabaseUnusable(
                f"Postgres cannot be used: {sentence}", next_step="check ASSAY_DATABASE_URL and the server"
            ) from error
