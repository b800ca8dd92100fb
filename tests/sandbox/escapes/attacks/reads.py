"""Attempts to read what belongs to the person, to another task or to the orchestrator."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sandbox.escapes.attacks.calls import Attack, Orders, attempt, hold, run, spill, system_call

_SEARCH, _READ, _USER_KEYRING, _SESSION_KEYRING = 10, 11, -4, -3


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


def _spill_files(*paths: str) -> None:
    for path in paths:
        spill(path, partial(_read, path))


def _ancestors() -> Iterator[int]:
    """Our parent, its parent and so on, as far as they can be seen."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        pid = int(status.partition("PPid:")[2].split()[0])


def read_ssh_key(orders: Orders) -> None:
    _spill_files(f"{orders.home}/.ssh/id_rsa", f"./../../{Path(orders.home).name}/.ssh/id_rsa")


def read_netrc(orders: Orders) -> None:
    _spill_files(f"{orders.home}/.netrc")
    link = Path("netrc")
    attempt("plant a link", lambda: link.symlink_to(f"{orders.home}/.netrc"))
    _spill_files(str(link))


def read_own_environment(_: Orders) -> None:
    spill("own environment", lambda: b"\n".join(key + b"=" + value for key, value in os.environb.items()))
    _spill_files("/proc/self/environ")


def read_parents_environment(orders: Orders) -> None:
    for pid in (orders.decoy, orders.orchestrator, os.getppid()):
        _spill_files(f"/proc/{pid}/environ", f"/proc/{pid}/task/{pid}/environ")


def read_first_environment(orders: Orders) -> None:
    # where process 1 is the machine's own it is none of our business: the decoy stands for it
    _spill_files(f"/proc/{1 if orders.own_pids else orders.decoy}/environ")


def read_any_environment(orders: Orders) -> None:
    seen = {orders.decoy, orders.orchestrator, *(_ancestors() if orders.confined else ())}
    if orders.own_pids:
        seen |= {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - names only
    _spill_files(*(f"/proc/{pid}/environ" for pid in sorted(seen)))


def read_parents_memory(orders: Orders) -> None:
    def memory() -> bytes:
        handle = os.open(f"/proc/{orders.decoy}/mem", os.O_RDONLY)
        return os.pread(handle, orders.decoy_length, orders.decoy_address)

    spill("memory", memory)
    _spill_files(f"/proc/{orders.decoy}/fd/{orders.decoy_handle}")


def open_shadow(orders: Orders) -> None:
    # opened and never read: that it can be opened is enough
    attempt("open /etc/shadow", lambda: os.open("/etc/shadow", os.O_RDONLY))
    attempt("open it by proc", lambda: os.open(f"/proc/{orders.decoy or 1}/root/etc/shadow", os.O_RDONLY))
    hold(orders)


def read_other_task(orders: Orders) -> None:
    _spill_files(f"{orders.other}/secret.txt", f"../{Path(orders.other).name}/secret.txt")


def read_command_lines(orders: Orders) -> None:
    seen = {orders.decoy, orders.orchestrator, os.getppid()}
    if orders.own_pids:
        seen |= {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - names only
    _spill_files(*(f"/proc/{pid}/cmdline" for pid in sorted(seen)))


def read_keyring(orders: Orders) -> None:
    import ctypes

    def read(key: int) -> bytes:
        buffer = ctypes.create_string_buffer(256)
        system_call("keyctl", _READ, key, buffer, 256, 0)
        return buffer.raw

    def search(ring: int) -> bytes:
        return read(system_call("keyctl", _SEARCH, ring, b"user", orders.key_name.encode(), 0))

    spill("user keyring", partial(search, _USER_KEYRING))
    spill("session keyring", partial(search, _SESSION_KEYRING))
    spill("key by its number", partial(read, orders.key))


ATTACKS: dict[str, Attack] = {
    "R01": read_ssh_key,
    "R02": read_netrc,
    "R03": read_own_environment,
    "R04": read_parents_environment,
    "R05": read_first_environment,
    "R05b": read_any_environment,
    "R06": read_parents_memory,
    "R07": open_shadow,
    "R08": read_other_task,
    "R09": read_command_lines,
    "R10": read_keyring,
}

if __name__ == "__main__":
    run(ATTACKS)
