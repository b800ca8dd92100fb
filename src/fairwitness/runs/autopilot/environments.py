"""Which project's environment a command needs: it says so by the folder it names, and by the programs it calls."""

import re
from collections.abc import Iterator, Mapping, Sequence

from fairwitness.contracts.verify.checks import Discovered, Language, Project

TOP = "."
NOBODYS = Project(root=TOP, language=Language.OTHER, manifests=())
"""For a tree without a project: the tools of this machine, and nothing else."""
_WORD = re.compile(r"[\w.@/+-]+")
_PYTHONS = re.compile(r"(?:python|pypy|pip)(?:[0-9.]*)")
_PROGRAMS: Mapping[Language, frozenset[str]] = {
    Language.PYTHON: frozenset(
        {"pytest", "py.test", "mypy", "ruff", "flake8", "pylint", "pyright", "black", "isort", "coverage", "tox", "nox"}
        | {"uv", "poetry", "pdm", "hatch", "pipenv", "unittest"}
    ),
    Language.NODE: frozenset(
        {"node", "npm", "npx", "pnpm", "yarn", "bun", "tsc", "tsx", "jest", "vitest", "mocha", "eslint", "prettier"}
    ),
    Language.RUST: frozenset({"cargo", "rustc", "rustfmt", "clippy-driver"}),
    Language.GO: frozenset({"go", "gofmt", "golangci-lint"}),
    Language.JAVA: frozenset({"java", "javac", "mvn", "mvnw", "gradle", "gradlew"}),
    Language.NATIVE: frozenset({"cmake", "ctest", "ninja", "cc", "gcc", "g++", "clang", "clang++"}),
}
"""Programs that come with a language. `make` is none: what it calls may be anything."""


def project_of(command: str, discovered: Discovered) -> Project:
    """The project in whose environment a command runs.

    First come projects whose folder it names, deepest first, then those at the top, then all others. Among them the one
    whose language it speaks first is taken, and the first of all where it speaks none that is there.
    """
    words = [word.removeprefix("./") for word in _WORD.findall(command)]
    projects = _near(words, discovered.projects)
    for language in _spoken(words):
        for project in projects:
            if project.language is language:
                return project
    return projects[0] if projects else NOBODYS


def _near(words: Sequence[str], projects: Sequence[Project]) -> list[Project]:
    def distance(project: Project) -> tuple[int, int]:
        if project.root == TOP:
            return 1, 0
        named = any(word == project.root or word.startswith(f"{project.root}/") for word in words)
        return (0, -project.root.count("/")) if named else (2, 0)

    return sorted(projects, key=distance)


def _spoken(words: Sequence[str]) -> Iterator[Language]:
    for word in words:
        name = word.rpartition("/")[2]
        if _PYTHONS.fullmatch(name):
            yield Language.PYTHON
        yield from (language for language, programs in _PROGRAMS.items() if name in programs)
