"""Detect changes to what a command must leave unchanged: the repositories in its worktree and the caller's guards.

Guards are files and small folders that are compared before and after the command. The sandbox alone is not enough:
Landlock does not cover chmod, utime and xattr, and a kernel without seccomp notifications cannot report an attempt. So
everything that can change about a guarded path is compared: content, mode, owner, time, extended attributes.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Violation, Warned
from fairwitness.kit.text import visible_path
from fairwitness.sandbox import dotgit
from fairwitness.sandbox.checked_command import CheckedCommand

GUARDED_ENTRIES = 2_000
"""The most files and folders that can be guarded at once."""
GUARDED_BYTES = 64 << 20
"""The most bytes of their content that can be compared."""
_NAMED = 100
_PIECE = 1 << 20
_TIME = 5
"""Index of the modification time in a folder's mark."""

Mark = tuple[object, ...]


@dataclass
class Guarded:
    """The state of the guarded paths and everything below them; links are not followed."""

    marks: dict[str, Mark] = field(default_factory=dict)
    beyond: str | None = None
    """The first path beyond the limits, which was not examined."""


def look_at_guards(paths: Iterable[str], *, entries: int = GUARDED_ENTRIES, most: int = GUARDED_BYTES) -> Guarded:
    """Record the state of each path; a path that does not exist is recorded as such."""
    found = Guarded()
    front = sorted({os.path.normpath(path) for path in paths}, reverse=True)
    left = most
    while front:
        path = front.pop()
        if path in found.marks:
            continue
        if len(found.marks) >= entries:
            found.beyond = path
            break
        try:
            mark, size, names = _mark(path, left)
        except OSError as error:
            found.marks[path] = (error.errno,)
            continue
        left -= size
        if left < 0:
            found.beyond = path
            break
        found.marks[path] = mark
        front.extend(f"{path.rstrip('/')}/{name}" for name in names)
    return found


def guard_changes(before: Guarded, after: Guarded) -> tuple[Violation, ...]:
    """Return a violation for each changed, added or removed path, and for growth beyond the limits."""
    old, new = before.marks, after.marks
    looked_at = new.keys() if after.beyond is not None else old.keys() | new.keys()
    changed = {path for path in looked_at if old.get(path) != new.get(path)}
    # adding or removing a name also changes the time of its folder: only the name is reported
    parents = {os.path.dirname(path) for path in changed if _file(old.get(path)) != _file(new.get(path))}  # noqa: PTH120
    told = {path for path in changed if path not in parents or _timeless(old.get(path)) != _timeless(new.get(path))}
    if after.beyond is not None:
        told.add(after.beyond)
    return tuple(
        Violation(kind="guard", call="found", path=visible_path(path), blocked=False, source="guard")
        for path in sorted(told)[:_NAMED]
    )


def _mark(path: str, most: int) -> tuple[Mark, int, list[str]]:
    """Return everything about a path that can change, the bytes read for it, and the names in it if it is a folder."""
    status = os.lstat(path)
    head = (stat.S_IFMT(status.st_mode), status.st_ino, status.st_mode, status.st_uid, status.st_gid)
    if stat.S_ISLNK(status.st_mode):
        return (*head, status.st_mtime_ns, os.readlink(path)), 0, []  # noqa: PTH115 -- os functions throughout
    attributes = _attributes(path)
    if stat.S_ISDIR(status.st_mode):
        return (*head, status.st_mtime_ns, attributes), 0, sorted(os.listdir(path), reverse=True)  # noqa: PTH208
    if not stat.S_ISREG(status.st_mode):
        return (*head, status.st_rdev, attributes), 0, []
    digest, size = _content(path, most)
    return (*head, status.st_mtime_ns, status.st_size, digest, attributes), size, []


def _content(path: str, most: int) -> tuple[str, int]:
    """Return the hash of a file and the bytes read: at most one piece more than allowed."""
    digest, size = hashlib.sha256(), 0
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:  # an unreadable file still has its metadata compared
        return f"errno {error.errno}", 0
    try:
        while size <= most and (piece := os.read(handle, _PIECE)):
            digest.update(piece)
            size += len(piece)
    finally:
        os.close(handle)
    return digest.hexdigest(), size


def _attributes(path: str) -> tuple[tuple[str, bytes], ...]:
    """Return the extended attributes; none if the system or the file system has none."""
    if not hasattr(os, "listxattr"):
        return ()
    try:
        names = sorted(os.listxattr(path, follow_symlinks=False))
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EPERM, errno.EACCES):
            return ()
        raise
    return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)


def _file(mark: Mark | None) -> object:
    return mark[:2] if mark is not None else None


def _timeless(mark: Mark | None) -> Mark | None:
    return mark[:_TIME] + mark[_TIME + 1 :] if mark is not None else None


_UNSEEN = Warned(
    code="worktree-unseen",
    text=f"the worktree holds more than {dotgit.ENTRIES} files: a repository made far inside it might not be seen",
)


@dataclass(frozen=True)
class IntegrityChanges:
    """The violations found after a command."""

    repositories: tuple[Violation, ...] = ()
    guards: tuple[Violation, ...] = ()


class IntegrityWatch:
    """The state before a command, to be compared with the state after it."""

    def __init__(self, checked: CheckedCommand, tier: SandboxTier) -> None:
        confinement = checked.command.confinement
        self._worktree = checked.worktree
        self._paths = confinement.guards
        # a mount namespace fully protects a read-only worktree; the other tiers let some metadata changes through
        self._is_writable = confinement.writable or tier is not SandboxTier.NAMESPACES
        self._guarded = look_at_guards(self._paths)
        self._repositories = dotgit.look(self._worktree) if self._is_writable else None

    @property
    def problem(self) -> str | None:
        """Why the guards cannot be compared, or None."""
        if self._guarded.beyond is None:
            return None
        most = f"{GUARDED_ENTRIES} files or {GUARDED_BYTES >> 20} MiB"
        where = visible_path(self._guarded.beyond)
        return f"the guards hold more than {most} (seen at {where}), which is too much to compare"

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """Warnings about what the comparison may miss."""
        return (_UNSEEN,) if self._repositories is not None and not self._repositories.complete else ()

    def changed(self) -> IntegrityChanges:
        """Return what has changed; call it only when no process of the command is alive."""
        guarded = guard_changes(self._guarded, look_at_guards(self._paths)) if self._paths else ()
        if self._repositories is None:
            return IntegrityChanges(guards=guarded)
        now = dotgit.look(self._worktree)
        return IntegrityChanges(dotgit.changes(self._worktree, self._repositories, now), guarded)
