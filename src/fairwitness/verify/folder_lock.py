"""A folder that one at a time has, over threads and processes; who is killed in it leaves it to the next.

The name is the same at every try, since commands and their variables name the folder and stand in the ledger. The lock
is a file beside it and goes with its process; whoever holds it may empty the folder, and nobody else touches it.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairwitness.kit.killpoints import killpoint
from fairwitness.sandbox.held import remove
from fairwitness.verify.model import refuse_stopped

LOCK = ".locked_folder"
"""Ends the name of a lock."""
_POLL_S = 0.05


@contextmanager
def locked_folder(place: Path, name: str, stop: threading.Event | None = None) -> Iterator[Path]:
    """An empty folder of this name in a place, once nobody else has it; gone afterwards."""
    place.mkdir(parents=True, exist_ok=True)
    remove_abandoned_folders(place)
    handle = _acquire(place / f"{name}{LOCK}", stop or threading.Event())
    folder = place / name
    try:
        remove(folder)
        folder.mkdir()
        killpoint("verify.locked_folder.taken")
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
        os.close(handle)  # who had it before took it away


def _open_lock(lock: Path) -> int:
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_file(handle: int, lock: Path) -> bool:
    """Whether a lock is the one that others find by its name."""
    try:
        return os.path.samestat(os.fstat(handle), lock.lstat())
    except FileNotFoundError:
        return False


def _release(lock: Path, handle: int) -> None:
    """Takes the folder and the lock away, in this order: a lock that is found tells of a folder."""
    remove(lock.with_name(lock.name.removesuffix(LOCK)))
    lock.unlink(missing_ok=True)
    killpoint("verify.locked_folder.left")
    os.close(handle)


def remove_abandoned_folders(place: Path) -> None:
    """Removes what the dead left: a lock that can be had is nobody's."""
    for lock in place.glob(f"*{LOCK}"):
        with contextlib.suppress(OSError):
            handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            if _try_lock(handle) and _is_same_file(handle, lock):
                _release(lock, handle)
            else:
                os.close(handle)
