"""Report what a confined command tries to change outside its own folders.

The sandbox blocks by itself; the observer only reports. It receives a notification for each watched system call, reads
the call's paths from the caller's memory (`caller_paths`), and lets the call continue. Only calls that the tier itself
cannot hold are answered here (`held_calls`), and so are sockets that the tier does not have: they are refused, and the
result says what the command lacked.

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
import errno
import fcntl
import os
import re
import select
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Features, Violation
from fairwitness.kit.text import visible_path
from fairwitness.sandbox import bwrap_args, seccomp
from fairwitness.sandbox.caller_paths import TARGETS, WriteAttempt, write_attempts
from fairwitness.sandbox.checked_command import CheckedCommand
from fairwitness.sandbox.held_calls import METADATA, HeldCalls
from fairwitness.sandbox.launch import Launch
from fairwitness.sandbox.syscalls import numbers

_RECEIVE, _ANSWER, _IS_VALID, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_ADD_HANDLE, _AND_ANSWER = 0x40182103, 2
_GO_ON = struct.pack("=qiI", 0, 0, 1)
_NOTICE = struct.Struct("=QIIiIQ6Q")
_MOST = 200
"""The most different violations that are recorded; further ones are dropped."""

_CACHES = re.compile(
    r"/(__pycache__|\.?[\w.-]*cache(-[\w-]+)?|fontconfig|\.(vite|vite-temp|vitest|swc|turbo))(/|$)"  # folders
    r"|\.py[co](\.\d+)?$|\.(lock|lck|tsbuildinfo)$|/\.?lock$|/\.cargo-lock$|/CACHEDIR\.TAG$"  # files
)
_GIT_REFRESH = "/index.lock"
"""`git status` tries to refresh the index and works without it."""
_DEVICES = re.compile(r"/dev/(null|zero|full|random|urandom|tty|ptmx|pts/.*|console)|/proc/[^/]+/fd/\d+")
SHARED_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")  # noqa: S108 -- compared, not opened
"""Places where everybody may write; in the `uid` tier what a command leaves there is removed."""
_OWN_ENTRIES = re.compile(r"/proc/(self|thread-self|\d+)(/.*)?", re.DOTALL)
_HARMLESS_ENTRIES = re.compile(r"(/task/\d+)?/(oom_score_adj|oom_adj|comm|coredump_filter|timerslack_ns|clear_refs)")
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
    holds: bool = False
    """Whether changes of metadata are held."""
    uid: int | None = None
    """The command's own user in the `uid` tier."""

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
        if self.lacked(attempt) is not None or self._is_swept(path):
            return None
        return "link" if attempt.call.startswith("link") and not attempt.second else "write"

    def _is_swept(self, path: str) -> bool:
        """Return whether a path is the command's own in a place where everybody may write, and is removed later."""
        if self.uid is None or path.rpartition("/")[0] not in SHARED_PLACES:
            return False
        try:
            return os.lstat(path).st_uid == self.uid
        except FileNotFoundError:
            return True

    def lacked(self, attempt: WriteAttempt) -> str | None:
        """Return what an honest command tries to use that only the `ns` tier has, or None."""
        if self.tier is not SandboxTier.LANDLOCK:
            return None
        if attempt.path.startswith(("/dev/ptmx", "/dev/pts/")):
            return "a terminal of its own"
        if _is_new_in(attempt.path, ("/dev/shm",)):  # noqa: S108 -- compared, not opened
            return "shared memory of its own"
        if _is_new_in(attempt.path, SHARED_PLACES):
            return f"a {os.path.dirname(attempt.path)} of its own"  # noqa: PTH120
        return None

    def blocks(self, attempt: WriteAttempt) -> bool:
        """Return whether the tier blocks an attempt, whatever the owner of the file."""
        if self.tier is SandboxTier.NAMESPACES:
            if _is_in(attempt.path, self.hidden) or (self.git_held and _is_in(attempt.path, (self._git,))):
                return True
            return not self._is_own(attempt.path)
        if self.tier is SandboxTier.LANDLOCK:
            return not _is_in(attempt.path, self.own) and (self.holds or attempt.call not in METADATA)
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


def _is_new_in(path: str, places: Iterable[str]) -> bool:
    """Return whether a path lies directly in one of the places, and the machine has nothing there."""
    return path.rpartition("/")[0] in places and not os.path.lexists(path)


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _is_tool_noise(attempt: WriteAttempt) -> bool:
    if _CACHES.search(attempt.path):
        return True
    if attempt.call.startswith("open"):
        return attempt.flags & os.O_ACCMODE == os.O_RDWR and not attempt.flags & _TOOL_PROBE and attempt.exists
    return attempt.call.startswith("link") and not attempt.second


_STREAM_OF_LIBC = 1 | os.O_NONBLOCK | os.O_CLOEXEC
"""The C library asks for such a unix socket whenever a program asks for the name of a user, and works without it."""


def _refused(code: int) -> bytes:
    """Return the answer that makes a call fail with an error number, or succeed if it is 0."""
    return struct.pack("=qiI", 0, -code, 0)


class SyscallObserver(threading.Thread):
    """Answers the kernel's notifications about one command until none of its processes is left."""

    def __init__(self, listener: int, rule: WriteRule, held: HeldCalls | None, *, observes: bool) -> None:
        super().__init__(name="fairwitness-observer", daemon=True)
        self.failed: str | None = None
        self.blind = False
        self.lacked: set[str] = set()
        self._held = held
        self._observes = observes
        self._listener = listener
        self._rule = rule
        self._counts: dict[tuple[str, str, str, bool], int] = {}
        self._names = {
            number: name for name, number in numbers(os.uname().machine).items() if name in TARGETS or name == "socket"
        }
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
        call = self._names[number]
        answer: bytes | None = _refused(errno.EPERM) if call == "socket" or call in METADATA else _GO_ON
        try:
            answer = self._answer_to(identity, pid, call, tuple(arguments))
        finally:
            if answer is not None:
                with contextlib.suppress(OSError):
                    fcntl.ioctl(self._listener, _ANSWER, struct.pack("=Q", identity) + answer)

    def _answer_to(self, identity: int, pid: int, call: str, arguments: tuple[int, ...]) -> bytes | None:
        """Return the answer to a call, or None if it has been answered."""
        if call == "socket":
            self._lack_socket(arguments)
            return _refused(errno.EPERM)
        if self._held is not None and self._rule.tier is SandboxTier.LANDLOCK:
            with contextlib.suppress(OSError):
                if (code := self._held.change_shared(pid, call, arguments)) is not None:
                    return _refused(code)
            if call in ("open", "openat") and self._open_shared(identity, pid, call, arguments):
                return None
        self._note(identity, pid, call, arguments)
        if self._held is not None and call in METADATA and self._rule.holds:
            code = self._held.change_metadata(pid, call, arguments)
            return _refused(code) if self._is_valid(identity) else _GO_ON
        return _GO_ON

    def _lack_socket(self, arguments: tuple[int, ...]) -> None:
        family, kind = arguments[0] & 0xFFFFFFFF, arguments[1]
        if family in (seccomp.INET, seccomp.INET6):
            self.lacked.add("a network of its own")
        elif family == seccomp.UNIX and kind & _STREAM_OF_LIBC != _STREAM_OF_LIBC:
            self.lacked.add("unix sockets")

    def _open_shared(self, identity: int, pid: int, call: str, arguments: tuple[int, ...]) -> bool:
        """Answer a call that opens a file of the private /dev/shm; return False if it opens another file."""
        assert self._held is not None
        try:
            handle = self._held.open_shared(pid, call, arguments)
        except OSError as error:
            answer = struct.pack("=Q", identity) + _refused(error.errno or errno.EACCES)
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._listener, _ANSWER, answer)
            return True
        if handle is None:
            return False
        at = 2 if call == "openat" else 1
        try:
            added = struct.pack("=QIIII", identity, _AND_ANSWER, handle, 0, arguments[at] & os.O_CLOEXEC)
            fcntl.ioctl(self._listener, _ADD_HANDLE, added)
        except OSError:  # a kernel before 5.14, or the caller died: then Landlock refuses the call
            return False
        finally:
            os.close(handle)
        return True

    def _note(self, identity: int, pid: int, call: str, arguments: tuple[int, ...]) -> None:
        try:
            found = write_attempts(pid, call, arguments)
        except PermissionError:  # a process can protect itself from inspection
            self.blind = self.blind or self._is_valid(identity)
            return
        except OSError:  # the kernel cannot read this path either, so the call will fail
            return
        for attempt in found:
            if (lacked := self._rule.lacked(attempt)) is not None:
                self.lacked.add(lacked)
            kind = self._rule.kind(attempt) if self._observes else None
            if kind is None or not self._is_valid(identity):
                continue
            path = visible_path(attempt.path)
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
    shared: str = "",
) -> None:
    """Add an observer to a launch if the command asks for one, or the tier needs it, and the kernel supports it.

    `shared` is the private folder that stands for /dev/shm in the `ll` tier.
    """
    holds = tier is SandboxTier.LANDLOCK
    observes = checked.command.observe
    if not ((observes or holds) and features.notify):
        return
    rule = WriteRule(
        tier=tier,
        worktree=checked.worktree,
        own=(*checked.write, *private),
        shut=bwrap_args.made_parents(checked) if tier is SandboxTier.NAMESPACES else (),
        tools=(*bwrap_args.system_reads(), *checked.read),
        hidden=tuple(bwrap_args.unseen(checked)) if checked.command.confinement.writable else (),
        holds=holds,
        uid=launch.plan["uid"],
        git_held=tier is SandboxTier.NAMESPACES and os.path.lexists(f"{checked.worktree}/.git"),
    )
    alone = tier is SandboxTier.NAMESPACES
    launch.plan["watched"] = seccomp.program(sockets, watch=observes, alone=alone, hold=not alone)
    held = HeldCalls(rule.own, shared) if holds else None
    launch.observer = lambda listener: SyscallObserver(listener, rule, held, observes=observes)
