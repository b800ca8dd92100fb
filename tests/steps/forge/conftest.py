"""A workshop for each test that wants one, with a home folder that is not the developer's."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps.forge.workshop import Workshop


@pytest.fixture
def own_home() -> Iterator[None]:
    """Nothing of the developer's own configuration reaches a test."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith(("GIT_", "XDG_")) or name == "EMAIL"]:
        del os.environ[name]
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def shop(tmp_path: Path, own_home: None) -> Iterator[Workshop]:
    """A run whose plan was sealed."""
    made = Workshop.make(tmp_path)
    yield made
    made.ledger.close()
