"""Attempts on other processes, to outlive the command, and to use more than the limits allow."""

import ctypes
import fcntl
import os
import signal
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from sandbox.escapes.attacks.calls import Attack, Orders, attempt, child, hold, last, run, say, spill, system_call

_ATTACH, _DETACH, _SEIZE = 16, 17, 0x4206
_MIB = 1 << 20
_PACE_S = 0.01
DAEMONS = ("P04", "P05")
"""The attempts that leave daemons behind."""
HEARTBEATS = ("heartbeat-sitter", "heartbeat-hopper")
UP = "daemons are up"


def signal_parent(orders: Orders) -> None:
    decoy = orders.decoy
    attempt("kill", lambda: os.kill(decoy, signal.SIGUSR1))
    attempt("tgkill", lambda: system_call("tgkill", decoy, decoy, signal.SIGUSR2))
    attempt("pidfd", lambda: system_call("pidfd_send_signal", os.pidfd_open(decoy), signal.SIGHUP, None, 0))
    attempt("killpg", lambda: os.killpg(os.getpgid(decoy), signal.SIGALRM))

    def by_owned_pipe() -> None:
        """The kernel itself signals whoever is named as the owner of a pipe."""
        reader, writer = os.pipe()
        fcntl.fcntl(reader, fcntl.F_SETOWN, decoy)
        fcntl.fcntl(reader, fcntl.F_SETFL, fcntl.fcntl(reader, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
        os.write(writer, b"wake")

    attempt("O_ASYNC", by_owned_pipe)
    attempt("terminate", lambda: os.kill(decoy, signal.SIGTERM))


def trace_parent(orders: Orders) -> None:
    for request in (_SEIZE, _ATTACH):
        if attempt(f"ptrace {request:#x}", system_call, "ptrace", request, orders.decoy, 0, 0) is not None:
            break
    hold(orders)


def read_parent_by_call(orders: Orders) -> None:
    def by_vm_readv() -> bytes:
        here = ctypes.create_string_buffer(orders.decoy_length)
        local = (ctypes.c_void_p * 2)(ctypes.addressof(here), orders.decoy_length)
        remote = (ctypes.c_void_p * 2)(orders.decoy_address, orders.decoy_length)
        vectors = [ctypes.addressof(local), 1, ctypes.addressof(remote), 1]
        system_call("process_vm_readv", orders.decoy, *vectors, 0)
        return here.raw

    def by_pidfd_getfd() -> bytes:
        handle = system_call("pidfd_getfd", os.pidfd_open(orders.decoy), orders.decoy_handle, 0)
        return os.pread(handle, 256, 0)

    spill("process_vm_readv", by_vm_readv)
    spill("pidfd_getfd", by_pidfd_getfd)


def _deaf() -> None:
    for number in signal.valid_signals():
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)


def _daemon(work: Callable[[], None]) -> None:
    """Away from session, group, parent and streams."""

    def second() -> None:
        os.setsid()
        child(work)

    os.waitpid(child(second), 0)


def _beat(name: str) -> None:
    with Path(name).open("ab") as file:
        file.write(b".")


def _start_daemons(orders: Orders) -> None:
    """One that sits there, and one that is a new process every few milliseconds."""
    end = time.monotonic() + orders.life_s

    def quiet() -> None:
        _deaf()
        null = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(null, handle)

    def sitter() -> None:
        quiet()
        while time.monotonic() < end:
            _beat(HEARTBEATS[0])
            time.sleep(0.02)

    def hopper() -> None:
        quiet()
        while time.monotonic() < end:
            _beat(HEARTBEATS[1])
            time.sleep(0.002)
            if os.fork():
                os._exit(0)

    for work in (sitter, hopper):
        _daemon(work)
    while not all(Path(name).exists() for name in HEARTBEATS):
        time.sleep(0.01)


def outlive_timeout(orders: Orders) -> None:
    _start_daemons(orders)
    say(UP)
    time.sleep(orders.life_s)


def outlive_exit(orders: Orders) -> None:
    _start_daemons(orders)
    say(UP)


def fork_bomb(orders: Orders) -> None:
    made = 0
    for _ in range(orders.amount):
        try:
            child(lambda: time.sleep(orders.life_s))
        except OSError as error:
            say(f"tried fork number {made}: {error!r}")
            break
        made += 1
    say(f"made {made}")
    time.sleep(orders.life_s)


def _grow(orders: Orders, amount: int) -> None:
    kept = []

    def more() -> None:
        kept.append(b"x" * (8 * _MIB))

    try:
        while len(kept) * 8 * _MIB < amount:
            more()
    except MemoryError:
        say(f"holds {len(kept) * 8} MiB, and gets no more")
        hold(orders)
        return
    say(f"holds {len(kept) * 8} MiB")
    time.sleep(orders.life_s)


def memory_bomb(orders: Orders) -> None:
    _grow(orders, orders.amount)


def memory_bomb_of_six(orders: Orders) -> None:
    children = [child(partial(_grow, orders, orders.amount // 6)) for _ in range(6)]
    for pid in children:
        os.waitpid(pid, 0)


def _fill(orders: Orders, folder: Path) -> None:
    handles = []
    for number in range(orders.amount // _MIB):
        handle = os.open(folder / f"fill-{number}", os.O_WRONLY | os.O_CREAT, 0o600)
        handles.append(handle)  # kept open: so it can be counted from outside, wherever it lies
        os.write(handle, b"x" * _MIB)
        time.sleep(_PACE_S)


def fill_worktree(orders: Orders) -> None:
    attempt("fill the worktree", lambda: _fill(orders, Path()))
    last(orders)


def fill_temporary(orders: Orders) -> None:
    attempt("fill tmp", lambda: _fill(orders, Path(tempfile.mkdtemp(prefix=f"{Path(orders.temporary).name}-fill-"))))
    last(orders)


def huge_file(orders: Orders) -> None:
    _deaf()

    def sparse() -> None:
        with Path("sparse").open("wb") as file:
            file.truncate(orders.amount)

    def allocated() -> None:
        with Path("allocated").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, orders.amount)

    def written() -> None:
        with Path("written").open("wb", buffering=0) as file:
            for _ in range(orders.amount // _MIB):
                file.write(b"x" * _MIB)

    attempt("truncate", sparse)
    attempt("fallocate", allocated)
    attempt("write", written)


def flood_stdout(orders: Orders) -> None:
    block = b"x" * _MIB
    for _ in range(orders.amount // _MIB):
        os.write(1, block)


def hold_stdout(orders: Orders) -> None:
    def holding() -> None:
        os.setsid()
        time.sleep(orders.life_s)

    child(holding)
    child(lambda: time.sleep(orders.life_s))


def spin_deaf(orders: Orders) -> None:
    _deaf()
    end = time.monotonic() + orders.life_s
    while time.monotonic() < end:
        pass


def push_into_terminal(_: Orders) -> None:
    def push(handle: int) -> None:
        for character in b"escaped\n":
            fcntl.ioctl(handle, termios.TIOCSTI, bytes([character]))

    for handle in (0, 1, 2):
        attempt(f"push into {handle}", partial(push, handle))

    def own_terminal() -> None:
        terminal = os.open("/dev/tty", os.O_RDWR)
        attempt("write to the terminal", lambda: os.write(terminal, b"escaped\n"))
        push(terminal)

    attempt("push into /dev/tty", own_terminal)


def stop_itself(_: Orders) -> None:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSTOP)


ATTACKS: dict[str, Attack] = {
    "P01": signal_parent,
    "P02": trace_parent,
    "P03": read_parent_by_call,
    "P04": outlive_timeout,
    "P05": outlive_exit,
    "P06": fork_bomb,
    "P07": memory_bomb,
    "P07b": memory_bomb_of_six,
    "P08": fill_worktree,
    "P08b": fill_temporary,
    "P09": huge_file,
    "P10": flood_stdout,
    "P11": hold_stdout,
    "P12": spin_deaf,
    "P13": push_into_terminal,
    "P14": stop_itself,
}

if __name__ == "__main__":
    run(ATTACKS)
