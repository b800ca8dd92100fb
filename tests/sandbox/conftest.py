"""Fixtures of the sandbox's tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.kit.folder_trees import remove_tree
from sandbox.kit import ALL, Bench


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="fairwitness-test-"))
    folder.chmod(0o755)
    yield folder
    remove_tree(folder)


@pytest.fixture(params=ALL)
def bench(request: pytest.FixtureRequest, open_folder: Path) -> Bench:
    """A runner of each tier that works here."""
    worktree, outside = open_folder / "tree", open_folder / "outside"
    for folder in (worktree, outside):
        folder.mkdir(mode=0o755)
    return Bench(str(request.param), worktree, outside)
