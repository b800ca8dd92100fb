"""Names what a confined command tries to change outside: watches, always lets the call go on, and keeps a list.

The walls hold by themselves; the observer only reports. What it reports makes the run a violation, so the rule of what
is none stands here, in one place:

- the places a command may write to are its own, with three exceptions: the worktree's `.git`, hidden paths, and
  folders that exist only to hold something that is shown;
- what is hidden in a writable worktree is nobody's to write to (`hidden`): what stands there was put there by us;
- a read-only worktree may be tried, hidden paths too: linters look for a place for their caches, and the attempt
  changes nothing;
- a tool may try its byte code, caches and locks where it is installed (`_CACHES`), may open a file there for reading
  and writing without making or emptying one, and may link from there;
- what cannot change anything is no attempt: making a folder that is there, removing or changing what is neither in
  the command's view nor on this machine;
- devices that hold nothing, and a process's own entries under /proc.
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
    """Where in a call's arguments a path stands. Without `path`, `folder` is an open file itself."""

    folder: int | None
    path: int | None
    follow: bool = False
    flags: int | None = None
    """The argument that may say not to follow a last link."""


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
"""For each watched call, the paths that it may change."""


@dataclass(frozen=True)
class WriteAttempt:
    """One path that one call is about to change."""

    call: str
    path: str
    exists: bool
    """In the caller's view."""
    is_folder: bool = False
    flags: int = 0
    """Of an open."""
    second: bool = False
    """The destination of a rename or link."""
    own: frozenset[int] = frozenset()
    """The numbers under which the caller knows itself."""


def write_attempts(pid: int, call: str, arguments: tuple[int, ...]) -> list[WriteAttempt]:
    """What a call of a waiting process would change; OSError if the process is gone or cannot be looked into."""
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
    """The path as the caller means it, made absolute but not resolved."""
    path = ""
    if target.path is not None and arguments[target.path]:
        path = os.fsdecode(_string(pid, arguments[target.path]))
    if path.startswith("/"):
        return path
    handle = _HERE if target.folder is None else arguments[target.folder] & 0xFFFFFFFF
    base = _leads_to(f"/proc/{pid}/cwd" if handle == _HERE else f"/proc/{pid}/fd/{handle}")
    return f"{base}/{path}" if path else base


def _string(pid: int, address: int) -> bytes:
    """Text in another process's memory, read page by page up to its end."""
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
    """The path that would be changed, whether something is there, and whether that is a folder."""
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
    """Leads through the kernel's own links, which no other process can follow for the caller."""
    who, what, rest = magic.groups()
    if who.isdigit() and int(who) not in _own_numbers(pid):
        return f"/{rest.lstrip('/')}" if what == "root" and rest else text
    if what == "root":
        return f"/{rest.lstrip('/')}"
    return _leads_to(f"/proc/{pid}/{what}") + rest


def _own_numbers(pid: int) -> frozenset[int]:
    """All numbers of a process, in each namespace it is in."""
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
    return os.readlink(link)  # noqa: PTH115 -- at each watched call: a Path costs more than the call


def _link(folder: int, name: str) -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink(name, dir_fd=folder)
    return None


_RECEIVE, _ANSWER, _IS_VALID, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_GO_ON = struct.pack("=qiI", 0, 0, 1)
_NOTICE = struct.Struct("=QIIiIQ6Q")
_MOST = 200
"""So many different violations are named; then they are only counted."""
_PATH = 1000

_CACHES = re.compile(
    r"/(__pycache__|\.?[\w.-]*cache(-[\w-]+)?|fontconfig|\.(vite|vite-temp|vitest|swc|turbo))(/|$)"  # of folders
    r"|\.py[co](\.\d+)?$|\.(lock|lck|tsbuildinfo)$|/\.?lock$|/\.cargo-lock$|/CACHEDIR\.TAG$"  # of files
)
_GIT_REFRESH = "/index.lock"
"""`git status` looks whether it may note what it saw; it does without."""
_DEVICES = re.compile(r"/dev/(null|zero|full|random|urandom|tty|ptmx|pts/.*|console)|/proc/[^/]+/fd/\d+")
_SEMAPHORES = re.compile(r"/dev/shm/(sem\.|psm_|\.?lockdown|pymp-)[^/]*")  # noqa: S108 -- looked at, not used
_OWN_ENTRIES = re.compile(r"/proc/(self|thread-self|\d+)(/.*)?", re.DOTALL)
_HARMLESS_ENTRIES = re.compile(r"(/task/\d+)?/(oom_score_adj|oom_adj|comm|coredump_filter|timerslack_ns|clear_refs)")
_METADATA = re.compile(r"f?l?ch(mod|own)|fch(mod|own)at2?|f?utime.*|.*xattr.*")
_MAKES = ("symlink", "mknod")
_TOOL_PROBE = os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True)
class WriteRule:
    """What one command may change, and what is no more than noise."""

    tier: SandboxTier
    worktree: str
    own: tuple[str, ...]
    """Where it may write: folders it was given, and private ones."""
    shut: tuple[str, ...]
    """Folders inside these that are not its own."""
    tools: tuple[str, ...]
    """Where it may read, and tools live."""
    git_held: bool = True
    """Whether the worktree's `.git` was there before, and is held by the tier."""
    hidden: tuple[str, ...] = ()
    """Paths of a writable worktree over which something empty lies."""

    def kind(self, attempt: WriteAttempt) -> str | None:
        """The kind of violation that an attempt is; None if it is none."""
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
        """Whether the tier stops it, whoever owns the file."""
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
        return os.path.lexists(attempt.path)  # it may be out of the command's sight, and still be meant


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _is_tool_noise(attempt: WriteAttempt) -> bool:
    if _CACHES.search(attempt.path):
        return True
    if attempt.call.startswith("open"):
        return attempt.flags & os.O_ACCMODE == os.O_RDWR and not attempt.flags & _TOOL_PROBE and attempt.exists
    return attempt.call.startswith("link") and not attempt.second


class SyscallObserver(threading.Thread):
    """Answers the kernel's notices of one command until none of its processes is left."""

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
        """What was seen, each path once per call."""
        return tuple(
            Violation(kind=kind, call=call, path=path, count=count, blocked=blocked, source="observer")
            for (kind, call, path, blocked), count in self._counts.items()
        )

    def run(self) -> None:
        """Watches until the kernel says that nobody is left."""
        with contextlib.suppress(OSError):  # kernels before 6.6 wake us less directly
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
        except Exception as error:  # noqa: BLE001 -- whoever waits for an answer must not wait for ever
            self.failed = f"{type(error).__name__}: {error}"
        finally:
            os.close(self._listener)

    def finish(self) -> None:
        """Ends the watch; called when nothing is left to be watched."""
        os.write(self._wake, b"x")
        self.join()
        os.close(self._woken)
        os.close(self._wake)

    def _answer(self) -> None:
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notice)
        except OSError:  # the caller died meanwhile
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
        except PermissionError:  # a process may shut itself against being looked into
            self.blind = self.blind or self._is_valid(identity)
            return
        except OSError:  # a path that cannot be read is none that the kernel will find
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
        """Whether it is still the same process that waits."""
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
    """Adds an observer to a launch, where one is wanted and the kernel offers it."""
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
