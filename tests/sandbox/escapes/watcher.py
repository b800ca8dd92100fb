"""Looks at the processes of attempts from outside, through /proc, while they run.

A process belongs to an attempt if its command line is the attack's own with the attempt's scene in it: forked
children keep the line of their parent, wherever they go.
"""

import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.escapes.attacks.calls import HOLDING, SEEN, system_call
from sandbox.escapes.table import Watch

_EVERY_S = 0.03
_FEW = 80
"""Of so many processes the threads are counted; with more, the processes are enough."""
_PACKAGE = b"sandbox.escapes.attacks."
_DOORS = ("anon_inode:[io_uring]", "anon_inode:bpf", "anon_inode:[perf_event]", "anon_inode:[userfaultfd]")
_SWITCHES = ("/core_pattern", "/modprobe", "/uevent_helper", "/sysrq-trigger")
_USUAL = frozenset({socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK})


@dataclass
class Seen:
    """What was seen of one attempt so far."""

    watch: frozenset[Watch]
    worktree: Path
    decoy: int = 0
    question: Callable[[], list[Path]] | None = None
    """Asked at every look; what it answers is kept."""
    answers: set[str] = field(default_factory=set)
    looked: int = 0
    """How many times one of its processes was looked at."""
    blind: str = ""
    """Why something could not be looked at."""
    forbidden: set[str] = field(default_factory=set)
    """Open things that it may not have."""
    tracers: set[int] = field(default_factory=set)
    """Processes that traced the decoy."""
    filled: int = 0
    """Bytes in its open files at their height."""
    user_namespaces: set[str] = field(default_factory=set)
    mount_namespaces: set[str] = field(default_factory=set)
    processes: list[tuple[float, int]] = field(default_factory=list)
    """With those that are dead and that nobody has waited for."""
    threads: list[tuple[float, int]] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)

    def longest_above(self, samples: list[tuple[float, int]], limit: float) -> float:
        """For how many seconds on end the samples stood above a limit."""
        longest, since = 0.0, None
        for at, value in samples:
            if value > limit:
                since = at if since is None else since
                longest = max(longest, at - since)
            else:
                since = None
        return longest


class Watcher:
    """One thread that looks again and again."""

    def __init__(self) -> None:
        self._older = set(_pids())
        self._watched: dict[bytes, Seen] = {}
        self._known: dict[int, bytes] = {}
        self._sockets: set[tuple[int, str]] = set()
        self._shadow = _identity("/etc/shadow")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def begin(self, scene: Path, seen: Seen) -> None:
        if seen.watch:
            self._watched[_mark(scene)] = seen

    def end(self, scene: Path) -> None:
        self._watched.pop(_mark(scene), None)

    def processes(self, scene: Path) -> list[int]:
        """The living processes of an attempt."""
        return [pid for pid in _pids() if pid not in self._older and _belongs(pid, _mark(scene))]

    def end_all(self, scene: Path, *, patience_s: float) -> None:
        """End what is left of an attempt; one that forks faster than we look ends by itself."""
        give_up = time.monotonic() + patience_s
        while (left := self.processes(scene)) and time.monotonic() < give_up:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._ended.wait(_EVERY_S):
            if self._watched:
                self._look()

    def _look(self) -> None:
        watched = dict(self._watched)
        waiting = [mark for seen in watched.values() for mark in _waiting(seen.worktree)]
        now = time.monotonic()
        counts = dict.fromkeys(watched, 0)
        threads = dict.fromkeys(watched, 0)
        memory = dict.fromkeys(watched, 0)
        for pid, mark in self._owners(watched).items():
            seen = watched[mark]
            counts[mark] += 1
            if Watch.PROCESSES in seen.watch and counts[mark] <= _FEW:
                threads[mark] += _threads(pid)
            with suppress(OSError):  # it may end while we look
                if Watch.HANDLES in seen.watch:
                    self._look_at_handles(pid, seen)
                if Watch.NAMESPACES in seen.watch:
                    seen.user_namespaces.add(os.readlink(f"/proc/{pid}/ns/user"))  # noqa: PTH115 - no file
                    seen.mount_namespaces.add(os.readlink(f"/proc/{pid}/ns/mnt"))  # noqa: PTH115 - no file
                if Watch.MEMORY in seen.watch:
                    memory[mark] += _private_bytes(pid)
                seen.looked += 1
        for mark, seen in watched.items():
            seen.threads.append((now, threads[mark]))
            seen.processes.append((now, counts[mark]))
            seen.memory.append((now, memory[mark]))
            if seen.decoy:
                seen.tracers |= {tracer} if (tracer := _tracer(seen.decoy)) else set()
            if seen.question is not None:
                seen.answers |= set(map(str, seen.question()))
        for path in waiting:  # they waited before this look began, so they were in it
            with suppress(OSError):
                Path(f"{path}{SEEN}").touch()

    def _owners(self, watched: dict[bytes, Seen]) -> dict[int, bytes]:
        """Which processes belong to which attempt, also those that are dead and that nobody has waited for."""
        there = [pid for pid in _pids() if pid not in self._older]
        known = {pid: self._known[pid] for pid in there if self._known.get(pid) in watched}
        nameless = []
        for pid in there:
            if pid not in known:
                line = _command_line(pid)
                mark = next((mark for mark in watched if mark in line), None)
                if mark is not None and _is_attack(line):
                    known[pid] = mark
                elif not line:
                    nameless.append(pid)
        self._known = known | {pid: known[parent] for pid in nameless if (parent := _parent(pid)) in known}
        return self._known

    def _look_at_handles(self, pid: int, seen: Seen) -> None:
        files: dict[tuple[int, int], int] = {}
        for entry in list(os.scandir(f"/proc/{pid}/fd")):
            with suppress(FileNotFoundError):
                link = os.readlink(entry.path)  # noqa: PTH115 - where it leads may be no path
                if link.startswith("socket:"):
                    self._look_at_socket(pid, int(entry.name), link, seen)
                    continue
                if link.startswith(_DOORS):
                    seen.forbidden.add(link)
                    continue
                status = os.stat(entry.path)  # noqa: PTH116 - as above
                identity = (status.st_dev, status.st_ino)
                if stat.S_ISBLK(status.st_mode) or link == "/dev/mem" or identity == self._shadow:
                    seen.forbidden.add(link)
                elif link.endswith(_SWITCHES) and _is_writable(pid, entry.name):
                    seen.forbidden.add(f"{link} for writing")
                elif stat.S_ISREG(status.st_mode) and "fill-" in link:
                    files[identity] = status.st_size
        seen.filled = max(seen.filled, sum(files.values()))

    def _look_at_socket(self, pid: int, number: int, link: str, seen: Seen) -> None:
        if (pid, link) in self._sockets:
            return
        try:
            process = os.pidfd_open(pid)
            try:
                handle = system_call("pidfd_getfd", process, number, 0)
            finally:
                os.close(process)
        except OSError as error:
            if Path(f"/proc/{pid}/fd/{number}").is_symlink():
                seen.blind = f"{link} of process {pid}: {error}"
            return
        self._sockets.add((pid, link))
        with socket.socket(fileno=handle) as found:
            if found.family not in _USUAL or (found.type == socket.SOCK_RAW and found.family != socket.AF_NETLINK):
                seen.forbidden.add(f"socket of family {int(found.family)} and kind {int(found.type)}")
            elif found.family in (socket.AF_INET, socket.AF_INET6):
                with suppress(OSError):  # not connected
                    seen.forbidden.add(f"socket to {found.getpeername()[0]}")


def _waiting(worktree: Path) -> list[Path]:
    """Marks of processes that wait to be looked at."""
    with suppress(OSError):
        found = [path for path in worktree.iterdir() if path.name.startswith(HOLDING)]
        return [path for path in found if not path.name.endswith(SEEN) and Path(f"{path}{SEEN}") not in found]
    return []


def _mark(scene: Path) -> bytes:
    return f'"scene": "{scene}"'.encode()


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names only


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _is_attack(line: bytes) -> bool:
    """Whether this is the attack itself and not whoever runs it, with the same words further on in the line."""
    words = line.split(b"\0")[:7]
    return b"-m" in words and words[words.index(b"-m") + 1].startswith(_PACKAGE) and b"python" in words[0]


def _belongs(pid: int, mark: bytes) -> bool:
    line = _command_line(pid)
    return mark in line and _is_attack(line)


def _fields(pid: int) -> list[str]:
    """What /proc/PID/stat says after the name."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped and waits to be continued."""
    return _fields(pid)[:1] == ["T"]


def _parent(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[1]) if fields else 0


def _threads(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[17]) if fields else 0


def _tracer(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/status").read_text().partition("TracerPid:")[2].split()[0])
    return 0


def _is_writable(pid: int, number: str) -> bool:
    text = Path(f"/proc/{pid}/fdinfo/{number}").read_text()
    return int(text.partition("flags:")[2].split()[0], 8) & os.O_ACCMODE != os.O_RDONLY


def _identity(path: str) -> tuple[int, int] | None:
    with suppress(OSError):
        status = Path(path).stat()
        return status.st_dev, status.st_ino
    return None


def _private_bytes(pid: int) -> int:
    """Its own share of memory; pages that forks have in common are counted once between them."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.partition("\nPss:")[2].split()[0]) * 1024
