"""The workers of runs, read from the engine's tables without loading the engine's library."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairwitness.app.repository import URL, state_in

if TYPE_CHECKING:
    from fairwitness.db.base import Database

ENGINE = "engine.db"


@dataclass(frozen=True, slots=True)
class RunWorker:
    """A living process that executes a run."""

    executor: str
    host: str
    pid: int
    is_stopping: bool = False
    """Whether it was told to stop this run."""


def has_engine(root: Path) -> bool:
    """Return whether the repository has an engine database."""
    with _engine(root) as database:
        return database is not None


def workers_of(root: Path) -> dict[str, RunWorker]:
    """Return the living process that executes each run, by the id of the run."""
    with _engine(root) as database:
        if database is None:
            return {}
        from fairwitness.engine.leases import Leases
        from fairwitness.engine.tables import tables_of

        tables = tables_of(database.dialect)
        living = {lease.executor: lease.process for lease in Leases(database, tables).all() if not lease.is_dead}
        rows = database.read(f"SELECT run_id, executor, stop FROM {tables.body}")  # noqa: S608  # a name of the engine's
        return {
            str(run_id): RunWorker(executor, process.host.partition("/")[0], process.pid, bool(stop))
            for run_id, executor, stop in rows
            if (process := living.get(executor)) is not None
        }


def worker_on(root: Path, run_id: str) -> RunWorker | None:
    """Return the living process that executes a run and was not told to stop, or None."""
    worker = workers_of(root).get(run_id)
    return None if worker is None or worker.is_stopping else worker


def bodies_of(root: Path, run_id: str) -> frozenset[str]:
    """Return the ids of the run and its children whose bodies are still running in a living process."""
    return frozenset(body for body in workers_of(root) if body == run_id or body.startswith(f"{run_id}/"))


@contextmanager
def _engine(root: Path) -> Iterator["Database | None"]:
    """Open the engine's database for reading; yield None if there is none yet."""
    url = os.environ.get(URL)
    if url:
        from fairwitness.db.postgres import PostgresDatabase

        database: Database = PostgresDatabase(url)
    else:
        file = state_in(root) / ENGINE
        if not file.exists():
            yield None
            return
        from fairwitness.db.sqlite import SqliteDatabase

        database = SqliteDatabase(file, read_only=True)
    try:
        from fairwitness.engine.tables import is_complete

        yield database if is_complete(database) else None
    finally:
        database.close()
