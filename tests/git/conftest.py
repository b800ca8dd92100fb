"""A fresh person for each test of the git room, and a home folder that is not the developer's."""

from pathlib import Path

import pytest

from git.person import Person


@pytest.fixture(autouse=True)
def at_home(own_home: None) -> None:
    """Every test of this room."""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """A person with an empty repository."""
    return Person.in_folder(tmp_path)
