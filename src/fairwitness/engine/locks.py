"""Identifies processes, checks whether they live, and locks files with locks that end with their holder."""

import os
import select
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from fairwitness.engine.base import EngineError

_PAUSE_S = 0.01
_ENDED_S = 5.0


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process, distinguished from all others that had or will have its process id."""

    host: str
    pid: int
    started: str


def this_process() -> ProcessIdentity:
    """Return the identity of this process."""
    return ProcessIdentity(_host(), os.getpid(), _started(os.getpid()))


def is_gone(process: ProcessIdentity) -> bool | None:
    """Return whether a process has ended; None if it is on another machine and cannot be checked."""
    if process.host != _host():
        return None
    return _started(process.pid) != process.started


def end_stopped(process: ProcessIdentity) -> bool:
    """End a process of this machine that is stopped, as by SIGSTOP; return whether it is gone now.

    A stopped process holds its locks and its agents may still write, so its work cannot be continued beside it. A
    process that runs, is traced by a debugger, or belongs to another user is left alone.
    """
    if is_gone(process) is not False or _state(process.pid) != "T":
        return False
    try:
        handle = os.pidfd_open(process.pid)  # of this process and no later one with its number
    except (OSError, AttributeError):
        return False
    try:
        if is_gone(process) or _state(process.pid) != "T":
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return bool(select.select([handle], [], [], _ENDED_S)[0])
    except OSError:
        return False
    finally:
        os.close(handle)


def _state(pid: int) -> str:
    """Return the state of a process as one letter: T if it is stopped; empty if it is not known."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _host() -> str:
    """Return an id of this machine, its boot and its process id namespace."""
    parts = [socket.gethostname()]
    for place in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        path = Path(place)
        try:
            parts.append(str(path.readlink()) if path.is_symlink() else path.read_text().strip())
        except OSError:
            parts.append("")
    return "/".join(parts)


def _started(pid: int) -> str:
    """Return when a process started, in ticks since boot; "gone" if it has ended or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "gone" if Path("/proc/self/stat").exists() else _looked_up(pid)
    return "gone" if fields[0] in "ZX" else fields[19]


def _looked_up(pid: int) -> str:
    """Return whether the process exists, for systems that do not tell when it started."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        return "some time"
    return "some time"


class FileLock:
    """An advisory lock on a separate file; it ends with its holder, also in a crash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    @property
    def is_held(self) -> bool:
        """Return whether this object holds the lock."""
        return self._handle is not None

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether this object holds it now."""
        import fcntl  # imported here because not every system has it

        if self._handle is not None:
            return True
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return True

    async def acquire(self, patience_s: float) -> None:
        """Wait for the lock; raise `EngineError` when the patience ends."""
        give_up = time.monotonic() + patience_s
        while not self.try_acquire():
            if time.monotonic() > give_up:
                raise EngineError(
                    f"another process has held {self.path} for {patience_s:g} s",
                    next_step="wait for it, then try again",
                )
            import asyncio  # imported late: `fairwitness status` asks for processes and needs no event loop

            await asyncio.sleep(_PAUSE_S)

    def release(self) -> None:
        """Release the lock; the file stays, since removing it would allow two holders at once."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
