"""Where paper runs are played in tests: on one ground, in memory if the machine has such a folder."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from assay.steps.feature.room import Room
from assay.testing.feature_paper import Ground, PaperRun, Step
from assay.testing.feature_paper_script import Script

_MEMORY = Path("/dev/shm")


@cache
def _ground() -> tuple[tempfile.TemporaryDirectory[str], Ground]:
    folder = tempfile.TemporaryDirectory(prefix="assay-paper-", dir=_MEMORY if _MEMORY.is_dir() else None)
    return folder, Ground.lay(Path(folder.name) / "ground")


@contextmanager
def played(script: Script) -> Iterator[tuple[tuple[Step, ...], Room]]:
    """A run that was played to its end; its ledger is open as long as it is looked at."""
    home, ground = _ground()
    with tempfile.TemporaryDirectory(dir=home.name) as folder:
        run = PaperRun(ground, Path(folder) / "run", script)
        try:
            yield run.play(), run.room
        finally:
            run.close()
