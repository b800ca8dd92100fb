"""Looks at a tree of processes every fiftieth of a second or so: how many, how much memory, how much disk."""

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
"""So many times the limit ends the command without asking who wrote it."""
_ENTRIES = 400_000
"""So many files are looked at before the file system's word is taken."""
_SLACK_NS = 1_000_000_000
_BLOCK = 512
_REST = 10
"""After a count that was within the limit, so many times what it took passes before the next."""


class DiskUsage(NamedTuple):
    """So much on a disk; empty files take no room, but a disk can hold only so many of them."""

    size: int
    files: int

    def is_over(self, limit: "DiskUsage", times: int = 1) -> bool:
        """Whether either is above the limit."""
        return self.size > limit.size * times or self.files > limit.files * times


class DiskGrowth:
    """Some folders, and by how much they may grow from now on."""

    def __init__(self, folders: tuple[str, ...], size: int, files: int) -> None:
        self._folders = folders
        self._limit = DiskUsage(size, files)
        self._used = [_used(folder) for folder in folders]
        self._since = int(system_clock().timestamp() * 1e9) - _SLACK_NS
        self._next_count = 0.0

    def is_over(self, pids: Sequence[int]) -> bool:
        """Whether the processes, or those before them, have written more than the limit."""
        grown = [self._grown(folder, before) for folder, before in zip(self._folders, self._used, strict=True)]
        if any(amount.is_over(self._limit, CERTAIN_DISK) for amount in grown):
            return True
        began = time.monotonic()
        if began < self._next_count or not any(amount.is_over(self._limit) for amount in grown):
            return False
        is_over = self.written(pids).is_over(self._limit)
        ended = time.monotonic()
        self._next_count = ended + (ended - began) * _REST
        return is_over

    def written(self, pids: Sequence[int]) -> DiskUsage:
        """What is in files that were changed since, and in unnamed_bytes ones that are open."""
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
    """What is taken of the file system that holds a folder; some count no files."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return DiskUsage(0, 0)
    return DiskUsage((status.f_blocks - status.f_bfree) * status.f_frsize, status.f_files - status.f_ffree)


def unnamed_bytes(pids: Sequence[int], seen: set[tuple[int, int]], *, in_memory: bool) -> int:
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


LimitName = Literal["wall", "cpu", "processes", "memory", "disk", "output"]
INTERVAL_S = 0.05
THREADS = 4
"""So many threads may come on each process that is allowed."""
_CERTAIN = 8
"""So many times the memory limit, in files that lie in memory, ends the command without asking whose they are."""


@dataclass(frozen=True)
class ProcessUsage:
    """One process as the kernel counts it."""

    pid: int
    cpu_s: float
    resident: int
    threads: int
    lives: bool
    """False if it has ended and nobody has asked how; it takes up a number still."""


def tree(root: int) -> list[ProcessUsage]:
    """The processes below a process, without itself."""
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
    """Children of all its threads; none where it is gone."""
    children: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 -- several hundred times a second
        for thread in threads:
            children.extend(int(word) for word in read_entry(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass
    return children


class Watchdog:
    """Remembers the peaks, and says which limit was passed."""

    def __init__(
        self, limits: SandboxLimits, writable: Sequence[str], temporary: Sequence[str], inside: Sequence[str]
    ) -> None:
        """`writable` and `temporary` are folders of this machine; `inside` are sized ones that only the tree sees."""
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
        """One look at the tree below `root`."""
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
        """Memory of the tree, as cheaply as will do: dearer questions are asked only near the limit."""
        limit = self._limits.memory
        resident = sum(process.resident for process in processes)
        if resident > limit:
            # forks share pages, so the sum is an upper bound
            resident = sum(_proportional(process.pid) for process in processes)
        filed = _in_files() - self._in_files
        if resident + filed > limit:
            # files that lie in memory belong to no process until they are mapped, and others have such files too
            own = unnamed_bytes([process.pid for process in processes if process.lives], set(), in_memory=True)
            resident += filed if filed > limit * _CERTAIN else own
        return resident

    def _is_full(self, pids: Sequence[int]) -> bool:
        """Whether a sized place that only the tree sees has no room left, or holds too many files."""
        for place in self._inside if pids else ():
            with contextlib.suppress(OSError):
                status = os.statvfs(f"/proc/{pids[0]}/root{place}")
                if status.f_bavail == 0 or status.f_files - status.f_ffree > self._limits.files:
                    return True
        return False


def _in_files() -> int:
    """Memory of this machine that lies in files."""
    with contextlib.suppress(OSError, IndexError):
        return int(read_entry("/proc/meminfo").partition(b"Shmem:")[2].split()[0]) * 1024
    return 0


def _proportional(pid: int) -> int:
    """Memory of a process with shared pages divided among those who share them."""
    with contextlib.suppress(OSError):
        for line in read_entry(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, IndexError):
        fields = read_entry(f"/proc/{pid}/statm").split()
        return (int(fields[1]) - int(fields[2])) * _PAGE
    return 0
