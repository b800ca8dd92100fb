"""Build Landlock rules: which files a command may read, execute and change, and where its signals may go."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fairwitness.contracts.common.sandbox import Network
from fairwitness.sandbox import bwrap_args
from fairwitness.sandbox.checked_command import CheckedCommand
from fairwitness.sandbox.scratch import COPIED

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_HANDLED = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
_ALL = 0xFFFF
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _ALL & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL)
_DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_TCP = 1 | 2
_SCOPE = 1 | 2
SCOPED = 6
"""The first Landlock version that can restrict signals and abstract sockets."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_KERNEL = ("/proc", "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage")
_OF_ETC = (
    "passwd group nsswitch.conf hosts hostname resolv.conf gitconfig gitattributes inputrc profile bash.bashrc"
    " environment login.defs manpath.config wgetrc screenrc npmrc pip.conf R crypto-policies fonts gss krb5.conf"
)


def rules(checked: CheckedCommand, abi: int, writable: Iterable[str]) -> dict[str, Any]:
    """Return the rules for a command: it can open only the paths named here."""
    handled = _HANDLED.get(abi, _ALL)
    confinement = checked.command.confinement
    reads = [*bwrap_args.system_reads(), *_KERNEL, *_etc(), *checked.read, checked.worktree]
    if confinement.network is Network.OPEN:
        reads += [os.path.realpath("/etc/resolv.conf"), "/run/systemd/resolve"]
    access = dict.fromkeys(reads, _READ)
    access |= dict.fromkeys(DEVICES, _DEVICE)
    for path in (*checked.write, *writable):
        access[path] = access.get(path, 0) | _WRITE
    return {
        "fs": handled,
        "net": 0 if confinement.network is Network.OPEN else _TCP,
        "scope": _SCOPE,
        "words": 1 if abi < 4 else 2 if abi < SCOPED else 3,
        "paths": [(os.fsencode(path), _fitting(path, rights & handled)) for path, rights in access.items()],
    }


def scope_only(abi: int) -> dict[str, Any] | None:
    """Return rules for a command with its own mount namespace: no signal or abstract socket reaches outside."""
    if abi < SCOPED:
        return None
    return {"fs": 0, "net": 0, "scope": _SCOPE, "words": 3, "paths": []}


def _fitting(path: str, rights: int) -> int:
    """Return the rights that apply to a path: the kernel rejects folder rights for anything but a folder."""
    return rights if Path(path).is_dir() else rights & _OF_FILES


def _etc() -> list[str]:
    """Return /etc for an ordinary user; for root, who can read its secrets, only the harmless parts."""
    if os.getuid():
        return ["/etc"]
    return [str(found) for pattern in (COPIED + " " + _OF_ETC).split() for found in Path("/etc").glob(pattern)]
