"""The three engines of the contract, each on a database of its own."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.grounds import Ground, Kind

_NUMBERS = itertools.count(1)
_TEMPLATE = "engine_template"


@pytest.fixture(params=list(Kind), ids=[kind.value for kind in Kind])
def new_ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    """A place for one engine where nothing stands yet."""
    if request.param is not Kind.DBOS_POSTGRES:
        yield Ground(request.param, str(tmp_path / "engine.db"), tmp_path)
    else:
        yield from _on_the_server(request.getfixturevalue("postgres_url"), tmp_path, "template1")


@pytest.fixture(params=list(Kind), ids=[kind.value for kind in Kind])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    """A place for one engine; on the server its tables stand already, since making them takes a third of a second."""
    if request.param is not Kind.DBOS_POSTGRES:
        yield Ground(request.param, str(tmp_path / "engine.db"), tmp_path)
    else:
        request.getfixturevalue("engine_template")
        yield from _on_the_server(request.getfixturevalue("postgres_url"), tmp_path, _TEMPLATE)


@pytest.fixture(scope="session")
def engine_template(postgres_url: str) -> None:
    """A database of the server in which an engine was opened once."""

    async def open_once(ground: Ground) -> None:
        engine = ground.make({})
        await engine.open(worker=False)
        await engine.close()

    _run(postgres_url, f"CREATE DATABASE {_TEMPLATE}")
    asyncio.run(open_once(Ground(Kind.DBOS_POSTGRES, _address(postgres_url, _TEMPLATE), Path())))


def _on_the_server(url: str, folder: Path, template: str) -> Iterator[Ground]:
    name = f"engine_{next(_NUMBERS)}"
    _run(url, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield Ground(Kind.DBOS_POSTGRES, _address(url, name), folder)
    _run(url, f"DROP DATABASE {name} WITH (FORCE)")


def _address(url: str, name: str) -> str:
    return url.replace("/postgres?", f"/{name}?")


def _run(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
