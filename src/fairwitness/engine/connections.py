"""The library's connections to a file or a server: their settings, and the errors that mean an unreachable server."""

import sqlite3
from pathlib import Path
from typing import Any

from fairwitness.db.postgres import CONNECTION, IDLE_IN_TRANSACTION_MS, Outage, is_away
from fairwitness.errors import DatabaseAway, DatabaseUnusable
from fairwitness.kit.disk_watch import DiskWatch

POOL = 12
"""The number of connections, shared by the worker and the control client; one is used for notifications."""
_BUSY_TIMEOUT_MS = 30_000


def connect(location: Path | str, outage: Outage, disk: DiskWatch | None = None) -> Any:
    """Return the connection pool of this process; connections are opened when they are needed."""
    return _to_file(location, disk) if isinstance(location, Path) else _to_server(location, outage)


def _to_file(path: Path, disk: DiskWatch | None) -> Any:
    """Connect to a file with `synchronous=FULL`, which the library would not set by itself.

    A statement that the disk refused waits for room and then counts as disconnected, so that the library repeats it.
    """
    import sqlalchemy

    engine = sqlalchemy.create_engine(
        sqlalchemy.URL.create("sqlite", database=str(path)), pool_size=POOL, max_overflow=0
    )

    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        for setting in (f"busy_timeout={_BUSY_TIMEOUT_MS}", "foreign_keys=ON", "synchronous=FULL"):
            connection.execute(f"PRAGMA {setting}")

    def judge(context: Any) -> None:
        refused = DatabaseUnusable(str(context.original_exception))
        if disk is not None and isinstance(context.original_exception, sqlite3.Error) and disk.excuses(refused):
            disk.wait_in_thread()
            context.is_disconnect = not disk.is_over

    sqlalchemy.event.listen(engine, "connect", set_up)
    sqlalchemy.event.listen(engine, "handle_error", judge)
    return engine


def _to_server(address: str, outage: Outage) -> Any:
    """Connect to a server so that an unreachable one counts as disconnected; the library would let some runs fail.

    A new connection waits for a lost server itself: the library's own waiting doubles its pauses up to a minute.
    """
    import psycopg
    import sqlalchemy

    url = sqlalchemy.make_url(address).set(drivername="postgresql+psycopg")
    settings = {"application_name": "fairwitness", **CONNECTION}
    engine = sqlalchemy.create_engine(
        url,
        pool_size=POOL,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={name: value for name, value in settings.items() if name not in url.query},
    )

    def persist(_dialect: object, _record: object, values: list[Any], settings: dict[str, Any]) -> Any:
        while True:
            try:
                connection = psycopg.connect(*values, **settings)
            except psycopg.Error as error:
                if not outage.has_answered or not is_away(error):
                    raise
                # what this raises in the end is no error that the library waits for
                outage.wait(DatabaseAway("there is no connection"))
            else:
                outage.answered()
                return connection

    def set_up(connection: Any, _record: object) -> None:
        connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS}")
        connection.commit()  # otherwise the pool rolls it back

    def judge(context: Any) -> None:
        if is_away(context.original_exception):
            context.is_disconnect = True  # the library waits for a new connection then

    sqlalchemy.event.listen(engine, "do_connect", persist)
    sqlalchemy.event.listen(engine, "connect", set_up)
    sqlalchemy.event.listen(engine, "handle_error", judge)
    return engine
