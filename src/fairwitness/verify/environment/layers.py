"""A layer: a virtual environment over distributions installed elsewhere, which are neither copied nor changed.

An existing environment may hold the project itself by reference to another checkout, or as an old copy. A layer shows
the same distributions without those references; every interpreter started in it, also by a test, finds the project in
the worktree under test and says at its end what it loaded (`programs/bootstrap.py`).
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairwitness.errors import StoreError
from fairwitness.kit.files import read_given
from fairwitness.verify.environment.interpreters import BOOTSTRAP, Interpreter
from fairwitness.verify.environment.machine import SYSTEM, is_wide, within

HOOK = "_fairwitness_bootstrap"
_PTH = "zz_fairwitness.pth"  # read last: what the environment itself adds comes first
_OWN_SCRIPTS = re.compile(r"(python|pip|activate|easy_install|idle|pydoc|2to3|wheel|deactivate)", re.IGNORECASE)
_SCRIPT_LIMIT = 1 << 20
_PYTHON_LINE = re.compile(rb"#!(\S*python[0-9.]*[^\n]*\n|/bin/sh\n'''exec'[^\n]*\n[^\n]*\n)")


@dataclass(frozen=True, slots=True)
class References:
    """What an environment refers to instead of containing it."""

    editable: tuple[str, ...]
    """Folders of the repository, relative to it."""
    lines: tuple[str, ...]
    """Lines of `.pth` files that a layer repeats."""
    outside: tuple[Path, ...]
    """Folders elsewhere that those lines add."""


def references(interpreter: Interpreter, repositories: Sequence[Path]) -> References:
    """Read the `.pth` files of an environment; lines that lead into a repository are listed separately."""
    dropped, editable = set[str](), list[str]()
    for installed in interpreter.distributions.values():
        inside = _relative(installed.folder, repositories) if installed.folder is not None else None
        if inside is not None:
            dropped |= set(installed.hooks)
            if installed.editable:
                editable += [inside if inside != "." else "src", f"{inside}/src" if inside != "." else "."]
    lines, outside = list[str](), list[Path]()
    for site in interpreter.sites:
        for file in sorted(site.glob("*.pth")):
            for line in _text(file).splitlines():
                if not line.strip() or line.startswith("#"):
                    continue
                if line.startswith(("import ", "import\t")):
                    lines += [] if file.name in dropped else [line]
                    continue
                folder = site / line.rstrip()
                relative = _relative(folder, repositories)
                if relative is not None and not within(folder, interpreter.sites):
                    editable.append(relative)
                elif folder.is_dir() and not is_wide(folder):
                    lines.append(str(folder))
                    outside.append(folder)
    return References(tuple(dict.fromkeys(editable)), tuple(dict.fromkeys(lines)), tuple(dict.fromkeys(outside)))


def lay(folder: Path, interpreter: Interpreter, refers: References) -> Path:
    """Create a layer over an interpreter's distributions and return its python."""
    python = bare(folder, interpreter)
    lines = [*map(str, interpreter.sites), *refers.lines]
    hook(site_of(folder, interpreter), lines)
    if not within(interpreter.scripts, SYSTEM):
        _scripts(interpreter.scripts, folder / "bin", python)
    return python


def bare(folder: Path, interpreter: Interpreter) -> Path:
    """Create an empty virtual environment and return its python."""
    (folder / "bin").mkdir(parents=True)
    site_of(folder, interpreter).mkdir(parents=True)
    home = interpreter.executable.parent
    text = f"home = {home}\ninclude-system-site-packages = false\nversion = {interpreter.version}\n"
    (folder / "pyvenv.cfg").write_text(text)
    python = folder / "bin" / "python"
    python.symlink_to(interpreter.executable)
    for name in ("python3", f"python{_minor(interpreter)}"):
        (folder / "bin" / name).symlink_to("python")
    return python


def site_of(folder: Path, interpreter: Interpreter) -> Path:
    """Return the site-packages folder of a virtual environment."""
    return folder / "lib" / f"python{_minor(interpreter)}" / "site-packages"


def hook(site: Path, lines: Sequence[str] = ()) -> None:
    """Install the hook by which every interpreter of an environment adds the worktree's folders as it starts."""
    shutil.copyfile(BOOTSTRAP, site / f"{HOOK}.py")
    text = "".join(f"{line}\n" for line in (*lines, f"import {HOOK}; {HOOK}.child()"))
    (site / _PTH).write_text(text)


def write_script(path: Path, python: Path, body: bytes) -> None:
    """Return a script for an interpreter; it starts with sh, because a `#!` line allows no long paths or spaces."""
    quoted = str(python).replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
    start = f"#!/bin/sh\n'''exec' \"{quoted}\" \"$0\" \"$@\"\n' '''\n"
    path.write_bytes(start.encode() + body)
    path.chmod(0o755)


def describe(site: Path, binaries: Path, python: Path, about: Mapping[str, object]) -> None:
    """Write the metadata that installing the project would write (name, version, entry points), without its code."""
    name, version = str(about["name"]), str(about["version"])
    folder = site / f"{re.sub(r'[-_.]+', '_', name)}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    folder.mkdir()
    (folder / "METADATA").write_text(metadata)
    (folder / "INSTALLER").write_text("fairwitness\n")
    (folder / "RECORD").write_text("")
    groups = about["entry_points"]
    assert isinstance(groups, dict)
    text = "".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in groups.items()
    )
    (folder / "entry_points.txt").write_text(text)
    for script, target in groups.get("console_scripts", {}).items():
        module, _, call = str(target).split("[")[0].strip().partition(":")
        if (
            re.fullmatch(r"[A-Za-z0-9._-]+", script)
            and re.fullmatch(r"[\w.]+", module)
            and re.fullmatch(r"[\w.]+", call)
        ):
            first = call.split(".")[0]
            body = f"import sys\nfrom {module} import {first}\nif __name__ == '__main__':\n    sys.exit({call}())\n"
            if not os.path.lexists(binaries / script):
                write_script(binaries / script, python, body.encode())


def _scripts(there: Path, here: Path, python: Path) -> None:
    """Add the programs of an environment; Python scripts use the layer's own interpreter."""
    for program in sorted(there.iterdir()) if there.is_dir() else ():
        target = here / program.name
        if (
            _OWN_SCRIPTS.match(program.name)
            or os.path.lexists(target)
            or not os.access(program, os.X_OK)
            or program.is_dir()
        ):
            continue
        try:
            content = read_given(program, limit=_SCRIPT_LIMIT)
        except StoreError:  # too large for a script
            content = b""
        start = _PYTHON_LINE.match(content)
        if start:
            write_script(target, python, content[start.end() :])
        else:
            target.symlink_to(program)


def _relative(folder: Path, repositories: Sequence[Path]) -> str | None:
    """Return a folder relative to the innermost repository that contains it; None if none does."""
    found = []
    for repository in repositories:
        for one, other in ((folder, repository), (folder.resolve(), repository.resolve())):
            if one.is_relative_to(other):
                found.append(one.relative_to(other).as_posix())
    return min(found, key=len) if found else None


def _minor(interpreter: Interpreter) -> str:
    return ".".join(interpreter.version.split(".")[:2])


def _text(file: Path) -> str:
    try:
        return read_given(file, limit=_SCRIPT_LIMIT).decode(errors="replace")
    except StoreError:
        return ""
