"""Report what a confined command tries to change outside its own folders.

The sandbox blocks by itself; the observer only reports. It receives a notification for each watched system call, reads
the call's paths from the caller's memory, and always lets the call continue. Paths are resolved in the root of the
calling process, so that a link leads to the same place for the observer as for the caller.

A reported attempt makes the run a violation. These rules say what is not reported:

- Writes to the command's own folders, with three exceptions: the worktree's `.git`, hidden paths, and folders that
  exist only as mount points.
- Attempts to write in a read-only worktree, hidden paths included: linters look for a place for their caches, and the
  attempt changes nothing. In a writable worktree, writing to a hidden path is a violation (`hidden`), because
  Fair Witness mounted what is there.
- What tools do where they are installed: write byte code, caches and locks (`_CACHES`), open a file for reading and
  writing without creating or truncating it, and link from there.
- Attempts that cannot change anything: creating a folder that exists, and removing or changing a path that exists
  neither in the command's view nor on the host.
- Devices that store nothing, and a process's own entries under /proc.
"""

import contextlib
import fcntl
import os
import re
import select
import stat
import struct
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Features, Violation
from fairwitness.kit.text import visible
from fairwitness.sandbox import bwrap_args, kernel, seccomp
from fairwitness.sandbox.checked_command import CheckedCommand
from fairwitness.sandbox.launch import Launch
from fairwitness.sandbox.syscalls import numbers

_OPENAT2 = 437
_IN_ROOT = 0x10
_HERE = 0xFFFFFF9C  # AT_FDCWD as an unsigned word
_NO_FOLLOW = 0x100
_PATH_BYTES = 4096
_PAGE = 4096
_HOPS = 20
_PROC = re.compile(r"/proc/(self|thread-self|\d+)(?:/task/\d+)?/(fd/\d+|root|cwd)?(.*)", re.DOTALL)
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
            text = _text(pid, target, arguments)
            follow = target.follow and not _says_no_follow(target, flags, arguments)
            path, exists, is_folder = _resolve(root, pid, text, follow=follow)
            own = _own_numbers(pid) if path.startswith("/proc/") else frozenset()
            found.append(WriteAttempt(call, path, exists, is_folder, flags, number == 1, own))
    finally:
        os.close(root)
    return found


def _open_flags(call: str) -> int:
    return 2 if call == "openat" else 1


def _says_no_follow(target: Target, flags: int, arguments: tuple[int, ...]) -> bool:
    if target.flags is not None and arguments[target.flags] & _NO_FOLLOW:
        return True
    return bool(flags & os.O_NOFOLLOW) or flags & (os.O_CREAT | os.O_EXCL) == os.O_CREAT | os.O_EXCL


def _text(pid: int, target: Target, arguments: tuple[int, ...]) -> str:
    """Return the path as passed by the caller, made absolute but not resolved."""
    path = ""
    if target.path is not None and arguments[target.path]:
        path = os.fsdecode(_string(pid, arguments[target.path]))
    if path.startswith("/"):
        return path
    handle = _HERE if target.folder is None else arguments[target.folder] & 0xFFFFFFFF
    base = _leads_to(f"/proc/{pid}/cwd" if handle == _HERE else f"/proc/{pid}/fd/{handle}")
    return f"{base}/{path}" if path else base


def _string(pid: int, address: int) -> bytes:
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
        if (magic := _PROC.fullmatch(text)) and magic[2]:
            text = _through_proc(pid, magic, text)
            if text.startswith("/proc/") or not text.startswith("/"):
                return text, True, False
        with contextlib.suppress(OSError), _opened(root, text, 0 if follow else os.O_NOFOLLOW) as handle:
            return _name(handle), True, stat.S_ISDIR(os.fstat(handle).st_mode)
        parent, _, name = text.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            break
        try:
            with _opened(root, parent or "/", os.O_DIRECTORY) as handle:
                folder = _name(handle)
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
    if who.isdigit() and int(who) not in _own_numbers(pid):
        return f"/{rest.lstrip('/')}" if what == "root" and rest else text
    if what == "root":
        return f"/{rest.lstrip('/')}"
    return _leads_to(f"/proc/{pid}/{what}") + rest


def _own_numbers(pid: int) -> frozenset[int]:
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


def _name(handle: int) -> str:
    return _leads_to(f"/proc/self/fd/{handle}")


def _leads_to(link: str) -> str:
    return os.readlink(link)  # noqa: PTH115 -- runs at each watched call: creating a Path costs more than the call


def _link(folder: int, name: str) -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink(name, dir_fd=folder)
    return None


_RECEIVE, _ANSWER, _IS_VALID, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_GO_ON = struct.pack("=qiI", 0, 0, 1)
_NOTICE = struct.Struct("=QIIiIQ6Q")
_MOST = 200
"""The most different violations that are recorded; further ones are dropped."""
_PATH = 1000

_CACHES = re.compile(
    r"/(__pycache__|\.?[\w.-]*cache(-[\w-]+)?|fontconfig|\.(vite|vite-temp|vitest|swc|turbo))(/|$)"  # folders
    r"|\.py[co](\.\d+)?$|\.(lock|lck|tsbuildinfo)$|/\.?lock$|/\.cargo-lock$|/CACHEDIR\.TAG$"  # files
)
_GIT_REFRESH = "/index.lock"
"""`git status` tries to refresh the index and works without it."""
_DEVICES = re.compile(r"/dev/(null|zero|full|random|urandom|tty|ptmx|pts/.*|console)|/proc/[^/]+/fd/\d+")
_SEMAPHORES = re.compile(r"/dev/shm/(sem\.|psm_|\.?lockdown|pymp-)[^/]*")  # noqa: S108 -- compared, not opened
_OWN_ENTRIES = re.compile(r"/proc/(self|thread-self|\d+)(/.*)?", re.DOTALL)
_HARMLESS_ENTRIES = re.compile(r"(/task/\d+)?/(oom_score_adj|oom_adj|comm|coredump_filter|timerslack_ns|clear_refs)")
_METADATA = re.compile(r"f?l?ch(mod|own)|fch(mod|own)at2?|f?utime.*|.*xattr.*")
_MAKES = ("symlink", "mknod")
_TOOL_PROBE = os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True)
class WriteRule:
    """What one command may change, and which attempts are harmless."""

    tier: SandboxTier
    worktree: str
    own: tuple[str, ...]
    """Folders it may write to: the given ones and the private ones."""
    shut: tuple[str, ...]
    """Folders inside `own` that it may not write to."""
    tools: tuple[str, ...]
    """Folders it may read, where tools are installed."""
    git_held: bool = True
    """Whether the worktree's `.git` existed before the command and the tier protects it."""
    hidden: tuple[str, ...] = ()
    """Hidden paths of a writable worktree."""

    def kind(self, attempt: WriteAttempt) -> str | None:
        """Return the kind of violation of an attempt, or None if it is none."""
        path = attempt.path
        if _is_in(path, (self._git,)):
            is_refresh = path.endswith(_GIT_REFRESH) and self.blocks(attempt)
            return None if is_refresh or not self._can_change(attempt) else "git-dir"
        if _is_in(path, self.hidden):
            return "hidden" if self._can_change(attempt) else None
        if self._is_own(path) or _DEVICES.fullmatch(path) or not path.startswith("/"):
            return None
        if (entry := _OWN_ENTRIES.fullmatch(path)) is not None:
            return self._kind_of_entry(attempt, entry)
        if _is_in(path, (self.worktree,)) or not self._can_change(attempt):
            return None
        if _is_in(path, (*self.tools, "/var/cache")) and _is_tool_noise(attempt):
            return None
        if self.tier is SandboxTier.LANDLOCK and _SEMAPHORES.fullmatch(path):
            return None
        return "link" if attempt.call.startswith("link") and not attempt.second else "write"

    def blocks(self, attempt: WriteAttempt) -> bool:
        """Return whether the tier blocks an attempt, whatever the owner of the file."""
        if self.tier is SandboxTier.NAMESPACES:
            if _is_in(attempt.path, self.hidden) or (self.git_held and _is_in(attempt.path, (self._git,))):
                return True
            return not self._is_own(attempt.path)
        if self.tier is SandboxTier.LANDLOCK:
            return not _is_in(attempt.path, self.own) and _METADATA.fullmatch(attempt.call) is None
        if _is_in(attempt.path, self.own):
            return False
        with contextlib.suppress(OSError):
            place = attempt.path if attempt.exists else os.path.dirname(attempt.path)  # noqa: PTH120
            return not os.stat(place).st_mode & 0o002  # noqa: PTH116
        return True

    @property
    def _git(self) -> str:
        return f"{self.worktree}/.git"

    def _is_own(self, path: str) -> bool:
        own = max((len(place) for place in self.own if _is_in(path, (place,))), default=-1)
        shut = max((len(place) for place in self.shut if _is_in(path, (place,))), default=-1)
        return own > shut

    def _kind_of_entry(self, attempt: WriteAttempt, entry: re.Match[str]) -> str | None:
        who, what = entry[1], entry[2] or ""
        if not who.isdigit() or int(who) in attempt.own or _HARMLESS_ENTRIES.fullmatch(what):
            return None
        return "process"

    def _can_change(self, attempt: WriteAttempt) -> bool:
        if attempt.call.startswith("mkdir"):
            return not attempt.exists
        if attempt.exists or attempt.second or attempt.flags & os.O_CREAT or attempt.call.startswith(_MAKES):
            return True
        return os.path.lexists(attempt.path)  # the command may aim at a path of the host that it cannot see


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _is_tool_noise(attempt: WriteAttempt) -> bool:
    if _CACHES.search(attempt.path):
        return True
    if attempt.call.startswith("open"):
        return attempt.flags & os.O_ACCMODE == os.O_RDWR and not attempt.flags & _TOOL_PROBE and attempt.exists
    return attempt.call.startswith("link") and not attempt.second


class SyscallObserver(threading.Thread):
    """Answers the kernel's notifications about one command until none of its processes is left."""

    def __init__(self, listener: int, rule: WriteRule) -> None:
        super().__init__(name="fairwitness-observer", daemon=True)
        self.failed: str | None = None
        self.blind = False
        self._listener = listener
        self._rule = rule
        self._counts: dict[tuple[str, str, str, bool], int] = {}
        self._names = {number: name for name, number in numbers(os.uname().machine).items() if name in TARGETS}
        self._woken, self._wake = os.pipe()

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The violations seen, each path once per system call."""
        return tuple(
            Violation(kind=kind, call=call, path=path, count=count, blocked=blocked, source="observer")
            for (kind, call, path, blocked), count in self._counts.items()
        )

    def run(self) -> None:
        """Answer notifications until the kernel reports that no process is left."""
        with contextlib.suppress(OSError):  # a faster wake-up, which kernels before 6.6 do not have
            fcntl.ioctl(self._listener, _SET_FLAGS, 1)
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        try:
            while True:
                ready = dict(poll.poll())
                if ready.get(self._listener, 0) & select.POLLIN:
                    self._answer()
                elif self._woken in ready or ready.get(self._listener, 0) & (select.POLLHUP | select.POLLERR):
                    return
        except Exception as error:  # noqa: BLE001 -- the listener must be closed, or the command would wait for ever
            self.failed = f"{type(error).__name__}: {error}"
        finally:
            os.close(self._listener)

    def finish(self) -> None:
        """Stop answering; called when no process of the command is left."""
        os.write(self._wake, b"x")
        self.join()
        os.close(self._woken)
        os.close(self._wake)

    def _answer(self) -> None:
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notice)
        except OSError:  # the caller died in the meantime
            return
        identity, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        try:
            self._note(identity, pid, self._names[number], tuple(arguments))
        finally:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._listener, _ANSWER, struct.pack("=Q", identity) + _GO_ON)

    def _note(self, identity: int, pid: int, call: str, arguments: tuple[int, ...]) -> None:
        try:
            found = write_attempts(pid, call, arguments)
        except PermissionError:  # a process can protect itself from inspection
            self.blind = self.blind or self._is_valid(identity)
            return
        except OSError:  # the kernel cannot read this path either, so the call will fail
            return
        for attempt in found:
            kind = self._rule.kind(attempt)
            if kind is None or not self._is_valid(identity):
                continue
            path = visible(os.fsencode(attempt.path).decode(errors="backslashreplace"))[:_PATH]
            key = (kind, call, path, self._rule.blocks(attempt))
            if key in self._counts or len(self._counts) < _MOST:
                self._counts[key] = self._counts.get(key, 0) + 1

    def _is_valid(self, identity: int) -> bool:
        """Return whether the call still waits, so that what was read belongs to the same process."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", identity))
            return True
        return False


def add_observer(
    launch: Launch,
    checked: CheckedCommand,
    tier: SandboxTier,
    sockets: tuple[int, ...],
    features: Features,
    private: tuple[str, ...],
) -> None:
    """Add an observer to a launch if the command asks for one and the kernel supports it."""
    if not (checked.command.observe and features.notify):
        return
    rule = WriteRule(
        tier=tier,
        worktree=checked.worktree,
        own=(*checked.write, *private),
        shut=bwrap_args.made_parents(checked) if tier is SandboxTier.NAMESPACES else (),
        tools=(*bwrap_args.system_reads(), *checked.read),
        hidden=tuple(bwrap_args.unseen(checked)) if checked.command.confinement.writable else (),
        git_held=tier is SandboxTier.NAMESPACES and os.path.lexists(f"{checked.worktree}/.git"),
    )
    launch.plan["watched"] = seccomp.program(sockets, watch=True, alone=tier is SandboxTier.NAMESPACES)
    launch.observer = lambda listener: SyscallObserver(listener, rule)
