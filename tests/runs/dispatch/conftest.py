"""A world for each test, and a home folder that is not the developer's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.dispatch.world import World


@pytest.fixture(autouse=True)
def at_home(own_home: None) -> None:
    """Every test of this room."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.ledger.close()
