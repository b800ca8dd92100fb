"""Resolve a check's command for the sandbox: absolute programs, a fixed set of variables, nothing of the tree first.

Programs are looked for in the prepared environment, then on the user's PATH; never in the repository, and no
variable is inherited, so that neither a folder nor a file of the tree can stand in for a tool.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from fairwitness.contracts.verify.checks import TEST_FORMATS, CheckSpec, Language, Project
from fairwitness.errors import BadDocument, StoreError
from fairwitness.kit.files import read_given
from fairwitness.kit.json_text import parse
from fairwitness.verify.environment.interpreters import BOOTSTRAP, PROGRAMS
from fairwitness.verify.environment.machine import SYSTEM_PATH, find, needed_by, version_of, within
from fairwitness.verify.environment.model import Environment, ResolvedCommand, Unavailable
from fairwitness.verify.environment.node_modules import furnish
from fairwitness.verify.environment.programs import bootstrap

__all__ = ["furnish", "resolve", "toolchain"]

_PYTHON = "{python}"
_MODULES = "{node_modules}/"
_ALONE = frozenset({"ruff", "black", "flake8", "isort", "codespell", "pyright"})
"""Tools that only read text, so that any installation of the user may replace the environment's."""
_VARIABLES = {
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "CI": "true",
    "NO_COLOR": "1",
    "HOME": "{tmp}",
    "XDG_CACHE_HOME": "{tmp}/cache",
    "SOURCE_DATE_EPOCH": "315532800",  # 1980: the earliest time that every archive format supports
    "TAR_OPTIONS": "--no-same-owner",
    "GIT_CONFIG_NOSYSTEM": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONNOUSERSITE": "1",
    "MYPY_CACHE_DIR": "{tmp}/mypy",
    "RUFF_CACHE_DIR": "{tmp}/ruff",
    "COVERAGE_FILE": "{tmp}/coverage",
    "npm_config_cache": "{tmp}/npm",
    "npm_config_update_notifier": "false",
}


@dataclass(frozen=True, slots=True)
class _Start:
    """The start of a command: the program, and what is needed to run it."""

    argv: tuple[str, ...]
    version: str
    read: tuple[Path, ...] = ()
    bootstrapped: bool = False


def resolve(
    spec: CheckSpec,
    environment: Environment,
    *,
    checkout: Path,
    report: Path,
    tmp: Path,
    ids: Sequence[str] = (),
    project: Project | None = None,
) -> ResolvedCommand | Unavailable:
    """Return the command to run, or why there is none; `project` overrides the environment's own project."""
    project = project or environment.project
    words = spec.select if ids else spec.argv
    if words is None:
        return Unavailable(f"{spec.tool} cannot run only some of its tests", environmental=False)
    origin = report.with_name(f"{report.name}.origin")
    fill = _Fill(spec, environment, checkout, report, tmp)
    start, rest = _start(words, spec, environment, fill, _bootstrap_options(project, environment, checkout, origin))
    if isinstance(start, Unavailable):
        return start
    env = {name: fill(value) for name, value in {**_VARIABLES, "PATH": SYSTEM_PATH, **environment.env}.items()}
    if environment.language is Language.PYTHON and not start.bootstrapped:
        env |= _children(project, environment, checkout)
    if environment.language is Language.RUST:
        _registry(environment, tmp)
    arguments = [one for word in rest for one in (ids if word == "{ids}" else (fill(word, ids),))]
    return ResolvedCommand(
        argv=(*start.argv, *arguments),
        env=env,
        read=tuple(dict.fromkeys((*environment.read, PROGRAMS, *start.read))),
        tool_version=start.version,
        origin=origin if start.bootstrapped else None,
        loads=spec.report in TEST_FORMATS,
        own=environment.own,
        install_root=environment.install_root,
    )


class Toolchain(NamedTuple):
    """What commands need to find the programs and libraries of an environment."""

    path: tuple[str, ...]
    env: dict[str, str]
    read: tuple[Path, ...]


_NO_CACHES = {"MYPY_CACHE_DIR": "/dev/null", "RUFF_NO_CACHE": "true", "PYTEST_ADDOPTS": "-p no:cacheprovider"}


def toolchain(environment: Environment, checkout: Path) -> Toolchain:
    """Return the programs and libraries of an environment for commands in a checkout, other than checks.

    Variables that name a private folder of a check are left out: such commands have a home of their own.
    """
    folders = [environment.python.parent] if environment.python is not None else []
    variables = {name: value for name, value in {**_VARIABLES, **environment.env}.items() if "{tmp}" not in value}
    if environment.node_modules is not None:
        folders.append(environment.node_modules / ".bin")
        variables["NODE_PATH"] = str(environment.node_modules)
    path = (*map(str, folders), *variables.pop("PATH", SYSTEM_PATH).split(":"))
    if environment.language is Language.PYTHON:
        variables |= _children(environment.project, environment, checkout)
    return Toolchain(path, variables | _NO_CACHES, tuple(dict.fromkeys((*environment.read, PROGRAMS))))


@dataclass(frozen=True, slots=True)
class _Fill:
    """Fills the placeholders of a command."""

    spec: CheckSpec
    environment: Environment
    checkout: Path
    report: Path
    tmp: Path

    def __call__(self, word: str, ids: Sequence[str] = ()) -> str:
        if "\n" in word:
            return word  # a whole program as one argument; its braces are not placeholders
        modules = self.environment.node_modules or self.checkout / self.environment.install_root / "node_modules"
        known = {
            "{python}": str(self.environment.python or "python3"),
            "{report}": str(self.report),
            "{tmp}": str(self.tmp),
            "{root}": str(self.checkout / self.spec.root),
            "{node_modules}": str(modules),
            "{ids}": ",".join(ids),
        }
        for place, value in known.items():
            word = word.replace(place, value)
        return word


def _start(
    words: Sequence[str], spec: CheckSpec, environment: Environment, fill: _Fill, options: Sequence[str]
) -> tuple[_Start | Unavailable, Sequence[str]]:
    """Return the start of a command, and the remaining words."""
    first = words[0]
    if first == _PYTHON and environment.python is not None and words[1:2] == ("-m",) and len(words) > 2:
        return _module(words[2], spec, environment, fill.checkout, options), words[3:]
    if first == _PYTHON and environment.python is not None:
        python = str(environment.python)
        if len(words) > 1 and words[1].endswith(".py") and not Path(words[1]).is_absolute():
            argv = (python, str(BOOTSTRAP), *options, "--", words[1])
            return _Start(argv, _python_version(environment), bootstrapped=True), words[2:]
        return _Start((python,), _python_version(environment)), words[1:]
    if first.startswith(_MODULES):
        return _node_program(Path(fill(first)), spec, environment), words[1:]
    named = "python3" if first == _PYTHON else fill(first)
    return _program(named, spec, environment, fill.checkout), words[1:]


def _python_version(environment: Environment) -> str:
    return f"Python {environment.versions.get('python', 'unknown')}"


def _module(
    tool: str, spec: CheckSpec, environment: Environment, checkout: Path, options: Sequence[str]
) -> _Start | Unavailable:
    """Return `python -m TOOL`, started by the bootstrap."""
    top = tool.split(".")[0]
    version = environment.versions.get(canonicalize_name(top))
    if version is None and top in sys.stdlib_module_names:
        version = _python_version(environment)
    if version is not None:
        argv = (str(environment.python), str(BOOTSTRAP), *options, "--", tool)
        return _Start(argv, version, bootstrapped=True)
    alone = find(top, environment.search, outside=(checkout,)) if top in _ALONE else None
    if alone is not None:
        return _Start((str(alone),), version_of(alone), needed_by(alone))
    return _absent(top, spec, environment)


def _node_program(program: Path, spec: CheckSpec, environment: Environment) -> _Start | Unavailable:
    """Return a program that a dependency installs."""
    if environment.node_modules is None or not program.exists():
        return _absent(program.name, spec, environment)
    return _Start((str(program),), _package_version(environment.node_modules, spec.tool, program))


def _package_version(modules: Path, tool: str, program: Path) -> str:
    """Return the version of the package a program belongs to, by its own manifest."""
    for folder in (modules / tool, *program.resolve().parents):
        try:
            manifest = parse(read_given(folder / "package.json", limit=1 << 20).decode())
        except (StoreError, BadDocument, UnicodeDecodeError):
            continue
        if isinstance(manifest, dict) and isinstance(manifest.get("version"), str):
            return str(manifest["version"])[:100]
    return "unknown"


def _program(name: str, spec: CheckSpec, environment: Environment, checkout: Path) -> _Start | Unavailable:
    """Return a program by its name, of the environment or of this machine."""
    if Path(name).is_absolute():
        program = Path(name)
        if within(program, (checkout,)) or not program.is_file():
            return Unavailable(f"{name} is not a program on this machine", environmental=True)
        return _Start((name,), version_of(program), needed_by(program))
    if "/" in name:
        # a script of the tree is the check itself, like a Makefile; sh only starts it
        return _Start(("/bin/sh", "-c", 'exec "$0" "$@"', name), "the tree's own")
    if environment.python is not None and (environment.python.parent / name).exists():
        version = environment.versions.get(canonicalize_name(spec.tool), environment.versions.get("python", "unknown"))
        return _Start((str(environment.python.parent / name),), version)
    if environment.node_modules is not None and (environment.node_modules / ".bin" / name).exists():
        return _node_program(environment.node_modules / ".bin" / name, spec, environment)
    found = find(name, environment.search, outside=(checkout,))
    return _Start((str(found),), version_of(found), needed_by(found)) if found else _absent(name, spec, environment)


def _absent(name: str, spec: CheckSpec, environment: Environment) -> Unavailable:
    return Unavailable(
        f"{name} is configured ({spec.found_in}) but not installed in what was prepared by {environment.prepared_by}",
        environmental=True,
    )


def _sources(project: Project, environment: Environment, checkout: Path) -> list[str]:
    """Return where the project's own code is imported from, in order."""
    folders = (*project.sources, project.root, *environment.editable)
    return list(dict.fromkeys(str(checkout / folder) for folder in folders if ".." not in Path(folder).parts))


def _own(project: Project, environment: Environment) -> list[str]:
    """Return the project's packages that no other distribution installs: only those are found in the tree first."""
    return [
        name for name in project.packages if name not in environment.installed and name not in sys.stdlib_module_names
    ]


def _bootstrap_options(project: Project, environment: Environment, checkout: Path, origin: Path) -> tuple[str, ...]:
    sources = ":".join(_sources(project, environment, checkout))
    packages, own = ",".join(project.packages), ",".join(_own(project, environment))
    return (
        *("--checkout", str(checkout), "--origin", str(origin)),
        *("--sources", sources, "--packages", packages, "--own", own),
    )


def _children(project: Project, environment: Environment, checkout: Path) -> dict[str, str]:
    """Return variables for interpreters that the bootstrap does not start, as in a Makefile or script."""
    return {
        bootstrap.SOURCES: ":".join(_sources(project, environment, checkout)),
        bootstrap.PACKAGES: ",".join(project.packages),
        bootstrap.OWN: ",".join(_own(project, environment)),
        bootstrap.CHECKOUT: str(checkout),
    }


def _registry(environment: Environment, tmp: Path) -> None:
    """Link the crates of this machine into the private home folder that cargo may write to."""
    home = tmp / "cargo"
    home.mkdir(exist_ok=True)
    crates = [path for path in environment.read if path.name == "registry"]
    if crates and not (home / "registry").is_symlink():
        (home / "registry").symlink_to(crates[0])
