"""Check a process tree about twenty times a second against its limits: processes, memory, CPU time, disk.

Disk use is checked in two steps. The used space of the file system is cheap to read, but other processes write and
delete there too, so it is only the trigger. Then what the command itself wrote is counted: files changed since it
started, and unnamed files (created and unlinked) that it holds open. They are also counted without a trigger from time
to time, because others may delete as much as the command writes.

Memory is counted in the same two steps (`MemoryUse`). A memory group of the kernel, where there is one, limits it
before a look does.
"""

import contextlib
import functools
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
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
    """Return whether a file system is in memory: it has no major number, and is not mounted as one on a disk."""
    return os.major(device) == 0 and device not in _without_major()


@functools.cache
def _without_major() -> frozenset[int]:
    """Return the devices of mounted file systems that have no major number although they store on disks."""
    found = set()
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            fields, _, kind = line.partition(" - ")
            if not kind.startswith(("tmpfs ", "ramfs ", "devtmpfs ")):
                major, _, minor = fields.split()[2].partition(":")
                found.add(os.makedev(int(major), int(minor)))
    return frozenset(found)


LimitName = Literal["wall", "cpu", "processes", "memory", "disk", "output"]
INTERVAL_S = 0.05
THREADS = 4
"""How many threads are allowed for each allowed process."""
_CERTAIN = 8
"""Growth of the host's in-memory files by this many times the memory limit ends the command, whatever their owner."""
_SHM_RESIDENT = 14
"""The column of resident bytes in /proc/sysvipc/shm."""


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
        self.segments: int | None = None
        """A list of the System V segments in the tree's own namespace."""
        self._memory_count = MemoryUse(limits.memory, limits.file_size)
        self._growth = (
            DiskGrowth(tuple(writable), limits.disk, limits.files),
            DiskGrowth(tuple(temporary), limits.temporary, limits.files),
        )

    def look(self, root: int) -> LimitName | None:
        """Check the tree below `root`; return the limit that was exceeded, or None."""
        processes = tree(root)
        self.peak_processes = max(self.peak_processes, len(processes))
        self.cpu_s = max(self.cpu_s, sum(process.cpu_s for process in processes))
        memory = self._memory_count.used(processes, self._inside, self.segments)
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

    def _is_full(self, pids: Sequence[int]) -> bool:
        """Return whether a size-limited folder of the tree is full or holds too many files."""
        for place in self._inside if pids else ():
            with contextlib.suppress(OSError):
                status = os.statvfs(f"/proc/{pids[0]}/root{place}")
                if status.f_bavail == 0 or status.f_files - status.f_ffree > self._limits.files:
                    return True
        return False


class MemoryUse:
    """Counts the memory of a process tree, including in-memory files that belong to no process.

    The cheap numbers (resident memory, full private folders, System V segments, and the growth of all in-memory files
    of the host) are read at each look. If they reach the limit, and from time to time without that because others may
    free as much as the command takes, the command's own files are counted too. Files that nobody can measure from
    outside (in flight between two sockets, mapped and closed, or held by a process that cannot be inspected) count as
    the growth of the host.
    """

    def __init__(self, limit: int, file_size: int) -> None:
        self._limit = limit
        self._file_size = file_size
        self._before = _in_files()
        self._free = _free()
        self._next = time.monotonic() + _LEAST_S

    def used(self, processes: Sequence[ProcessUsage], inside: Sequence[str], segments: int | None) -> int:
        """Return the memory that the tree uses; near the limit exactly, below it roughly."""
        living = [process.pid for process in processes if process.lives]
        resident = sum(process.resident for process in processes)
        filed = _in_folders(living, inside) + _in_segments(segments)
        growth = _in_files() - self._before
        began = time.monotonic()
        if resident + max(filed, growth) <= self._limit and began < self._next:
            return resident
        # processes share pages after a fork, so the sum of resident memory is an upper bound
        held = _held(living)
        devices = _devices(living, inside)
        mapped = [_mapped(pid, held.files, devices) for pid in living]
        self._next = time.monotonic() + max(_LEAST_S, (time.monotonic() - began) * _LONG_REST)
        in_memory = filed + held.size + sum(one.shared for one in mapped)
        closed = set().union(*(one.closed for one in mapped))
        hidden = self._limit * _CERTAIN if held.is_partial else len(closed) * self._file_size
        in_memory = max(in_memory, min(growth, in_memory + hidden))
        if growth > self._limit * _CERTAIN:
            in_memory = growth
        return sum(one.private for one in mapped) + max(in_memory, self._in_sockets(held.sockets))

    def _in_sockets(self, sockets: int) -> int:
        """Return what left the host's free memory if so many sockets can have taken it, and it exceeds the limit."""
        taken = self._free - _free()
        return taken if min(sockets * _socket_bytes(), taken) > self._limit else 0


FileId = tuple[int, int]
"""Device and inode."""


class HeldFiles(NamedTuple):
    """Unnamed in-memory files that processes hold open."""

    size: int
    files: frozenset[FileId]
    sockets: int
    is_partial: bool
    """Whether there may be others that cannot be seen from outside."""


def _held(pids: Sequence[int]) -> HeldFiles:
    """Return what the processes hold open in memory, and whether they may hold more."""
    is_partial = False
    files: set[FileId] = set()
    size = unnamed_bytes(pids, files, in_memory=True)
    seen: set[str] = set()
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 -- names are enough
                with contextlib.suppress(OSError):
                    leads = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115 -- no file has this path
                    if leads.startswith("socket:") and leads not in seen:
                        seen.add(leads)
                        is_partial = is_partial or _has_in_flight(f"/proc/{pid}/fdinfo/{name}")
        except PermissionError:
            is_partial = True
        except OSError:
            continue  # it has ended
    return HeldFiles(size, frozenset(files), len(seen), is_partial)


def _has_in_flight(entry: str) -> bool:
    """Return whether descriptors wait in a socket to be received; kernels before 5.10 do not tell."""
    fields = dict(line.split(b":", 1) for line in read_entry(entry).splitlines() if b":" in line)
    return int(fields.get(b"scm_fds", b"0")) > 0


class MappedMemory(NamedTuple):
    """The memory that one process maps; pages that several processes share are divided among them."""

    private: int
    shared: int
    """In in-memory files that are not counted elsewhere."""
    closed: frozenset[FileId] = frozenset()
    """Unnamed in-memory files that no process holds open: they may be larger than what is mapped of them."""


def _mapped(pid: int, held: frozenset[FileId], devices: frozenset[int]) -> MappedMemory:
    """Return the memory of a process without the files that it holds open and those in the private folders."""
    private = shared = 0
    closed = set()
    kind = "private"
    try:
        with Path(f"/proc/{pid}/smaps").open("rb") as lines:
            for line in lines:
                words = line.split(None, 5)
                if words[0].endswith(b":"):
                    if words[0] == b"Pss:" and kind != "elsewhere":
                        private += int(words[1]) * 1024 if kind == "private" else 0
                        shared += int(words[1]) * 1024 if kind == "shared" else 0
                    continue
                major, _, minor = words[3].partition(b":")
                file = (os.makedev(int(major, 16), int(minor, 16)), int(words[4]))
                kind = "private"
                if file[1] and _is_in_memory(file[0]):
                    is_elsewhere = file in held or file[0] in devices or words[5].startswith(b"/SYSV")
                    kind = "elsewhere" if is_elsewhere else "shared"
                    if kind == "shared" and not words[5].startswith(b"/dev/zero"):
                        closed.add(file)
    except PermissionError:  # it cannot be inspected: all of it counts
        with contextlib.suppress(OSError, IndexError):
            return MappedMemory(int(read_entry(f"/proc/{pid}/statm").split()[1]) * _PAGE, 0)
    except OSError:
        pass  # it has ended
    return MappedMemory(private, shared, frozenset(closed))


def _devices(pids: Sequence[int], inside: Sequence[str]) -> frozenset[int]:
    """Return the devices of the private in-memory folders of the tree."""
    found = set()
    for place in inside if pids else ():
        with contextlib.suppress(OSError):
            found.add(os.stat(f"/proc/{pids[0]}/root{place}").st_dev)  # noqa: PTH116 -- called at each count
    return frozenset(found)


def _in_folders(pids: Sequence[int], inside: Sequence[str]) -> int:
    """Return the bytes in the private in-memory folders of the tree."""
    total = 0
    seen = set()
    for place in inside if pids else ():
        with contextlib.suppress(OSError):
            status = os.statvfs(f"/proc/{pids[0]}/root{place}")
            if status.f_fsid not in seen:
                seen.add(status.f_fsid)
                total += (status.f_blocks - status.f_bfree) * status.f_frsize
    return total


def _in_segments(handle: int | None) -> int:
    """Return the resident bytes of the System V segments in a list."""
    if handle is None:
        return 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        text, at = b"", 0
        while piece := os.pread(handle, 1 << 16, at):
            text += piece
            at += len(piece)
        return sum(int(line.split()[_SHM_RESIDENT]) for line in text.splitlines()[1:])
    return 0


@functools.cache
def _socket_bytes() -> int:
    """Return the most bytes that one unix socket buffers."""
    with contextlib.suppress(OSError, ValueError):
        return 2 * int(read_entry("/proc/sys/net/core/wmem_max"))
    return 2 * 212_992


def uncounted() -> str:
    """Return what a command can use beyond its memory limit where only looks limit it."""
    slack = SandboxLimits().memory >> 20
    return (
        f"what is taken within {INTERVAL_S * 1000:.0f} ms is seen too late, and socket buffers only when the free"
        f" memory of the machine has fallen by the limit ({slack} MiB by default)"
    )


def _in_files() -> int:
    """Return the host's memory that is used by in-memory files."""
    return _of_host(b"Shmem:")


def _free() -> int:
    """Return the host's memory that is free or can be freed."""
    return _of_host(b"MemAvailable:")


def _of_host(name: bytes) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(read_entry("/proc/meminfo").partition(name)[2].split()[0]) * 1024
    return 0
