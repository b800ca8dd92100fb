"""What a command sees in a mount namespace: the arguments for bubblewrap that make it."""

import functools
import os
import sys
from pathlib import Path

from fairwitness.contracts.common.sandbox import Network, SandboxLimits
from fairwitness.sandbox import hidden, scratch, sockets
from fairwitness.sandbox.checked_command import CheckedCommand

TMP = "/tmp"  # noqa: S108 -- the command's own, made anew each time
SHM = "/dev/shm"  # noqa: S108 -- likewise
VAR_TMP = "/var/tmp"  # noqa: S108 -- likewise
PRIVATE = (TMP, SHM, VAR_TMP, scratch.HOME)
_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "sandbox"),
)
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ALWAYS_THERE = ("/usr", "/proc", "/dev", "/sys", *(f"/{name}" for name in _MERGED))
_OPEN_FILES = ("/etc/resolv.conf", "/etc/hosts")


def arguments(bwrap: str, checked: CheckedCommand, status: int) -> list[str]:
    """The whole command line up to `--`; order matters, since a later mount covers an earlier one."""
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
    """The launcher as it is called inside."""
    return [scratch.interpreter(), "-I", "-S", "-X", "utf8", f"/etc/{scratch.LAUNCHER}"]


def made_parents(checked: CheckedCommand) -> tuple[str, ...]:
    """Folders in the private places that exist only to hold something that is shown: nobody's to write to."""
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
    """The folder that holds the launcher's interpreter and its library."""
    prefix = os.path.realpath(sys.base_prefix)
    return prefix if scratch.interpreter().startswith(f"{prefix}/") else str(Path(scratch.interpreter()).parent.parent)


def system_reads() -> tuple[str, ...]:
    """Places that every command may read in every tier."""
    return ("/usr", *(f"/{name}" for name in _MERGED if Path("/", name).exists()), _interpreter_prefix())


@functools.cache
def _writable_proc() -> tuple[str, ...]:
    """Parts of /proc that the user root may write to even with no capability left."""
    found = ["/proc/sys"]
    if os.getuid() == 0:
        for entry in sorted(Path("/proc").iterdir()):
            if not entry.name.isdigit() and not entry.is_symlink() and entry.name != "sys" and _has_writable(entry):
                found.append(str(entry))
    return tuple(found)


def _has_writable(entry: Path) -> bool:
    if not entry.is_dir():
        return bool(entry.stat().st_mode & 0o200)
    return any(Path(folder, name).lstat().st_mode & 0o200 for folder, _, names in os.walk(entry) for name in names)


def _private(limits: SandboxLimits, checked: CheckedCommand) -> list[str]:
    words: list[str] = []
    places = [("1777", TMP), ("1777", SHM), ("0700", scratch.HOME)]
    if any(path.startswith(f"{VAR_TMP}/") for path in (*checked.read, *checked.write, checked.worktree)):
        places.append(("1777", VAR_TMP))  # what is shown there must keep its path
    else:
        words += ["--symlink", TMP, VAR_TMP]
    for mode, place in places:
        words += ["--perms", mode, "--size", str(limits.temporary), "--tmpfs", place]
    return words


def _binds(checked: CheckedCommand, network: Network) -> list[str]:
    """Everything that is shown at its own path, folders before what lies in them; then what covers the hidden paths,
    the worktree's `.git`, and what covers sockets and pipes."""
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
    """Everything that was given to the command, by its path in the view, and how it is shown."""
    kinds = {path: "--ro-bind" for path in checked.read if not _is_there(path)}
    kinds |= dict.fromkeys((checked.worktree, _given(checked)), "--ro-bind")
    return kinds | dict.fromkeys(checked.write, "--bind")


def _given(checked: CheckedCommand) -> str:
    """The worktree as the caller spells it."""
    return os.path.normpath(checked.command.confinement.worktree)


def unseen(checked: CheckedCommand) -> dict[str, str]:
    """The hidden paths, wherever they would be seen, and where they are."""
    return hidden.spots(checked.hidden, checked.worktree, _kinds(checked))


def read_only(checked: CheckedCommand) -> dict[str, str]:
    """What is shown and cannot be changed beside the system's own: its path in the view, and where it is."""
    given = _given(checked)
    trees = () if checked.command.confinement.writable else (checked.worktree, given)
    shown = {path: os.path.realpath(path) for path in (*checked.read, *trees) if path not in checked.write}
    shown |= {f"{tree}/.git": f"{checked.worktree}/.git" for tree in (checked.worktree, given)}
    return {path: source for path, source in shown.items() if not _is_there(source)}


def _is_there(path: str) -> bool:
    """Whether a path belongs to what every command sees."""
    places = (*_ALWAYS_THERE, _interpreter_prefix())
    return path == "/etc" or any(path == place or path.startswith(f"{place}/") for place in places)
