"""Whether a worktree still holds the `.git` it held before, and no other repository."""

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from assay.contracts.common.sandbox import Violation

_ENTRIES = 200_000
"""So many entries of a worktree are looked at."""
_FILES = 5_000
_POINTER_BYTES = 65_536


@dataclass(frozen=True)
class DotGit:
    """What stood under the name `.git`, and where else repositories were."""

    top: tuple[str, ...]
    nested: frozenset[str]
    complete: bool
    """False if the worktree is too large to have been looked through."""


def look(worktree: str) -> DotGit:
    """Looks without following a link."""
    nested = set()
    entries = 0
    front = [worktree]
    while front and entries < _ENTRIES:
        with contextlib.suppress(OSError), os.scandir(front.pop()) as found:
            for entry in found:
                entries += 1
                if entry.name == ".git":
                    nested.add(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    front.append(entry.path)
    top = f"{worktree}/.git"
    return DotGit(_fingerprint(Path(top)), frozenset(nested - {top}), complete=not front)


def changes(worktree: str, before: DotGit, after: DotGit) -> tuple[Violation, ...]:
    """What is not as it was."""
    found = []
    if before.top != after.top:
        found.append(f"{worktree}/.git")
    found += sorted(after.nested - before.nested)
    return tuple(
        Violation(kind="git-dir", call="found", path=path, blocked=False, source="guard") for path in found[:100]
    )


def _fingerprint(path: Path) -> tuple[str, ...]:
    """A pointer by its content; a folder by the names, sizes and times in it, which a change cannot all keep."""
    try:
        status = path.lstat()
        if path.is_symlink():
            return ("link", str(path.readlink()))
        if not path.is_dir():
            with path.open("rb") as file:
                return ("file", str(status.st_ino), hashlib.sha256(file.read(_POINTER_BYTES)).hexdigest())
    except OSError:
        return ()
    lines = [str(status.st_ino)]
    front = [str(path)]
    while front and len(lines) < _FILES:
        with contextlib.suppress(OSError), os.scandir(front.pop()) as found:
            for entry in found:
                seen = entry.stat(follow_symlinks=False)
                lines.append(f"{entry.path} {seen.st_ino} {seen.st_mode} {seen.st_size} {seen.st_ctime_ns}")
                if entry.is_dir(follow_symlinks=False):
                    front.append(entry.path)
    return ("folder", hashlib.sha256("\n".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest())
