"""A world for each test, and a home folder that is not the developer's."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps.dispatch.world import World


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path) -> Iterator[None]:
    """Nothing of the developer's own configuration reaches a test."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith(("GIT_", "XDG_")) or name == "EMAIL"]:
        del os.environ[name]
    os.environ |= {"HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.ledger.close()
