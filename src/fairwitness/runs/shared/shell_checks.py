"""Shell lines as checks: commands of settings, plans and criteria, each in the environment of its project."""

import re
from collections.abc import Iterator, Mapping, Sequence

from fairwitness.contracts.verify.checks import SHELL_LINE, CheckSpec, Discovered, Language, Project, ReportFormat


def shell_check(id_: str, command: str, *, name: str | None = None, timeout_s: float, found_in: str) -> CheckSpec:
    """Return a line for `sh` as a check whose only result is its exit code."""
    return CheckSpec(
        id=id_,
        name=name or id_,
        tier=2,
        root=TOP,
        language=Language.OTHER,
        tool=SHELL_LINE,
        argv=("/bin/sh", "-c", f"{command}\n"),  # the line end keeps braces in it from being taken for placeholders
        report=ReportFormat.EXIT,
        timeout_s=timeout_s,
        writes=True,
        required=True,
        found_in=found_in,
    )


TOP = "."
NOBODYS = Project(root=TOP, language=Language.OTHER, manifests=())
"""The project of a tree without projects: only the tools of this machine."""
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
"""The programs of each language. `make` is not listed, because it can run anything."""


def project_of_line(command: str, discovered: Discovered) -> Project:
    """Return the project whose environment a command needs.

    Projects whose folder the command names come first, deepest first, then those at the top, then all others. The first
    project whose language matches a program of the command wins; if none matches, the first project.
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
