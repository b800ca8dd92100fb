"""Programs of this machine: where they really are, what must be bound to run them, and their versions.

A person's PATH is theirs and trusted; anything on it that lies inside the repository is passed over. Managers such as
pyenv and rustup put stand-ins on the PATH that need the whole home: the manager is asked once for the real program.
"""

import functools
import os
import re
import stat
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairwitness.kit.text import visible

SYSTEM = (Path("/usr"), Path("/bin"), Path("/sbin"), Path("/lib"), Path("/lib64"))
"""Folders that every tier of the sandbox shows."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MANAGERS = ("pyenv", "rustup", "asdf", "mise", "volta")
_LOOKS_OWNED = ("lib", "lib64", "pyvenv.cfg", "jre", "pkg", "share/cmake")
"""A folder above `bin` that contains one of these belongs to one tool chain."""
_VERSION_ARGUMENTS = {"go": ("version",), "java": ("-version",), "javac": ("-version",)}
_ASK_S = 20


def search_path(repositories: Iterable[Path], *, path: str | None = None) -> tuple[Path, ...]:
    """Return the folders of the user's PATH, in order, without any that lies in a repository."""
    outside = []
    for entry in (path if path is not None else os.environ.get("PATH", os.defpath)).split(os.pathsep):
        folder = Path(entry)
        if entry and folder.is_absolute() and folder not in outside and not within(folder, repositories):
            outside.append(folder)
    return tuple(outside)


def within(path: Path, folders: Iterable[Path]) -> bool:
    """Return True if a path, links followed or not, lies in one of the folders."""
    spellings = {path, path.resolve()}
    return any(
        one.is_relative_to(other) for folder in folders for other in (folder, folder.resolve()) for one in spellings
    )


def find(program: str, search: Sequence[Path], *, outside: Sequence[Path] = ()) -> Path | None:
    """Return the real program behind a name, never one inside the folders that are named."""
    for folder in search:
        candidate = folder / program
        if _is_program(candidate) and not within(candidate, outside):
            real = real_program(candidate)
            if real is not None and not within(real, outside):
                return real
    return None


def real_program(candidate: Path) -> Path | None:
    """Return the program itself, also behind a version manager's shim; None if the manager knows no such program."""
    status = candidate.resolve().stat()
    return _real(candidate, status.st_mtime_ns)


@functools.cache
def _real(candidate: Path, _mtime: int) -> Path | None:
    manager = _manager_of(candidate)
    if manager is None:
        # links are not resolved here: a venv's python is a link, and so are many names of system programs
        kept = _is_venv(candidate.parent.parent) or within(candidate, SYSTEM)
        return candidate if kept else candidate.resolve()
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.endswith(("_ROOT", "_HOME", "_DATA_DIR")) or name == "HOME"
    }
    answer = _ask([str(manager), "which", candidate.name], {**variables, "PATH": SYSTEM_PATH})
    found = Path(answer.strip().splitlines()[-1]) if answer and answer.strip() else None
    return found.resolve() if found is not None and found.is_absolute() and _is_program(found) else None


def _manager_of(candidate: Path) -> Path | None:
    """Return the version manager of a shim; None for a real program."""
    target = candidate.resolve()
    if target.name.removesuffix("-shim") in _MANAGERS and target.name != candidate.name:
        return target.with_name(target.name.removesuffix("-shim"))
    if candidate.parent.name != "shims":
        return None
    for manager in _MANAGERS:
        for place in (*candidate.parents[1:4], Path.home() / ".local"):
            if (program := place / "bin" / manager).is_file():
                return program
    return None


def _is_program(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False


def _is_venv(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file()


def needed_by(program: Path) -> tuple[Path, ...]:
    """Return what to bind for a program outside the system's folders: its tool chain or its file, never a home."""
    needed: list[Path] = []
    for path in {program, program.resolve()}:
        if within(
            path.parent, SYSTEM
        ):  # the place of the link counts, not its target: a venv's python may link to the system's
            continue
        prefix = path.parent.parent
        owned = path.parent.name in ("bin", "sbin", "libexec") and any(
            (prefix / mark).exists() for mark in _LOOKS_OWNED
        )
        needed.append(prefix if owned and not is_wide(prefix) else path)
    return tuple(sorted(set(needed)))


def is_wide(folder: Path) -> bool:
    """Return True for a folder that holds much more than a tool: a home, a folder above it, `~/.local` etc."""
    home = Path.home().resolve()
    folder = folder.resolve()
    wide = {home / name for name in ("", ".local", ".local/share", ".cargo", ".config", ".cache", ".ssh", "bin")}
    return folder in wide or home.is_relative_to(folder) or len(folder.parts) < 3


def version_of(program: Path) -> str:
    """Return the version that a program prints; it runs once for each state of its file."""
    try:
        status = program.stat()
    except OSError:
        return "unknown"
    return _version(program, status.st_mtime_ns, status.st_size)


@functools.cache
def _version(program: Path, _mtime: int, size: int) -> str:
    arguments = _VERSION_ARGUMENTS.get(program.name, ("--version",))
    answer = _ask(
        [str(program), *arguments],
        {"PATH": f"{program.parent}:{SYSTEM_PATH}", "LANG": "C.UTF-8", "HOME": "/nonexistent"},
    )
    plain = re.sub(r"\x1b\[[0-9;]*m", "", answer or "")
    lines = [visible(line.strip()) for line in plain.splitlines() if line.strip()]
    numbered = [line for line in lines if re.search(r"\d+\.\d+", line)]
    # a tool that prints no version is identified by its file
    return (numbered or lines or [f"{program.name} of {size} bytes"])[0][:200]


def _ask(argv: list[str], env: dict[str, str]) -> str | None:
    """Return what a program of the user prints, run outside any repository."""
    try:
        done = subprocess.run(
            argv, cwd="/", env=env, capture_output=True, check=False, timeout=_ASK_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout if done.stdout.strip() else done.stderr
    return said.decode(errors="replace") if done.returncode == 0 else None
