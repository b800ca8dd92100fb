"""Find sockets and pipes in folders that a command may only read.

A read-only mount does not prevent connecting to a socket or writing to a pipe, so the command could control the service
that listens there, such as an agent or a container engine. Sockets and pipes are therefore found before the command
starts, and something is mounted over them. One that is created while the command runs is not detected, but the command
has no control over the processes that create it.
"""

import collections
import os
import stat
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ENTRIES = 50_000
"""The most entries of a folder that are examined, those at the top first."""
MOST = 100
"""The most sockets and pipes that are covered; a command is not run if there are more."""
_MOST_ANSWERS = 1_000
_KEPT_S = 10.0
_KEPT_TIMES = 100
"""An answer is kept this many times longer than finding it took, so searching takes at most 1 % of the time."""


@dataclass(frozen=True)
class SocketsAndPipes:
    """The sockets and pipes below one folder."""

    paths: tuple[str, ...]
    complete: bool
    """False if the folder is too large to be searched completely."""


@dataclass(frozen=True)
class _Answer:
    sockets_and_pipes: SocketsAndPipes
    folder: tuple[int, int, int]
    until: float


_answers: dict[str, _Answer] = {}
_lock = threading.Lock()


def sockets_and_pipes(folder: str, *, entries: int = ENTRIES) -> SocketsAndPipes:
    """Return the sockets and pipes below a folder, without following links; the answer is cached for a while."""
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
    """Return whether a path itself is a socket or a pipe."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def is_socket(path: str) -> bool:
    """Return whether a path itself is a socket."""
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def to_cover(shown: Mapping[str, str], writable: Iterable[str]) -> list[str]:
    """Return the paths that must be covered; `shown` maps each read-only path in the sandbox to its real path."""
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
    """Return the folders that are too large to be searched completely."""
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
        except OSError:  # the command cannot enter a folder that this process cannot read
            continue
    return SocketsAndPipes(tuple(found[: MOST + 1]), complete=not front)
