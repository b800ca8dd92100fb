"""How much a command has written to folders of this machine, in bytes and in files.

What the file system has in use says it cheaply, but others write there too. So it is only the trigger; then what the
command itself wrote is counted: files changed since it began, and files without a name that it holds open.
"""

import contextlib
import os
import stat
import time
from collections.abc import Sequence
from typing import NamedTuple

from fairwitness.kit.clock import system_clock

CERTAIN = 8
"""So many times the limit ends the command without asking who wrote it."""
_ENTRIES = 400_000
"""So many files are looked at before the file system's word is taken."""
_SLACK_NS = 1_000_000_000
_BLOCK = 512
_REST = 10
"""After a count that was within the limit, so many times what it took passes before the next."""


class Amount(NamedTuple):
    """So much on a disk; empty files take no room, but a disk can hold only so many of them."""

    size: int
    files: int

    def is_over(self, limit: "Amount", times: int = 1) -> bool:
        """Whether either is above the limit."""
        return self.size > limit.size * times or self.files > limit.files * times


class Growth:
    """Some folders, and by how much they may grow from now on."""

    def __init__(self, folders: tuple[str, ...], size: int, files: int) -> None:
        self._folders = folders
        self._limit = Amount(size, files)
        self._used = [_used(folder) for folder in folders]
        self._since = int(system_clock().timestamp() * 1e9) - _SLACK_NS
        self._next_count = 0.0

    def is_over(self, pids: Sequence[int]) -> bool:
        """Whether the processes, or those before them, have written more than the limit."""
        grown = [self._grown(folder, before) for folder, before in zip(self._folders, self._used, strict=True)]
        if any(amount.is_over(self._limit, CERTAIN) for amount in grown):
            return True
        began = time.monotonic()
        if began < self._next_count or not any(amount.is_over(self._limit) for amount in grown):
            return False
        is_over = self.written(pids).is_over(self._limit)
        ended = time.monotonic()
        self._next_count = ended + (ended - began) * _REST
        return is_over

    def written(self, pids: Sequence[int]) -> Amount:
        """What is in files that were changed since, and in nameless ones that are open."""
        size = entries = 0
        seen: set[tuple[int, int]] = set()
        front = list(self._folders)
        while front:
            with contextlib.suppress(OSError), os.scandir(front.pop()) as found:
                for entry in found:
                    entries += 1
                    if entries > _ENTRIES:
                        return Amount(self._limit.size + 1, self._limit.files + 1)
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        front.append(entry.path)
                    if status.st_ctime_ns >= self._since and (status.st_dev, status.st_ino) not in seen:
                        seen.add((status.st_dev, status.st_ino))
                        size += status.st_blocks * _BLOCK
        files = len(seen)
        return Amount(size + nameless(pids, seen, in_memory=False), files)

    @staticmethod
    def _grown(folder: str, before: Amount) -> Amount:
        now = _used(folder)
        return Amount(now.size - before.size, now.files - before.files)


def _used(folder: str) -> Amount:
    """What is taken of the file system that holds a folder; some count no files."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return Amount(0, 0)
    return Amount((status.f_blocks - status.f_bfree) * status.f_frsize, status.f_files - status.f_ffree)


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
