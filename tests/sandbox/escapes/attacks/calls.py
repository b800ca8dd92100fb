"""What every attack needs: its orders, system calls by number, and a line about each thing it tried.

The attacks run inside the sandbox with nothing but the standard library. What they print is for the person who reads
a failure; whether one got out is decided by what can be seen from outside.
"""

import ctypes
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, ParamSpec

P = ParamSpec("P")
CANARY = re.compile(rb"canary-[0-9a-z-]+")
"""Every secret that may be stolen here looks like this; an attack that meets anything else forgets it."""

_X86_64 = {
    "ptrace": 101, "mount": 165, "tgkill": 234, "add_key": 248, "keyctl": 250, "unshare": 272, "clone": 56,
    "perf_event_open": 298, "prlimit64": 302, "open_by_handle_at": 304, "process_vm_readv": 310, "bpf": 321,
    "userfaultfd": 323, "ioprio_set": 251,
}  # fmt: skip
_AARCH64 = {
    "ptrace": 117, "mount": 40, "tgkill": 131, "add_key": 217, "keyctl": 219, "unshare": 97, "clone": 220,
    "perf_event_open": 241, "prlimit64": 261, "open_by_handle_at": 265, "process_vm_readv": 270, "bpf": 280,
    "userfaultfd": 282, "ioprio_set": 30,
}  # fmt: skip
_EVERYWHERE = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "pidfd_open": 434, "clone3": 435, "openat2": 437,
    "pidfd_getfd": 438, "landlock_create_ruleset": 444, "fchmodat2": 452,
}  # fmt: skip
_NUMBERS = {**{"x86_64": _X86_64, "aarch64": _AARCH64}.get(os.uname().machine, {}), **_EVERYWHERE}
_MOMENT_S, _UNSEEN_S, _PATIENCE_S = 0.5, 2.0, 20.0
HOLDING, SEEN = "hold-", ".seen"
"""Files by which a process says that it waits to be looked at, and is told that it was."""
_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.syscall.restype = ctypes.c_long


class Orders(NamedTuple):
    """What an attack is told about the world outside: it knows every path and number it could ever guess."""

    id: str
    scene: str
    outside: str
    """A folder that is in no view."""
    visible: str
    """A folder that may be read."""
    home: str
    other: str
    """Another task's worktree."""
    git: str
    """The main repository's `.git`, which may be read."""
    database: str
    temporary: str
    """A folder right under /tmp."""
    outside_inode: int
    device: str
    device_number: int
    orchestrator: int
    """The process that runs the sandbox."""
    decoy: int
    """A process that stands for it and holds secrets."""
    decoy_address: int
    decoy_length: int
    decoy_handle: int
    tcp: int
    udp: int
    abstract: str
    socket: str
    free_port: int
    key: int
    key_name: str
    shared_memory: int
    own_pids: bool
    """Whether the process numbers in sight are the sandbox's own."""
    confined: bool
    watched: bool
    """Whether somebody looks at its processes from outside, and tells when that was done."""
    amount: int
    life_s: float


Attack = Callable[[Orders], None]


def run(attacks: Mapping[str, Attack]) -> None:
    """Carry out the orders on the command line."""
    orders = Orders(**json.loads(sys.argv[1]))
    say(f"begun {orders.id}")
    attacks[orders.id](orders)
    say(f"ended {orders.id}")


def say(line: str) -> None:
    """One line on stdout, at once."""
    os.write(1, line.encode(errors="replace") + b"\n")


def attempt(label: str, action: Callable[P, object], *arguments: P.args, **named: P.kwargs) -> object:
    """Do it, and say what the system answered; what it gave, or None."""
    try:
        result = action(*arguments, **named)
    except (OSError, MemoryError) as error:
        say(f"tried {label}: {error!r}")
        return None
    say(f"tried {label}: done")
    return result


def spill(label: str, source: Callable[[], bytes]) -> None:
    """Print the canaries in what was read, and nothing else of it."""

    def reading() -> None:
        for canary in sorted(set(CANARY.findall(source()))):
            say(f"loot {label} {canary.decode()}")

    attempt(label, reading)


def system_call(name: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """A system call by its number, without whatever the C library does around it."""
    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = int(_LIBRARY.syscall(ctypes.c_long(_NUMBERS[name]), *words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


def hold(orders: Orders) -> None:
    """Stay as it is until it was looked at from outside; where nobody looks, for a moment."""
    mark = Path(f"{HOLDING}{os.getpid()}")
    try:
        if orders.watched:
            mark.touch()
    except OSError:  # in a namespace of its own it may be nobody here
        time.sleep(_UNSEEN_S)
        return
    if not orders.watched:
        time.sleep(_MOMENT_S)
        return
    end = time.monotonic() + _PATIENCE_S
    while not Path(f"{mark}{SEEN}").exists() and time.monotonic() < end:
        time.sleep(0.01)


def last(orders: Orders) -> None:
    """Keep what is too much: in a sandbox until it is stopped or its life is over, elsewhere until it was seen."""
    if orders.confined:
        time.sleep(orders.life_s)
    else:
        hold(orders)


def child(action: Callable[[], object]) -> int:
    """Do something in a child of our own, which then ends without ceremony."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    return pid
