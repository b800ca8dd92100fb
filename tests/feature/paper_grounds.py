"""Where paper runs are played in tests: on one ground, in memory if the machine has such a folder."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from fairwitness.runs.feature.context import FeatureContext
from support.paper.run import Ground, PaperRun, Step
from support.paper.script import Script

_MEMORY = Path("/dev/shm")


@cache
def _ground() -> tuple[tempfile.TemporaryDirectory[str], Ground]:
    folder = tempfile.TemporaryDirectory(prefix="fairwitness-paper-", dir=_MEMORY if _MEMORY.is_dir() else None)
    return folder, Ground.lay(Path(folder.name) / "ground")


@contextmanager
def laid(script: Script) -> Iterator[PaperRun]:
    """A run that can be played; its ledger is open as long as it is looked at."""
    home, ground = _ground()
    with tempfile.TemporaryDirectory(dir=home.name) as folder:
        run = PaperRun(ground, Path(folder) / "run", script)
        try:
            yield run
        finally:
            run.close()


@contextmanager
def played(script: Script) -> Iterator[tuple[tuple[Step, ...], FeatureContext]]:
    """A run that was played to its end."""
    with laid(script) as run:
        yield run.play(), run.context


@contextmanager
def begun(script: Script) -> Iterator[FeatureContext]:
    """A run that has begun and decided nothing."""
    with laid(script) as run:
        yield run.context
