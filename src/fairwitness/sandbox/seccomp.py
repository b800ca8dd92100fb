"""Build the seccomp filter: which system calls every confined command is refused, and which are watched.

A filter cannot follow pointers, so it compares numbers only. A call whose arguments are in memory (`clone3`, `openat2`)
is refused as unknown; programs then fall back to the older call, whose arguments can be compared.
"""

import errno
import functools
import platform
import struct

from fairwitness.contracts.common.sandbox import Network
from fairwitness.sandbox.child_setup import SUPERVISOR, SUPERVISOR_GROUP
from fairwitness.sandbox.held_calls import METADATA
from fairwitness.sandbox.syscalls import ARCHITECTURES, numbers

ALLOW, NOTIFY, KILL = 0x7FFF0000, 0x7FC00000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_NEW_TIME = 0x80
_SETID = 0o6000
_WRITES = 0o3 | 0o100 | 0o1000 | 0o20000000  # access mode, O_CREAT, O_TRUNC, O_TMPFILE
_CREATES = 0o100 | 0o20000000
_DEVICES = (0o060000, 0o020000)
_TERMINAL_PUSH, _TERMINAL_OTHER = 0x5412, 0x541C
_EVERYONE = 0xFFFFFFFF
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16

Step = tuple[int, int, int, int]


def refuse(code: int) -> int:
    """Return the filter's answer that makes a call fail with an errno."""
    return 0x00050000 | code


PERM, UNKNOWN = refuse(errno.EPERM), refuse(errno.ENOSYS)

REFUSED = {
    PERM: (
        "ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd bpf perf_event_open userfaultfd"
        " add_key request_key keyctl open_by_handle_at fanotify_init init_module finit_module delete_module"
        " kexec_load kexec_file_load reboot swapon swapoff syslog acct quotactl quotactl_fd settimeofday"
        " clock_settime sethostname setdomainname vhangup iopl ioperm modify_ldt uselib mount umount2 pivot_root"
        " chroot setns open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr file_setattr"
    ),
    # programs try these calls and work without them
    UNKNOWN: "clone3 openat2 io_uring_setup io_uring_enter io_uring_register pidfd_send_signal",
}
WATCHED = (
    "creat truncate rename renameat renameat2 mkdir mkdirat rmdir unlink unlinkat link linkat symlink symlinkat"
    " chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr fsetxattr removexattr"
    " lremovexattr fremovexattr setxattrat removexattrat"
)
_MODE_AT = {"creat": 1, "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "mknod": 1, "mknodat": 2}
_FLAGS_AT = {"open": 1, "openat": 2}
_OTHERS_AT = {
    "prlimit64": 0,
    "setpriority": 1,
    "sched_setaffinity": 0,
    "sched_setscheduler": 0,
    "sched_setparam": 0,
    "sched_setattr": 0,
    "ioprio_set": 1,
}
"""Calls that change another process if the argument at this position names one; 0 names the caller."""
_SHARED_MEMORY = "shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink"
_PID_AT = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open", "prlimit64")


def families(network: Network, *, own_network: bool) -> tuple[int, ...]:
    """Return the socket families that a command may use; none if it would share the host's network."""
    if own_network:
        return (UNIX, INET, INET6, NETLINK)
    if network is Network.OPEN:
        return (INET, INET6, NETLINK)  # no unix sockets: services of the host listen there
    return ()


@functools.cache
def program(sockets: tuple[int, ...], *, watch: bool, alone: bool, hold: bool = False, machine: str = "") -> bytes:
    """Return the filter in the kernel's format.

    `alone` means that the command sees no processes and no shared memory but its own. `hold` also passes calls that
    change metadata, and refused sockets, to the observer, which answers them itself.
    """
    machine = machine or platform.machine()
    calls = numbers(machine)
    steps: list[Step] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (_ANSWER, 0, 0, KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _X32),
        (_ANSWER, 0, 0, UNKNOWN),
    ]
    blocks = _blocks(sockets, NOTIFY if watch else ALLOW, hold=hold)
    for name, block in (blocks if alone else blocks | _blocks_among_others()).items():
        if name in calls:
            steps.append((_EQUAL, 0, len(block), calls[name]))
            steps.extend(block)
    steps.append((_ANSWER, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _argument(index: int) -> Step:
    """Load the lower half of an argument; for the arguments compared here the kernel ignores the upper half too."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _if_any(bits: int, answer: int) -> list[Step]:
    return [(_ANY_BIT, 0, 1, bits), (_ANSWER, 0, 0, answer)]


def _if_equal(value: int, answer: int) -> list[Step]:
    return [(_EQUAL, 0, 1, value), (_ANSWER, 0, 0, answer)]


def _always(answer: int) -> list[Step]:
    return [(_ANSWER, 0, 0, answer)]


def _blocks(sockets: tuple[int, ...], seen: int, *, hold: bool) -> dict[str, list[Step]]:
    """Return the filter steps of each call; `seen` is the answer for a watched call."""
    held = NOTIFY if hold else seen
    blocks = {name: _always(answer) for answer, names in REFUSED.items() for name in names.split()}
    blocks |= {name: _always(held if name in METADATA else seen) for name in WATCHED.split()}
    for name, at in _MODE_AT.items():
        checks = [_argument(at), *_if_any(_SETID, PERM)]
        if name.startswith("mknod"):
            for device in _DEVICES:
                # the file type is a number, not a set of bits, so mask it and compare
                checks += [(0x54, 0, 0, 0o170000), *_if_equal(device, PERM), _argument(at)]
        blocks[name] = checks + _always(held if name in METADATA else seen)
    for name, at in _FLAGS_AT.items():
        blocks[name] = [
            _argument(at),
            (_ANY_BIT, 0, 3, _CREATES),
            _argument(at + 1),
            *_if_any(_SETID, PERM),
            _argument(at),
            *_if_any(_WRITES, seen),
            *_always(ALLOW),
        ]
    for name in _PID_AT:
        checks = [_argument(0), *_if_equal(SUPERVISOR, PERM), *_if_equal(SUPERVISOR_GROUP, PERM)]
        blocks[name] = checks + _if_equal(_EVERYONE, PERM) + _always(ALLOW)
    blocks["clone"] = [_argument(0), *_if_any(_NEW_NAMESPACES, PERM), *_always(ALLOW)]
    blocks["unshare"] = [_argument(0), *_if_any(_NEW_NAMESPACES | _NEW_TIME, PERM), *_always(ALLOW)]
    blocks["ioctl"] = [
        _argument(1),
        *_if_equal(_TERMINAL_PUSH, PERM),
        *_if_equal(_TERMINAL_OTHER, PERM),
        *_always(ALLOW),
    ]
    blocks["socket"] = (
        [_argument(0)]
        + [step for kind in sockets for step in _if_equal(kind, ALLOW)]
        + _always(NOTIFY if hold else PERM)
    )
    blocks["socketpair"] = [_argument(0), *_if_equal(UNIX, ALLOW), *_always(PERM)]
    return blocks


def _blocks_among_others() -> dict[str, list[Step]]:
    """Return the steps that are also needed where other processes of the user are within reach."""
    blocks = {name: _always(PERM) for name in _SHARED_MEMORY.split()}
    for name, at in _OTHERS_AT.items():
        blocks[name] = [_argument(at), *_if_equal(0, ALLOW), *_always(PERM)]
    return blocks
