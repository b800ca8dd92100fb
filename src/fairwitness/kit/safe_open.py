"""Open folders and files below a root that a person chose, along a path that may come from anywhere.

No part of the path may be a link or lead to another file system. On Linux a single openat2 call ensures that; elsewhere
the path is opened part by part. A root that is a `Path` may be a link, since a person chose it; a folder that an agent
could have replaced is a `HeldFolder`, which is opened once. Only a plain file is opened at its end: a link, a second
hard link, a pipe, a socket or a device is refused, and no call blocks on one. Errors of the operating system are turned
into this program's errors.
"""

import contextlib
import errno
import functools
import os
import re
import stat
import struct
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fairwitness.errors import DiskRefused, NotStored, StoreError, UnsafePath

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW
# O_NONBLOCK: opening a pipe without a writer must not block; fstat then tells what was opened.
CAREFUL = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
PLAIN = CAREFUL | os.O_NOFOLLOW
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp", re.DOTALL)
_CHUNK = 65_536
_CALLS = {"x86_64": {"openat2": 437, "renameat2": 316}, "aarch64": {"openat2": 437, "renameat2": 276}}
_RESOLVE = 0x01 | 0x02 | 0x04 | 0x08  # NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH
_NOREPLACE = 1
UNKNOWN_CALL = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.EAGAIN, errno.EOPNOTSUPP})
"""Errors of a kernel, a container's filter or a file system that does not support the newer call."""
_PLANTED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EXDEV, errno.ENXIO, errno.EISDIR})
_NEXT_STEP = {
    errno.ENOSPC: "free some disk space, then resume",
    errno.EDQUOT: "free some of the disk quota, then resume",
    errno.EFBIG: "raise the file size limit, then resume",
    errno.EACCES: "give this user the right to the folder, then resume",
    errno.EPERM: "give this user the right to the folder, then resume",
    errno.EROFS: "mount the file system writable, then resume",
    errno.EIO: "check the disk, then resume",
    errno.EMFILE: "raise the limit of open files, then resume",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ETIMEDOUT: "find the process that holds the lock, then resume",
}


def path_parts(relative: str) -> list[str]:
    """Return the parts of a relative path; raise `UnsafePath` if one leads upwards or is not a name."""
    parts = relative.split("/")
    try:
        os.fsencode(relative)
    except UnicodeEncodeError:
        parts = [""]
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise UnsafePath(
            f"{relative!r} is not a path inside a folder", next_step="name it without '..' and empty parts"
        )
    return parts


def errno_words(error: OSError) -> str:
    """Return an error as `ENOSPC (No space left on device)`."""
    return f"{errno.errorcode.get(error.errno or 0, str(error.errno))} ({error.strerror})"


def refusal(action: str, where: Path, error: OSError) -> StoreError:
    """Return an error of the operating system as one of this program's errors."""
    if error.errno == errno.ENOENT:
        return NotStored(f"there is no {where}", next_step="check the name, or run the step that writes it")
    if error.errno in _PLANTED:
        return UnsafePath(
            f"cannot {action} {where}: a part of it is a link, on another file system or no plain file",
            next_step="find out who put it there, remove it, then resume",
        )
    next_step = _NEXT_STEP.get(error.errno or 0, "see what the operating system wants, then resume")
    return DiskRefused(f"cannot {action} {where}: {errno_words(error)}", next_step=next_step)


class HeldFolder:
    """A folder that is opened once, without following a link, and used through its descriptor from then on.

    If its path is replaced by a link or by another folder, nothing behind the new path is read or written, and `check`
    raises `UnsafePath`. It is closed by `close`, or when nothing refers to it any more.
    """

    __slots__ = ("__weakref__", "_close", "handle", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.handle = os.open(path, _FOLDER)
        except OSError as error:
            raise refusal("open", path, error) from error
        self._close = weakref.finalize(self, os.close, self.handle)

    def __enter__(self) -> "HeldFolder":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; closing again does nothing."""
        self._close()

    def check(self) -> None:
        """Raise `UnsafePath` if the path no longer leads to the folder."""
        try:
            is_same = os.path.samestat(self.path.lstat(), os.fstat(self.handle))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise UnsafePath(
                f"{self.path} was replaced or removed while it was in use; nothing is read or written there",
                next_step="find out what replaced it, then resume",
            )

    @property
    def through(self) -> Path:
        """A path that leads to the folder whatever becomes of its name: in this process, and as the folder in which a
        process is started."""
        place = Path(f"/proc/self/fd/{self.handle}")
        return place if place.exists() else self.path


Root: TypeAlias = Path | HeldFolder
"""A folder that a person chose, or one that an agent could have replaced."""


class OpenFolder:
    """An open folder and a name in it (none if `whole`); an OSError inside the context becomes a typed error.

    The folder is opened once and all work is done on the open folder, so later changes to its path have no effect.
    """

    __slots__ = ("_action", "_create", "_held", "_parts", "_portable", "folder", "is_private", "name", "path", "root")

    def __init__(
        self,
        action: str,
        root: Root,
        relative: str,
        *,
        create: bool = False,
        portable: bool = False,
        whole: bool = False,
        private: bool = False,
    ) -> None:
        self._held = root if isinstance(root, HeldFolder) else None
        self.root = root.path if isinstance(root, HeldFolder) else root
        self.path = relative
        self.is_private = private
        self._action, self._create, self._portable = action, create, portable
        self._parts = [] if whole and not relative else path_parts(relative)
        self.name = "" if whole else self._parts.pop()

    def __enter__(self) -> "OpenFolder":
        try:
            base = _open_root(self.root, create=self._create) if self._held is None else _open_held(self._held)
            self.folder = _open_folder(
                base, self._parts, create=self._create, portable=self._portable, private=self.is_private
            )
        except OSError as error:
            raise refusal(self._action, self.root / self.path, error) from error
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        os.close(self.folder)
        if isinstance(error, OSError):
            raise refusal(self._action, self.root / self.path, error) from error
        if self._held is not None and error is None:
            self._held.check()

    def status(self) -> os.stat_result:
        """Return the status of the name, without following links."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def is_taken(self) -> bool:
        """Return True if anything exists under the name."""
        try:
            self.status()
        except FileNotFoundError:
            return False
        return True

    def read(self, limit: int) -> bytes:
        """Return the bytes of the plain file under the name."""
        handle = os.open(self.name, os.O_RDONLY | PLAIN, dir_fd=self.folder)
        try:
            self.refuse_unplain(os.fstat(handle))
            return read_handle(handle, self.root / self.path, limit)
        finally:
            os.close(handle)

    def refuse_unplain(self, status: os.stat_result) -> None:
        """Raise unless the status is that of a plain file with one name, on the folder's own file system."""
        if not stat.S_ISREG(status.st_mode) or status.st_dev != os.fstat(self.folder).st_dev:
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        if status.st_nlink > 1 and self._is_linked_elsewhere(status.st_ino):
            raise UnsafePath(
                f"{self.root / self.path} is a second name of another file (a hard link)",
                next_step="find out who linked it, replace it by a copy, then resume",
            )

    def _is_linked_elsewhere(self, inode: int) -> bool:
        """Return False if the file's other names are temporary ones of this program.

        A new file that is published by link and unlink has two names for a moment, and for longer if its writer died
        in between.
        """
        with os.scandir(self.folder) as found:
            ours = [twin for twin in found if twin.name.startswith(f".{self.name}.") and is_temporary(twin.name)]
        twins = sum(twin.inode() == inode for twin in ours)
        fresh = self.status()
        return fresh.st_ino != inode or fresh.st_nlink not in (1, 1 + twins)


def _open_root(root: Path, *, create: bool) -> int:
    try:
        return os.open(root, _ROOT)
    except FileNotFoundError:
        if not create:
            raise
        _make_root(root)
        return os.open(root, _ROOT)


def _open_held(held: HeldFolder) -> int:
    held.check()
    return os.dup(held.handle)


def _open_folder(base: int, parts: Sequence[str], *, create: bool, portable: bool, private: bool) -> int:
    """Open a folder below an open one, which is closed unless it is the folder itself."""
    if not parts:
        return base
    try:
        return _walk(base, parts) if portable else _open_beneath(base, parts)
    except FileNotFoundError:
        if not create:
            raise
        return _walk(base, parts, create=True, private=private)
    finally:
        os.close(base)


def _make_root(root: Path) -> None:
    if not root.is_dir():
        _make_root(root.parent)
        root.mkdir(exist_ok=True)
        above = os.open(root.parent, _ROOT)
        try:
            os.fsync(above)
        finally:
            os.close(above)


def _open_beneath(base: int, parts: Sequence[str]) -> int:
    how = struct.pack("QQQ", _FOLDER, 0, _RESOLVE)
    try:
        return _system_call("openat2", base, os.fsencode("/".join(parts)), how, len(how))
    except OSError as error:
        if error.errno not in UNKNOWN_CALL:
            raise
        return _walk(base, parts)


def _walk(base: int, parts: Sequence[str], *, create: bool = False, private: bool = False) -> int:
    """Open a path part by part, as `_open_beneath` does in one call; optionally create missing folders."""
    device = os.fstat(base).st_dev
    here = os.dup(base)
    for part in parts:
        try:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o700 if private else 0o777, dir_fd=here)
                    os.fsync(here)
            there = os.open(part, _FOLDER, dir_fd=here)
        finally:
            os.close(here)
        here = there
        if os.fstat(here).st_dev != device:
            os.close(here)
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    return here


def is_temporary(name: str) -> bool:
    """Return True for the name of a temporary file, which readers and listings skip."""
    return _TEMPORARY.fullmatch(name) is not None


def temporary_name(name: str) -> str:
    """Return a unique temporary name for writing a file."""
    return f".{name}.{os.urandom(8).hex()}.tmp"


def read_handle(handle: int, where: Path, limit: int) -> bytes:
    """Return the bytes of an open plain file; raise if it is, or grows, larger than the limit."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    pieces, size = [], status.st_size
    if size <= limit:
        size = 0
        while size <= limit and (piece := os.read(handle, max(status.st_size + 1, _CHUNK))):
            pieces.append(piece)
            size += len(piece)
    if size > limit:
        raise UnsafePath(f"{where} is larger than the {limit} bytes allowed", next_step="look at what wrote it")
    return b"".join(pieces)


def rename_new(here: int, name: str, there: int, target: str) -> None:
    """Rename to a name that must be free; raise an errno of `UNKNOWN_CALL` if the system does not support that."""
    _system_call("renameat2", here, os.fsencode(name), there, os.fsencode(target), _NOREPLACE)


@functools.cache
def _library() -> tuple[Any, dict[str, int]]:
    """Return the C library and the numbers of system calls that Python lacks; empty if they are unknown here."""
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return None, {}
    try:
        import ctypes  # imported here because only Linux needs it
    except ImportError:  # some builds of Python lack it
        return None, {}
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library, _CALLS.get(os.uname().machine, {})


def _system_call(name: str, *arguments: int | bytes) -> int:
    library, numbers = _library()
    if name not in numbers:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    import ctypes

    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    while (result := library.syscall(ctypes.c_long(numbers[name]), *words)) < 0:
        code = ctypes.get_errno()
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))
    return int(result)
