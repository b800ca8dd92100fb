"""Whether the disks of a run can be written, how long a run waits for them, and files whose space is taken in advance.

A full disk and a file system that has become read-only are conditions of the machine that pass. `DiskWatch` notices
them and says so in one sentence, `ReservedFile` makes sure that what must not be lost can be written nevertheless.
"""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fairwitness.errors import is_disk_fault, is_machine_fault
from fairwitness.kit.safe_open import PLAIN, OpenFolder, errno_words, temporary_name

NEEDED = 32 << 20
"""The free bytes below which a disk counts as full: databases, worktrees and checks of the next steps need some."""
PATIENCE_S = 15 * 60.0
"""How long a run waits for a full disk before it is interrupted."""
READ_ONLY_S = 10.0
"""How long it waits for a read-only file system: this seldom passes by itself."""
_INODES = 64
_LOOK_S = 0.25
_FRESH_S = 0.1
_UNEXPLAINED = 3
_MB = 1 << 20


class DiskWatch:
    """The disks that a process writes to, and its wait for them. It is thread-safe."""

    def __init__(self, places: Sequence[Path], *, needed: int = NEEDED, limit_s: float = PATIENCE_S) -> None:
        """`places` are existing folders; in the first one, a file is written as a test after a disk refused a write."""
        self._places = tuple(places)
        self._needed, self._limit_s = needed, limit_s
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._looked = -_FRESH_S
        self._trouble: str | None = None
        self._since: float | None = None
        self._is_read_only = self._is_suspect = False

    def trouble(self) -> str | None:
        """Return one sentence about why nothing can be written now, or None."""
        with self._guard:
            now = time.monotonic()
            if now - self._looked >= _FRESH_S:
                self._looked, self._trouble = now, self._look()
                self._since = None if self._trouble is None else self._since or now
            return self._trouble

    @property
    def is_over(self) -> bool:
        """Whether the wait has lasted too long, or was ended."""
        since = self._since
        limit_s = min(READ_ONLY_S, self._limit_s) if self._is_read_only else self._limit_s
        return self._ended.is_set() or (since is not None and time.monotonic() - since > limit_s)

    def end(self) -> None:
        """Let no thread wait any longer: this process stops."""
        self._ended.set()

    def excuses(self, error: BaseException, times: int = 0) -> bool:
        """Return whether work that raised this error should be repeated after `wait`.

        While a disk is in trouble every error may come of it: programs have many words for a full disk. `times` counts
        the repetitions for which no disk was to blame when it was looked at; their number is limited.
        """
        with self._guard:
            self._is_suspect, self._looked = self._is_suspect or is_machine_fault(error), -_FRESH_S
        return self.trouble() is not None or (is_disk_fault(error) and times < _UNEXPLAINED)

    async def wait(self, go_on: Callable[[], None] | None = None) -> None:
        """Wait until the disks can be written; `go_on` raises if the caller should stop waiting."""
        while self.trouble() is not None:
            if go_on is not None:
                go_on()
            await asyncio.sleep(_LOOK_S)

    def wait_in_thread(self) -> None:
        """Wait until the disks can be written, or until the wait is ended."""
        while self.trouble() is not None and not self._ended.wait(_LOOK_S):
            pass

    def _look(self) -> str | None:
        self._is_read_only = False
        seen: set[int] = set()
        for place in self._places:
            try:
                status = os.statvfs(place)
            except OSError as error:
                return f"{place} cannot be reached: {errno_words(error)}"
            if status.f_fsid in seen and status.f_fsid:
                continue
            seen.add(status.f_fsid)
            if status.f_flag & os.ST_RDONLY:
                self._is_read_only = True
                return f"the file system of {place} is read-only (EROFS)"
            free = status.f_bavail * status.f_frsize
            if free < self._needed:
                return f"the disk of {place} is full (ENOSPC): less than {self._needed // _MB} MB are free"
            if status.f_files and status.f_favail < _INODES:
                return f"the disk of {place} is full (ENOSPC): no more files can be created"
        return self._try_to_write() if self._is_suspect else None

    def _try_to_write(self) -> str | None:
        """Write a file, since free space and flags do not tell everything: a quota, or a file system after an error."""
        place = self._places[0] / temporary_name("probe")
        try:
            try:
                with open(place, "xb", buffering=0) as probe:
                    probe.write(bytes(4096))
                    os.fsync(probe.fileno())
            finally:
                with contextlib.suppress(OSError):
                    place.unlink(missing_ok=True)
        except OSError as error:
            self._is_read_only = error.errno == errno.EROFS
            words = "is read-only (EROFS)" if self._is_read_only else f"refuses to write: {errno_words(error)}"
            return f"the file system of {self._places[0]} {words}"
        self._is_suspect = False
        return None


_DIGEST = 64
_SIZE = 16


class ReservedFile:
    """A private file whose space is taken before it is needed. Parts that are added to it can be read after a crash.

    The process that opened it holds a lock on it until it closes it or ends.
    """

    def __init__(self, root: Path, relative: str, handle: int, parts: list[bytes], end: int) -> None:
        self._root, self._relative, self._handle = root, relative, handle
        self.parts = parts
        """The complete parts that it holds."""
        self._end = end

    @classmethod
    def open(cls, root: Path, relative: str, *, size: int = 0, limit: int = 1 << 30) -> "ReservedFile | None":
        """Open or create a file with at least this space; return None if another process holds it.

        Raise `DiskRefused` if there is no room.
        """
        with OpenFolder("reserve", root, relative, create=True) as place:
            handle = os.open(place.name, os.O_RDWR | os.O_CREAT | PLAIN, 0o600, dir_fd=place.folder)
            try:
                place.refuse_unplain(os.fstat(handle))
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(handle)
                    return None
            except BaseException:
                os.close(handle)
                raise
            parts: list[bytes] = []
            end = 0
            try:
                parts, end = _parts(handle, limit)
                _allocate(handle, size)
            except BaseException:
                with contextlib.suppress(OSError):
                    if parts:
                        os.ftruncate(handle, end)
                    else:
                        os.unlink(place.name, dir_fd=place.folder)
                os.close(handle)
                raise
        return cls(root, relative, handle, parts, end)

    def add(self, part: bytes) -> None:
        """Write a part durably behind the others; it needs no new space as long as the reserve is large enough."""
        framed = hashlib.sha256(part).hexdigest().encode() + b"%16d" % len(part) + part
        with OpenFolder("write", self._root, self._relative):  # turns an OSError into a typed error
            written = 0
            while written < len(framed):
                written += os.pwrite(self._handle, memoryview(framed)[written:], self._end + written)
            os.fsync(self._handle)
        self._end += len(framed)
        self.parts.append(part)

    def clear(self, size: int) -> None:
        """Remove all parts, and take at least this space again."""
        with OpenFolder("reserve", self._root, self._relative):
            os.ftruncate(self._handle, 0)
            _allocate(self._handle, size)
        self.parts, self._end = [], 0

    def close(self) -> None:
        """Close the file and keep it if it holds a part; the space that is left is given back."""
        if self._handle >= 0:
            if not self.parts:
                return self.remove()
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._end)
            os.close(self._handle)
            self._handle = -1
        return None

    def remove(self) -> None:
        """Remove the file."""
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                (self._root / self._relative).unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1


def _allocate(handle: int, size: int) -> None:
    """Take the space up to a size. It is looked at first: a call that fails may have filled the disk before it did."""
    missing = size - os.fstat(handle).st_size
    if missing > 0:
        free = os.fstatvfs(handle)
        if missing > free.f_bavail * free.f_frsize:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.posix_fallocate(handle, 0, size)


def _parts(handle: int, limit: int) -> tuple[list[bytes], int]:
    """Return the complete parts of a file, and where the last one ends."""
    found: list[bytes] = []
    end = 0
    while True:
        head = os.pread(handle, _DIGEST + _SIZE, end)
        size = head[_DIGEST:].strip()
        if len(head) < _DIGEST + _SIZE or not size.isdigit() or int(size) > limit:
            return found, end
        part = bytearray()
        while len(part) < int(size):
            piece = os.pread(handle, int(size) - len(part), end + len(head) + len(part))
            if not piece:
                return found, end
            part += piece
        if hashlib.sha256(part).hexdigest().encode() != head[:_DIGEST]:
            return found, end
        found.append(bytes(part))
        end += len(head) + len(part)
