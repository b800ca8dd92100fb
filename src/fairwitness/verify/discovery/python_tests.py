"""The tests of a Python project: pytest where it is configured, required or needed, else Django or unittest."""

import re
from typing import NamedTuple

from fairwitness.contracts.verify.checks import ReportFormat
from fairwitness.verify.discovery.documents import at
from fairwitness.verify.discovery.python import PythonProject
from fairwitness.verify.discovery.roots import EXAMPLES, is_test_file
from fairwitness.verify.discovery.specs import Found
from fairwitness.verify.discovery.tree import TOP, parent

_USES_PYTEST = re.compile(r"^[ \t]*(?:import|from)[ \t]+pytest\b|^(?:async[ \t]+)?def[ \t]+test_", re.MULTILINE)
_TEST_CASE = re.compile(r"^[ \t]*class[ \t]+\w+[ \t]*\([^)\n]*TestCase\b", re.MULTILINE)
_DJANGO = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:django|rest_framework)\.test\b", re.MULTILINE)
_NEEDS_CACHE = re.compile(r"--(?:lf|ff|nf|sw|last-failed|failed-first|new-first|stepwise|cache)\b")
_SHOWN = EXAMPLES - {"tests", "test", "__tests__"}
_LOOKED_AT = 100
"""Test files that are read to learn how they are written; the first ones tell."""
_STARTS = 10


class _Style(NamedTuple):
    """How the test files are written."""

    files: tuple[str, ...]
    pytest: str | None
    """The first file that needs pytest."""
    unittest: tuple[str, ...]
    """Files with test cases of the standard library."""
    django: bool


def look_for_tests(project: PythonProject, found: Found, *, others: tuple[str, ...], covered: bool) -> None:
    """Notes the project's tests.

    `others` are projects below that run pytest themselves; `covered` says that a project above is configured to run
    this one's tests with its own.
    """
    style = _style_of(project)
    configured = pytest_configuration(project)
    if configured is None and covered:
        return
    reason = configured or _pytest_by_need(project, style)
    if reason is not None:
        _note_pytest(project, found, found.where(*reason), others)
    elif style.django and project.tree.has(project.path("manage.py")):
        argv = ("{python}", "manage.py", "test", "-v", "2", "--no-input")
        found.check(
            "django",
            "tests",
            argv,
            tool="django",
            report=ReportFormat.UNITTEST,
            report_on="stderr",
            writes=True,
            found_in=found.where("manage.py"),
        )
    elif style.unittest:
        _note_unittest(project, found, style.unittest)


def pytest_configuration(project: PythonProject) -> tuple[str, str] | None:
    """The file and section that configure pytest, in pytest's own order; None if nothing does."""
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


def _note_pytest(project: PythonProject, found: Found, found_in: str, others: tuple[str, ...]) -> None:
    # The project's own options come first, so what is said here has the last word: every test runs, however many
    # fail or cannot be collected, and nothing is written into the tree.
    command = ["{python}", "-m", "pytest", "-o", "junit_family=xunit1", "--junitxml={report}", "-q"]
    cache = ["-o", "cache_dir={tmp}/pytest"] if _NEEDS_CACHE.search(_addopts(project)) else ["-p", "no:cacheprovider"]
    options = [*cache, "--rootdir={root}", "--maxfail=0", "--continue-on-collection-errors"]
    start = 0 if project.root == TOP else len(project.root) + 1
    # projects below have an environment of their own, and run their tests there
    options += [f"--ignore={other[start:]}" for other in others if not set("{}") & set(other)]
    found.check(
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


def _note_unittest(project: PythonProject, found: Found, files: tuple[str, ...]) -> None:
    """One run for each folder from which unittest finds its tests: it enters packages only."""
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
            found.cannot(f"unittest-{number}", "tests", reason, found_in=found.where(path), required=True)
            continue
        argv = ["{python}", "-m", "unittest", "discover", "-v", "-s", start]
        argv += [] if pattern == "test*.py" else ["-p", pattern]
        # named after the folder, and not counted: a new folder must not rename the others
        parts = ["unittest", "" if start == main else start.replace("/", "."), _SUFFIX[pattern]]
        found.check(
            "-".join(filter(None, parts)),
            "tests",
            argv,
            tool="python",
            report=ReportFormat.UNITTEST,
            report_on="stderr",
            # elsewhere its ids do not say from which folder they are to be imported
            select=("{python}", "-m", "unittest", "-v", "{ids}") if start == TOP else None,
            writes=True,
            found_in=found.where(path),
        )


_SUFFIX = {"test*.py": "", "*_test.py": "suffixed"}
_PLAIN = re.compile(r"\.|[A-Za-z0-9_][A-Za-z0-9_./-]{0,80}")


def _start_of(project: PythonProject, path: str) -> str:
    """The folder above a test's outermost package: unittest has to start there."""
    folder = parent(path)
    while folder != TOP and project.tree.has(project.path(f"{folder}/__init__.py")):
        folder = parent(folder)
    return folder
