"""The engine's own tables beside those of the library: workers, running bodies, and answers of gates."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from fairwitness.db.base import Database, SqlDialect, Transaction
from fairwitness.kit.killpoints import killpoint

SCHEMA = "fairwitness_engine"
"""The Postgres schema of everything that belongs to the engine; in SQLite the engine has a separate file."""

_DDL = (
    # epoch counts the heartbeats: a row is removed only with the epoch that was read, so that no heartbeat is missed
    """CREATE TABLE IF NOT EXISTS {lease} (
        executor TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL,
        heartbeat DOUBLE PRECISION NOT NULL, epoch INTEGER NOT NULL, cap INTEGER NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS {body} (
        run_id TEXT PRIMARY KEY, executor TEXT NOT NULL, stop INTEGER NOT NULL DEFAULT 0, beat DOUBLE PRECISION,
        beats INTEGER NOT NULL DEFAULT 0)""",
    """CREATE TABLE IF NOT EXISTS {gate} (
        run_id TEXT NOT NULL, gate TEXT NOT NULL, until DOUBLE PRECISION, answer TEXT, PRIMARY KEY (run_id, gate))""",
)
_ADDED = (("{body}", "beat", "DOUBLE PRECISION"), ("{body}", "beats", "INTEGER NOT NULL DEFAULT 0"))
"""Table, name and type of columns that were added later and that an older database lacks."""

_COLUMN = {
    SqlDialect.SQLITE: "SELECT 1 FROM pragma_table_info(?) WHERE name = ?",
    SqlDialect.POSTGRES: (
        "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(?) AND attname = ? AND NOT attisdropped"
    ),
}

_MOST_VALUES = 10_000
"""The maximum number of values in one statement; all databases allow more."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The names of the tables in one database, and the expression for its clock."""

    lease: str
    body: str
    gate: str
    run: str
    """The library's own table of runs. It is written only to return runs to their queue."""
    now: str
    """The database's clock in seconds; machines that share the database may disagree on the time."""


def tables_of(dialect: SqlDialect) -> Tables:
    """Return the names for a dialect."""
    if dialect is SqlDialect.SQLITE:
        where, now = "", "(julianday('now') - 2440587.5) * 86400.0"
    else:
        where, now = f"{SCHEMA}.", "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)"
    return Tables(
        lease=f"{where}engine_lease",
        body=f"{where}engine_body",
        gate=f"{where}engine_gate",
        run=f"{where}workflow_status",
        now=now,
    )


def is_prepared(database: Database) -> bool:
    """Return whether the library's tables exist: in a file all at once, on a server one by one and before ours."""
    if database.dialect is SqlDialect.SQLITE:
        return bool(database.read("SELECT 1 FROM sqlite_master WHERE name = 'workflow_status'"))
    return database.read(f"SELECT to_regclass('{SCHEMA}.engine_lease')")[0][0] is not None


def is_complete(database: Database) -> bool:
    """Return whether the engine's own tables exist too; a process killed in between leaves only the library's."""
    if database.dialect is SqlDialect.SQLITE:
        return bool(database.read("SELECT 1 FROM sqlite_master WHERE name = 'engine_lease'"))
    return is_prepared(database)


def make_tables(database: Database) -> Tables:
    """Create the engine's missing tables; concurrent calls take turns."""
    tables = tables_of(database.dialect)

    def make(transaction: Transaction) -> None:
        transaction.take_turns("engine-tables")
        if database.dialect is SqlDialect.POSTGRES:
            transaction.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        for statement in _DDL:
            transaction.run(statement.format(lease=tables.lease, body=tables.body, gate=tables.gate))
        for name, column, kind in _ADDED:
            table = name.format(lease=tables.lease, body=tables.body, gate=tables.gate)
            if not transaction.run(_COLUMN[database.dialect], (table, column)):
                transaction.run(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")

    database.write(make)
    killpoint("engine.tables.made")
    return tables


def batched(ids: Collection[str]) -> Iterator[list[str]]:
    """Yield the ids in lists that fit into one statement."""
    left = list(ids)
    for start in range(0, len(left), _MOST_VALUES):
        yield left[start : start + _MOST_VALUES]
