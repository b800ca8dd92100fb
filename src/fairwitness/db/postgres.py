"""Postgres: the database interface on a server, for workers on several machines. All tables are in one schema.

Reading and writing use separate connections, so that a reader does not wait for a writer of its own process. The next
call replaces a lost connection. With an `Outage`, a call outlasts a lost server: it is repeated until the server
answers again or the patience ends. A write whose commit was not answered is looked up by its transaction id first.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar
from urllib.parse import quote

from fairwitness.db.base import ReadQuery, Row, SqlDialect, Transaction, Value
from fairwitness.errors import DatabaseAway, DatabaseBusy, DatabaseUnusable, NotReady, RowRefused, UsageError
from fairwitness.kit.clock import Clock, system_clock

T = TypeVar("T")

SCHEMA = "fairwitness"
BUSY_TIMEOUT_MS = 30_000
IDLE_IN_TRANSACTION_MS = 10_000
"""How long a process that froze during a transaction keeps its locks: shorter than others wait for them."""
CONNECTION = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""Settings of every connection; those of an address win. A server that vanished is noticed within half a minute."""
_AWAY = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "53300"})
"""Shut down, crashed, starting, ended after idling (twice), too many connections: a new connection may succeed."""
_RETRY_S = 0.25
GRACE_S = 5.0
"""How long a command waits that is not a worker."""
WAIT_S = 15 * 60.0
"""How long a worker waits for a lost server unless a setting says otherwise."""
_BUSY = frozenset({"55P03", "40001", "40P01", "57014"})
"""Lock not available, serialization failure, deadlock, cancelled by a timeout: a retry may succeed."""
_CHECK_ADDRESS = "check FAIRWITNESS_DATABASE_URL and the server"
_TURN = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def is_away(error: BaseException | None) -> bool:
    """Return whether a driver's error says that the server cannot be reached or ended the connection.

    >>> is_away(OSError("disk I/O error")), is_away(None)
    (False, False)
    """
    names = {base.__name__ for base in type(error).__mro__}
    state = getattr(error, "sqlstate", "a file has none")
    if state is None:  # there was no response
        return bool(names & {"OperationalError", "InterfaceError"})
    return isinstance(state, str) and (state.startswith("08") or state in _AWAY)


class Outage:
    """The wait of one process for its server, shared by all its connections."""

    def __init__(self, limit_s: float, *, clock: Clock = system_clock) -> None:
        self.limit_s = limit_s
        self._clock = clock
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._since: tuple[float, str] | None = None
        self.has_answered = False
        """Whether this process has reached the server before, so that its address is right."""

    @property
    def since(self) -> str | None:
        """The local time at which the server was lost, as `12:03`; None while it answers."""
        lost = self._since
        return None if lost is None else lost[1]

    @property
    def is_over(self) -> bool:
        """Whether the patience has ended, by time or by request."""
        lost = self._since
        return self._ended.is_set() or (lost is not None and time.monotonic() - lost[0] > self.limit_s)

    def wait(self, error: DatabaseUnusable) -> None:
        """Wait a moment before the next try; if the patience has ended, raise the error and say since when."""
        with self._guard:
            if self._since is None:
                self._since = time.monotonic(), self._clock().astimezone().strftime("%H:%M")
            since = self._since[1]
        if self.is_over:
            raise type(error)(
                f"the database has not answered since {since}: {error.what}", next_step=error.next_step
            ) from error
        self._ended.wait(_RETRY_S)

    def answered(self) -> None:
        """Note that the server answers."""
        self.has_answered = True
        if self._since is not None:
            with self._guard:
                self._since = None

    def end(self) -> None:
        """Wait no longer, now and later: this process was asked to stop."""
        self._ended.set()


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

    def __init__(
        self,
        url: str,
        *,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        outage: Outage | None = None,
        grace_s: float = GRACE_S,
    ) -> None:
        """Connect; if this process has never reached the server, it fails at once, since the address may be wrong.

        Otherwise calls wait for a lost server as `outage` says, or else for `grace_s`.
        """
        try:
            import psycopg
        except ImportError:
            raise NotReady(
                "this needs the Postgres driver, which is not installed",
                next_step="pip install 'fairwitness[postgres]'",
            ) from None
        self._driver: Any = psycopg
        self._busy_timeout_ms = int(busy_timeout_ms)
        self._outage, self._is_patient = outage or Outage(grace_s), outage is not None
        self._address = self._read_address(url)
        self._secrets = _spellings(self._address.get("password"), self._address.get("sslpassword"))
        self._name = "Postgres"
        self._reader, self._writer = _Line(self._connect), _Line(self._connect)
        if self._outage.has_answered:
            self._persist(self._prepare)
        else:
            with self._typed_errors():
                self._prepare()
            self._outage.answered()

    def _prepare(self) -> None:
        with self._writer.held() as connection:
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
            connection = self._driver.connect(**{**CONNECTION, **self._address}, autocommit=True)
        except self._driver.Error as error:
            kind = DatabaseAway if is_away(error) else DatabaseUnusable
            raise kind(
                f"Postgres cannot be used: {self._sentence(error)}", next_step=_CHECK_ADDRESS
            ) from None  # the driver's message may contain the password
        info = connection.info
        self._name = f"postgres {info.host}:{info.port}/{info.dbname}"
        # A transaction takes its turn by a statement; what it reads afterwards must not be older than that.
        connection.isolation_level = self._driver.IsolationLevel.READ_COMMITTED
        connection.execute(f"SET search_path TO {SCHEMA}")
        connection.execute(f"SET lock_timeout TO {self._busy_timeout_ms}")
        connection.execute(f"SET idle_in_transaction_session_timeout TO {IDLE_IN_TRANSACTION_MS}")
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

        def once() -> list[Row]:
            with self._reader.held() as connection:
                return connection.execute(_translated(sql), tuple(values)).fetchall()  # type: ignore[no-any-return]  # the driver is loaded at run time

        return self._persist(once)

    def look(self, work: Callable[[ReadQuery], T]) -> T:
        """Run several queries on one snapshot: concurrent writes do not change their answers."""
        self._refuse_from_within("a read")

        def once() -> T:
            with self._reader.held() as connection, connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

                def read(sql: str, values: Sequence[Value] = ()) -> list[Row]:
                    return connection.execute(_translated(sql), tuple(values)).fetchall()  # type: ignore[no-any-return]  # the driver is loaded at run time

                return work(read)

        return self._persist(once)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction."""
        self._refuse_from_within("a write")
        return self._persist(lambda: self._write_once(work))

    def _write_once(self, work: Callable[[Transaction], T]) -> T:
        committing: tuple[int, T] | None = None
        try:
            with self._writer.held() as connection, connection.transaction():
                cursor = connection.cursor()
                number = cursor.execute("SELECT txid_current()").fetchone()[0]
                transaction = PostgresTransaction(cursor)
                try:
                    result = work(transaction)
                finally:
                    transaction.is_open = False
                committing = number, result
        except self._driver.Error as error:
            if committing is None or not is_away(error):
                raise
            if not self._persist(partial(self._is_committed, committing[0])):
                raise
        return committing[1]

    def _is_committed(self, number: int) -> bool:
        """Return whether a transaction was committed whose connection was lost before the answer."""
        while True:
            with self._writer.held() as connection:
                (status,) = connection.execute("SELECT txid_status(%s)", (number,)).fetchone()
            if status != "in progress":  # otherwise its session has not noticed the loss yet
                return bool(status == "committed")
            time.sleep(_RETRY_S)

    def _persist(self, once: Callable[[], T]) -> T:
        """Call until the server answers; whatever is repeated was not committed."""
        while True:
            try:
                with self._typed_errors():
                    result = once()
            except DatabaseBusy as error:
                if not self._is_patient:
                    raise
                self._outage.wait(error)
            except DatabaseAway as error:
                self._outage.wait(error)
            else:
                self._outage.answered()
                return result

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
            if is_away(error):
                raise DatabaseAway(
                    f"{self.name} cannot be reached: {self._sentence(error)}", next_step=_CHECK_ADDRESS
                ) from error
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
