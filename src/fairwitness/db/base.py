"""What a database is to the rooms above: rows in, rows out, and writes that happen whole or not at all.

SQL is written once, with `?` for values; the two implementations differ in how they begin, lock and commit.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeVar

Value = str | int | float | bytes | None
Row = tuple[Any, ...]
T = TypeVar("T")


class SqlDialect(StrEnum):
    """Which SQL is spoken underneath."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


class Transaction(Protocol):
    """An open write transaction."""

    def run(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Executes one statement and returns the rows it gives back."""
        ...

    def take_turns(self, name: str) -> None:
        """Waits until no other transaction holds this name; where all writers take turns anyway, at once."""
        ...


class ReadQuery(Protocol):
    """Asks for rows."""

    def __call__(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """The rows of one query."""
        ...


class Database(Protocol):
    """A database that is open."""

    @property
    def dialect(self) -> SqlDialect:
        """Which SQL is spoken underneath."""
        ...

    @property
    def name(self) -> str:
        """What a person would call it; never holds a password."""
        ...

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """The rows of one query."""
        ...

    def look(self, work: Callable[[ReadQuery], T]) -> T:
        """Runs work that asks several questions; all are answered as of one moment, whoever writes meanwhile."""
        ...

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Runs the work in one transaction; when it returns, what was written survives a power cut."""
        ...

    def close(self) -> None:
        """Lets go of the database."""
        ...
