"""A disk whose power can be cut: it notes what SQLite writes and syncs, and rebuilds what a cut could leave behind.

What was synced is there. Of what was written since, each write is there, missing, or torn between sectors; SQLite is
told, and relies on it, that a torn write harms no bytes beside its own.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import apsw

SECTOR = 512


@dataclass(frozen=True)
class Write:
    """Bytes put somewhere into a file."""

    file: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class Truncate:
    """A file made shorter."""

    file: str
    size: int


@dataclass(frozen=True)
class Sync:
    """Everything written to a file so far is on the disk."""

    file: str


@dataclass(frozen=True)
class SyncFolder:
    """Every file that was taken away so far is gone from the disk."""


@dataclass(frozen=True)
class Delete:
    """A file taken away."""

    file: str


@dataclass(frozen=True)
class Acknowledged:
    """The writer was told that one more commit is safe."""


Operation = Write | Truncate | Sync | SyncFolder | Delete | Acknowledged
Image = dict[str, bytes]
"""The files of a disk by name."""


class _NotedFile(apsw.VFSFile):
    def __init__(self, log: list[Operation], name: Any, flags: list[int]) -> None:
        path = Path(name if isinstance(name, str) else name.filename())
        is_log = bool(flags[0] & (apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL))
        self._syncs_folder = is_log and not path.exists()  # SQLite does so with the first sync of a new log
        super().__init__("", name, flags)
        self._log = log
        self._file = path.name

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802  (SQLite's own name)
        super().xWrite(data, offset)
        self._log.append(Write(self._file, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._log.append(Truncate(self._file, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._log.append(Sync(self._file))
        if self._syncs_folder:
            self._log.append(SyncFolder())
            self._syncs_folder = False


class _NotingDisk(apsw.VFS):
    def __init__(self, log: list[Operation]) -> None:
        self._log = log
        super().__init__("noting", "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        return apsw.VFSFile("", name, flags) if name is None else _NotedFile(self._log, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self._log.append(Delete(Path(filename).name))


def replay(statements: Sequence[str], path: Path) -> list[Operation]:
    """Runs the statements on a new database and notes what reaches the disk, up to a cut before it is closed."""
    log: list[Operation] = []
    disk = _NotingDisk(log)
    with closing(apsw.Connection(str(path), vfs="noting")) as connection:
        # the noting disk has no shared memory; what is written and synced is the same without
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        for statement in statements:
            connection.execute(statement).fetchall()
            if statement == "COMMIT":
                log.append(Acknowledged())
        noted = list(log)
    disk.unregister()
    return noted


class _File:
    """A file as the disk has it, and what has been asked of it since it was last synced."""

    def __init__(self) -> None:
        self.safe: bytes | None = None  # there may be no such file
        self.later: list[Write | Truncate | Delete] = []

    def do(self, operation: Write | Truncate | Delete | Sync) -> None:
        if isinstance(operation, Sync):
            content: bytearray | None = bytearray(self.safe or b"")
            for step in self.later:
                content = _applied(content, step)
            self.safe, self.later = (None if content is None else bytes(content)), []
        else:
            self.later.append(operation)

    def forget_if_deleted(self) -> None:
        """The folder was synced: what was taken away stays away."""
        gone = [number for number, step in enumerate(self.later) if isinstance(step, Delete)]
        if gone:
            self.safe, self.later = None, self.later[gone[-1] + 1 :]

    def after_a_cut(self, chance: Random, mood: str) -> bytes | None:
        """What may be left; the mood is `nothing`, `everything` or `anything` of what was not synced."""
        content: bytearray | None = None if self.safe is None else bytearray(self.safe)
        for step in self.later:
            luck = {"nothing": 0.0, "everything": 1.0}.get(mood, chance.random())
            if luck > 0.6:
                content = _applied(content, step)
            elif luck > 0.3 and isinstance(step, Write):
                for part in _sectors(step):
                    if chance.random() < 0.5:
                        content = _applied(content, part)
        return None if content is None else bytes(content)


def _applied(content: bytearray | None, step: Write | Truncate | Delete) -> bytearray | None:
    if isinstance(step, Delete):
        return None
    content = bytearray() if content is None else content
    if isinstance(step, Truncate):
        del content[step.size :]
    else:
        content.extend(bytes(max(0, step.offset - len(content))))
        content[step.offset : step.offset + len(step.data)] = step.data
    return content


def _sectors(write: Write) -> Iterator[Write]:
    at = write.offset
    end = write.offset + len(write.data)
    while at < end:
        until = min(end, (at // SECTOR + 1) * SECTOR)
        yield Write(write.file, at, write.data[at - write.offset : until - write.offset])
        at = until


def cuts(operations: Sequence[Operation], every: int, seed: int) -> Iterator[tuple[int, int, Image]]:
    """Cuts the power before every n-th operation and after the last: its number, the commits told safe, the disk."""
    files: dict[str, _File] = {}
    acknowledged = 0
    chance = Random(seed)
    for number, operation in enumerate([*operations, Acknowledged()]):
        if number % every == 0 or number == len(operations):
            for mood in ("nothing", "everything", "anything", "anything"):
                left = {name: file.after_a_cut(chance, mood) for name, file in files.items()}
                yield number, acknowledged, {name: content for name, content in left.items() if content is not None}
        if isinstance(operation, Acknowledged):
            acknowledged += 1
        elif isinstance(operation, SyncFolder):
            for file in files.values():
                file.forget_if_deleted()
        else:
            files.setdefault(operation.file, _File()).do(operation)
