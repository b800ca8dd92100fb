"""A workshop for each test that wants one, with a home folder that is not the developer's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.forge.workshop import Workshop


@pytest.fixture(autouse=True)
def at_home(own_home: None) -> None:
    """Every test of this room."""


@pytest.fixture
def shop(tmp_path: Path, own_home: None) -> Iterator[Workshop]:
    """A run whose plan was sealed."""
    made = Workshop.make(tmp_path)
    yield made
    made.ledger.close()
