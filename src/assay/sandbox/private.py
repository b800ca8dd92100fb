"""A home and a temporary folder that one command has for itself, where it has no view of its own."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Private:
    """Both folders, in one that is removed afterwards."""

    folder: str
    home: str
    temporary: str


@contextlib.contextmanager
def private() -> Iterator[Private]:
    """Made for one command; whatever it left there goes with them."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="assay-run-")))
    try:
        for name in ("home", "tmp"):
            (folder / name).mkdir(mode=0o700)
        yield Private(str(folder), str(folder / "home"), str(folder / "tmp"))
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """A command may have shut a folder to its own user, so all are opened first; nothing above is touched."""
    front = [str(folder)]
    while front:
        path = front.pop()
        with contextlib.suppress(OSError):
            Path(path).chmod(0o700)  # a folder, by what the listing said, and no process of the command lives
            with os.scandir(path) as found:
                front.extend(entry.path for entry in found if entry.is_dir(follow_symlinks=False))
    shutil.rmtree(folder, ignore_errors=True)
