"""The files of a tree as discovery sees them: their paths, and the bytes of one, without trust in either."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from fairwitness.errors import NotReady, StoreError
from fairwitness.kit.files import list_folder, read_plain

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


class MappingFiles:
    """A tree held in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = dict(files)
        self.paths: Sequence[str] = tuple(sorted(self._files))

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file; None if it is not there or too large."""
        content = self._files.get(path)
        return content if content is not None and len(content) <= READ_LIMIT else None


class FolderFiles:
    """A tree exported into a folder; links are neither followed nor listed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.paths: Sequence[str] = tuple(sorted(self._walk()))

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a plain file inside the folder; None for anything else."""
        try:
            return read_plain(self._folder, path, limit=READ_LIMIT)
        except StoreError:
            return None

    def _walk(self) -> list[str]:
        found: list[str] = []
        waiting = [""]
        folders = 0
        while waiting and len(found) <= PATHS_LIMIT:
            folder = waiting.pop()
            folders += 1
            if folders > PATHS_LIMIT:
                raise NotReady(
                    f"{self._folder} holds more than {PATHS_LIMIT} folders", next_step="verify a smaller tree"
                )
            try:
                entries = list_folder(self._folder, folder)
            except StoreError:  # removed meanwhile or not readable: it counts as empty
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.kind == "file":
                    found.append(path)
                elif entry.kind == "folder" and entry.name not in UNSEEN:
                    waiting.append(path)
        return found
