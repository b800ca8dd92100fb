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
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Features, Violation
from fairwitness.kit.text import visible
from fairwitness.sandbox import seccomp, view
from fairwitness.sandbox.attempts import TARGETS, Attempt, attempts
from fairwitness.sandbox.launch import Launch
from fairwitness.sandbox.request import Request
from fairwitness.sandbox.syscalls import numbers

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
class Rule:
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

    def kind(self, attempt: Attempt) -> str | None:
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

    def blocks(self, attempt: Attempt) -> bool:
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

    def _kind_of_entry(self, attempt: Attempt, entry: re.Match[str]) -> str | None:
        who, what = entry[1], entry[2] or ""
        if not who.isdigit() or int(who) in attempt.own or _HARMLESS_ENTRIES.fullmatch(what):
            return None
        return "process"

    def _can_change(self, attempt: Attempt) -> bool:
        if attempt.call.startswith("mkdir"):
            return not attempt.exists
        if attempt.exists or attempt.second or attempt.flags & os.O_CREAT or attempt.call.startswith(_MAKES):
            return True
        return os.path.lexists(attempt.path)  # it may be out of the command's sight, and still be meant


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _is_tool_noise(attempt: Attempt) -> bool:
    if _CACHES.search(attempt.path):
        return True
    if attempt.call.startswith("open"):
        return attempt.flags & os.O_ACCMODE == os.O_RDWR and not attempt.flags & _TOOL_PROBE and attempt.exists
    return attempt.call.startswith("link") and not attempt.second


class Observer(threading.Thread):
    """Answers the kernel's notices of one command until none of its processes is left."""

    def __init__(self, listener: int, rule: Rule) -> None:
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
            found = attempts(pid, call, arguments)
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


def observed(
    launch: Launch,
    asked: Request,
    tier: SandboxTier,
    sockets: tuple[int, ...],
    features: Features,
    private: tuple[str, ...],
) -> None:
    """Adds an observer to a launch, where one is wanted and the kernel offers it."""
    if not (asked.command.observe and features.notify):
        return
    rule = Rule(
        tier=tier,
        worktree=asked.worktree,
        own=(*asked.write, *private),
        shut=view.made_parents(asked) if tier is SandboxTier.NAMESPACES else (),
        tools=(*view.system_reads(), *asked.read),
        hidden=tuple(view.unseen(asked)) if asked.command.confinement.writable else (),
        git_held=tier is SandboxTier.NAMESPACES and os.path.lexists(f"{asked.worktree}/.git"),
    )
    launch.plan["watched"] = seccomp.program(sockets, watch=True, alone=tier is SandboxTier.NAMESPACES)
    launch.observer = lambda listener: Observer(listener, rule)
