"""Sockets and pipes that lie in folders a command may only read.

A read-only mount keeps nobody from connecting to a socket or writing into a pipe: whoever listens there, an agent or a
container engine, would do the command's will. So they are found before it starts, and something else is put over them.
What is made there while the command runs is not seen; nobody who makes it is under the command's control.
"""

import collections
import os
import stat
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ENTRIES = 50_000
"""So many entries of a folder are looked at, those at the top first."""
MOST = 100
"""The most sockets and pipes that are covered; a folder with more is not given to a command."""
_MOST_ANSWERS = 1_000
_KEPT_S = 10.0
_KEPT_TIMES = 100
"""An answer is kept so many times longer than it took to find: looking takes at most a hundredth of the time."""


@dataclass(frozen=True)
class SocketsAndPipes:
    """What was found below one folder."""

    paths: tuple[str, ...]
    complete: bool
    """False if the folder is too large to have been looked through."""


@dataclass(frozen=True)
class _Answer:
    sockets_and_pipes: SocketsAndPipes
    folder: tuple[int, int, int]
    until: float


_answers: dict[str, _Answer] = {}
_lock = threading.Lock()


def sockets_and_pipes(folder: str, *, entries: int = ENTRIES) -> SocketsAndPipes:
    """The sockets and pipes below a folder, without following a link; the answer is kept for a while."""
    try:
        status = os.lstat(folder)
    except OSError:
        return SocketsAndPipes((), complete=True)
    if not stat.S_ISDIR(status.st_mode):
        return SocketsAndPipes((), complete=True)
    known_by = (status.st_dev, status.st_ino, status.st_mtime_ns)
    began = time.monotonic()
    with _lock:
        answer = _answers.get(folder)
    if answer is None or answer.folder != known_by or answer.until < began:
        found = _look(folder, entries)
        took = time.monotonic() - began
        answer = _Answer(found, known_by, began + max(_KEPT_S, took * _KEPT_TIMES))
        with _lock:
            if len(_answers) >= _MOST_ANSWERS:
                _answers.clear()
            _answers[folder] = answer
    return SocketsAndPipes(
        tuple(filter(is_socket_or_pipe, answer.sockets_and_pipes.paths)), answer.sockets_and_pipes.complete
    )


def is_socket_or_pipe(path: str) -> bool:
    """Whether a path is a socket or a pipe itself."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def is_socket(path: str) -> bool:
    """Whether a path is a socket itself."""
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def to_cover(shown: Mapping[str, str], writable: Iterable[str]) -> list[str]:
    """Where something has to be put over a door, given what is shown read-only: its path there, and where it is."""
    places = sorted((*shown, *writable), key=len, reverse=True)
    found = {}
    for place, source in shown.items():
        for path in sockets_and_pipes(source).paths:
            there = place + path[len(source) :]
            innermost = next(outer for outer in places if there.startswith(f"{outer}/"))
            if innermost in shown:
                found[there] = place
    if len(found) > MOST:
        raise OSError(f"{found.popitem()[1]} holds more than {MOST} sockets and pipes")
    return list(found)


def too_large(shown: Mapping[str, str]) -> list[str]:
    """The folders that are too large to have been looked through."""
    return [place for place, source in shown.items() if not sockets_and_pipes(source).complete]


def _look(folder: str, entries: int) -> SocketsAndPipes:
    found: list[str] = []
    front = collections.deque([folder])
    seen = 0
    while front and seen < entries:
        try:
            with os.scandir(front.popleft()) as inside:
                for entry in inside:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        front.append(entry.path)
                    elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()) and is_socket_or_pipe(
                        entry.path
                    ):
                        found.append(entry.path)
        except OSError:  # what we cannot look into, the command cannot enter
            continue
    return SocketsAndPipes(tuple(found[: MOST + 1]), complete=not front)
