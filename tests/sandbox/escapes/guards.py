"""A proposal for the sandbox room: files that no command may touch, and whether one did all the same.

Where a kernel has no notifications, nobody sees a chmod, utime or xattr that Landlock lets through (W12). So what must
stay as it is (the main repository's config and hooks, the evidence, shell start files) is looked at before and after.
"""

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from assay.contracts.common.sandbox import Violation

Marks = dict[str, tuple[object, ...]]
_LARGEST = 16 << 20


def look(paths: Iterable[Path]) -> Marks:
    """Everything about each file and folder, and all below, that can be changed; links are not followed."""
    marks: Marks = {}
    front = list(paths)
    while front:
        path = front.pop()
        try:
            status = path.lstat()
        except OSError as error:
            marks[str(path)] = (error.errno,)
            continue
        marks[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_ino, *_inner(path, status))
        if stat.S_ISDIR(status.st_mode):
            front += path.iterdir()
    return marks


def changes(before: Marks, after: Marks) -> tuple[Violation, ...]:
    """What is not as it was, or was not there."""
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return tuple(Violation(kind="guard", call="found", path=path, blocked=False, source="guard") for path in changed)


def _inner(path: Path, status: os.stat_result) -> tuple[object, ...]:
    if stat.S_ISLNK(status.st_mode):
        return (str(path.readlink()),)
    attributes = tuple((name, os.getxattr(path, name)) for name in sorted(os.listxattr(path)))
    if not stat.S_ISREG(status.st_mode):
        return attributes
    content = hashlib.sha256(path.read_bytes()).hexdigest() if status.st_size <= _LARGEST else status.st_ctime_ns
    return (status.st_size, status.st_mtime_ns, content, *attributes)
