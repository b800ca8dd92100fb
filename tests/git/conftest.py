"""A fresh person for each test of the git room, and a home folder that is not the developer's."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from git.person import Person


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path) -> Iterator[None]:
    """Nothing of the developer's own configuration, nor of a hook the tests run in, reaches a test."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith(("GIT_", "XDG_")) or name == "EMAIL"]:
        del os.environ[name]
    os.environ |= {"HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """A person with an empty repository."""
    return Person.in_folder(tmp_path)
