"""Temporary folders that are locked while their creator is alive, and the removal of those left behind.

A runner that is killed leaves its folders behind. The kernel releases the lock when the process ends, for whatever
reason. Other containers see the lock too, whereas process ids mean nothing there.
"""

import contextlib
import fcntl
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairwitness.kit.clock import system_clock
from fairwitness.kit.folder_trees import remove_tree

PREFIX = "fairwitness-"
KINDS = ("sandbox", "run", "probe", "try")
STARTS = tuple(f"{PREFIX}{kind}-" for kind in KINDS)
YOUNG_S = 3600.0
"""Younger folders are not removed, because a folder is locked only a moment after it is created."""
LENT = 1_000_000_000
"""The first id of the users that commands run as; root removes their folders."""
_AT_ONCE = 200


@dataclass(frozen=True)
class LockedFolder:
    """A temporary folder with a lock on it."""

    path: Path
    _handle: int

    def remove(self) -> None:
        """Remove the folder with everything in it, and release the lock."""
        remove_tree(self.path)
        self.let_go()

    def let_go(self) -> None:
        """Release the lock; a later sweep removes the folder."""
        os.close(self._handle)


def make(kind: str) -> LockedFolder:
    """Create and lock a folder that only this user can enter."""
    return hold(Path(os.path.realpath(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-"))))


def hold(folder: Path) -> LockedFolder:
    """Lock an existing folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # on a file system without locks the sweep removes nothing either
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return LockedFolder(folder, handle)


def sweep(place: str | None = None, *, starts: tuple[str, ...] = STARTS, young_s: float = YOUNG_S) -> list[str]:
    """Remove the folders that dead processes left behind, selected by name prefix; return their paths."""
    swept: list[str] = []
    with contextlib.suppress(OSError), os.scandir(place or tempfile.gettempdir()) as found:
        for entry in found:
            if entry.name.startswith(starts) and len(swept) < _AT_ONCE and _is_left(entry.path, young_s):
                remove_tree(Path(entry.path))
                swept.append(entry.path)
    return swept


def _is_left(path: str, young_s: float) -> bool:
    """Return whether a folder belongs to this user, is old enough, and is not locked."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(handle)
        is_ours = status.st_uid == os.geteuid() or (os.geteuid() == 0 and status.st_uid >= LENT)
        if not is_ours or system_clock().timestamp() - status.st_ctime < young_s:
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)
