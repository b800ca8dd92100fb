"""Make system calls for a command that the tier alone can neither allow nor refuse.

Landlock does not cover chmod, chown, utime and extended attributes, and can give no command a /dev/shm of its own. So
the kernel holds these calls, and this module makes them for the command: a change of metadata only inside the command's
folders, and files of /dev/shm in a private folder. Nothing is checked and then left to the caller, who could change the
arguments meanwhile: paths and values are read once, and the call works on the file that was checked.

The calls run with the rights of this process, which may be root. Therefore each file must belong to the command's user,
no owner is changed, no set-id bit is set, and only attributes are set that an ordinary user may set.
"""

import errno
import os
import struct

from fairwitness.sandbox import kernel
from fairwitness.sandbox.caller_paths import (
    HERE,
    PROC_LINK,
    TARGETS,
    caller_path,
    caller_string,
    name_of,
    own_numbers,
    says_no_follow,
)
from fairwitness.sandbox.syscalls import numbers

SHARED = "/dev/shm/"  # noqa: S108 -- compared, not opened
METADATA = frozenset(name for name in TARGETS if "chmod" in name or "chown" in name or "xattr" in name) | {
    *("utime", "utimes", "futimesat", "utimensat")
}
"""The calls that change metadata."""
_NO_MAGIC_LINKS = 0x02
_OPENAT2 = 437
_EMPTY_PATH = 0x1000
_CURRENT = -100
_KEPT = 0xFFFFFFFF
_MODES_AT = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
_OWNERS_AT = {"chown": 1, "fchown": 1, "lchown": 1, "fchownat": 2}
_TIMES = {"utime": (1, "=qq"), "utimes": (1, "=qqqq"), "futimesat": (2, "=qqqq"), "utimensat": (2, "=qqqq")}
_ATTRIBUTES = (b"user.", b"system.posix_acl_")
_VALUE_BYTES = 65_536
_OPEN_FLAGS = os.O_ACCMODE | os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_APPEND | os.O_NONBLOCK


class HeldCalls:
    """Makes the held calls of one command, which may change what is in `own` and has `shared` as its /dev/shm."""

    def __init__(self, own: tuple[str, ...], shared: str) -> None:
        self._own = own
        self._shared = shared
        self._numbers = numbers(os.uname().machine)

    def change_metadata(self, pid: int, call: str, arguments: tuple[int, ...]) -> int:
        """Make a call that changes metadata; return 0 or the error number for the caller."""
        if call in ("setxattrat", "removexattrat"):
            return errno.ENOSYS  # programs then use the older call
        try:
            handle = _opened(pid, call, arguments)
        except OSError as error:
            return error.errno or errno.EACCES
        try:
            status = os.fstat(handle)
            if not self._is_own(name_of(handle), status):
                return errno.EACCES
            if status.st_uid != os.geteuid():
                return errno.EPERM
            return self._change(pid, call, arguments, handle, status)
        except OSError as error:
            return error.errno or errno.EACCES
        finally:
            os.close(handle)

    def open_shared(self, pid: int, call: str, arguments: tuple[int, ...]) -> int | None:
        """Open a file of the private /dev/shm; return its descriptor, or None if the call names another path."""
        at = 1 if call == "openat" else 0
        if (name := self._shared_name(pid, arguments[at])) is None:
            return None
        flags = arguments[at + 1] & _OPEN_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC
        mode = arguments[at + 2] & 0o755
        return os.open(f"{self._shared}/{name}", flags, mode)

    def change_shared(self, pid: int, call: str, arguments: tuple[int, ...]) -> int | None:
        """Remove or link a file of the private /dev/shm; return an error number, or None for another path."""
        positions = {"unlink": (0,), "unlinkat": (1,), "link": (0, 1), "linkat": (1, 3), "rename": (0, 1)}
        if call not in positions:
            return None
        names = [self._shared_name(pid, arguments[at]) for at in positions[call]]
        paths = [f"{self._shared}/{name}" for name in names if name is not None]
        if len(paths) < len(names):
            return None
        try:
            if call.startswith("unlink"):
                os.unlink(paths[0])  # noqa: PTH108 -- os functions throughout
            elif call == "rename":
                os.rename(*paths)  # noqa: PTH104
            else:
                os.link(*paths, follow_symlinks=False)
        except OSError as error:
            return error.errno or errno.EACCES
        return 0

    def _shared_name(self, pid: int, address: int) -> str | None:
        """Return the name of a file directly in /dev/shm, or None for any other path."""
        path = os.fsdecode(caller_string(pid, address))
        name = path.removeprefix(SHARED).lstrip("/")
        return name if path.startswith(SHARED) and "/" not in name and name not in ("", ".", "..") else None

    def _is_own(self, name: str, status: os.stat_result) -> bool:
        if any(name == place or name.startswith(f"{place}/") for place in self._own):
            return True
        return not name.startswith("/") or (status.st_nlink == 0 and name.startswith("/memfd:"))

    def _change(self, pid: int, call: str, arguments: tuple[int, ...], handle: int, status: os.stat_result) -> int:
        path = f"/proc/self/fd/{handle}"
        if call in _MODES_AT:
            os.chmod(path, arguments[_MODES_AT[call]] & 0o1777)  # noqa: PTH101
        elif call in _OWNERS_AT:
            wanted = tuple(number & _KEPT for number in arguments[_OWNERS_AT[call] :][:2])
            if any(new not in (_KEPT, old) for new, old in zip(wanted, (status.st_uid, status.st_gid), strict=True)):
                return errno.EPERM
        elif call in _TIMES:
            kernel.call(self._numbers["utimensat"], _CURRENT, path.encode(), _times(pid, call, arguments), 0)
        else:
            self._change_attribute(pid, call, arguments, path)
        return 0

    def _change_attribute(self, pid: int, call: str, arguments: tuple[int, ...], path: str) -> None:
        name = caller_string(pid, arguments[1])
        if not name.startswith(_ATTRIBUTES):
            raise PermissionError(errno.EPERM, "another kind of attribute")
        if "remove" in call:
            os.removexattr(path, name)
            return
        size = arguments[3]
        if size > _VALUE_BYTES:
            raise OSError(errno.E2BIG, "too long")
        os.setxattr(path, name, _bytes(pid, arguments[2], size), arguments[4] & 0x3)


def _opened(pid: int, call: str, arguments: tuple[int, ...]) -> int:
    """Return a descriptor of the file that a call would change."""
    (target,) = TARGETS[call]
    flags = os.O_PATH | os.O_CLOEXEC
    has_path = target.path is not None and arguments[target.path] != 0
    is_empty = has_path and target.path is not None and not caller_string(pid, arguments[target.path])
    if is_empty and not (target.flags is not None and arguments[target.flags] & _EMPTY_PATH):
        raise FileNotFoundError(errno.ENOENT, "an empty path")
    if not has_path or is_empty:
        number = arguments[target.folder or 0] & 0xFFFFFFFF
        try:
            return os.open(f"/proc/{pid}/cwd" if number == HERE else f"/proc/{pid}/fd/{number}", flags)
        except FileNotFoundError:
            raise OSError(errno.EBADF, "not open") from None
    text = caller_path(pid, target, arguments)
    if (magic := PROC_LINK.fullmatch(text)) and magic[2] and magic[2].startswith("fd/") and not magic[3]:
        if magic[1].isdigit() and int(magic[1]) not in own_numbers(pid):
            raise PermissionError(errno.EACCES, "another process")
        return os.open(f"/proc/{pid}/{magic[2]}", flags)
    follow = target.follow and not says_no_follow(target, 0, arguments)
    how = struct.pack("QQQ", flags | (0 if follow else os.O_NOFOLLOW), 0, _NO_MAGIC_LINKS)
    return kernel.call(_OPENAT2, _CURRENT, os.fsencode(text), how, len(how))


def _times(pid: int, call: str, arguments: tuple[int, ...]) -> bytes | None:
    """Return the two times of a call in the form that `utimensat` takes; None stands for now."""
    at, form = _TIMES[call]
    if not arguments[at]:
        return None
    words = struct.unpack(form, _bytes(pid, arguments[at], struct.calcsize(form)))
    if call == "utime":
        words = (words[0], 0, words[1], 0)
    elif call != "utimensat":
        words = (words[0], words[1] * 1000, words[2], words[3] * 1000)
    return struct.pack("=qqqq", *words)


def _bytes(pid: int, address: int, size: int) -> bytes:
    handle = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.pread(handle, size, address) if size else b""
    finally:
        os.close(handle)
    if len(found) != size:
        raise OSError(errno.EFAULT, "not readable")
    return found
