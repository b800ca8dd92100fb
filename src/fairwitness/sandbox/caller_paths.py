"""Read from a waiting system call which paths it would change.

Paths are read from the caller's memory and resolved in the root of the calling process, so that a link leads to the
same place for the reader as for the caller.
"""

import contextlib
import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from fairwitness.sandbox import kernel

_OPENAT2 = 437
_IN_ROOT = 0x10
HERE = 0xFFFFFF9C  # AT_FDCWD as an unsigned word
_NO_FOLLOW = 0x100
_PATH_BYTES = 4096
_PAGE = 4096
_HOPS = 20
PROC_LINK = re.compile(r"/proc/(self|thread-self|\d+)(?:/task/\d+)?/(fd/\d+|root|cwd)?(.*)", re.DOTALL)
_STANDARD = {"/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}


@dataclass(frozen=True)
class Target:
    """The argument positions of a path in a system call. Without `path`, `folder` is the open file itself."""

    folder: int | None
    path: int | None
    follow: bool = False
    flags: int | None = None
    """Position of the argument that may forbid following a final link."""


def _two(*pairs: tuple[int | None, int]) -> tuple[Target, ...]:
    return tuple(Target(folder, path) for folder, path in pairs)


_FOLLOWED = (Target(None, 0, follow=True),)
_PLAIN = (Target(None, 0),)
_OPEN_FILE = (Target(0, None),)
TARGETS: dict[str, tuple[Target, ...]] = {
    "open": _FOLLOWED,
    "openat": (Target(0, 1, follow=True),),
    "creat": _FOLLOWED,
    "truncate": _FOLLOWED,
    "rename": _two((None, 0), (None, 1)),
    "renameat": _two((0, 1), (2, 3)),
    "renameat2": _two((0, 1), (2, 3)),
    "mkdir": _PLAIN,
    "mkdirat": _two((0, 1)),
    "rmdir": _PLAIN,
    "unlink": _PLAIN,
    "unlinkat": _two((0, 1)),
    "link": _two((None, 0), (None, 1)),
    "linkat": _two((0, 1), (2, 3)),
    "symlink": _two((None, 1)),
    "symlinkat": _two((1, 2)),
    "mknod": _PLAIN,
    "mknodat": _two((0, 1)),
    "chmod": _FOLLOWED,
    "fchmod": _OPEN_FILE,
    "fchmodat": (Target(0, 1, follow=True),),
    "fchmodat2": (Target(0, 1, follow=True, flags=3),),
    "chown": _FOLLOWED,
    "fchown": _OPEN_FILE,
    "lchown": _PLAIN,
    "fchownat": (Target(0, 1, follow=True, flags=4),),
    "utime": _FOLLOWED,
    "utimes": _FOLLOWED,
    "futimesat": (Target(0, 1, follow=True),),
    "utimensat": (Target(0, 1, follow=True, flags=3),),
    "setxattr": _FOLLOWED,
    "lsetxattr": _PLAIN,
    "fsetxattr": _OPEN_FILE,
    "removexattr": _FOLLOWED,
    "lremovexattr": _PLAIN,
    "fremovexattr": _OPEN_FILE,
    "setxattrat": (Target(0, 1, follow=True, flags=2),),
    "removexattrat": (Target(0, 1, follow=True, flags=2),),
}
"""The paths that each watched system call may change."""


@dataclass(frozen=True)
class WriteAttempt:
    """One path that a system call is about to change."""

    call: str
    path: str
    exists: bool
    """Whether the path exists in the caller's view."""
    is_folder: bool = False
    flags: int = 0
    """The flags of an open call."""
    second: bool = False
    """Whether the path is the destination of a rename or link."""
    own: frozenset[int] = frozenset()
    """The caller's own process ids."""


def write_attempts(pid: int, call: str, arguments: tuple[int, ...]) -> list[WriteAttempt]:
    """Return what a waiting system call would change; raise OSError if the process is gone or cannot be inspected."""
    found = []
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, target in enumerate(TARGETS[call]):
            flags = arguments[_open_flags(call)] & 0xFFFFFFFF if call in ("open", "openat") else 0
            if call == "creat":
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            text = caller_path(pid, target, arguments)
            follow = target.follow and not says_no_follow(target, flags, arguments)
            path, exists, is_folder = _resolve(root, pid, text, follow=follow)
            own = own_numbers(pid) if path.startswith("/proc/") else frozenset()
            found.append(WriteAttempt(call, path, exists, is_folder, flags, number == 1, own))
    finally:
        os.close(root)
    return found


def _open_flags(call: str) -> int:
    return 2 if call == "openat" else 1


def says_no_follow(target: Target, flags: int, arguments: tuple[int, ...]) -> bool:
    if target.flags is not None and arguments[target.flags] & _NO_FOLLOW:
        return True
    return bool(flags & os.O_NOFOLLOW) or flags & (os.O_CREAT | os.O_EXCL) == os.O_CREAT | os.O_EXCL


def caller_path(pid: int, target: Target, arguments: tuple[int, ...]) -> str:
    """Return the path as passed by the caller, made absolute but not resolved."""
    path = ""
    if target.path is not None and arguments[target.path]:
        path = os.fsdecode(caller_string(pid, arguments[target.path]))
    if path.startswith("/"):
        return path
    handle = HERE if target.folder is None else arguments[target.folder] & 0xFFFFFFFF
    base = _leads_to(f"/proc/{pid}/cwd" if handle == HERE else f"/proc/{pid}/fd/{handle}")
    return f"{base}/{path}" if path else base


def caller_string(pid: int, address: int) -> bytes:
    """Return a string from another process's memory, read page by page up to its end."""
    handle = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while len(text) < _PATH_BYTES:
            piece = os.pread(handle, _PAGE - (address + len(text)) % _PAGE, address + len(text))
            before, end, _ = piece.partition(b"\0")
            text += before
            if end or not piece:
                break
        return text[:_PATH_BYTES]
    finally:
        os.close(handle)


def _resolve(root: int, pid: int, text: str, *, follow: bool) -> tuple[str, bool, bool]:
    """Return the path that would be changed, whether it exists, and whether it is a folder."""
    for _ in range(_HOPS):
        text = _STANDARD.get(text, text).replace("/dev/fd/", "/proc/self/fd/") if text.startswith("/dev/") else text
        if (magic := PROC_LINK.fullmatch(text)) and magic[2]:
            text = _through_proc(pid, magic, text)
            if text.startswith("/proc/") or not text.startswith("/"):
                return text, True, False
        with contextlib.suppress(OSError), _opened(root, text, 0 if follow else os.O_NOFOLLOW) as handle:
            return name_of(handle), True, stat.S_ISDIR(os.fstat(handle).st_mode)
        parent, _, name = text.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            break
        try:
            with _opened(root, parent or "/", os.O_DIRECTORY) as handle:
                folder = name_of(handle)
                link = _link(handle, name)
        except OSError:
            break
        if link is None or not follow:
            return f"{folder.rstrip('/')}/{name}", link is not None, False
        text = link if link.startswith("/") else f"{folder}/{link}"
    return os.path.normpath(text), False, False


def _through_proc(pid: int, magic: re.Match[str], text: str) -> str:
    """Follow a link of /proc for the caller; only the caller itself could follow it directly."""
    who, what, rest = magic.groups()
    if who.isdigit() and int(who) not in own_numbers(pid):
        return f"/{rest.lstrip('/')}" if what == "root" and rest else text
    if what == "root":
        return f"/{rest.lstrip('/')}"
    return _leads_to(f"/proc/{pid}/{what}") + rest


def own_numbers(pid: int) -> frozenset[int]:
    """Return all ids of a process, one for each pid namespace that it is in."""
    with contextlib.suppress(OSError):
        lines = kernel.read_entry(f"/proc/{pid}/status").splitlines()
        return frozenset(
            int(word) for line in lines if line.startswith((b"NSpid:", b"NStgid:")) for word in line.split()[1:]
        )
    return frozenset()


@contextlib.contextmanager
def _opened(root: int, path: str, flags: int) -> Iterator[int]:
    how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC | flags, 0, _IN_ROOT)
    handle = kernel.call(_OPENAT2, root, os.fsencode(path), how, len(how))
    try:
        yield handle
    finally:
        os.close(handle)


def name_of(handle: int) -> str:
    return _leads_to(f"/proc/self/fd/{handle}")


def _leads_to(link: str) -> str:
    return os.readlink(link)  # noqa: PTH115 -- runs at each watched call: creating a Path costs more than the call


def _link(folder: int, name: str) -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink(name, dir_fd=folder)
    return None
