"""Which process is which, whether it lives, and locks on files that die with their holder."""

import asyncio
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from fairwitness.engine.base import EngineError

_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process, told apart from all that had or will have its number."""

    host: str
    pid: int
    started: str


def this_process() -> ProcessIdentity:
    """The process that asks."""
    return ProcessIdentity(_host(), os.getpid(), _started(os.getpid()))


def is_gone(process: ProcessIdentity) -> bool | None:
    """Whether a process has ended; None if it is on another machine and cannot be looked at."""
    if process.host != _host():
        return None
    return _started(process.pid) != process.started


def _host() -> str:
    """This machine since it was started, and the numbers by which processes are known here."""
    parts = [socket.gethostname()]
    for place in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        path = Path(place)
        try:
            parts.append(str(path.readlink()) if path.is_symlink() else path.read_text().strip())
        except OSError:
            parts.append("")
    return "/".join(parts)


def _started(pid: int) -> str:
    """When a process began, in ticks since the machine did; "gone" if it ended or only waits to be buried."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "gone" if Path("/proc/self/stat").exists() else _looked_up(pid)
    return "gone" if fields[0] in "ZX" else fields[19]


def _looked_up(pid: int) -> str:
    """Where the system keeps no such times, all that can be told is that there is a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        return "some time"
    return "some time"


class FileLock:
    """An advisory lock on a file of its own; it goes when its holder does, also by a crash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds it."""
        return self._handle is not None

    def try_acquire(self) -> bool:
        """Takes it if nobody has it; True if it is now, or was already, ours."""
        import fcntl  # here and not above: not every system has it

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
        """Waits for it."""
        give_up = time.monotonic() + patience_s
        while not self.try_acquire():
            if time.monotonic() > give_up:
                raise EngineError(
                    f"another process has held {self.path} for {patience_s:g} s",
                    next_step="wait for it, then try again",
                )
            await asyncio.sleep(_PAUSE_S)

    def release(self) -> None:
        """Lets it go; the file stays, since removing it would let two hold it at once."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
