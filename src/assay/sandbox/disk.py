"""How much a command has written to folders of this machine.

The free space of the file system says it cheaply, but others write there too. So it is only the trigger; then what the
command itself wrote is counted: files changed since it began, and files without a name that it holds open.
"""

import contextlib
import os
import stat
from collections.abc import Sequence

from assay.kit.clock import system_clock

CERTAIN = 8
"""So many times the limit ends the command without asking who wrote it."""
_ENTRIES = 400_000
"""So many files are looked at before the file system's word is taken."""
_SLACK_NS = 1_000_000_000
_BLOCK = 512


class Growth:
    """Some folders, and by how much they may grow from now on."""

    def __init__(self, folders: tuple[str, ...], limit: int) -> None:
        self._folders = folders
        self._limit = limit
        self._free = [_free(folder) for folder in folders]
        self._since = int(system_clock().timestamp() * 1e9) - _SLACK_NS

    def is_over(self, pids: Sequence[int]) -> bool:
        """Whether the processes, or those before them, have written more than the limit."""
        shrunk = max(
            (before - _free(folder) for folder, before in zip(self._folders, self._free, strict=True)), default=0
        )
        if shrunk <= self._limit:
            return False
        return shrunk > self._limit * CERTAIN or self.written(pids) > self._limit

    def written(self, pids: Sequence[int]) -> int:
        """Bytes in files that were changed since, and in nameless ones that are open."""
        total = entries = 0
        seen: set[tuple[int, int]] = set()
        front = list(self._folders)
        while front:
            with contextlib.suppress(OSError), os.scandir(front.pop()) as found:
                for entry in found:
                    entries += 1
                    if entries > _ENTRIES:
                        return self._limit + 1
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        front.append(entry.path)
                    elif status.st_ctime_ns >= self._since and (status.st_dev, status.st_ino) not in seen:
                        seen.add((status.st_dev, status.st_ino))
                        total += status.st_blocks * _BLOCK
        return total + nameless(pids, seen, in_memory=False)


def _free(folder: str) -> int:
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return status.f_bfree * status.f_frsize


def nameless(pids: Sequence[int], seen: set[tuple[int, int]], *, in_memory: bool) -> int:
    """Bytes in open files that have no name, on a disk or in memory."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 -- names are enough
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116 -- the link leads to no path
                    key = (status.st_dev, status.st_ino)
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and key not in seen:
                        seen.add(key)
                        total += status.st_blocks * _BLOCK if _is_in_memory(status.st_dev) == in_memory else 0
    return total


def _is_in_memory(device: int) -> bool:
    """File systems without a disk have no major number."""
    return os.major(device) == 0
