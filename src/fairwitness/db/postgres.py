"""Postgres: the database interface on a server, for workers on several machines. All tables are in one schema.

Reading and writing use separate connections, so that a reader does not wait for a writer of its own process. The next
call replaces a lost connection.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import quote

from fairwitness.db.base import ReadQuery, Row, SqlDialect, Transaction, Value
from fairwitness.errors import DatabaseBusy, DatabaseUnusable, NotReady, RowRefused, UsageError

T = TypeVar("T")

SCHEMA = "fairwitness"
BUSY_TIMEOUT_MS = 30_000
_BUSY = frozenset({"55P03", "40001", "40P01", "57014"})
"""Lock not available, serialization failure, deadlock, cancelled by a timeout: a retry may succeed."""
_CHECK_ADDRESS = "check FAIRWITNESS_DATABASE_URL and the server"
_TURN = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


@lru_cache(maxsize=256)
def _translated(sql: str) -> str:
    """Return the statement with psycopg's placeholder; `?` has no other use in this program's SQL."""
    return sql.replace("%", "%%").replace("?", "%s")


class PostgresTransaction:
    """An open write transaction."""

    __slots__ = ("_cursor", "is_open")

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor
        self.is_open = True

    def run(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Execute one statement and return its rows."""
        if not self.is_open:
            raise UsageError("a statement after the end of its transaction", next_step="begin a write of its own")
        self._cursor.execute(_translated(sql), tuple(values))
        return self._cursor.fetchall() if self._cursor.description is not None else []

    def take_turns(self, name: str) -> None:
        """Wait until no other transaction holds this name; the name is released at the end of the transaction."""
        self._cursor.execute(_TURN, (f"{SCHEMA}:{name}",))


class _Line:
    """One connection to the server, used by one thread at a time."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._guard = threading.Lock()
        self._connection: Any = None
        self._is_closed = False
        self.thread: int | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[Any]:
        """Yield the connection for exclusive use by this thread."""
        with self._guard:
            if self._is_closed:
                raise DatabaseUnusable("the Postgres database was closed", next_step="open it again")
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            self.thread = threading.get_ident()
            try:
                yield self._connection
            finally:
                self.thread = None

    def close(self) -> None:
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()


class PostgresDatabase:
    """A database on a Postgres server."""

    dialect = SqlDialect.POSTGRES

    def __init__(self, url: str, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        try:
            import psycopg
        except ImportError:
            raise NotReady(
                "this needs the Postgres driver, which is not installed",
                next_step="pip install 'fairwitness[postgres]'",
            ) from None
        self._driver: Any = psycopg
        self._busy_timeout_ms = int(busy_timeout_ms)
        self._address = self._read_address(url)
        self._secrets = _spellings(self._address.get("password"), self._address.get("sslpassword"))
        self._name = "Postgres"
        self._reader, self._writer = _Line(self._connect), _Line(self._connect)
        with self._typed_errors(), self._writer.held() as connection:
            self._create_schema(connection)

    @property
    def name(self) -> str:
        """Host and database, without user and password."""
        return self._name

    def _read_address(self, url: str) -> dict[str, Any]:
        """Return the parts of a URL; an error message never repeats the URL, since it may contain a password."""
        try:
            parts: dict[str, Any] = self._driver.conninfo.conninfo_to_dict(url)
        except self._driver.Error:
            parts = {"port": "unreadable"}
        port = str(parts.get("port", ""))
        place = str(parts.get("host", "")).removeprefix("@") + str(parts.get("dbname", ""))
        if (port and not port.replace(",", "").isdigit()) or "@" in place:
            raise DatabaseUnusable(
                "the address of the Postgres database cannot be read",
                next_step="check FAIRWITNESS_DATABASE_URL; write @ / ? # % in a password as %40 %2F %3F %23 %25",
            ) from None
        return parts

    def _connect(self) -> Any:
        try:
            connection = self._driver.connect(**{"connect_timeout": 10, **self._address}, autocommit=True)
        except self._driver.Error as error:
            raise DatabaseUnusable(
                f"Postgres cannot be used: {self._sentence(error)}", next_step=_CHECK_ADDRESS
            ) from None  # the driver's message may contain the password
        info = connection.info
        self._name = f"postgres {info.host}:{info.port}/{info.dbname}"
        # A transaction takes its turn by a statement; what it reads afterwards must not be older than that.
        connection.isolation_level = self._driver.IsolationLevel.READ_COMMITTED
        connection.execute(f"SET search_path TO {SCHEMA}")
        connection.execute(f"SET lock_timeout TO {self._busy_timeout_ms}")
        self._check_settings(connection)
        return connection

    def _check_settings(self, connection: Any) -> None:
        for setting in ("fsync", "synchronous_commit"):
            (found,) = connection.execute(f"SHOW {setting}").fetchone()
            if found == "off":
                connection.close()
                raise DatabaseUnusable(
                    f"{self.name}: {setting} is off, so a power cut could take back evidence",
                    next_step=f"set {setting} to on for this server or role",
                )

    def _create_schema(self, connection: Any) -> None:
        """Create the schema if it is missing; processes take turns. An existing schema needs no right to create one."""
        exists = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
        if connection.execute(exists, (SCHEMA,)).fetchone():
            return
        with connection.transaction():
            connection.execute(_TURN, (f"{SCHEMA}:schema",))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of one query."""
        self._refuse_from_within("a read")
        with self._typed_errors(), self._reader.held() as connection:
            return connection.execute(_translated(sql), tuple(values)).fetchall()  # type: ignore[no-any-return]  # the driver is loaded at run time

    def look(self, work: Callable[[ReadQuery], T]) -> T:
        """Run several queries on one snapshot: concurrent writes do not change their answers."""
        self._refuse_from_within("a read")
        with self._typed_errors(), self._reader.held() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

            def read(sql: str, values: Sequence[Value] = ()) -> list[Row]:
                return connection.execute(_translated(sql), tuple(values)).fetchall()  # type: ignore[no-any-return]  # the driver is loaded at run time

            return work(read)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction."""
        self._refuse_from_within("a write")
        with self._typed_errors(), self._writer.held() as connection, connection.transaction():
            transaction = PostgresTransaction(connection.cursor())
            try:
                return work(transaction)
            finally:
                transaction.is_open = False

    def _refuse_from_within(self, action: str) -> None:
        if self._writer.thread == threading.get_ident():
            raise UsageError(
                f"{action} from within a write of the same database",
                next_step="use the transaction that the work is given",
            )

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()
        self._writer.close()

    @contextlib.contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except (self._driver.IntegrityError, self._driver.DataError) as error:
            raise RowRefused(f"{self.name} refused a row: {self._sentence(error)}") from error
        except UnicodeEncodeError as error:
            raise RowRefused(f"{self.name} cannot hold a value: {error.reason}") from error
        except self._driver.Error as error:
            if getattr(error, "sqlstate", None) in _BUSY:
                raise DatabaseBusy(f"{self.name}: {self._sentence(error)}", next_step="try again") from error
            raise DatabaseUnusable(
                f"{self.name} cannot be used: {self._sentence(error)}", next_step=_CHECK_ADDRESS
            ) from error

    def _sentence(self, error: Exception) -> str:
        words = str(error).strip()
        sentence = words.splitlines()[0] if words else type(error).__name__
        for secret in self._secrets:
            sentence = sentence.replace(secret, "***")
        return sentence


def _spellings(*secrets: str | None) -> tuple[str, ...]:
    """Return every spelling of some secrets that a message may contain."""
    return tuple({spelling for secret in secrets if secret for spelling in (secret, quote(secret, safe=""))})
