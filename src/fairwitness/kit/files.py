"""Read files without trusting them, and write them atomically: a reader sees the old or the new content, not a mixture.

Every function takes a root that a person chose and a path inside it that may come from anywhere. Only plain files are
used: a link, a second hard link, a pipe, a socket or a device is refused, and no call blocks on one. New files have
mode 0644 minus the umask, because documents of a repository are committed and read by other tools. Private files have
mode 0600, and folders that are created for them 0700.
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairwitness.errors import AlreadyWritten, DiskRefused, NotStored, UnsafePath, UsageError
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.safe_open import (
    CAREFUL,
    PLAIN,
    UNKNOWN_CALL,
    OpenFolder,
    Root,
    errno_words,
    is_temporary,
    read_handle,
    refusal,
    rename_new,
    temporary_name,
)

__all__ = [
    "Entry",
    "append_line",
    "create_file",
    "is_file",
    "is_temporary",
    "list_folder",
    "move",
    "read_given",
    "read_plain",
    "replace_file",
    "revise_file",
    "sweep",
]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE, _PRIVATE = 0o644, 0o600
PATIENCE_S = 30.0
"""How long a writer waits for a lock; this program never holds one longer."""
_CHUNK = 65_536
_BEGUN_S = time.time()
"""The start time of this process, or a little later; none of its own files is older."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder."""

    name: str
    kind: Literal["file", "folder", "other"]


def read_plain(root: Root, relative: str, *, limit: int, portable: bool = False) -> bytes:
    """Return the bytes of a plain file inside the root; raise if there are more than `limit`."""
    with OpenFolder("read", root, relative, portable=portable) as place:
        return place.read(limit)


def read_given(path: Path, *, limit: int) -> bytes:
    """Return the bytes of a file that a person named: links are followed, everything else is refused as above."""
    if "\0" in str(path):
        raise UnsafePath(f"{str(path)!r} is not the name of a file", next_step="name it without a NUL")
    try:
        handle = os.open(path, os.O_RDONLY | CAREFUL)
        try:
            return read_handle(handle, path, limit)
        finally:
            os.close(handle)
    except OSError as error:
        raise refusal("read", path, error) from error


def is_file(root: Root, relative: str) -> bool:
    """Return True if a plain file is at the path, False if nothing or a folder is; raise for a link or a pipe."""
    try:
        with OpenFolder("look at", root, relative) as place:
            status = place.status()
            if stat.S_ISDIR(status.st_mode):
                return False
            place.refuse_unplain(status)
            return True
    except NotStored:
        return False


def list_folder(root: Root, relative: str) -> tuple[Entry, ...]:
    """Return the entries of a folder ("" is the root), sorted, without temporary files; empty if it does not exist."""
    try:
        with OpenFolder("list", root, relative, whole=True) as place, os.scandir(place.folder) as found:
            entries = [Entry(entry.name, _kind(entry)) for entry in found if not is_temporary(entry.name)]
    except NotStored:
        return ()
    return tuple(sorted(entries, key=lambda entry: entry.name))


def replace_file(root: Root, relative: str, content: bytes, *, private: bool = False) -> None:
    """Write a file completely or not at all, replacing an existing one atomically."""
    with OpenFolder("write", root, relative, create=True, private=private) as place:
        with contextlib.suppress(FileNotFoundError):
            place.refuse_unplain(place.status())
        _publish(place, content)


def create_file(root: Root, relative: str, content: bytes, *, portable: bool = False, private: bool = False) -> bool:
    """Write a file once; return False if it already has the same bytes, as after a repeated step."""
    with OpenFolder("write", root, relative, create=True, portable=portable, private=private) as place:
        if place.is_taken():
            return _adopt(place, content)
        try:
            with _temporary(place, content) as temporary:
                _publish_new(place, temporary, portable=portable)
        except FileExistsError:  # another process was faster
            return _adopt(place, content)
        killpoint("store.write.renamed")
        _sync_folder(place)
        return True


def revise_file(
    root: Root,
    relative: str,
    revise: Callable[[bytes | None], bytes],
    *,
    limit: int,
    patience_s: float = PATIENCE_S,
    private: bool = False,
) -> bytes:
    """Replace a file with the result of `revise` on its current bytes; revisions in one folder take turns."""
    with OpenFolder("write", root, relative, create=True, private=private) as place:
        _lock(place.folder, patience_s)
        old = place.read(limit) if place.is_taken() else None
        new = revise(old)
        if new != old:
            _publish(place, new)
        else:
            _sync_folder(place)  # its writer may have died before syncing
        return new


def append_line(
    root: Root,
    relative: str,
    line: bytes | Callable[[bytes], bytes],
    *,
    patience_s: float = PATIENCE_S,
    private: bool = False,
) -> int:
    """Append a line and a newline; return how many bytes of an incomplete last line were dropped first.

    `line` may be a function of the last complete line, which is empty in a new file. Processes take turns by a lock on
    the file, so that a line being written is never mistaken for an incomplete one. Readers take no lock: they skip a
    last line without a newline.
    """
    if isinstance(line, bytes):
        _refuse_newline(relative, line)
    with OpenFolder("append to", root, relative, create=True, private=private) as place:
        while True:
            how = os.O_RDWR | os.O_APPEND | os.O_CREAT | PLAIN
            handle = os.open(place.name, how, _mode_in(place), dir_fd=place.folder)
            try:
                place.refuse_unplain(os.fstat(handle))
                killpoint("store.append.opened")
                _lock(handle, patience_s)
                status = os.fstat(handle)
                if status.st_nlink:  # otherwise the file was replaced during the wait, so open the new one
                    return _append(place, handle, status.st_size, line)
            finally:
                os.close(handle)


def move(root: Root, source: str, target: str) -> bool:
    """Move a file or folder to a free name; return False if only the target exists, as after a repeated step."""
    with OpenFolder("move to", root, target, create=True) as there:
        try:
            with OpenFolder("move", root, source) as here:
                status = here.status()
                if not stat.S_ISDIR(status.st_mode):
                    here.refuse_unplain(status)
                _rename_free(here, there)
                _sync_folder(there)
                _sync_folder(here)
        except NotStored:
            if there.is_taken():
                return False
            raise
        return True


def sweep(root: Root, relative: str, *, older_than_s: float | None = None) -> tuple[str, ...]:
    """Remove the temporary files that dead writers left in a folder; return their names.

    Younger files are kept, and those that a living writer has locked. Without `older_than_s`, every other temporary
    file older than this process is removed: a process that resumes a killed one starts after it.
    """
    removed = []
    latest = _BEGUN_S if older_than_s is None else time.time() - older_than_s
    try:
        with OpenFolder("sweep", root, relative, whole=True) as place, os.scandir(place.folder) as found:
            for entry in found:
                if is_temporary(entry.name) and entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):  # its writer is alive and has just renamed it
                        old = entry.stat(follow_symlinks=False).st_mtime <= latest
                        if old and _is_abandoned(place, entry.name):
                            os.unlink(entry.name, dir_fd=place.folder)
                            removed.append(entry.name)
    except NotStored:
        return ()
    return tuple(sorted(removed))


def _is_abandoned(place: OpenFolder, name: str) -> bool:
    handle = os.open(name, os.O_RDONLY | PLAIN, dir_fd=place.folder)
    try:
        return _mark_as_used(handle)
    finally:
        os.close(handle)


def _kind(entry: "os.DirEntry[str]") -> Literal["file", "folder", "other"]:
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _mode_in(place: OpenFolder) -> int:
    return _PRIVATE if place.is_private else _MODE


def _write_all(handle: int, content: bytes) -> None:
    written = os.write(handle, content)
    while written < len(content):
        written += os.write(handle, memoryview(content)[written:])


@contextlib.contextmanager
def _temporary(place: OpenFolder, content: bytes) -> Iterator[str]:
    """Write the content to disk under a unique temporary name and yield that name, to be renamed in the block.

    The file is locked until then: `sweep` of another process leaves it alone for as long as this one lives.
    """
    temporary = temporary_name(place.name)
    handle = os.open(temporary, _NEW, _mode_in(place), dir_fd=place.folder)
    try:
        _mark_as_used(handle)
        killpoint("store.write.opened")
        _write_all(handle, content)
        killpoint("store.write.written")
        os.fsync(handle)
        killpoint("store.write.synced")
        yield temporary
    except BaseException:
        _forget(place, temporary)
        raise
    finally:
        os.close(handle)


def _mark_as_used(handle: int) -> bool:
    """Lock a temporary file; return False if a living process has. Without locks, age alone decides about a file."""
    import fcntl  # imported here because not every system has it

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _publish(place: OpenFolder, content: bytes) -> None:
    with _temporary(place, content) as temporary:
        os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    killpoint("store.write.renamed")
    _sync_folder(place)


def _publish_new(place: OpenFolder, temporary: str, *, portable: bool) -> None:
    if not portable:
        try:
            return rename_new(place.folder, temporary, place.folder, place.name)
        except OSError as error:
            if error.errno not in UNKNOWN_CALL:
                raise
    os.link(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder, follow_symlinks=False)
    killpoint("store.create.linked")
    return os.unlink(temporary, dir_fd=place.folder)


def _rename_free(here: OpenFolder, there: OpenFolder) -> None:
    taken = AlreadyWritten(f"{there.path} already exists, so {here.path} was not moved", next_step="compare the two")
    try:
        rename_new(here.folder, here.name, there.folder, there.name)
    except FileExistsError:
        raise taken from None
    except OSError as error:
        if error.errno not in UNKNOWN_CALL:
            raise
        if there.is_taken():  # without the newer call, a name taken between check and rename is not detected
            raise taken from None
        os.rename(here.name, there.name, src_dir_fd=here.folder, dst_dir_fd=there.folder)


def _forget(place: OpenFolder, temporary: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(temporary, dir_fd=place.folder)


def _sync_folder(place: OpenFolder) -> None:
    try:
        os.fsync(place.folder)
    except OSError as error:
        raise DiskRefused(
            f"{place.path} is written, but its folder could not be synced: {errno_words(error)}",
            next_step="check the disk: a power cut may bring back what stood there before",
        ) from error


def _adopt(place: OpenFolder, content: bytes) -> bool:
    """Accept an existing file with the same content; sync its folder, since its writer may have died before that."""
    status = place.status()
    place.refuse_unplain(status)
    if status.st_size != len(content) or place.read(len(content)) != content:
        raise AlreadyWritten(
            f"{place.path} is written once and already has other content", next_step="write under a new name"
        )
    _sync_folder(place)
    return False


def _lock(handle: int, patience_s: float) -> None:
    """Wait for an exclusive lock; it is released when the handle is closed, also by a crash."""
    import fcntl  # imported here because not every system has it

    give_up = time.monotonic() + patience_s
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise OSError(errno.ETIMEDOUT, "another process holds the lock") from None
            time.sleep(0.001)


def _refuse_newline(relative: str, line: bytes) -> None:
    if b"\n" in line:
        raise UsageError(f"a line for {relative} holds a newline", next_step="encode it as one line")


def _append(place: OpenFolder, handle: int, size: int, line: bytes | Callable[[bytes], bytes]) -> int:
    whole = _whole_lines(handle, size)
    if not isinstance(line, bytes):
        before = _whole_lines(handle, whole - 1) if whole else 0
        line = line(os.pread(handle, whole - 1 - before, before) if whole else b"")
        _refuse_newline(place.name, line)
    if whole != size:
        os.ftruncate(handle, whole)
    try:
        _write_all(handle, line + b"\n")
        killpoint("store.append.written")
        os.fsync(handle)
        killpoint("store.append.synced")
    except OSError:
        with contextlib.suppress(OSError):  # if this fails too, the next append drops the incomplete line
            os.ftruncate(handle, whole)
        raise
    if size == 0:
        _sync_folder(place)
    return size - whole


def _whole_lines(handle: int, size: int) -> int:
    """Return how many bytes of the file are complete lines."""
    if size and os.pread(handle, 1, size - 1) == b"\n":
        return size
    end = size
    while end:
        start = max(0, end - _CHUNK)
        newline = os.pread(handle, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
