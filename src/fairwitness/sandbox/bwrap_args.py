"""Build the bubblewrap arguments that define what a command sees in its mount namespace."""

import functools
import os
import sys
from pathlib import Path

from fairwitness.contracts.common.sandbox import Network, SandboxLimits
from fairwitness.kit.folder_trees import walk
from fairwitness.sandbox import hidden, scratch, sockets
from fairwitness.sandbox.checked_command import CheckedCommand

TMP = "/tmp"  # noqa: S108 -- a private tmpfs, created for each command
SHM = "/dev/shm"  # noqa: S108 -- likewise
VAR_TMP = "/var/tmp"  # noqa: S108 -- likewise
_HOME_IN_TMP = f"{TMP}/.home"
"""The home is a folder in the same file system as /tmp, so that one size limits both."""
PRIVATE = (TMP, SHM, VAR_TMP, scratch.HOME)
_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "sandbox"),
)
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ALWAYS_THERE = ("/usr", "/proc", "/dev", "/sys", *(f"/{name}" for name in _MERGED))
_OPEN_FILES = ("/etc/resolv.conf", "/etc/hosts")


def arguments(bwrap: str, checked: CheckedCommand, status: int) -> list[str]:
    """Return the bubblewrap command line up to `--`. The order matters: a later mount covers an earlier one."""
    limits = checked.command.limits
    network = checked.command.confinement.network
    words = [bwrap, *_NAMESPACES]
    if network is not Network.OPEN:
        words.append("--unshare-net")
    words += [*_system(), "--ro-bind", str(scratch.etc()), "/etc", "--dev", "/dev", "--proc", "/proc"]
    for path in _writable_proc():
        words += ["--ro-bind", path, path]
    words += [*_private(limits, checked), *_binds(checked, network)]
    return [*words, "--remount-ro", "/", "--chdir", "/", "--json-status-fd", str(status), "--"]


def launcher() -> list[str]:
    """Return the command line of the launcher (`child_setup`) as seen inside the sandbox."""
    return [scratch.interpreter(), "-I", "-S", "-X", "utf8", f"/etc/{scratch.LAUNCHER}"]


def made_parents(checked: CheckedCommand) -> tuple[str, ...]:
    """Return the parent folders in private places that exist only as mount points. The command may not write there."""
    shown = (*checked.read, *checked.write, checked.worktree)
    parents = {str(parent) for path in shown for parent in Path(path).parents}
    return tuple(sorted(parent for parent in parents if any(parent.startswith(f"{place}/") for place in PRIVATE)))


@functools.cache
def _system() -> tuple[str, ...]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in _MERGED:
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()).lstrip("/"), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    prefix = _interpreter_prefix()
    if not prefix.startswith("/usr/"):
        words += ["--ro-bind", prefix, prefix]
    return tuple(words)


@functools.cache
def _interpreter_prefix() -> str:
    """Return the folder that holds the launcher's interpreter and its standard library."""
    prefix = os.path.realpath(sys.base_prefix)
    return prefix if scratch.interpreter().startswith(f"{prefix}/") else str(Path(scratch.interpreter()).parent.parent)


def system_reads() -> tuple[str, ...]:
    """Return the system folders that every command may read in every tier."""
    return ("/usr", *(f"/{name}" for name in _MERGED if Path("/", name).exists()), _interpreter_prefix())


@functools.cache
def _writable_proc() -> tuple[str, ...]:
    """Return the parts of /proc that root may write to even without any capability."""
    found = ["/proc/sys"]
    if os.getuid() == 0:
        for entry in sorted(Path("/proc").iterdir()):
            if not entry.name.isdigit() and not entry.is_symlink() and entry.name != "sys" and _has_writable(entry):
                found.append(str(entry))
    return tuple(found)


def _has_writable(entry: Path) -> bool:
    if not entry.is_dir():
        return bool(entry.stat().st_mode & 0o200)
    return any(Path(folder, name).lstat().st_mode & 0o200 for folder, _, names in walk(entry) for name in names)


def _private(limits: SandboxLimits, checked: CheckedCommand) -> list[str]:
    """Return the private folders; they are in memory, and together no larger than the limit."""
    shown = (*checked.read, *checked.write, checked.worktree)
    size = min(limits.temporary, limits.memory)
    shared_memory = size // 4
    places = [TMP]
    links: list[str] = []
    for mode, place, target in (("1777", VAR_TMP, TMP), ("0700", scratch.HOME, _HOME_IN_TMP)):
        if any(path.startswith(f"{place}/") for path in shown):
            places.append(place)  # paths below it are mounted and must keep their names
            continue
        if target != TMP:
            links += ["--perms", mode, "--dir", target]
        links += ["--symlink", target, place]
    words = ["--perms", "1777", "--size", str(shared_memory), "--tmpfs", SHM, "--remount-ro", "/dev"]
    for place in places:
        mode = "0700" if place == scratch.HOME else "1777"
        words += ["--perms", mode, "--size", str((size - shared_memory) // len(places)), "--tmpfs", place]
    return words + links


def _binds(checked: CheckedCommand, network: Network) -> list[str]:
    """Return the mounts of the given paths, parents before their contents.

    After them come the mounts that cover hidden paths, the worktree's `.git`, sockets and pipes.
    """
    kinds = _kinds(checked)
    if network is Network.OPEN:
        kinds |= {path: "--ro-bind" for path in _OPEN_FILES if Path(path).exists()}
    covered = unseen(checked)
    kinds |= hidden.ancestors(covered, kinds)
    words: list[str] = []
    for path in sorted(kinds, key=lambda path: (path.count("/"), path)):
        if path.startswith("/etc/"):
            scratch.mount_point(path)
        words += [kinds[path], os.path.realpath(path), path]
    for path, real in covered.items():
        words += ["--ro-bind", str(scratch.empty(hidden.stand_in(real))), path]
    for tree in sorted({checked.worktree, _given(checked)}):
        if os.path.lexists(f"{tree}/.git") and not Path(tree, ".git").is_symlink():
            words += ["--ro-bind", f"{tree}/.git", f"{tree}/.git"]
    for path in sockets.to_cover(read_only(checked), checked.write):
        if not any(path == spot or path.startswith(f"{spot}/") for spot in covered):
            words += ["--ro-bind", os.devnull, path]
    return words


def _kinds(checked: CheckedCommand) -> dict[str, str]:
    """Return the bind option (read-only or writable) of every path given to the command."""
    kinds = {path: "--ro-bind" for path in checked.read if not _is_there(path)}
    kinds |= dict.fromkeys((checked.worktree, _given(checked)), "--ro-bind")
    return kinds | dict.fromkeys(checked.write, "--bind")


def _given(checked: CheckedCommand) -> str:
    """Return the worktree path as the caller wrote it, without resolving links."""
    return os.path.normpath(checked.command.confinement.worktree)


def unseen(checked: CheckedCommand) -> dict[str, str]:
    """Return the hidden paths: every path under which the command would see one, with its real path."""
    return hidden.spots(checked.hidden, checked.worktree, _kinds(checked))


def read_only(checked: CheckedCommand) -> dict[str, str]:
    """Return what is mounted read-only besides the system folders: path in the sandbox to real path."""
    given = _given(checked)
    trees = () if checked.command.confinement.writable else (checked.worktree, given)
    shown = {path: os.path.realpath(path) for path in (*checked.read, *trees) if path not in checked.write}
    shown |= {f"{tree}/.git": f"{checked.worktree}/.git" for tree in (checked.worktree, given)}
    return {path: source for path, source in shown.items() if not _is_there(source)}


def _is_there(path: str) -> bool:
    """Return whether a path belongs to the folders that every command sees."""
    places = (*_ALWAYS_THERE, _interpreter_prefix())
    return path == "/etc" or any(path == place or path.startswith(f"{place}/") for place in places)
