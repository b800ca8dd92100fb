"""System calls that Python does not provide; on systems other than Linux they fail as unknown."""

import errno
import functools
import os
import sys
from typing import Any

from fairwitness.sandbox.syscalls import numbers

LANDLOCK_CREATE = 444
_GET_ACTION = 2
_USER_NOTIFY = 0x7FC00000
_ERRNO = 0x00050000
_ENTRY_BYTES = 65_536


@functools.cache
def _library() -> Any:
    if sys.platform != "linux":
        return None
    import ctypes  # imported here because only Linux needs it

    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library


def call(number: int, *values: Any) -> int:
    """Make a system call and return its result; raise OSError if it fails."""
    library = _library()
    if library is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    import ctypes

    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in values]
    result = int(library.syscall(ctypes.c_long(number), *words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def read_entry(path: str) -> bytes:
    """Return the content of a small kernel file, such as those under /proc."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, _ENTRY_BYTES)
    finally:
        os.close(handle)


def landlock_abi() -> int:
    """Return the version of Landlock, or 0 if the kernel has none."""
    try:
        return call(LANDLOCK_CREATE, None, 0, 1)
    except OSError:
        return 0


def _has_action(action: int) -> bool:
    number = numbers(os.uname().machine).get("seccomp")
    if number is None:  # without its system call numbers an architecture cannot be filtered
        return False
    try:
        call(number, _GET_ACTION, 0, action.to_bytes(4, sys.byteorder))
    except OSError:
        return False
    return True


def has_seccomp() -> bool:
    """Return whether system calls can be filtered."""
    return _has_action(_ERRNO)


def has_notify() -> bool:
    """Return whether a filter can report system calls to another process."""
    return _has_action(_USER_NOTIFY)
