"""Makes folders that an agent wrote accessible, and removes them with everything in them."""

import contextlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from types import TracebackType


def remove(folder: Path) -> None:
    """Remove a folder with any content, or a file or link in its place; links are removed, not followed.

    It is no error if the folder is gone: another process may remove it too.
    """
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(found.st_mode):
            folder.unlink()
            return
        open_up(folder)
    shutil.rmtree(folder, onerror=_unless_gone)


def open_up(folder: Path) -> None:
    """Make all folders within a folder readable and writable for the owner, so that they can be read and removed."""
    if folder.is_symlink():
        return
    for place, folders, _ in os.walk(_opened(folder)):  # each folder is opened before it is entered
        for inner in folders:
            _opened(Path(place) / inner)


def _opened(folder: Path) -> Path:
    mode = folder.lstat().st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
    return folder


def _unless_gone(
    _function: Callable[..., object], _path: str, found: tuple[type[BaseException], BaseException, TracebackType]
) -> None:
    if not isinstance(found[1], FileNotFoundError):
        raise found[1]
