"""Finds what changed in a worktree between two moments, to record agents that change files themselves.

Only recordings use it. Whether an agent was allowed to change a file is decided elsewhere, from git.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from fairwitness.errors import StoreError
from fairwitness.kit.files import read_plain
from fairwitness.kit.folder_trees import walk
from fairwitness.kit.safe_open import HeldFolder

MOST_FILES = 20_000
"""A worktree with more files is not watched."""
MOST_BYTES = 1 << 20
"""The largest file that is recorded."""
_PASSED_OVER = frozenset({".git", ".fairwitness", "node_modules", ".venv", "venv", "__pycache__"})
"""Closed to every agent, or large and not the project's own work."""

_Signature = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class WorktreeChange:
    """A path whose file changed."""

    path: str
    text: str | None
    """The whole new text; None if the file is gone or is not text."""
    is_gone: bool = False


class WorktreeWatch:
    """The state of a worktree when it was last scanned."""

    def __init__(self, root: Path) -> None:
        self._root = HeldFolder(root)
        self._files = self._look()

    @property
    def is_blind(self) -> bool:
        """Whether the worktree is too large to be watched."""
        return self._files is None

    def settle(self) -> None:
        """Take the current state as the one to compare with."""
        if self._files is not None:
            self._files = self._look()

    def changes(self) -> tuple[WorktreeChange, ...]:
        """Return what changed since the last scan, and compare with the current state from now on."""
        before, now = self._files, self._look() if self._files is not None else None
        self._files = now
        if before is None or now is None:
            return ()
        changed = [
            WorktreeChange(path, self._text(path)) for path, signature in now.items() if before.get(path) != signature
        ]
        gone = [WorktreeChange(path, None, is_gone=True) for path in before if path not in now]
        return tuple(sorted([*changed, *gone], key=lambda one: one.path))

    def _look(self) -> dict[str, _Signature] | None:
        found: dict[str, _Signature] = {}
        root = self._root.through
        for folder, folders, names in walk(root):
            folders[:] = sorted(name for name in folders if name.casefold() not in _PASSED_OVER)
            if len(found) + len(names) > MOST_FILES:
                return None
            for name in names:
                path = os.path.join(folder, name)  # noqa: PTH118 -- up to 20,000 of them
                try:
                    seen = os.lstat(path)
                except OSError:  # gone meanwhile
                    continue
                relative = os.path.relpath(path, root)
                if name.casefold() not in _PASSED_OVER:
                    found[relative] = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        return found

    def _text(self, path: str) -> str | None:
        try:
            return read_plain(self._root, path, limit=MOST_BYTES).decode()
        except (StoreError, UnicodeDecodeError):
            return None
