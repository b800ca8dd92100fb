"""Fixtures of the toolset's tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.toolset.kit import Bench, plant, real_runner


@pytest.fixture
def worktree() -> Iterator[Path]:
    """A worktree that any user can reach, unlike pytest's own folders."""
    folder = Path(tempfile.mkdtemp(prefix="fairwitness-test-"))
    folder.chmod(0o755)
    (folder / "tree").mkdir(mode=0o755)
    yield plant(folder / "tree")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def bench(worktree: Path) -> Bench:
    """An implementer's tools; commands are answered by nobody."""
    return Bench(worktree)


@pytest.fixture
def shell(worktree: Path) -> Bench:
    """An implementer's tools; commands run for real."""
    return Bench(worktree, runner=real_runner())
