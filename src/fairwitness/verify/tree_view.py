"""The files of a git tree, and the checks that discovery finds in them.

Both follow from the id of the tree, so that what was read or found last is kept: an attempt's trees are looked at by
the checks, by the verifier's criteria and by the reports.
"""

import bisect
import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator

from fairwitness.contracts.verify.checks import Discovered, VerifySettings
from fairwitness.git.shadow import Shadow
from fairwitness.kit.plugins import CHECKS, plug_ins
from fairwitness.verify.discovery.repository_checks import discover

FILE_LIMIT = 4 << 20
_RECENT_BYTES = 32 << 20
_AHEAD = 64
"""How many files are read in one git call: discovery looks at the files of a folder one after the other."""


class _RecentBlobs:
    """The blobs that were read last. An id is the hash of its content, so it means the same in every repository."""

    def __init__(self) -> None:
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, id: str) -> bytes | None:
        """Return the content of a blob, or None if it must be read."""
        with self._lock:
            if id in self._contents:
                self._contents.move_to_end(id)
            return self._contents.get(id)

    def put(self, id: str, content: bytes) -> None:
        """Keep a content until others have taken its place."""
        with self._lock:
            self._size += len(content) - len(self._contents.pop(id, b""))
            self._contents[id] = content
            while self._size > _RECENT_BYTES:
                self._size -= len(self._contents.popitem(last=False)[1])


_recent = _RecentBlobs()


class TreeView:
    """The files of a git tree, in the form that discovery reads (`TreeFiles`)."""

    def __init__(self, shadow: Shadow, tree: str) -> None:
        self._shadow = shadow
        self._entries = shadow.entries(tree)
        self.paths = sorted(path for path, entry in self._entries.items() if entry.mode in ("100644", "100755"))

    def read(self, path: str) -> bytes | None:
        """Return the content of a regular file of the tree; None if there is none or it is too large."""
        entry = self._entries.get(path)
        if entry is None or not entry.mode.startswith("100"):
            return None
        content = _recent.get(entry.id)
        if content is None:
            for id, found in self._shadow.small_blobs(self._from(path), limit=FILE_LIMIT):
                _recent.put(id, found)
                content = found if id == entry.id else content
        return content

    def _from(self, path: str) -> Iterator[str]:
        """Yield the blob of a file, and those of the next files of its folder and kind."""
        kind = _kind(path)
        start = bisect.bisect_left(self.paths, path)
        for other in self.paths[start : start + _AHEAD]:
            if _kind(other) == kind:
                yield self._entries[other].id


def _kind(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name.rpartition(".")[2]


_known: OrderedDict[tuple[str, str], Discovered] = OrderedDict()
_KNOWN_TREES = 32


def checks_at(shadow: Shadow, tree: str, settings: VerifySettings) -> Discovered:
    """Return the projects and checks of a tree."""
    key = tree, settings.model_dump_json()
    found = _known.get(key)
    if found is None:
        found = _known[key] = discover(
            TreeView(shadow, tree), settings, plug_ins(CHECKS, repository=shadow.working_tree)
        )
        while len(_known) > _KNOWN_TREES:
            with contextlib.suppress(KeyError):  # another thread was faster
                _known.popitem(last=False)
    return found
