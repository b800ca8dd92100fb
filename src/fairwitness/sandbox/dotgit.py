"""Detect changes to the git repositories in a worktree, and new repositories.

Files that can make git run something (settings, hooks, pointers) are examined first, so that no number of other files
can exhaust the limit before them. A worktree that has grown too large to examine, or a folder that became unreadable,
counts as a change: what cannot be examined cannot be trusted.
"""

import contextlib
import hashlib
import os
import stat
from dataclasses import dataclass

from fairwitness.contracts.common.sandbox import Violation
from fairwitness.kit.text import visible_path

ENTRIES = 200_000
"""The most entries of a worktree that are examined, including those of nested repositories."""
FILES = 5_000
"""The most entries of the worktree's own repository that are examined; a nested one gets a fifth of it."""
_NAMED = 100
_POINTER_BYTES = 65_536
_RUNS = frozenset({"hooks", "info", "HEAD", "commondir", "gitdir"})
_BULK = frozenset({"objects", "refs", "logs", "lfs"})

Mark = tuple[str, ...]


@dataclass(frozen=True)
class DotGit:
    """The state of every `.git` in a worktree, at the top and below."""

    top: Mark
    nested: dict[str, Mark]
    """By path; includes unreadable folders, since they may hold a repository."""
    complete: bool
    """False if the worktree is too large to be examined completely."""


def look(worktree: str, *, entries: int = ENTRIES, files: int = FILES) -> DotGit:
    """Record the state of every `.git` in a worktree, without following links."""
    top = f"{worktree}/.git"
    nested: dict[str, Mark] = {}
    left = entries
    front = [worktree]
    while front and left > 0:
        folder = front.pop()
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    left -= 1
                    if left <= 0:
                        break
                    if entry.name == ".git":
                        if entry.path != top:
                            nested[entry.path], seen = _mark(entry.path, files // 5)
                            left -= seen
                    elif entry.is_dir(follow_symlinks=False):
                        front.append(entry.path)
        except OSError:
            nested[folder] = _shut(folder)
    nested = {path: mark for path, mark in nested.items() if mark}
    return DotGit(_mark(top, files)[0], nested, complete=left > 0)


def changes(worktree: str, before: DotGit, after: DotGit) -> tuple[Violation, ...]:
    """Return a violation for each difference; a nested repository that was removed is harmless and not reported."""
    found = []
    if before.top != after.top:
        found.append(f"{worktree}/.git")
    if before.complete and not after.complete:
        found.append(worktree)
    found += sorted(path for path, mark in after.nested.items() if before.nested.get(path) != mark)
    return tuple(
        Violation(kind="git-dir", call="found", path=visible_path(path), blocked=False, source="guard")
        for path in found[:_NAMED]
    )


def _mark(path: str, most: int) -> tuple[Mark, int]:
    """Return what identifies the state of a `.git`, and the number of entries examined for it."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return ("link", os.readlink(path)), 1  # noqa: PTH115 -- os functions throughout, as with scandir
        if stat.S_ISREG(status.st_mode):
            return ("file", str(status.st_ino), _digest(path)), 1
        if not stat.S_ISDIR(status.st_mode):
            return ("other", str(status.st_ino), str(status.st_mode)), 1
    except OSError:
        return _shut(path), 1
    lines = _lines(path, most)
    return ("folder", str(status.st_ino), hashlib.sha256(b"\0".join(sorted(lines))).hexdigest()), len(lines)


def _shut(path: str) -> Mark:
    """Return what identifies an unreadable path; empty if it does not exist."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return ()
    except OSError as error:
        return ("shut", str(error.errno))
    return ("shut", str(status.st_ino), str(status.st_mode), str(status.st_ctime_ns))


def _digest(path: str) -> str:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return hashlib.sha256(os.read(handle, _POINTER_BYTES)).hexdigest()
    finally:
        os.close(handle)


def _lines(path: str, most: int) -> list[bytes]:
    """Describe a folder by names, sizes and times, of which every change alters one; the dangerous entries first."""
    lines: list[bytes] = []
    turns: tuple[list[str], ...] = ([path], [], [])
    while len(lines) < most and (turn := next((turn for turn in turns if turn), None)) is not None:
        folder = turn.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: (_turn(entry.name), entry.name))
        except OSError as error:
            lines.append(f"{folder} {error.errno}".encode(errors="surrogateescape"))
            continue
        for entry in entries[: most - len(lines)]:
            with contextlib.suppress(OSError):
                seen = entry.stat(follow_symlinks=False)
                line = f"{entry.path} {seen.st_ino} {seen.st_mode} {seen.st_uid} {seen.st_size} {seen.st_ctime_ns}"
                lines.append(line.encode(errors="surrogateescape"))
                if stat.S_ISDIR(seen.st_mode):
                    turns[_turn(entry.name)].append(entry.path)
    return lines


def _turn(name: str) -> int:
    """Return 0 for an entry that can make git run something, 2 for one that only holds data, else 1."""
    if name in _RUNS or name.startswith("config"):
        return 0
    return 2 if name in _BULK else 1
