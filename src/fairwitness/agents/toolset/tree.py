"""The files of one worktree, opened part by part without following links and without blocking on a pipe.

A file that cannot be read or written gives a sentence; nothing behind a planted link is read or written. The worktree
itself is opened once: if its folder is replaced, every later call is refused.
"""

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairwitness.agents.toolset.globs import Ignored
from fairwitness.agents.toolset.model import FILE_LIMIT, ToolCancelled, ToolFailed
from fairwitness.errors import NotStored, StoreError
from fairwitness.kit.files import Entry, list_folder, read_plain, replace_file
from fairwitness.kit.safe_open import PLAIN, HeldFolder, OpenFolder
from fairwitness.rules.tool_policy import path_problem

_IGNORE_LIMIT = 256 << 10
_EXECUTABLE = 0o111
FILES_LIMIT = 50_000
"""Names that one walk visits, at most."""


def name_problem(path: str) -> str | None:
    """Return why an agent cannot use a path that was found, or None."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return path_problem(path)


class WorktreeFiles:
    """The files of a worktree, by paths that the policy allowed."""

    def __init__(self, worktree: Path) -> None:
        self.root = HeldFolder(worktree)

    def check(self) -> None:
        """Raise `ToolFailed` if the worktree's folder was replaced."""
        try:
            self.root.check()
        except StoreError as error:
            raise ToolFailed(error.what) from None

    def close(self) -> None:
        """Close the worktree; later calls fail."""
        self.root.close()

    def kind(self, path: str) -> Literal["file", "folder", "none"]:
        """Return what is at a path; a link, a pipe or a device is refused."""
        if path == ".":
            self.check()
            return "folder"
        try:
            with OpenFolder("look at", self.root, path) as place:
                status = place.status()
                if stat.S_ISDIR(status.st_mode):
                    return "folder"
                place.refuse_unplain(status)
                return "file"
        except NotStored:
            return "none"
        except StoreError as error:
            raise ToolFailed(error.what) from None

    def require(self, path: str, wanted: Literal["file", "folder"]) -> None:
        """Raise `ToolFailed` unless the path is a file or a folder as wanted."""
        found = self.kind(path)
        if found == "none":
            raise ToolFailed(f"there is no {wanted} {path}")
        if found != wanted:
            raise ToolFailed(f"{path} is a {found}, not a {wanted}")

    def read(self, path: str, limit: int = FILE_LIMIT) -> bytes:
        """Return the bytes of a regular file."""
        try:
            return read_plain(self.root, path, limit=limit)
        except StoreError as error:
            raise ToolFailed(error.what) from None

    def read_text(self, path: str) -> str:
        """Return the exact text of a file, with its line ends."""
        self.require(path, "file")
        data = self.read(path)
        if b"\0" in data:
            raise ToolFailed(f"{path} is binary ({len(data)} bytes)")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolFailed(f"{path} is not UTF-8 text: byte {error.start} cannot be read") from None

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file; an executable one stays executable."""
        if len(data) > FILE_LIMIT:
            raise ToolFailed(f"{len(data)} bytes are more than the {FILE_LIMIT} that a file may have")
        try:
            mode = self._mode(path)
            replace_file(self.root, path, data)
            if mode is not None and mode & _EXECUTABLE:
                self._set_mode(path, mode)
        except StoreError as error:
            raise ToolFailed(error.what) from None

    def _mode(self, path: str) -> int | None:
        try:
            with OpenFolder("look at", self.root, path) as place:
                return stat.S_IMODE(place.status().st_mode)
        except NotStored:
            return None

    def _set_mode(self, path: str, mode: int) -> None:
        with OpenFolder("write", self.root, path) as place:
            handle = os.open(place.name, os.O_RDONLY | PLAIN, dir_fd=place.folder)
            try:
                place.refuse_unplain(os.fstat(handle))
                os.fchmod(handle, mode & 0o777)
            finally:
                os.close(handle)

    def entries(self, path: str) -> tuple[Entry, ...]:
        """Return the entries of a folder, sorted."""
        try:
            return list_folder(self.root, "" if path == "." else path)
        except StoreError as error:
            raise ToolFailed(error.what) from None

    def walk(self, start: str, cancel: threading.Event) -> "Walk":
        """Return a walk over the regular files below a folder that an agent may access and git does not ignore."""
        try:
            ignored = Ignored(read_plain(self.root, ".gitignore", limit=_IGNORE_LIMIT).decode("utf-8", "replace"))
        except StoreError:
            ignored = Ignored("")
        return Walk(self, start, ignored, cancel)


@dataclass
class Walk:
    """A walk over files; `cut_short` tells afterwards whether it stopped at its limit."""

    tree: WorktreeFiles
    start: str
    ignored: Ignored
    cancel: threading.Event
    most: int = FILES_LIMIT
    cut_short: bool = False

    def __iter__(self) -> Iterator[str]:
        waiting = [(self.start, entry) for entry in reversed(self.tree.entries(self.start))]
        seen = 0
        while waiting:
            folder, entry = waiting.pop()
            seen += 1
            if self.cancel.is_set():
                raise ToolCancelled
            if seen > self.most:
                self.cut_short = True
                return
            path = entry.name if folder == "." else f"{folder}/{entry.name}"
            is_folder = entry.kind == "folder"
            if name_problem(path) is not None or self.ignored.names(path, is_folder=is_folder):
                continue
            if is_folder:
                with contextlib.suppress(ToolFailed):  # it was removed or replaced meanwhile
                    waiting += [(path, entry) for entry in reversed(self.tree.entries(path))]
            elif entry.kind == "file":
                yield path
