"""The files of a tree in memory and in a folder, in the form that discovery reads (`TreeFiles`)."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairwitness.errors import StoreError
from fairwitness.kit.files import read_plain
from fairwitness.verify.discovery.files import READ_LIMIT, UNSEEN


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
        found = []
        for folder, inner, names in os.walk(self._folder):
            inner[:] = [name for name in inner if name not in UNSEEN]
            files = (Path(folder, name) for name in names)
            found += [
                file.relative_to(self._folder).as_posix() for file in files if file.is_file() and not file.is_symlink()
            ]
        return found
