"""Every attempt: what it is, how it would be seen from outside, and what must come of it in each tier.

W writes, R reads, P processes and limits, N network, S kernel surface: sixty-one, with the outcomes they must have.
X are some more of our own. `ns` holds all of them; `ll` and `uid` let out only what is marked so, and each of those
has a duty of the orchestrator with a test of its own in `test_duties`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

MIB = 1 << 20


class Channel(StrEnum):
    """By what an escape is seen from outside."""

    FILES = "files"
    """Something outside the worktree is not as it was."""
    GIT = "git"
    """The worktree's `.git` is not as it was."""
    PLANTED = "planted"
    """The worktree holds what may not be there: a device, a set-user-id program."""
    SECRET = "secret"
    """A canary stands in the output or in the worktree."""
    SIGNAL = "signal"
    """The decoy was signalled, stopped, ended, traced or changed."""
    NETWORK = "network"
    """A listener heard from it, or it was heard outside."""
    HANDLE = "handle"
    """A process of the attempt held something open that it may not have."""
    NAMESPACE = "namespace"
    """A process of the attempt was in a namespace of its own."""
    SURVIVOR = "survivor"
    """A process of the attempt lived, or wrote, after the command had ended."""
    LIMIT = "limit"
    """It had more than its limits allow."""
    TERMINAL = "terminal"
    """The orchestrator's terminal got characters."""
    REPORT = "report"
    """The runner reported another end than the command's own."""


class Watch(StrEnum):
    """What is looked at while an attempt runs."""

    HANDLES = "handles"
    NAMESPACES = "namespaces"
    PROCESSES = "processes"
    MEMORY = "memory"


@dataclass(frozen=True)
class Control:
    """What must come of the attempt as a plain subprocess, so that the test is known to be able to fail."""

    who: Literal["everybody", "root", "nobody"]
    why: str = ""
    """Why it is not tried unconfined, or how it is kept harmless."""
    kernel_may_refuse: bool = False
    """Some machines refuse this to everybody: then there is nothing to show."""
    amount: int | None = None
    """A smaller amount than in the sandbox."""
    life_s: float = 4.0
    """How long it goes on, if it goes on at all."""


EVERYBODY = Control("everybody")
IF_ALLOWED = Control("everybody", kernel_may_refuse=True)

Limits = Mapping[str, int | float]


@dataclass(frozen=True)
class Attempt:
    """One attempt."""

    id: str
    title: str
    channel: Channel
    control: Control = EVERYBODY
    gets_out: frozenset[str] = frozenset()
    """The tiers in which it is known to get out."""
    duty: str = ""
    decoy: bool = False
    watch: frozenset[Watch] = frozenset()
    limits: Limits = field(default_factory=dict)
    """Other than those every attempt has."""
    amount: int = 0
    life_s: float = 0
    """How long it would go on by itself in a sandbox, if it were let to; far longer than stopping it takes."""

    @property
    def module(self) -> str:
        return {"W": "writes", "R": "reads", "P": "processes", "N": "network"}.get(self.id[0], "kernel")


def _never(why: str) -> Control:
    return Control("nobody", why)


_C, _W = Channel, Watch
_HANDLES = frozenset({_W.HANDLES})
_NAMESPACES = frozenset({_W.NAMESPACES})
_LL, _UID = "ll", "uid"
_SOON: Limits = {"wall_s": 1.5}
_LIFE_S = 20.0
_DAEMONS = Control("everybody", life_s=15.0)
_PROCESSES_WATCHED = frozenset({_W.PROCESSES})

_WRITES = (
    Attempt("W01", "append to ~/.bashrc", _C.FILES),
    Attempt("W02", "create a file in /etc", _C.FILES, _never("it would write into the machine's /etc")),
    Attempt("W03", "write in a /tmp folder outside the private tmp", _C.FILES),
    Attempt("W04", "`../` out of the worktree", _C.FILES),
    Attempt("W05", "write through a symlink that leads out, also a dangling one", _C.FILES),
    Attempt("W06", "hard link an outside file in and write to it", _C.FILES),
    Attempt("W07", "rename a file out", _C.FILES),
    Attempt("W08", "append to the main repository's .git/config", _C.FILES),
    Attempt("W09", "plant .git/hooks/post-checkout", _C.FILES),
    Attempt("W10", "replace the worktree's .git by a repository with core.fsmonitor", _C.GIT,
            gets_out=frozenset({_LL, _UID}), duty="explicit --git-dir; another .git is a violation"),
    Attempt("W11", "insert a row into the evidence database", _C.FILES),
    Attempt("W12", "chmod, utime and xattr of an own file outside", _C.FILES),
    Attempt("W13", "truncate(2) by path", _C.FILES),
    Attempt("W14", "open the block device for writing", _C.HANDLE, _never("a slip would damage the disk"),
            watch=_HANDLES),
    Attempt("W15", "use inherited descriptors, also the runner's own", _C.FILES),
    Attempt("W16", "write by /proc/PARENT/root", _C.FILES, IF_ALLOWED, decoy=True),
    Attempt("W17", "remount / read-write", _C.FILES, _never("it would change the machine's mounts")),
    Attempt("W18", "nested user namespace with mounts", _C.NAMESPACE, IF_ALLOWED, watch=_NAMESPACES),
    Attempt("W19", "open_by_handle_at", _C.FILES, _never("it opens the file system's root past every mount")),
    Attempt("W20", "open core_pattern for writing", _C.HANDLE,
            Control("root", "opened, never written", kernel_may_refuse=True), watch=_HANDLES),
    Attempt("W21", "write in /var/tmp and /dev/shm", _C.FILES, gets_out=frozenset({_UID}),
            duty="world-writable places: what the task's uid left there is removed", watch=_HANDLES),
    Attempt("W22", "mknod a block device", _C.PLANTED, _never("a slip would damage the disk"), watch=_HANDLES),
    Attempt("W23", "set the setuid bit on a worktree file", _C.PLANTED),
)  # fmt: skip

_READS = (
    Attempt("R01", "read ~/.ssh/id_rsa", _C.SECRET),
    Attempt("R02", "read ~/.netrc", _C.SECRET),
    Attempt("R03", "secret in the own environment", _C.SECRET),
    Attempt("R04", "environment of the parent", _C.SECRET, IF_ALLOWED, decoy=True),
    Attempt("R05", "environment of process 1, where it is the sandbox's own", _C.SECRET, IF_ALLOWED, decoy=True),
    Attempt("R05b", "environment of any process", _C.SECRET, IF_ALLOWED, decoy=True),
    Attempt("R06", "the parent's memory by /proc/PID/mem", _C.SECRET, IF_ALLOWED, decoy=True),
    Attempt("R07", "open /etc/shadow", _C.HANDLE, Control("root", "opened, never read", kernel_may_refuse=True),
            watch=_HANDLES),
    Attempt("R08", "another task's worktree", _C.SECRET),
    Attempt("R09", "secrets in other processes' command lines", _C.SECRET, IF_ALLOWED,
            gets_out=frozenset({_LL, _UID}), duty="no secret is ever put in argv", decoy=True),
    Attempt("R10", "the user's kernel keyring", _C.SECRET, IF_ALLOWED),
)  # fmt: skip

_PROCESSES = (
    Attempt("P01", "signal the parent", _C.SIGNAL, decoy=True),
    Attempt("P02", "ptrace the parent", _C.SIGNAL, IF_ALLOWED, decoy=True, watch=_HANDLES),
    Attempt("P03", "process_vm_readv of the parent", _C.SECRET, IF_ALLOWED, decoy=True),
    Attempt("P04", "double-forked daemon after a time-out", _C.SURVIVOR, _DAEMONS, limits=_SOON,
            life_s=_LIFE_S),
    Attempt("P05", "double-forked daemon after a normal end", _C.SURVIVOR, _DAEMONS, life_s=_LIFE_S),
    Attempt("P06", "fork bomb", _C.LIMIT, Control("everybody", "100 processes that sleep", amount=100),
            watch=_PROCESSES_WATCHED, limits={"processes": 64}, amount=600, life_s=_LIFE_S),
    Attempt("P07", "memory bomb in one process", _C.LIMIT, Control("everybody", "384 MiB", amount=384 * MIB),
            watch=frozenset({_W.MEMORY}), amount=1024 * MIB, life_s=_LIFE_S,
            limits={"memory": 192 * MIB, "memory_process": 192 * MIB}),
    Attempt("P07b", "memory bomb in six processes", _C.LIMIT, Control("everybody", "384 MiB", amount=384 * MIB),
            watch=frozenset({_W.MEMORY}), amount=768 * MIB, life_s=_LIFE_S,
            limits={"memory": 192 * MIB, "memory_process": 192 * MIB}),
    Attempt("P08", "fill the disk by many files in the worktree", _C.LIMIT, Control("everybody", "64 MiB, removed"),
            watch=_HANDLES, limits={"disk": 8 * MIB}, amount=64 * MIB, life_s=_LIFE_S),
    Attempt("P08b", "fill the disk by many files in tmp", _C.LIMIT, Control("everybody", "64 MiB, removed"),
            watch=_HANDLES, limits={"disk": 8 * MIB, "temporary": 8 * MIB}, amount=64 * MIB, life_s=_LIFE_S),
    Attempt("P09", "one huge file", _C.LIMIT, Control("everybody", "32 MiB, removed"),
            limits={"file_size": 4 * MIB}, amount=32 * MIB),
    Attempt("P10", "200 MB on stdout", _C.LIMIT, Control("everybody", "32 MiB", amount=32 * MIB),
            limits={"output_kept": 64 << 10, "output_killed": 8 * MIB}, amount=200 * MIB),
    Attempt("P11", "a background child holds stdout open", _C.LIMIT, life_s=_LIFE_S),
    Attempt("P12", "ignore every signal and spin", _C.LIMIT, limits=_SOON, life_s=_LIFE_S),
    Attempt("P13", "push characters into the terminal", _C.TERMINAL, IF_ALLOWED),
    Attempt("P14", "SIGSTOP itself", _C.LIMIT, limits=_SOON, life_s=_LIFE_S),
)  # fmt: skip

_NETWORK = (
    Attempt("N01", "loopback TCP", _C.NETWORK),
    Attempt("N02", "loopback UDP", _C.NETWORK),
    Attempt("N03", "abstract unix socket", _C.NETWORK),
    Attempt("N04", "a unix socket file outside", _C.NETWORK),
    Attempt("N05", "a route to the outside", _C.HANDLE, IF_ALLOWED, watch=_HANDLES),
    Attempt("N06", "listen on the host's loopback", _C.NETWORK),
    Attempt("N07", "create a vsock socket, or one of another odd family", _C.HANDLE, IF_ALLOWED, watch=_HANDLES),
    Attempt("N08", "create a raw packet socket", _C.HANDLE, Control("root", kernel_may_refuse=True), watch=_HANDLES),
)

_SURFACE = (
    Attempt("S01", "io_uring", _C.HANDLE, IF_ALLOWED, watch=_HANDLES),
    Attempt("S02", "bpf, perf events, userfaultfd", _C.HANDLE, IF_ALLOWED, watch=_HANDLES),
    Attempt("S03", "nested user namespace", _C.NAMESPACE, IF_ALLOWED, watch=_NAMESPACES),
)

_MORE = (
    Attempt("X01", "limits, priority and cores of the parent", _C.SIGNAL, decoy=True),
    Attempt("X02", "kill the sandbox's own supervisor", _C.REPORT, _never("unconfined its parent is ourselves")),
    Attempt("X03", "System V shared memory of the user", _C.SECRET, IF_ALLOWED),
    Attempt("X04", "io_uring by the i386 and x32 doors", _C.HANDLE, IF_ALLOWED, watch=_HANDLES),
    Attempt("X05", "memory bomb in files that lie in memory", _C.LIMIT, Control("everybody", "384 MiB"),
            watch=_HANDLES, amount=384 * MIB, life_s=_LIFE_S,
            limits={"memory": 192 * MIB, "memory_process": 192 * MIB, "disk": 192 * MIB, "temporary": 192 * MIB}),
    Attempt("X06", "bomb of threads", _C.LIMIT, Control("everybody", "400 threads that sleep", amount=400),
            watch=_PROCESSES_WATCHED, limits={"processes": 64}, amount=1200, life_s=_LIFE_S),
    Attempt("X07", "bomb of processes that nobody waits for", _C.LIMIT,
            Control("everybody", "100 dead processes", amount=100),
            watch=_PROCESSES_WATCHED, limits={"processes": 64}, amount=400, life_s=_LIFE_S),
)  # fmt: skip

SIXTY_ONE = (*_WRITES, *_READS, *_PROCESSES, *_NETWORK, *_SURFACE)
ATTEMPTS = (*SIXTY_ONE, *_MORE)
BY_ID = {attempt.id: attempt for attempt in ATTEMPTS}
