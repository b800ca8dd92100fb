"""Check a process tree about twenty times a second against its limits: processes, memory, CPU time, disk.

Disk use is checked in two steps. The used space of the file system is cheap to read, but other processes write and
delete there too, so it is only the trigger. Then what the command itself wrote is counted: files changed since it
started, and unnamed files (created and unlinked) that it holds open. They are also counted without a trigger from time
to time, because others may delete as much as the command writes.
"""

import contextlib
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fairwitness.contracts.common.sandbox import SandboxLimits
from fairwitness.kit.clock import system_clock
from fairwitness.sandbox.kernel import read_entry

CERTAIN_DISK = 8
"""Growth of the file system by this many times the limit ends the command, even if other processes wrote it."""
_ENTRIES = 400_000
"""The most files that are counted; above it the growth of the file system decides."""
_SLACK_NS = 1_000_000_000
_BLOCK = 512
_REST, _LONG_REST, _LEAST_S = 10, 50, 1.0
"""After a count within the limit, the next one waits this many times as long as the count took; without a trigger it
waits the longer time, and at least a second."""


class DiskUsage(NamedTuple):
    """Bytes and files on a disk; files are limited too, since empty ones use no space but a disk holds only so many."""

    size: int
    files: int

    def is_over(self, limit: "DiskUsage", times: int = 1) -> bool:
        """Return whether the bytes or the files exceed the limit."""
        return self.size > limit.size * times or self.files > limit.files * times


class DiskGrowth:
    """The growth of some folders from now on, and its limit."""

    def __init__(self, folders: tuple[str, ...], size: int, files: int) -> None:
        self._folders = folders
        self._limit = DiskUsage(size, files)
        self._used = [_used(folder) for folder in folders]
        self._since = int(system_clock().timestamp() * 1e9) - _SLACK_NS
        self._next_count = 0.0
        self._next_untriggered = time.monotonic() + _LEAST_S

    def is_over(self, pids: Sequence[int]) -> bool:
        """Return whether the command has written more than the limit; `pids` are its living processes."""
        grown = [self._grown(folder, before) for folder, before in zip(self._folders, self._used, strict=True)]
        if any(amount.is_over(self._limit, CERTAIN_DISK) for amount in grown):
            return True
        began = time.monotonic()
        is_triggered = began >= self._next_count and any(amount.is_over(self._limit) for amount in grown)
        if not is_triggered and began < self._next_untriggered:
            return False
        is_over = self.written(pids).is_over(self._limit)
        ended = time.monotonic()
        self._next_count = ended + (ended - began) * _REST
        self._next_untriggered = ended + max(_LEAST_S, (ended - began) * _LONG_REST)
        return is_over

    def written(self, pids: Sequence[int]) -> DiskUsage:
        """Return what the command wrote: files changed since the start and open unnamed files."""
        size = entries = 0
        seen: set[tuple[int, int]] = set()
        front = list(self._folders)
        while front:
            with contextlib.suppress(OSError), os.scandir(front.pop()) as found:
                for entry in found:
                    entries += 1
                    if entries > _ENTRIES:
                        return DiskUsage(self._limit.size + 1, self._limit.files + 1)
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        front.append(entry.path)
                    if status.st_ctime_ns >= self._since and (status.st_dev, status.st_ino) not in seen:
                        seen.add((status.st_dev, status.st_ino))
                        size += status.st_blocks * _BLOCK
        files = len(seen)
        return DiskUsage(size + unnamed_bytes(pids, seen, in_memory=False), files)

    @staticmethod
    def _grown(folder: str, before: DiskUsage) -> DiskUsage:
        now = _used(folder)
        return DiskUsage(now.size - before.size, now.files - before.files)


def _used(folder: str) -> DiskUsage:
    """Return the used part of the file system that holds a folder; some file systems do not count files."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return DiskUsage(0, 0)
    return DiskUsage((status.f_blocks - status.f_bfree) * status.f_frsize, status.f_files - status.f_ffree)


def unnamed_bytes(pids: Sequence[int], seen: set[tuple[int, int]], *, in_memory: bool) -> int:
    """Return the bytes in open files without a name, on disk or in memory."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 -- names are enough
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116 -- an unlinked file has no path
                    key = (status.st_dev, status.st_ino)
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and key not in seen:
                        seen.add(key)
                        total += status.st_blocks * _BLOCK if _is_in_memory(status.st_dev) == in_memory else 0
    return total


def _is_in_memory(device: int) -> bool:
    """Return whether a file system is in memory: without a disk it has no major number."""
    return os.major(device) == 0


LimitName = Literal["wall", "cpu", "processes", "memory", "disk", "output"]
INTERVAL_S = 0.05
THREADS = 4
"""How many threads are allowed for each allowed process."""
_CERTAIN = 8
"""Growth of the host's in-memory files by this many times the memory limit ends the command, whatever their owner."""


@dataclass(frozen=True)
class ProcessUsage:
    """The kernel's counters of one process."""

    pid: int
    cpu_s: float
    resident: int
    threads: int
    lives: bool
    """False for a zombie, which has ended but still occupies a process id."""


def tree(root: int) -> list[ProcessUsage]:
    """Return the processes below a process, without itself."""
    found: list[ProcessUsage] = []
    front = _children(root)
    while front:
        pid = front.pop()
        try:
            fields = read_entry(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        except OSError:
            continue
        front.extend(_children(pid))
        ticks = int(fields[11]) + int(fields[12])
        lives = fields[0] not in (b"Z", b"X")
        found.append(ProcessUsage(pid, ticks / _TICKS, int(fields[21]) * _PAGE, int(fields[17]), lives))
    return found


_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _children(pid: int) -> list[int]:
    """Return the children of all threads of a process; none if it is gone."""
    children: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 -- called several hundred times a second
        for thread in threads:
            children.extend(int(word) for word in read_entry(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass
    return children


class Watchdog:
    """Records the peak usage of a process tree and reports a limit that was exceeded."""

    def __init__(
        self, limits: SandboxLimits, writable: Sequence[str], temporary: Sequence[str], inside: Sequence[str]
    ) -> None:
        """`writable` and `temporary` are host folders; `inside` are size-limited and visible only to the tree."""
        self.peak_memory = 0
        self.peak_processes = 0
        self.cpu_s = 0.0
        self._limits = limits
        self._inside = tuple(inside)
        self._in_files = _in_files()
        self._growth = (
            DiskGrowth(tuple(writable), limits.disk, limits.files),
            DiskGrowth(tuple(temporary), limits.temporary, limits.files),
        )

    def look(self, root: int) -> LimitName | None:
        """Check the tree below `root`; return the limit that was exceeded, or None."""
        processes = tree(root)
        self.peak_processes = max(self.peak_processes, len(processes))
        self.cpu_s = max(self.cpu_s, sum(process.cpu_s for process in processes))
        memory = self._memory(processes)
        self.peak_memory = max(self.peak_memory, memory)
        pids = [process.pid for process in processes if process.lives]
        most = self._limits.processes
        if len(processes) > most or sum(process.threads for process in processes) > most * THREADS:
            return "processes"
        if memory > self._limits.memory:
            return "memory"
        if any(process.cpu_s > self._limits.cpu_s for process in processes):
            return "cpu"
        if self._is_full(pids) or any(growth.is_over(pids) for growth in self._growth):
            return "disk"
        return None

    def _memory(self, processes: Sequence[ProcessUsage]) -> int:
        """Return the memory of the tree; expensive measurements are made only near the limit."""
        limit = self._limits.memory
        resident = sum(process.resident for process in processes)
        if resident > limit:
            # processes share pages after a fork, so this sum is an upper bound
            resident = sum(_proportional(process.pid) for process in processes)
        filed = _in_files() - self._in_files
        if resident + filed > limit:
            # in-memory files belong to no process until they are mapped, and other programs have some too
            own = unnamed_bytes([process.pid for process in processes if process.lives], set(), in_memory=True)
            resident += filed if filed > limit * _CERTAIN else own
        return resident

    def _is_full(self, pids: Sequence[int]) -> bool:
        """Return whether a size-limited folder of the tree is full or holds too many files."""
        for place in self._inside if pids else ():
            with contextlib.suppress(OSError):
                status = os.statvfs(f"/proc/{pids[0]}/root{place}")
                if status.f_bavail == 0 or status.f_files - status.f_ffree > self._limits.files:
                    return True
        return False


def _in_files() -> int:
    """Return the host's memory that is used by in-memory files."""
    with contextlib.suppress(OSError, IndexError):
        return int(read_entry("/proc/meminfo").partition(b"Shmem:")[2].split()[0]) * 1024
    return 0


def _proportional(pid: int) -> int:
    """Return the memory of a process, with each shared page divided by the number of processes that share it."""
    with contextlib.suppress(OSError):
        for line in read_entry(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, IndexError):
        fields = read_entry(f"/proc/{pid}/statm").split()
        return (int(fields[1]) - int(fields[2])) * _PAGE
    return 0
