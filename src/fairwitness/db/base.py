"""The database interface: queries that return rows, and atomic write transactions.

SQL is written once, with `?` for values. The two implementations differ in how they begin, lock and commit.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeVar

Value = str | int | float | bytes | None
Row = tuple[Any, ...]
T = TypeVar("T")


class SqlDialect(StrEnum):
    """The SQL dialect of a database."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


class Transaction(Protocol):
    """An open write transaction."""

    def run(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Execute one statement and return its rows."""
        ...

    def take_turns(self, name: str) -> None:
        """Wait until no other transaction holds this name; return at once where only one transaction writes anyway."""
        ...


class ReadQuery(Protocol):
    """A function that runs a query."""

    def __call__(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of one query."""
        ...


class Database(Protocol):
    """An open database."""

    @property
    def dialect(self) -> SqlDialect:
        """The SQL dialect of this database."""
        ...

    @property
    def name(self) -> str:
        """A name to show to people; never contains a password."""
        ...

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of one query."""
        ...

    def look(self, work: Callable[[ReadQuery], T]) -> T:
        """Run several queries on one snapshot: concurrent writes do not change their answers."""
        ...

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction; when this returns, the written data survives a power failure."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...
