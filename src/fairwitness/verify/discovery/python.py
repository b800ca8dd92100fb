"""Checks of a Python project: tests (pytest, Django, unittest), syntax, linters, types, build and imports."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fairwitness.contracts.verify.checks import Language, Project, ReportFormat
from fairwitness.verify.discovery.documents import UnreadableDocument, at, table, texts
from fairwitness.verify.discovery.programs import PYTHON_IMPORTS, PYTHON_SYNTAX
from fairwitness.verify.discovery.roots import EXAMPLES, NOT_OURS, is_test_file
from fairwitness.verify.discovery.specs import ProjectChecks
from fairwitness.verify.discovery.tree import TOP, IndexedTree, inside, join, parent

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
"""Folder names that are safe as a word of a command."""
_MOST = 50


class PythonProject:
    """A Python project as its files describe it; folders of other Python projects below it are excluded."""

    def __init__(self, tree: IndexedTree, root: str, nested: Iterable[str]) -> None:
        self.tree = tree
        self.root = root
        self.nested = tuple(nested)
        pyproject = tree.toml(self.path("pyproject.toml"))
        self.broken = pyproject.reason if isinstance(pyproject, UnreadableDocument) else None
        """Why pyproject.toml cannot be read; None if it is valid or missing."""
        self.pyproject: dict[str, Any] = pyproject if isinstance(pyproject, dict) else {}
        self.setup_cfg = tree.ini(self.path("setup.cfg"))
        self.tox_ini = tree.ini(self.path("tox.ini"))
        self.sources = self._sources()
        self.modules = tuple(sorted(self._modules()))
        """Its own top-level modules, each with the file or folder it is, relative to the root."""

    def path(self, name: str) -> str:
        """Return a path inside the project, relative to the repository."""
        return join(self.root, name)

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.modules))

    def describe(self) -> Project:
        """Return the project as the environment needs it."""
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
        """Return True if a tool is named among the dependencies, in whatever way projects name them."""
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
        # setup.py is a program and is not run: every quoted word may be a requirement
        listed += re.findall(r"""["']([A-Za-z0-9._-]{2,40})""", self.tree.text(self.path("setup.py")) or "")
        return {match.group(1).lower().replace("_", "-") for line in listed if (match := _NAME.match(line))}

    def _requirement_files(self) -> list[str]:
        folder = self.path("requirements")
        requirement_files = [
            self.path(name) for name in self.tree.names(self.root, "*requirements*.txt", "*requirements*.in")
        ]
        return requirement_files + [join(folder, name) for name in self.tree.names(folder, "*.txt", "*.in")]

    def _sources(self) -> tuple[str, ...]:
        """Return folders that its packages are imported from, relative to the root."""
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
        folders = [
            folder
            for folder in plain
            if folder == TOP or (_SAFE.fullmatch(folder) and self.tree.under(self.path(folder)))
        ]
        return tuple(dict.fromkeys(folders)) or (TOP,)

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
        """Return the modules that seem to have no side effects when imported, judged by their text."""
        return list(dict.fromkeys(name for name, place in self.modules if self._is_quiet(place)))

    def _is_quiet(self, place: str) -> bool:
        if not place.endswith(".py"):
            return True
        text = self.tree.text(self.path(place))
        return text is not None and not _ACTS.search(text)


_TARGETS = 20


def add_python_checks(project: PythonProject, project_checks: ProjectChecks, *, ruff_above: bool) -> None:
    """Add the project's checks other than tests; `ruff_above` says that a run of ruff above covers this folder."""
    _add_syntax(project, project_checks)
    _add_linters(project, project_checks, ruff_above=ruff_above)
    _add_types(project, project_checks)
    _add_build(project, project_checks)
    _add_imports(project, project_checks)


def ruff_configuration(project: PythonProject) -> tuple[str, str] | None:
    """Return the file and section that configure ruff; None if nothing does."""
    own = project.tree.first(project.root, ".ruff.toml", "ruff.toml")
    if own is not None:
        return (own, "")
    return ("pyproject.toml", "[tool.ruff]") if at(project.pyproject, "tool", "ruff") is not None else None


def _add_syntax(project: PythonProject, project_checks: ProjectChecks) -> None:
    first = next(project.own_files(), None)
    if first is None:
        return
    start = 0 if project.root == TOP else len(project.root) + 1
    # our own program, because compileall writes files
    project_checks.add_check(
        "python-syntax",
        "syntax-check",
        ("{python}", "-I", "-c", PYTHON_SYNTAX, *(other[start:] for other in project.nested)),
        tool="python",
        report=ReportFormat.COMPILER,
        found_in=project_checks.where(first),
    )


def _add_linters(project: PythonProject, project_checks: ProjectChecks, *, ruff_above: bool) -> None:
    configured = ruff_configuration(project)
    if configured is not None and not ruff_above:
        where = project_checks.where(*configured)
        # the project may configure fixes, but a check must not change files
        lint = (
            "{python}",
            "-m",
            "ruff",
            "check",
            "--no-cache",
            "--no-fix",
            "--output-format=json",
            "--output-file={report}",
            ".",
        )
        project_checks.add_check("ruff", "lint", lint, report=ReportFormat.RUFF, report_on="file", found_in=where)
    own = project.tree.first(project.root, ".ruff.toml", "ruff.toml")
    settings = project.tree.toml(project.path(own)) if own is not None else at(project.pyproject, "tool", "ruff")
    if at(settings, "format") is not None:
        where = (
            project_checks.where(own, "[format]")
            if own is not None
            else project_checks.where("pyproject.toml", "[tool.ruff.format]")
        )
        form = ("{python}", "-m", "ruff", "format", "--check", "--no-cache", ".")
        project_checks.add_check("ruff-format", "lint", form, tool="ruff", found_in=where)
    if at(project.pyproject, "tool", "black") is not None:
        where = project_checks.where("pyproject.toml", "[tool.black]")
        project_checks.add_check("black", "lint", ("{python}", "-m", "black", "--check", "."), found_in=where)
    for name, sections in ((".flake8", None), ("setup.cfg", project.setup_cfg), ("tox.ini", project.tox_ini)):
        if "flake8" in sections if sections is not None else project.tree.has(project.path(name)):
            argv = ("{python}", "-m", "flake8", "--format=default", "--output-file={report}")
            where = project_checks.where(name, "[flake8]" if sections is not None else "")
            project_checks.add_check(
                "flake8", "lint", argv, report=ReportFormat.FLAKE8, report_on="file", found_in=where
            )
            break


def _add_types(project: PythonProject, project_checks: ProjectChecks) -> None:
    mypy = _mypy_configuration(project)
    if mypy is not None:
        name, section, chooses = mypy
        options = (
            "--error-summary",
            "--show-error-codes",
            "--no-color-output",
            "--hide-error-context",
            "--no-pretty",
        )
        targets = () if chooses else _targets(project)
        project_checks.add_check(
            "mypy",
            "type-check",
            ("{python}", "-m", "mypy", *options, "--cache-dir={tmp}/mypy", *targets),
            report=ReportFormat.MYPY,
            found_in=project_checks.where(name, section),
        )
    for tool in ("pyright", "basedpyright"):
        configured = at(project.pyproject, "tool", tool) is not None
        if configured or (tool == "pyright" and project.tree.has(project.path("pyrightconfig.json"))):
            project_checks.add_check(
                tool,
                "type-check",
                ("{python}", "-m", tool, "--outputjson", "--pythonpath", "{python}"),
                report=ReportFormat.PYRIGHT,
                found_in=project_checks.where("pyproject.toml", f"[tool.{tool}]")
                if configured
                else project_checks.where("pyrightconfig.json"),
            )


def _mypy_configuration(project: PythonProject) -> tuple[str, str, bool] | None:
    """Return where mypy is configured, and whether the configuration names what to check."""
    choices = ("files", "packages", "modules")
    for name in ("mypy.ini", ".mypy.ini"):
        if project.tree.has(project.path(name)):
            sections = project.tree.ini(project.path(name))
            return (name, "[mypy]", any(at(sections, "mypy", choice) for choice in choices))
    mypy = at(project.pyproject, "tool", "mypy")
    if mypy is not None:
        return ("pyproject.toml", "[tool.mypy]", any(texts(at(mypy, choice)) for choice in choices))
    if "mypy" in project.setup_cfg:
        return ("setup.cfg", "[mypy]", any(project.setup_cfg["mypy"].get(choice) for choice in choices))
    return None


def _targets(project: PythonProject) -> tuple[str, ...]:
    """Return the arguments for a type checker: source folders, or else the project's own packages."""
    folders = tuple(source for source in project.sources if source != TOP)
    if folders:
        return folders
    packages = tuple(place for _, place in project.modules)
    return packages if 0 < len(packages) <= _TARGETS else (".",)


def _add_build(project: PythonProject, project_checks: ProjectChecks) -> None:
    if at(project.pyproject, "build-system") is not None:
        argv = ("{python}", "-m", "build", "--no-isolation", "--outdir", "{tmp}/dist", ".")
        where = project_checks.where("pyproject.toml", "[build-system]")
        project_checks.add_check("python-build", "build", argv, tool="build", writes=True, found_in=where)


def _add_imports(project: PythonProject, project_checks: ProjectChecks) -> None:
    names = project.importable()
    if names:
        project_checks.add_check(
            "python-imports",
            "import-check",
            ("{python}", "-B", "-c", PYTHON_IMPORTS, *project.sources, "--", *names),
            tool="python",
            report=ReportFormat.COMPILER,
            found_in=project_checks.where(next(place for name, place in project.modules if name == names[0])),
        )


_USES_PYTEST = re.compile(r"^[ \t]*(?:import|from)[ \t]+pytest\b|^(?:async[ \t]+)?def[ \t]+test_", re.MULTILINE)
_TEST_CASE = re.compile(r"^[ \t]*class[ \t]+\w+[ \t]*\([^)\n]*TestCase\b", re.MULTILINE)
_DJANGO = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:django|rest_framework)\.test\b", re.MULTILINE)
_NEEDS_CACHE = re.compile(r"--(?:lf|ff|nf|sw|last-failed|failed-first|new-first|stepwise|cache)\b")
_SHOWN = EXAMPLES - {"tests", "test", "__tests__"}
_LOOKED_AT = 100
"""How many test files are read to learn their style."""
_STARTS = 10


class _Style(NamedTuple):
    """How the test files are written."""

    files: tuple[str, ...]
    pytest: str | None
    """The first file that needs pytest."""
    unittest: tuple[str, ...]
    """Files with test cases of the standard library."""
    django: bool


def add_python_tests(
    project: PythonProject, project_checks: ProjectChecks, *, others: tuple[str, ...], covered: bool
) -> None:
    """Add the project's tests.

    `others` are projects below that run pytest themselves; `covered` says that a project above is configured to run
    this one's tests with its own.
    """
    style = _style_of(project)
    configured = pytest_configuration(project)
    if configured is None and covered:
        return
    reason = configured or _pytest_by_need(project, style)
    if reason is not None:
        _add_pytest(project, project_checks, project_checks.where(*reason), others)
    elif style.django and project.tree.has(project.path("manage.py")):
        argv = ("{python}", "manage.py", "test", "-v", "2", "--no-input")
        project_checks.add_check(
            "django",
            "tests",
            argv,
            tool="django",
            report=ReportFormat.UNITTEST,
            report_on="stderr",
            writes=True,
            found_in=project_checks.where("manage.py"),
        )
    elif style.unittest:
        _add_unittest(project, project_checks, style.unittest)


def pytest_configuration(project: PythonProject) -> tuple[str, str] | None:
    """Return the file and section that configure pytest, in pytest's own order; None if nothing does."""
    for name in ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"):
        if project.tree.has(project.path(name)):
            return (name, "")
    for section in ("ini_options", ""):
        way = ("tool", "pytest", section) if section else ("tool", "pytest")
        if at(project.pyproject, *way) is not None:
            return ("pyproject.toml", f"[{'.'.join(way)}]")
    if "pytest" in project.tox_ini:
        return ("tox.ini", "[pytest]")
    return ("setup.cfg", "[tool:pytest]") if "tool:pytest" in project.setup_cfg else None


def _pytest_by_need(project: PythonProject, style: _Style) -> tuple[str, str] | None:
    if style.pytest is not None:
        return (style.pytest, "")
    if project.tree.has(project.path("conftest.py")):
        return ("conftest.py", "")
    return (style.files[0], "") if style.files and project.depends_on("pytest") else None


def _style_of(project: PythonProject) -> _Style:
    files = []
    for path in project.own_files():
        folders, _, name = path.rpartition("/")
        if (is_test_file(name) or name == "tests.py") and not _SHOWN.intersection(folders.split("/")):
            files.append(path)
    pytest, unittest, django = None, [], False
    for path in files[:_LOOKED_AT]:
        text = project.tree.text(project.path(path)) or ""
        if pytest is None and _USES_PYTEST.search(text):
            pytest = path
        if _TEST_CASE.search(text):
            unittest.append(path)
            django = django or _DJANGO.search(text) is not None
    return _Style(tuple(files), pytest, tuple(unittest), django)


def _add_pytest(project: PythonProject, project_checks: ProjectChecks, found_in: str, others: tuple[str, ...]) -> None:
    # The project's own options come first, so these override them: every test runs, however many fail or cannot be
    # collected, and nothing is written into the tree.
    command = ["{python}", "-m", "pytest", "-o", "junit_family=xunit1", "--junitxml={report}", "-q"]
    cache = ["-o", "cache_dir={tmp}/pytest"] if _NEEDS_CACHE.search(_addopts(project)) else ["-p", "no:cacheprovider"]
    options = [*cache, "--rootdir={root}", "--maxfail=0", "--continue-on-collection-errors"]
    start = 0 if project.root == TOP else len(project.root) + 1
    # projects below have their own environment and run their tests there
    options += [f"--ignore={other[start:]}" for other in others if not set("{}") & set(other)]
    project_checks.add_check(
        "pytest",
        "tests",
        [*command, *options],
        report=ReportFormat.JUNIT,
        report_on="file",
        select=[*command, *options, "{ids}"],
        writes=True,
        found_in=found_in,
    )


def _addopts(project: PythonProject) -> str:
    said = [
        at(project.pyproject, "tool", "pytest", "ini_options", "addopts"),
        at(project.pyproject, "tool", "pytest", "addopts"),
        at(project.tox_ini, "pytest", "addopts"),
        at(project.setup_cfg, "tool:pytest", "addopts"),
        *(at(project.tree.ini(project.path(name)), "pytest", "addopts") for name in ("pytest.ini", ".pytest.ini")),
    ]
    return " ".join(str(options) for options in said if options)


def _add_unittest(project: PythonProject, project_checks: ProjectChecks, files: tuple[str, ...]) -> None:
    """Add a run for each folder from which unittest finds tests: it enters packages only."""
    starts: dict[tuple[str, str], str] = {}
    for path in files:
        pattern = "test*.py" if path.rpartition("/")[2].startswith("test") else "*_test.py"
        starts.setdefault((_start_of(project, path), pattern), path)
    main = next((name for name in (TOP, "tests", "test") if any(start == name for start, _ in starts)), None)
    for number, ((start, pattern), path) in enumerate(sorted(starts.items())):
        if number >= _STARTS or not _PLAIN.fullmatch(start):
            reason = "its folder has a name that no command should carry"
            if number >= _STARTS:
                reason = f"its test cases lie in more than {_STARTS} folders that are no packages"
            project_checks.add_undiscovered(
                f"unittest-{number}", "tests", reason, found_in=project_checks.where(path), required=True
            )
            continue
        argv = ["{python}", "-m", "unittest", "discover", "-v", "-s", start]
        argv += [] if pattern == "test*.py" else ["-p", pattern]
        # named after the folder, not numbered: a new folder must not rename the others
        parts = ["unittest", "" if start == main else start.replace("/", "."), _SUFFIX[pattern]]
        project_checks.add_check(
            "-".join(filter(None, parts)),
            "tests",
            argv,
            tool="python",
            report=ReportFormat.UNITTEST,
            report_on="stderr",
            # elsewhere its ids do not contain the folder from which they are imported
            select=("{python}", "-m", "unittest", "-v", "{ids}") if start == TOP else None,
            writes=True,
            found_in=project_checks.where(path),
        )


_SUFFIX = {"test*.py": "", "*_test.py": "suffixed"}
_PLAIN = re.compile(r"\.|[A-Za-z0-9_][A-Za-z0-9_./-]{0,80}")


def _start_of(project: PythonProject, path: str) -> str:
    """Return the folder above a test's outermost package: unittest has to start there."""
    folder = parent(path)
    while folder != TOP and project.tree.has(project.path(f"{folder}/__init__.py")):
        folder = parent(folder)
    return folder
