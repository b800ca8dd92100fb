"""A named folder that one thread or process at a time uses; after a crash the next user takes it over.

The name is the same at every try, because commands and their variables contain it and are recorded in the ledger. The
lock is a file beside the folder and is released when its process ends. Only the holder of the lock changes the folder.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairwitness.kit.folder_trees import remove_tree
from fairwitness.kit.killpoints import killpoint
from fairwitness.verify.model import refuse_stopped

LOCK = ".turn"
"""Suffix of a lock file's name."""
_POLL_S = 0.05


@contextmanager
def locked_folder(place: Path, name: str, stop: threading.Event | None = None) -> Iterator[Path]:
    """Wait for the folder of this name, yield it empty, and remove it afterwards."""
    place.mkdir(parents=True, exist_ok=True)
    remove_abandoned_folders(place)
    handle = _acquire(place / f"{name}{LOCK}", stop or threading.Event())
    folder = place / name
    try:
        remove_tree(folder)
        folder.mkdir()
        killpoint("verify.turn.taken")
        yield folder
    finally:
        _release(place / f"{name}{LOCK}", handle)


def _acquire(lock: Path, stop: threading.Event) -> int:
    while True:
        handle = _open_lock(lock)
        try:
            while not _try_lock(handle):
                stop.wait(_POLL_S)
                refuse_stopped(stop)
            if _is_same_file(handle, lock):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the previous holder removed this lock file


def _open_lock(lock: Path) -> int:
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_file(handle: int, lock: Path) -> bool:
    """Return whether the open lock is still the file of that name."""
    try:
        return os.path.samestat(os.fstat(handle), lock.lstat())
    except FileNotFoundError:
        return False


def _release(lock: Path, handle: int) -> None:
    """Remove the folder, then its lock: in this order a folder never remains without a lock that leads to it."""
    remove_tree(lock.with_name(lock.name.removesuffix(LOCK)))
    lock.unlink(missing_ok=True)
    killpoint("verify.turn.left")
    os.close(handle)


def remove_abandoned_folders(place: Path) -> None:
    """Remove the folders of processes that died: a lock that can be acquired has no holder."""
    for lock in place.glob(f"*{LOCK}"):
        with contextlib.suppress(OSError):
            handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            if _try_lock(handle) and _is_same_file(handle, lock):
                _release(lock, handle)
            else:
                os.close(handle)
