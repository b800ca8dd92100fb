"""Folder contents that were stored as trees before, so that the same content need not be stored twice.

Sizes and times prove nothing: every file is read each time and identified by a hash stronger than git's. A tree is
remembered only if git's blob names match the bytes read here, so a file that changes between the two readings cannot
make one content pass for another.
"""

import hashlib
import os
from collections.abc import Mapping
from typing import NamedTuple

from fairwitness.git.call import bytes_of
from fairwitness.git.objects import SYMLINK, TreeEntry

_CHUNK = 1 << 20


class Content(NamedTuple):
    """The content of a folder as it was read."""

    ids: Mapping[str, str]
    """Git's object id of the bytes at each path."""
    digest: str
    """A hash over all paths, modes and bytes."""


class StoredContents:
    """The contents that one process has stored in one shadow repository, which loses nothing during a run."""

    def __init__(self) -> None:
        self._trees: dict[str, str] = {}

    def tree(self, content: Content) -> str | None:
        """Return the tree that holds a content, or None if it was never stored here."""
        return self._trees.get(content.digest)

    def keep(self, content: Content, entries: Mapping[str, TreeEntry], tree: str) -> None:
        """Remember a tree if git stored exactly what was read."""
        if {path: entry.id for path, entry in entries.items()} == content.ids:
            self._trees[content.digest] = tree


def read(top: str, files: Mapping[str, str], targets: Mapping[str, bytes], object_format: str) -> Content:
    """Read the files of a folder, given with their modes; `targets` are the targets of its symbolic links."""
    ids: dict[str, str] = {}
    rows: list[bytes] = []
    for path, mode in files.items():
        ids[path], digest = _file(f"{top}/{path}", object_format)
        rows.append(_row(path, mode, digest))
    for path, target in targets.items():
        named = hashlib.new(object_format, b"blob %d\0" % len(target) + target, usedforsecurity=False)
        ids[path] = named.hexdigest()
        rows.append(_row(path, SYMLINK, hashlib.sha256(target).hexdigest()))
    return Content(ids, hashlib.sha256(b"".join(sorted(rows))).hexdigest())


def _row(path: str, mode: str, digest: str) -> bytes:
    return bytes_of(path) + f"\0{mode} {digest}\n".encode()


def _file(place: str, object_format: str) -> tuple[str, str]:
    """Return git's object id of a file's bytes, and their SHA-256."""
    handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        named = hashlib.new(object_format, b"blob %d\0" % os.fstat(handle).st_size, usedforsecurity=False)
        digest = hashlib.sha256()
        while piece := os.read(handle, _CHUNK):
            named.update(piece)
            digest.update(piece)
        return named.hexdigest(), digest.hexdigest()
    finally:
        os.close(handle)
