"""Fixtures of the tests of external agents."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.acp.kit import Ground


@pytest.fixture
def ground() -> Iterator[Ground]:
    """A repository and the real sandbox; without one, the test is skipped by name."""
    folder = Path(tempfile.mkdtemp(prefix="fairwitness-test-"))
    yield Ground(folder)
    shutil.rmtree(folder, ignore_errors=True)
