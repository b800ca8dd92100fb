"""Replaces a folder by a link at a chosen moment: before the nth thing that a call does with the file system.

Python reports each such thing to an audit hook before it does it. So a swap between the opening of a folder and the
write into it is repeatable, without a thread that has to be lucky.
"""

import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_EVENTS = frozenset(
    {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.listdir"}
    | {"os.scandir", "os.truncate", "os.utime", "subprocess.Popen"}
)
_MOST = 2_000


@dataclass
class Swap:
    """A folder, the outside folder that is put in its place by a link, and how far a call has come."""

    folder: Path
    outside: Path
    at: int
    """Which event triggers the swap, counted from 0; -1 for none."""
    seen: int = 0
    is_done: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def original(self) -> Path:
        """Where the folder itself is after the swap."""
        return self.folder.with_name(f"{self.folder.name}-original") if self.is_done else self.folder

    def now(self) -> None:
        """Swaps."""
        self.is_done = True
        self.folder.rename(self.original)
        self.folder.symlink_to(self.outside)

    def notice(self) -> None:
        """One more event."""
        with self._lock:
            mine, self.seen = self.seen == self.at, self.seen + 1
        if mine:
            self.now()


_armed: list[Swap] = []
_is_swapping = threading.local()


def _hook(event: str, _arguments: tuple[object, ...]) -> None:
    if _armed and event in _EVENTS and not getattr(_is_swapping, "now", False):
        _is_swapping.now = True
        try:
            _armed[-1].notice()
        finally:
            _is_swapping.now = False


@contextmanager
def swapping(folder: Path, outside: Path, at: int) -> Iterator[Swap]:
    """Swaps the folder before the event of this number happens inside the block."""
    if _hook not in _installed:
        _installed.append(_hook)
        sys.addaudithook(_hook)
    swap = Swap(folder, outside, at)
    _armed.append(swap)
    try:
        yield swap
    finally:
        _armed.remove(swap)


_installed: list[Callable[[str, tuple[object, ...]], None]] = []


def moments(count: int, most: int) -> list[int]:
    """At most so many of the numbers below `count`, spread evenly, with the first and the last."""
    assert 0 < count < _MOST
    return sorted({round(step * (count - 1) / (most - 1)) for step in range(most)}) if count > most else [*range(count)]


def look(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder: names, types and rights, contents."""
    found = {".": (stat.S_IMODE(folder.lstat().st_mode), b"")}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            mode = path.lstat().st_mode
            content = path.read_bytes() if stat.S_ISREG(mode) else b""
            found[str(path.relative_to(folder))] = (mode, content)
    return found
