"""What Fair Witness remembers about this user on this machine, outside every repository.

The folder is `$XDG_STATE_HOME/fairwitness`, or `~/.local/state/fairwitness`. A repository that somebody else made
cannot bring content for it, and sandboxed commands cannot write to it. Each record is one line of JSON in a file that
only grows; a line that a killed process left incomplete is skipped.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fairwitness.errors import NotReady, NotStored
from fairwitness.kit.files import append_line, read_plain

_LIMIT = 64 << 20
_NEXT_STEP = "set XDG_STATE_HOME to a folder that only you can write"


def user_state_path() -> Path:
    """Return the folder, which need not exist."""
    from platformdirs import user_state_path as path_of

    return path_of("fairwitness")


def user_state() -> Path:
    """Return the folder, created with mode 0700; raise `NotReady` if another user could write to it."""
    folder = user_state_path()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(f"{folder} cannot be created: {error.strerror}", next_step=_NEXT_STEP) from None
    _refuse_shared(folder)
    return folder


def remember(name: str, record: Mapping[str, Any]) -> None:
    """Append a record to the file of this name; it is on disk when this returns."""
    line = json.dumps(record, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    append_line(user_state(), name, line.encode(), private=True)


def remembered(name: str) -> list[dict[str, Any]]:
    """Return the records of the file of this name, oldest first; nothing is created.

    A complete line that is not a record raises `NotReady`: skipping it could hide what it says.
    """
    folder = user_state_path()
    if not folder.exists():
        return []
    _refuse_shared(folder)
    try:
        content = read_plain(folder, name, limit=_LIMIT)
    except NotStored:
        return []
    records = []
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise NotReady(f"{folder / name}:{number} is not a record", next_step="remove that line of the file")
        records.append(record)
    return records


class ChainedRecords(NamedTuple):
    """The records of a file whose lines contain the hash of the line before."""

    records: tuple[dict[str, Any], ...]
    """The readable records, oldest first."""
    broken: tuple[int, ...]
    """The numbers of lines that are no record, or before which a line was changed, removed or inserted."""
    hashes: frozenset[str]
    """The hashes of all lines."""


_BEFORE = "before"
_NO_LINE = ""


def line_hash(line: bytes) -> str:
    """Return the hash by which the next line of a chained file refers to a line."""
    return hashlib.sha256(line).hexdigest()


def remember_in_chain(name: str, record: Mapping[str, Any]) -> str:
    """Append a record together with the hash of the line before it, and return the hash of the new line.

    A later change of any line but the last shows in the line after it.
    """
    hashes: list[str] = []

    def line(before: bytes) -> bytes:
        known = line_hash(before) if before else _NO_LINE
        text = json.dumps({**record, _BEFORE: known}, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        hashes.append(line_hash(text.encode()))
        return text.encode()

    append_line(user_state(), name, line, private=True)
    return hashes[-1]


def end_of_chain(name: str) -> str:
    """Return the hash of the last complete line of a chained file; empty if there is none."""
    try:
        lines = read_plain(user_state(), name, limit=_LIMIT).rsplit(b"\n", 2)[:-1]
    except NotStored:
        return _NO_LINE
    return line_hash(lines[-1]) if lines and lines[-1] else _NO_LINE


def new_id() -> str:
    """Return a new random id."""
    return os.urandom(16).hex()


def remembered_in_chain(name: str) -> ChainedRecords:
    """Return the records of a chained file, and where its chain is broken; nothing is created."""
    folder = user_state_path()
    if not folder.exists():
        return ChainedRecords((), (), frozenset())
    _refuse_shared(folder)
    try:
        content = read_plain(folder, name, limit=_LIMIT)
    except NotStored:
        return ChainedRecords((), (), frozenset())
    records, broken, hashes, known = [], [], set[str](), _NO_LINE
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            broken.append(number)
        else:
            if record.pop(_BEFORE, None) != known:
                broken.append(number)
            records.append(record)
        known = line_hash(line)
        hashes.add(known)
    return ChainedRecords(tuple(records), tuple(broken), frozenset(hashes))


def _refuse_shared(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise NotReady(f"{folder} can be written by other users", next_step=_NEXT_STEP)
