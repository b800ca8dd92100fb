"""Git LFS pointers: told apart, and compared with the file they stand for, without running git-lfs."""

import hashlib
import os
import re
from pathlib import Path
from typing import NamedTuple

POINTER_LIMIT = 1024
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]+\n)*oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,18})\n"
)
_CHUNK = 1 << 20


class Pointer(NamedTuple):
    """The file that a pointer stands for: its hash and size."""

    sha256: str
    size: int


def pointer(content: bytes) -> Pointer | None:
    """The pointer that a blob is, or None.

    >>> pointer(b"version https://git-lfs.github.com/spec/v1\\noid sha256:" + b"a" * 64 + b"\\nsize 12\\n").size
    12
    >>> pointer(b"version 1") is None
    True
    """
    found = _POINTER.fullmatch(content) if len(content) <= POINTER_LIMIT else None
    return Pointer(found[1].decode(), int(found[2])) if found else None


def is_content_of(file: Path, wanted: Pointer) -> bool:
    """True if a plain file holds exactly what the pointer stands for."""
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_size != wanted.size:
            return False
        sum_ = hashlib.sha256()
        while piece := os.read(handle, _CHUNK):
            sum_.update(piece)
        return sum_.hexdigest() == wanted.sha256
    finally:
        os.close(handle)
