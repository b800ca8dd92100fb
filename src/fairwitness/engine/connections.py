"""The library's connections to a file or a server: their settings, and the errors that mean an unreachable server."""

import sqlite3
from pathlib import Path
from typing import Any

POOL = 12
"""The number of connections, shared by the worker and the control client; one is used for notifications."""
_BUSY_TIMEOUT_MS = 30_000
_IDLE_IN_TRANSACTION_MS = 60_000
"""How long a machine that froze during a transaction may hold its locks."""
_CONNECT_S = 10


def connect(location: Path | str) -> Any:
    """Return the connection pool of this process; connections are opened when they are needed."""
    return _to_file(location) if isinstance(location, Path) else _to_server(location)


def _to_file(path: Path) -> Any:
    """Connect to a file with `synchronous=FULL`, which the library would not set by itself."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(
        sqlalchemy.URL.create("sqlite", database=str(path)), pool_size=POOL, max_overflow=0
    )

    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        for setting in (f"busy_timeout={_BUSY_TIMEOUT_MS}", "foreign_keys=ON", "synchronous=FULL"):
            connection.execute(f"PRAGMA {setting}")

    sqlalchemy.event.listen(engine, "connect", set_up)
    return engine


def _to_server(address: str) -> Any:
    """Connect to a server so that an unreachable one counts as disconnected; the library would let some runs fail."""
    import sqlalchemy

    url = sqlalchemy.make_url(address).set(drivername="postgresql+psycopg")
    settings = {"application_name": "fairwitness", "connect_timeout": _CONNECT_S}
    engine = sqlalchemy.create_engine(
        url,
        pool_size=POOL,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={name: value for name, value in settings.items() if name not in url.query},
    )

    def set_up(connection: Any, _record: object) -> None:
        connection.execute(f"SET idle_in_transaction_session_timeout = {_IDLE_IN_TRANSACTION_MS}")
        connection.commit()  # otherwise the pool rolls it back

    def judge(context: Any) -> None:
        if is_away(context.original_exception):
            context.is_disconnect = True  # the library waits for a new connection then

    sqlalchemy.event.listen(engine, "connect", set_up)
    sqlalchemy.event.listen(engine, "handle_error", judge)
    return engine


def is_away(error: BaseException | None) -> bool:
    """Return whether a driver's error says that the server cannot be reached or shuts down; never true for a file.

    >>> is_away(sqlite3.OperationalError("disk I/O error"))
    False
    """
    if "OperationalError" not in {base.__name__ for base in type(error).__mro__}:
        return False
    state = getattr(error, "sqlstate", "a file has none")
    if state is None:  # there was no response
        return True
    return state.startswith("08") or state in ("57P01", "57P02", "57P03")
