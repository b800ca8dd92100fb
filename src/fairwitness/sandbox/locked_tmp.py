"""Temporary folders that their maker holds by a lock for as long as it lives, and the sweep of those nobody holds.

A runner that is killed leaves its folders behind. The lock goes with the process, whatever ended it, and is seen from
other containers too, where process numbers mean nothing.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairwitness.kit.clock import system_clock

PREFIX = "fairwitness-"
KINDS = ("sandbox", "run", "probe", "try")
STARTS = tuple(f"{PREFIX}{kind}-" for kind in KINDS)
YOUNG_S = 3600.0
"""Younger folders are left alone: between making and locking one there is a moment."""
LENT = 1_000_000_000
"""From here on are the users that commands are run as; their folders are root's to remove."""
_AT_ONCE = 200


@dataclass(frozen=True)
class LockedFolder:
    """A folder that is held."""

    path: Path
    _handle: int

    def remove(self) -> None:
        """The folder and all in it; nothing is held any more."""
        remove(self.path)
        self.let_go()

    def let_go(self) -> None:
        """Leaves the folder to whoever sweeps."""
        os.close(self._handle)


def make(kind: str) -> LockedFolder:
    """A new folder that only we can enter, held from now on."""
    return hold(Path(os.path.realpath(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-"))))


def hold(folder: Path) -> LockedFolder:
    """A folder that is there, held from now on."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # where nothing can be locked, nothing is swept either
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return LockedFolder(folder, handle)


def sweep(place: str | None = None, *, starts: tuple[str, ...] = STARTS, young_s: float = YOUNG_S) -> list[str]:
    """Removes what dead processes left, by how its name starts, and answers what that was."""
    swept: list[str] = []
    with contextlib.suppress(OSError), os.scandir(place or tempfile.gettempdir()) as found:
        for entry in found:
            if entry.name.startswith(starts) and len(swept) < _AT_ONCE and _is_left(entry.path, young_s):
                remove(Path(entry.path))
                swept.append(entry.path)
    return swept


def _is_left(path: str, young_s: float) -> bool:
    """Whether a folder is ours, old, and held by nobody."""
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


def remove(folder: Path) -> None:
    """A command may have shut a folder to its own user, so all are opened first; nothing above is touched."""
    front = [str(folder)]
    while front:
        path = front.pop()
        with contextlib.suppress(OSError):
            Path(path).chmod(0o700)  # a folder, by what the listing said, and no process of the command lives
            with os.scandir(path) as found:
                front.extend(entry.path for entry in found if entry.is_dir(follow_symlinks=False))
    shutil.rmtree(folder, ignore_errors=True)
