"""Fixtures that many tests share: an environment of their own, every database, and a ledger on each."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fairwitness.db.base import Database
from fairwitness.db.postgres import PostgresDatabase
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.ledger.ledger import Ledger
from support import postgres
from support.collecting import (
    pytest_collection_modifyitems,
    pytest_fixture_setup,
    pytest_runtest_protocol,
    pytest_runtest_setup,
)

MOMENT = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)

# the same examples every time, and no deadline: a busy machine is no failure
settings.register_profile(
    "fairwitness", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fairwitness")

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_fixture_setup",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
]

OpenDatabase = Callable[[], Database]
"""Opens the test's database; each call a connection of its own."""


@pytest.fixture(scope="session", autouse=True)
def user_state_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory of the tests, so that none writes into the developer's own; also for longer fixtures."""
    folder = tmp_path_factory.mktemp("user-state")
    os.environ["XDG_STATE_HOME"] = str(folder)
    return folder


@pytest.fixture(autouse=True)
def own_environment(user_state_home: Path) -> Iterator[None]:
    """What a test sets in the environment does not reach the next one."""
    before = dict(os.environ)
    os.environ["XDG_STATE_HOME"] = str(user_state_home)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def own_home(own_environment: None, tmp_path: Path) -> None:
    """Nothing of the developer's own configuration, nor of a hook the tests run in, reaches a test."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_")) or name == "EMAIL"]:
        del os.environ[name]
    os.environ |= {"HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a server that lives as long as the tests."""
    if postgres.binaries() is None:
        reason = "there is no Postgres on this machine (apt-get install postgresql)"
        if os.environ.get(postgres.REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    with postgres.server() as url:
        yield url


@pytest.fixture
def empty_postgres(postgres_url: str) -> str:
    """The address of that server, without the tables of the test before."""
    _forget(postgres_url)
    return postgres_url


@pytest.fixture(params=["sqlite", "postgres"])
def open_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenDatabase]:
    """A fresh database of each kind, to be opened as often as a test likes."""
    opened: list[Database] = []

    def remember(database: Database) -> Database:
        opened.append(database)
        return database

    if request.param == "sqlite":
        yield lambda: remember(SqliteDatabase(tmp_path / "evidence.db"))
    else:
        url = request.getfixturevalue("empty_postgres")
        yield lambda: remember(PostgresDatabase(url))
    for database in opened:
        database.close()


def _forget(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS fairwitness CASCADE")


@pytest.fixture
def ledger(open_database: OpenDatabase) -> Ledger:
    """An empty ledger on each database, with the clock standing still."""
    return Ledger.open(open_database(), clock=lambda: MOMENT)
