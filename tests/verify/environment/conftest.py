"""The sandbox that environments are prepared in; tests that need one are skipped by name where there is none."""

from pathlib import Path

import pytest

from fairwitness.app.assembly.backends import runner
from fairwitness.errors import NotReady
from fairwitness.sandbox.runner import Runner
from verify.environment.shops import Bench


@pytest.fixture(scope="session")
def sandbox() -> Runner:
    """The strongest tier of this machine."""
    try:
        return runner()
    except NotReady as error:
        pytest.skip(f"no sandbox: {error.what}")


@pytest.fixture
def bench(sandbox: Runner, tmp_path: Path) -> Bench:
    """A fresh state folder and the sandbox."""
    folder = tmp_path / "bench"
    folder.mkdir()
    return Bench(sandbox, folder)
