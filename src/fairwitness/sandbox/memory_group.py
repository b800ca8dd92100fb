"""A control group that makes the kernel limit the memory of one command.

The kernel charges every page to the group of the process that first touches it: private memory, in-memory files that no
process has open, shared segments that no process has attached, socket buffers. What a command hides from the watchdog
therefore still counts.

Groups are made below the group of this process, so that its own limits still apply. Version 1 is tested; version 2 was
written from the kernel's documentation and could not be run. A group is locked while its maker lives. The next process
that makes a group removes the unlocked ones.
"""

import contextlib
import errno
import fcntl
import functools
import itertools
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from fairwitness.sandbox.kernel import read_entry

PREFIX = "fairwitness-"
_TRIES = 100
_GONE_S = 5.0
_TRIAL = 64 << 20
_LIMITS = {
    # the first must succeed; the others do not exist on every kernel. The order matters: swap counts on top of memory
    1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes"),
    2: ("memory.max",),
}
_SETTINGS = {1: {}, 2: {"memory.swap.max": "0", "memory.oom.group": "1"}}
_EVENTS = {1: "memory.oom_control", 2: "memory.events"}
_numbers = itertools.count()


@dataclass(frozen=True)
class GroupLocation:
    """The folder in which this process may make groups."""

    folder: str
    version: int


@dataclass(frozen=True)
class MemoryGroup:
    """The group of one command."""

    folder: str
    version: int
    entrance: int
    """A descriptor: a process that writes `0` to it enters the group."""
    _lock: int

    def has_overflowed(self) -> bool:
        """Return whether the kernel has killed a process of the group because its memory was used up."""
        with contextlib.suppress(OSError, ValueError):
            for line in read_entry(f"{self.folder}/{_EVENTS[self.version]}").splitlines():
                name, _, count = line.partition(b" ")
                if name == b"oom_kill":
                    return int(count) > 0
        return False

    def remove(self) -> None:
        """Kill what is left in the group and remove it; if that fails, a later process removes it."""
        os.close(self.entrance)
        until = time.monotonic() + _GONE_S
        while not _removed(self.folder) and time.monotonic() < until:
            with contextlib.suppress(OSError):
                for word in read_entry(f"{self.folder}/cgroup.procs").split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(word), signal.SIGKILL)
            time.sleep(0.005)
        os.close(self._lock)


def make(limit: int) -> MemoryGroup | None:
    """Make a group for so many bytes; return None if the kernel or the permissions do not allow it."""
    place = group_place(os.getpid())
    return None if place is None else _make(place, limit)


def is_available() -> bool:
    """Return whether the kernel limits the memory of commands on this machine, by trying it."""
    group = make(_TRIAL)
    if group is not None:
        group.remove()
    return group is not None


@functools.cache
def group_place(_process: int) -> GroupLocation | None:
    """Return where this process may make groups, or None; remove what killed processes left there."""
    try:
        place = find_place(
            read_entry("/proc/self/cgroup").decode(errors="surrogateescape"),
            _all_of("/proc/self/mountinfo").decode(errors="surrogateescape"),
        )
    except OSError:
        return None
    if place is not None:
        _sweep(place.folder)
    return place


def find_place(groups: str, mounts: str) -> GroupLocation | None:
    """Return the place for groups of a process with these entries in `cgroup` and `mountinfo` of /proc."""
    own: dict[str, str] = {}
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    for line in mounts.splitlines():
        fields, _, kind = line.partition(" - ")
        (root, point), (system, _, options) = fields.split()[3:5], kind.split()[:3]
        if system == "cgroup" and "memory" in own and "memory" in options.split(","):
            return GroupLocation(_below(point, root, own["memory"]), 1)
        if system == "cgroup2" and "" in own and "memory" not in own:
            return _second_version(point, _below(point, root, own[""]))
    return None


def _below(point: str, root: str, path: str) -> str:
    """Return the folder of a group; a container may see only a part of the groups."""
    inner = path.removeprefix(root.rstrip("/")) if root != "/" else path
    return (point + inner).rstrip("/")


def _second_version(point: str, folder: str) -> GroupLocation | None:
    """Return the group itself if it may have limited groups, else the one above, unless that would evade a limit."""
    if _hands_on_memory(folder):
        return GroupLocation(folder, 2)
    above = str(Path(folder).parent)
    try:
        is_limited = read_entry(f"{folder}/memory.max").strip() != b"max"
    except OSError:
        is_limited = True
    if folder != point and _hands_on_memory(above) and not is_limited:
        return GroupLocation(above, 2)
    return None


def _hands_on_memory(folder: str) -> bool:
    try:
        return b"memory" in read_entry(f"{folder}/cgroup.subtree_control").split()
    except OSError:
        return False


def _make(place: GroupLocation, limit: int) -> MemoryGroup | None:
    for _ in range(_TRIES):
        folder = f"{place.folder}/{PREFIX}{os.getpid()}-{next(_numbers)}"
        try:
            Path(folder).mkdir()
            return _prepared(folder, place.version, limit)
        except FileExistsError:
            continue  # of a process with this id in another container
        except FileNotFoundError:
            continue  # a sweep removed it before it was locked
        except OSError:
            _removed(folder)
            return None
    return None


def _prepared(folder: str, version: int, limit: int) -> MemoryGroup:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        first, *others = _LIMITS[version]
        _write(f"{folder}/{first}", str(limit))
        for name, value in (dict.fromkeys(others, str(limit)) | _SETTINGS[version]).items():
            with contextlib.suppress(OSError):
                _write(f"{folder}/{name}", value)
        return MemoryGroup(folder, version, os.open(f"{folder}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC), lock)
    except BaseException:
        os.close(lock)
        raise


def _sweep(place: str) -> None:
    """Remove groups of dead processes: here, and in the groups beside this one, where earlier sessions may have run."""
    for folder in (place, *_inner(str(Path(place).parent))):
        for group in _inner(folder):
            if group.rpartition("/")[2].startswith(PREFIX):
                _remove_left(group)


def _inner(folder: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        return [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
    return []


def _remove_left(group: str) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _removed(group)
        finally:
            os.close(handle)


def _removed(folder: str) -> bool:
    """Remove a group; return False if processes are left in it."""
    try:
        Path(folder).rmdir()
    except OSError as error:
        return error.errno != errno.EBUSY
    return True


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _all_of(path: str) -> bytes:
    return Path(path).read_bytes()
