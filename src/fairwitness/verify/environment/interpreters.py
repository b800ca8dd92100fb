"""Python interpreters: which there are, what is installed in them, and what must be bound to run one."""

import configparser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from fairwitness.contracts.common.sandbox import End
from fairwitness.errors import BadDocument, StoreError
from fairwitness.kit.files import read_given
from fairwitness.kit.json_text import parse
from fairwitness.verify.environment.environment_store import EnvironmentStore, meaningful
from fairwitness.verify.environment.machine import find, is_wide, needed_by, within

PROGRAMS = Path(__file__).parent / "programs"
PROBE = PROGRAMS / "probe.py"
BOOTSTRAP = PROGRAMS / "bootstrap.py"
_NAMES = ("python3", "python", *(f"python3.{minor}" for minor in range(15, 7, -1)))
_CFG_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True)
class InstalledDistribution:
    """One distribution that is installed."""

    version: str
    names: tuple[str, ...]
    """Top-level modules it brings as copies."""
    hooks: tuple[str, ...]
    """Its `.pth` files."""
    folder: Path | None
    """Where it was installed from, if that is a folder of this machine."""
    editable: bool


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter and everything installed in it."""

    executable: Path
    """The interpreter itself, links followed; not a virtual environment's."""
    scripts: Path
    version: str
    markers: dict[str, str]
    sites: tuple[Path, ...]
    pip: str | None
    """A pip that another interpreter can run; None if there is none."""
    distributions: dict[str, InstalledDistribution]
    """By normalised name."""
    read: tuple[Path, ...]

    @property
    def versions(self) -> dict[str, str]:
        """The version of each distribution, by normalised name."""
        return {name: installed.version for name, installed in self.distributions.items()}

    @property
    def identity(self) -> list[Any]:
        """The facts about it that are part of a digest."""
        return [str(self.executable), self.version, [str(site) for site in self.sites]]


class NoInterpreter(Exception):
    """The file exists, but it is not a working Python 3.8 or newer."""


def on_path(search: Sequence[Path], repositories: Sequence[Path]) -> Iterator[Path]:
    """Yield the interpreters of the user's PATH, every `python3` first; none inside a repository."""
    seen = set()
    for name in _NAMES:
        for folder in search:
            program = find(name, (folder,), outside=repositories)
            if program is not None and program not in seen:
                seen.add(program)
                yield program


def venv_python(venv: Path, repositories: Sequence[Path]) -> Path | None:
    """Return a virtual environment's interpreter; None if there is none, or if it lies in a repository."""
    python = venv / "bin" / "python"
    try:
        text = "[venv]\n" + read_given(venv / "pyvenv.cfg", limit=_CFG_LIMIT).decode(errors="replace")
        parser = configparser.RawConfigParser()
        parser.read_string(text)
    except (StoreError, configparser.Error):
        return None
    home = parser.get("venv", "home", fallback="")
    # a copied interpreter uses the library of the interpreter that `home` names
    base = python.resolve() if python.is_symlink() else Path(home) / "python3"
    return python if base.is_file() and not within(base, repositories) else None


_ANSWERS: dict[tuple[Path, int], tuple[list[int], Interpreter]] = {}
"""Probed interpreters of this process, with the modification times of their site folders."""


def probe(store: EnvironmentStore, python: Path) -> Interpreter:
    """Return what an interpreter is and what is installed in it; probe again only if something was installed since."""
    try:
        asked = (python, python.stat().st_mtime_ns)
    except OSError as error:
        raise NoInterpreter(f"{python} cannot be run: {error.strerror}") from error
    known = _ANSWERS.get(asked)
    if known is not None and known[0] == _states(known[1].sites):
        return known[1]
    interpreter = _ask(store, python)
    _ANSWERS[asked] = (_states(interpreter.sites), interpreter)
    return interpreter


def _states(sites: Sequence[Path]) -> list[int]:
    return [site.stat().st_mtime_ns if site.is_dir() else 0 for site in sites]


def _ask(store: EnvironmentStore, python: Path) -> Interpreter:
    read = (*needed_by(python), PROGRAMS)
    finished = store.ask([str(python), "-I", str(PROBE)], read=read)
    if finished.result.end is not End.OK or finished.result.stdout.truncated:
        raise NoInterpreter(f"{python} does not answer: {meaningful(finished.stderr) or finished.result.end}")
    try:
        told = parse(finished.stdout.decode().strip().splitlines()[-1])
        return Interpreter(
            executable=Path(told["executable"]),
            scripts=Path(told["scripts"]),
            version=str(told["version"]),
            markers={str(name): str(value) for name, value in told["markers"].items()},
            sites=tuple(Path(site) for site in told["sites"]),
            pip=str(told["pip"]) if told["pip"] else None,
            distributions={canonicalize_name(name): _installed(one) for name, one in told["distributions"].items()},
            read=_bound(python, Path(told["executable"])),
        )
    except (BadDocument, UnicodeDecodeError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise NoInterpreter(f"{python} does not say what it is: {error}") from error


def _bound(python: Path, executable: Path) -> tuple[Path, ...]:
    return tuple(dict.fromkeys((*needed_by(python), *needed_by(executable))))


def _installed(told: dict[str, Any]) -> InstalledDistribution:
    return InstalledDistribution(
        version=str(told["version"]),
        names=tuple(map(str, told["names"])),
        hooks=tuple(map(str, told["hooks"])),
        folder=_folder(told["folder"]),
        editable=bool(told["editable"]),
    )


def _folder(url: object) -> Path | None:
    parts = urlsplit(url) if isinstance(url, str) else None
    return Path(unquote(parts.path)) if parts is not None and parts.scheme == "file" else None


def outside_folders(interpreter: Interpreter, repositories: Sequence[Path]) -> tuple[Path, ...]:
    """Return folders outside the repository from which distributions are installed by reference; they must be bound."""
    folders = [one.folder for one in interpreter.distributions.values() if one.editable and one.folder is not None]
    return tuple(one for one in folders if one.is_dir() and not is_wide(one) and not within(one, repositories))
