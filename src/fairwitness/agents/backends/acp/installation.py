"""Finds an installed agent: its program, its version, and the files that it needs to run."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fairwitness.contracts.agents.profile import AgentProfile
from fairwitness.errors import BadDocument, FairWitnessError
from fairwitness.kit import json_text
from fairwitness.kit.files import read_given

Lookup = Callable[[str], str | None]
"""Finds a program by its name, as the shell of the user does."""
VERSION_S = 20.0
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?(?:[-+.][0-9A-Za-z.-]+)?")
_MANIFEST_LIMIT = 1 << 20
_FIRST_LINE = 512


@dataclass(frozen=True, slots=True)
class InstalledAgent:
    """An installed agent."""

    where: str
    """The path on which it was found."""
    program: str
    """With links resolved: in the sandbox a program finds its neighbours only from its real path."""
    read: tuple[str, ...]
    """Paths that the sandbox must show beside the system's own."""
    path: tuple[str, ...]
    """Folders of the programs that it starts."""


def which(name: str) -> str | None:
    """Return the program of that name on the PATH of this process."""
    return shutil.which(name)


def find(profile: AgentProfile, lookup: Lookup) -> InstalledAgent | None:
    """Return the installed agent, or None."""
    found = lookup(profile.program)
    if found is None:
        return None
    where = os.path.abspath(found)  # noqa: PTH100 -- links stay, since a virtual environment is known by them
    real = os.path.realpath(where)
    read = {real, *_belongings(where, real)}
    path = {str(Path(where).parent)}
    interpreter = _interpreter(real, lookup)
    if interpreter is not None:
        path.add(str(Path(interpreter).parent))
        read |= {interpreter, os.path.realpath(interpreter), *_prefix(interpreter)}
    if profile.node is not None and (node := lookup("node")) is not None:
        path.add(str(Path(node).parent))
        read |= {node, os.path.realpath(node)}
    return InstalledAgent(where, real, tuple(sorted(read)), tuple(sorted(path)))


def _belongings(where: str, real: str) -> set[str]:
    """Return the folders that belong to a program: its Node.js packages or its virtual environment."""
    found = set()
    parts = Path(real).parts
    if "node_modules" in parts:
        found.add(str(Path(*parts[: parts.index("node_modules") + 1])))
    for spelling in (where, real):
        found |= _environment(Path(spelling).parent.parent)
    return found


def _environment(folder: Path) -> set[str]:
    """Return a virtual environment and the interpreter that it was made from, if the folder is one."""
    try:
        lines = read_given(folder / "pyvenv.cfg", limit=_MANIFEST_LIMIT).decode(errors="replace").splitlines()
    except FairWitnessError:
        return set()
    homes = [line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"]
    return {str(folder), *(str(Path(os.path.realpath(home)).parent) for home in homes if home.startswith("/"))}


def _prefix(interpreter: str) -> set[str]:
    """Return the library of an interpreter, unless it belongs to the system."""
    real = Path(os.path.realpath(interpreter))
    return _environment(Path(interpreter).parent.parent) if real.is_relative_to("/usr") else {str(real.parent.parent)}


def _interpreter(real: str, lookup: Lookup) -> str | None:
    """Return the interpreter that the first line of a script names, or None."""
    with contextlib.suppress(OSError), Path(real).open("rb") as file:
        first = file.readline(_FIRST_LINE)
        if not first.startswith(b"#!"):
            return None
        words = first[2:].decode(errors="replace").split()
        if words and Path(words[0]).name == "env":
            names = [word for word in words[1:] if not word.startswith("-")]
            return lookup(names[0]) if names else None
        return words[0] if words else None
    return None


def version(profile: AgentProfile, installed: InstalledAgent) -> str | None:
    """Return the version that the agent prints, or that of its package, or None."""
    if profile.version_args:
        said = _said([installed.where, *profile.version_args], installed.path)
        if said is not None:
            return said
    return _packaged(profile.package, installed.program)


def node_version(lookup: Lookup) -> int | None:
    """Return the major version of Node.js, or None."""
    node = lookup("node")
    said = _said([node, "--version"], ()) if node is not None else None
    return int(said.partition(".")[0]) if said is not None else None


def _said(argv: list[str], path: tuple[str, ...]) -> str | None:
    """Return the version that a program prints; it runs with an empty home, a clean environment and a time limit."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-probe-", ignore_cleanup_errors=True) as home:
        env = {"HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "NO_COLOR": "1"}
        env["PATH"] = ":".join((*path, "/usr/local/bin", "/usr/bin", "/bin"))
        try:
            process = subprocess.Popen(
                argv,
                env=env,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return None
        try:
            printed = process.communicate(timeout=VERSION_S)[0]
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    found = _VERSION.search(printed.decode(errors="replace"))
    return None if found is None else found.group()


def _packaged(package: str, real: str) -> str | None:
    """Return the version in the manifest of the package that a program belongs to."""
    for folder in Path(real).parents:
        with contextlib.suppress(FairWitnessError, BadDocument):
            manifest = json_text.parse(
                read_given(folder / "package.json", limit=_MANIFEST_LIMIT).decode(errors="replace")
            )
            if isinstance(manifest, dict) and manifest.get("name") == package:
                said = manifest.get("version")
                return said if isinstance(said, str) else None
    return None
