"""Whether a worktree still holds the repositories it held before, untouched, and no other one.

What can make git run something (settings, hooks, pointers) is looked at first, so that no amount of other files can
push it out of sight. A worktree that has grown too large to be looked through, or a folder that was shut, counts as a
change: what cannot be seen is not vouched for.
"""

import contextlib
import hashlib
import os
import stat
from dataclasses import dataclass

from fairwitness.contracts.common.sandbox import Violation

ENTRIES = 200_000
"""So many entries of a worktree are looked at, with those of the repositories nested in it."""
FILES = 5_000
"""So many entries of the worktree's own repository; a nested one gets a fifth of them."""
_NAMED = 100
_POINTER_BYTES = 65_536
_RUNS = frozenset({"hooks", "info", "HEAD", "commondir", "gitdir"})
_BULK = frozenset({"objects", "refs", "logs", "lfs"})

Mark = tuple[str, ...]


@dataclass(frozen=True)
class DotGit:
    """What stood under the name `.git`, here and deeper down."""

    top: Mark
    nested: dict[str, Mark]
    """By path; a folder that cannot be looked into stands here too, since it may hold one."""
    complete: bool
    """False if the worktree is too large to have been looked through."""


def look(worktree: str, *, entries: int = ENTRIES, files: int = FILES) -> DotGit:
    """Looks without following a link."""
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
    """What is not as it was; a nested repository that was removed can do no harm any more."""
    found = []
    if before.top != after.top:
        found.append(f"{worktree}/.git")
    if before.complete and not after.complete:
        found.append(worktree)
    found += sorted(path for path, mark in after.nested.items() if before.nested.get(path) != mark)
    return tuple(
        Violation(kind="git-dir", call="found", path=path, blocked=False, source="guard") for path in found[:_NAMED]
    )


def _mark(path: str, most: int) -> tuple[Mark, int]:
    """What a `.git` is known by, and how many entries were looked at for it."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return ("link", os.readlink(path)), 1  # noqa: PTH115 -- beside scandir, one way of saying paths
        if stat.S_ISREG(status.st_mode):
            return ("file", str(status.st_ino), _digest(path)), 1
        if not stat.S_ISDIR(status.st_mode):
            return ("other", str(status.st_ino), str(status.st_mode)), 1
    except OSError:
        return _shut(path), 1
    lines = _lines(path, most)
    return ("folder", str(status.st_ino), hashlib.sha256(b"\0".join(sorted(lines))).hexdigest()), len(lines)


def _shut(path: str) -> Mark:
    """What a path is known by that cannot be looked into; nothing if it is not there."""
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
    """A folder by the names, sizes and times in it, which a change cannot all keep; the dangerous ones first."""
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
    """0 for what can make git run something, 2 for what only holds data."""
    if name in _RUNS or name.startswith("config"):
        return 0
    return 2 if name in _BULK else 1
