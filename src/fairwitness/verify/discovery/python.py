"""A Python project: its manifests, its own packages and where they are imported from, and what it depends on."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fairwitness.contracts.verify.checks import Language, Project
from fairwitness.verify.discovery.documents import Unreadable, at, table, texts
from fairwitness.verify.discovery.roots import EXAMPLES, NOT_OURS, is_test_file
from fairwitness.verify.discovery.tree import TOP, Tree, inside, join

_MANIFESTS = (
    *("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "constraints*.txt", "Pipfile", "Pipfile.lock"),
    *(
        "uv.lock",
        "uv.toml",
        "poetry.lock",
        "pdm.lock",
        "pylock*.toml",
        "environment.yml",
        ".python-version",
        "MANIFEST.in",
    ),
)
_FOLDERS_NOT_IMPORTED = EXAMPLES | NOT_OURS | {"docs", "doc", "scripts", "tools", "bench", "benchmarks", "notebooks"}
_FILES_NOT_IMPORTED = frozenset(
    {"setup", "manage", "conftest", "noxfile", "tasks", "fabfile", "dodo", "conf", "__main__", "__init__", "tests"}
    | {"wsgi", "asgi", "gunicorn_conf", "sitecustomize", "usercustomize", "versioneer"}
)
_ACTS = re.compile(
    r"^(?!(?:if|elif|while|for|with|def|class|assert|return|print_function)\b)[A-Za-z_][\w.]*\(", re.MULTILINE
)
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
"""Folders that can stand in a command and mean nothing else there."""
_MOST = 50


class PythonProject:
    """What the files of one Python project say; folders of other Python projects below it are not its own."""

    def __init__(self, tree: Tree, root: str, nested: Iterable[str]) -> None:
        self.tree = tree
        self.root = root
        self.nested = tuple(nested)
        pyproject = tree.toml(self.path("pyproject.toml"))
        self.broken = pyproject.reason if isinstance(pyproject, Unreadable) else None
        """Why pyproject.toml says nothing; None if it is sound or not there."""
        self.pyproject: dict[str, Any] = pyproject if isinstance(pyproject, dict) else {}
        self.setup_cfg = tree.ini(self.path("setup.cfg"))
        self.tox_ini = tree.ini(self.path("tox.ini"))
        self.sources = self._sources()
        self.modules = tuple(sorted(self._modules()))
        """Its own top-level modules, each with the file or folder it is, relative to the root."""

    def path(self, name: str) -> str:
        """A path inside the project, relative to the repository."""
        return join(self.root, name)

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.modules))

    def describe(self) -> Project:
        """The project as the environment needs it."""
        names = [name for pattern in _MANIFESTS for name in self.tree.names(self.root, pattern)]
        folder = self.path("requirements")
        names += [f"requirements/{name}" for name in self.tree.names(folder, "*.txt", "*.in")]
        return Project(
            root=self.root,
            language=Language.PYTHON,
            manifests=tuple(self.path(name) for name in dict.fromkeys(names)),
            packages=self.packages,
            sources=tuple(join(self.root, source) if source != TOP else self.root for source in self.sources),
        )

    def own_files(self) -> Iterator[str]:
        """Its Python files, relative to the root, without those of projects below and of copied things."""
        start = 0 if self.root == TOP else len(self.root) + 1
        for path in self.tree.under(self.root):
            relative = path[start:]
            parts = relative.split("/")[:-1]
            if (
                path.endswith(".py")
                and not any(inside(path, other) for other in self.nested)
                and not any(part in NOT_OURS or part.startswith(".") for part in parts)
            ):
                yield relative

    def depends_on(self, tool: str) -> bool:
        """True if a tool is named among the dependencies, in whatever way projects name them."""
        return tool in self._requirements()

    def _requirements(self) -> set[str]:
        listed = [*texts(at(self.pyproject, "project", "dependencies"))]
        groups = [
            table(self.pyproject, "project", "optional-dependencies"),
            table(self.pyproject, "dependency-groups"),
            table(self.pyproject, "tool", "pdm", "dev-dependencies"),
        ]
        listed += [line for group in groups for lines in group.values() for line in texts(lines)]
        listed += texts(at(self.pyproject, "tool", "uv", "dev-dependencies"))
        for environment in table(self.pyproject, "tool", "hatch", "envs").values():
            listed += [*texts(at(environment, "dependencies")), *texts(at(environment, "extra-dependencies"))]
        poetry = table(self.pyproject, "tool", "poetry")
        listed += [*table(poetry, "dependencies"), *table(poetry, "dev-dependencies")]
        for group in table(poetry, "group").values():
            listed += table(group, "dependencies")
        pipfile = self.tree.toml(self.path("Pipfile"))
        listed += [*table(pipfile, "packages"), *table(pipfile, "dev-packages")]
        listed += str(at(self.setup_cfg, "options", "tests_require") or "").split("\n")
        for extra in table(self.setup_cfg, "options.extras_require").values():
            listed += str(extra).split("\n")
        for path in self._requirement_files():
            listed += (self.tree.text(path) or "").split("\n")
        # setup.py is a program and not read as one: every quoted word may be a requirement
        listed += re.findall(r"""["']([A-Za-z0-9._-]{2,40})""", self.tree.text(self.path("setup.py")) or "")
        return {match.group(1).lower().replace("_", "-") for line in listed if (match := _NAME.match(line))}

    def _requirement_files(self) -> list[str]:
        folder = self.path("requirements")
        found = [self.path(name) for name in self.tree.names(self.root, "*requirements*.txt", "*requirements*.in")]
        return found + [join(folder, name) for name in self.tree.names(folder, "*.txt", "*.in")]

    def _sources(self) -> tuple[str, ...]:
        """Folders that its packages are imported from, relative to the root."""
        setuptools = table(self.pyproject, "tool", "setuptools")
        named = texts(at(setuptools, "packages", "find", "where"))
        named += [folder for name, folder in table(setuptools, "package-dir").items() if not name and texts(folder)]
        for line in str(at(self.setup_cfg, "options", "package_dir") or "").split("\n"):
            name, sign, folder = line.partition("=")
            named += [folder.strip()] if sign and not name.strip() else []
        poetry = at(self.pyproject, "tool", "poetry", "packages")
        named += [
            folder for package in (poetry if isinstance(poetry, list) else ()) for folder in texts(at(package, "from"))
        ]
        hatch = at(self.pyproject, "tool", "hatch", "build", "targets", "wheel", "packages")
        named += [package.strip("/").rpartition("/")[0] or TOP for package in texts(hatch)]
        if any(path.endswith(".py") for path in self.tree.under(self.path("src"))) and not self.tree.has(
            self.path("src/__init__.py")
        ):
            named.append("src")
        plain = [folder.strip().removeprefix("./").strip("/") or TOP for folder in named[:_MOST]]
        found = [
            folder
            for folder in plain
            if folder == TOP or (_SAFE.fullmatch(folder) and self.tree.under(self.path(folder)))
        ]
        return tuple(dict.fromkeys(found)) or (TOP,)

    def _modules(self) -> Iterator[tuple[str, str]]:
        for source in self.sources:
            folder = self.root if source == TOP else self.path(source)
            for name in self.tree.folders(folder)[:1_000]:
                if self._is_package(folder, name, is_source=source != TOP):
                    yield name, name if source == TOP else f"{source}/{name}"
            for file in self.tree.names(folder, "*.py"):
                name = file.removesuffix(".py")
                if name.isidentifier() and name not in _FILES_NOT_IMPORTED and not is_test_file(file):
                    yield name, file if source == TOP else f"{source}/{file}"

    def _is_package(self, folder: str, name: str, *, is_source: bool) -> bool:
        if not name.isidentifier() or not name.isascii() or join(folder, name) in self.nested:
            return False
        inner = join(folder, name)
        if is_source:  # also a namespace, which has no __init__.py
            return any(path.endswith(".py") for path in self.tree.under(inner))
        return name not in _FOLDERS_NOT_IMPORTED and self.tree.has(join(inner, "__init__.py"))

    def importable(self) -> list[str]:
        """The modules that can be imported without doing anything, as far as a look from outside can tell."""
        return list(dict.fromkeys(name for name, place in self.modules if self._is_quiet(place)))

    def _is_quiet(self, place: str) -> bool:
        if not place.endswith(".py"):
            return True
        text = self.tree.text(self.path(place))
        return text is not None and not _ACTS.search(text)
