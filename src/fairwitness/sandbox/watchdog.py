"""Looks at a tree of processes every fiftieth of a second or so: how many, how much memory, how much disk."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fairwitness.contracts.common.sandbox import Limits
from fairwitness.sandbox.disk import Growth, nameless
from fairwitness.sandbox.kernel import read_entry

LimitName = Literal["wall", "cpu", "processes", "memory", "disk", "output"]
INTERVAL_S = 0.05
THREADS = 4
"""So many threads may come on each process that is allowed."""
_CERTAIN = 8
"""So many times the memory limit, in files that lie in memory, ends the command without asking whose they are."""


@dataclass(frozen=True)
class Process:
    """One process as the kernel counts it."""

    pid: int
    cpu_s: float
    resident: int
    threads: int
    lives: bool
    """False if it has ended and nobody has asked how; it takes up a number still."""


def tree(root: int) -> list[Process]:
    """The processes below a process, without itself."""
    found: list[Process] = []
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
        found.append(Process(pid, ticks / _TICKS, int(fields[21]) * _PAGE, int(fields[17]), lives))
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
        self, limits: Limits, writable: Sequence[str], temporary: Sequence[str], inside: Sequence[str]
    ) -> None:
        """`writable` and `temporary` are folders of this machine; `inside` are sized ones that only the tree sees."""
        self.peak_memory = 0
        self.peak_processes = 0
        self.cpu_s = 0.0
        self._limits = limits
        self._inside = tuple(inside)
        self._in_files = _in_files()
        self._growth = (
            Growth(tuple(writable), limits.disk, limits.files),
            Growth(tuple(temporary), limits.temporary, limits.files),
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

    def _memory(self, processes: Sequence[Process]) -> int:
        """Memory of the tree, as cheaply as will do: dearer questions are asked only near the limit."""
        limit = self._limits.memory
        resident = sum(process.resident for process in processes)
        if resident > limit:
            # forks share pages, so the sum is an upper bound
            resident = sum(_proportional(process.pid) for process in processes)
        filed = _in_files() - self._in_files
        if resident + filed > limit:
            # files that lie in memory belong to no process until they are mapped, and others have such files too
            own = nameless([process.pid for process in processes if process.lives], set(), in_memory=True)
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
