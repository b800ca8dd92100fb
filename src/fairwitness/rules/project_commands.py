"""The commands that check a project's work: those that the user names, otherwise those of its manifest.

Manifests are read in a fixed order, and the first with a command decides. The user's settings take precedence and may
say that there is no such command; only missing settings are detected.
"""

import itertools
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from fairwitness.contracts.autopilot.roadmap import CommandKind, CommandsSource, ProjectSettings, ProjectType
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.verify.checks import CheckSpec, Discovered, Language

Found: TypeAlias = dict[CommandKind, str]

MANIFESTS = ("package.json", "pyproject.toml", "Cargo.toml", "Makefile")
"""The files that are looked at, in this order, in the project's root."""
MOST_SIGNS = 1_000_000
_KINDS = tuple(CommandKind)
_COMPILE, _TEST, _LINT, _BUILD = _KINDS

_SCRIPTS = {
    _COMPILE: ("compile", "typecheck", "type-check", "types", "tsc"),
    _TEST: ("test", "tests"),
    _LINT: ("lint",),
    _BUILD: ("build",),
}
_TARGETS = {
    _COMPILE: ("compile", "typecheck", "types"),
    _TEST: ("test", "tests", "check"),
    _LINT: ("lint",),
    _BUILD: ("build", "all"),
}
_PYTHON = {
    _COMPILE: (("mypy", "python -m mypy ."), ("pyright", "python -m pyright")),
    _TEST: (("pytest", "python -m pytest"),),
    _LINT: (("ruff", "python -m ruff check ."), ("flake8", "python -m flake8"), ("pylint", "python -m pylint .")),
    _BUILD: (("build", "python -m build"),),
}
"""For each kind the packages that do it, each with its command."""
_RUNNERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_BY_CHECK = {"tests": _TEST, "lint": _LINT, "type-check": _COMPILE, "build": _BUILD}
"""The names of discovered checks, and the command that each of them is."""
_TYPES = {Language.PYTHON: ProjectType.PYTHON, Language.NODE: ProjectType.NODEJS, Language.RUST: ProjectType.RUST}
_NO_TEST = "no test specified"
"""What npm writes where there is no test; a script that says so is no test."""
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RULE = re.compile(r"([A-Za-z0-9_./ \t-]+)::?(?![:=])")


class Detected(NamedTuple):
    """What the manifests tell; a manifest that cannot be read is a problem, not an absence."""

    type: ProjectType
    manifest: str | None
    commands: Mapping[CommandKind, str]
    problems: tuple[Problem, ...]


class _Unreadable(Exception):
    """A manifest that is not what its name says."""


def detect_commands(manifests: Mapping[str, str]) -> Detected:
    """The commands of a project, from the texts of those manifests that exist."""
    for name in MANIFESTS:
        if name not in manifests:
            continue
        kind, reader = _READERS[name]
        try:
            commands = reader(_bounded(manifests[name]))
        except (_Unreadable, ValueError, RecursionError) as error:
            why = " ".join(str(error).split())[:200] or type(error).__name__
            problem = Problem(where=(name,), expected="a manifest that can be read", found=why)
            return Detected(kind, name, {}, (problem,))
        if commands:
            return Detected(kind, name, commands, ())
    return Detected(ProjectType.UNKNOWN, None, {}, ())


_HARNESS_OPTION = re.compile(r"--(?:[\w-]+=\{report\}$|cache-dir=\{)")
"""An option of the harness, without which the command does the same."""


def with_checks(detected: Detected, found: Discovered) -> Detected:
    """Return what was detected, completed by the required checks that `fairwitness verify` finds at the top.

    A check that is not required may lack its tool on this machine, so it is no command that a phase must pass.
    """
    commands = dict(detected.commands)
    for spec in found.checks:
        kind, command = _BY_CHECK.get(spec.name), _typed(spec)
        if kind is not None and command is not None and spec.required and spec.root == ".":
            commands.setdefault(kind, command)
    languages = [project.language for project in found.projects if project.root == "."]
    own = next((_TYPES[language] for language in languages if language in _TYPES), ProjectType.UNKNOWN)
    type_ = own if detected.type is ProjectType.UNKNOWN else detected.type
    return detected._replace(type=type_, commands={kind: commands[kind] for kind in _KINDS if kind in commands})


def _typed(spec: CheckSpec) -> str | None:
    """Return the command of a check as a person types it; None if only the harness can fill it in."""
    words = ["python" if word == "{python}" else word for word in spec.argv if not _HARNESS_OPTION.match(word)]
    if words[:3] == ["python", "-m", "pytest"]:  # its options are the harness's; what follows them is the project's
        places = itertools.takewhile(lambda word: not word.startswith("-"), words[:2:-1])
        words[3:] = tuple(places)[::-1]
    return None if any("{" in word for word in words) else shlex.join(words)


def commands_of(project: ProjectSettings | None, detected: Detected) -> dict[CommandKind, str | None]:
    """The command of each kind, or None where there is none and its gate is not held.

    What is said wins. A null that an earlier detection wrote is no word of a person: there the manifest is asked anew.
    """
    said = {} if project is None else project.commands
    by_person = project is not None and project.commands_source is not CommandsSource.AUTO_DETECTED
    return {
        kind: said[kind] if kind in said and (by_person or said[kind] is not None) else detected.commands.get(kind)
        for kind in _KINDS
    }


def _bounded(text: str) -> str:
    if len(text) > MOST_SIGNS:
        raise _Unreadable(f"it has {len(text)} characters; at most {MOST_SIGNS} are read")
    return text.removeprefix("\ufeff")


def _of_package(text: str) -> Found:
    package = json.loads(text)
    if not isinstance(package, dict):
        raise _Unreadable("it is no object")
    scripts = {
        name: line for name, line in _table(package, "scripts").items() if isinstance(line, str) and line.strip()
    }
    runner = str(package.get("packageManager", "")).partition("@")[0]
    runner = runner if runner in _RUNNERS else "npm"
    found = {}
    for kind, names in _SCRIPTS.items():
        name = next((name for name in names if name in scripts and _NO_TEST not in scripts[name]), None)
        if name is not None:
            found[kind] = f"{runner} run {name}"
    if _COMPILE not in found and any(
        "typescript" in _table(package, part) for part in ("dependencies", "devDependencies")
    ):
        found[_COMPILE] = "npx --no-install tsc --noEmit"
    return found


def _of_pyproject(text: str) -> Found:
    project = tomllib.loads(text)
    tools = _table(project, "tool")
    named = {*_packages(project), *(name for name in tools if name in ("mypy", "pyright", "pytest", "ruff", "pylint"))}
    found = {}
    for kind, choices in _PYTHON.items():
        command = next((command for package, command in choices if package in named), None)
        if command is not None:
            found[kind] = command
    # Every Python project can at least be parsed; without a type checker that is its compile step.
    found.setdefault(_COMPILE, "python -m compileall -q .")
    return found


def _packages(project: Mapping[str, Any]) -> Iterator[str]:
    """The names of all packages the project asks for, in whichever of the usual tables."""
    main, poetry = _table(project, "project"), _table(_table(project, "tool"), "poetry")
    lists = [main.get("dependencies"), *_table(main, "optional-dependencies").values()]
    lists += _table(project, "dependency-groups").values()
    for entry in (entry for entries in lists if isinstance(entries, list) for entry in entries):
        match = _PACKAGE.match(entry.strip()) if isinstance(entry, str) else None
        if match is not None:
            yield match.group().lower()
    groups = [group for group in _table(poetry, "group").values() if isinstance(group, dict)]
    for table in (poetry, *groups):
        yield from (name.lower() for part in ("dependencies", "dev-dependencies") for name in _table(table, part))


def _table(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def _of_cargo(text: str) -> Found:
    manifest = tomllib.loads(text)
    if not (_table(manifest, "package") or _table(manifest, "workspace")):
        raise _Unreadable("it has neither a package nor a workspace")
    return {_COMPILE: "cargo check", _TEST: "cargo test", _LINT: "cargo clippy", _BUILD: "cargo build"}


def _of_makefile(text: str) -> Found:
    targets = frozenset(_targets(text))
    found = {}
    for kind, names in _TARGETS.items():
        name = next((name for name in names if name in targets), None)
        if name is not None:
            found[kind] = f"make {name}"
    return found


def _targets(text: str) -> Iterator[str]:
    """The names that rules of a Makefile make; recipes, assignments and definitions are none."""
    defining = goes_on = False
    for row in text.splitlines():
        is_part, goes_on = goes_on, row.endswith("\\")
        word = row.split(maxsplit=1)[0] if row.strip() else ""
        if defining or word == "define":
            defining = word != "endef"
        elif not is_part and row[:1] not in ("\t", " ", "#"):
            match = _RULE.match(row[:1000])
            yield from () if match is None else match[1].split()


_READERS: Mapping[str, tuple[ProjectType, Callable[[str], Found]]] = {
    "package.json": (ProjectType.NODEJS, _of_package),
    "pyproject.toml": (ProjectType.PYTHON, _of_pyproject),
    "Cargo.toml": (ProjectType.RUST, _of_cargo),
    "Makefile": (ProjectType.MAKEFILE, _of_makefile),
}
