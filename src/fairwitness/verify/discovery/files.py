"""The files of a tree as discovery sees them: their paths, and the bytes of one, without trust in either."""

from collections.abc import Sequence
from typing import Protocol

READ_LIMIT = 1 << 20
"""Maximum size of a file; a manifest has some kilobytes, so a larger file is not read at all."""
PATHS_LIMIT = 200_000
"""How many files of a tree are read; if there are more, the result says so."""

UNSEEN = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".fairwitness",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".tox",
        ".nox",
        "site-packages",
    }
)
"""Folders that never contain a repository's own files; they are not listed."""


class TreeFiles(Protocol):
    """The files of one tree; nothing of it is ever run or imported."""

    @property
    def paths(self) -> Sequence[str]:
        """Relative to the repository, with forward slashes."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file; None if it is not there, not plain, or too large."""
        ...
