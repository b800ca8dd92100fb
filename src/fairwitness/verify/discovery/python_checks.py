"""What else a Python project is checked by: syntax, linters, types, its build, and whether it can be imported."""

from fairwitness.contracts.verify.checks import ReportFormat
from fairwitness.verify.discovery.documents import at, texts
from fairwitness.verify.discovery.programs import PYTHON_IMPORTS, PYTHON_SYNTAX
from fairwitness.verify.discovery.python import PythonProject
from fairwitness.verify.discovery.specs import Found
from fairwitness.verify.discovery.tree import TOP

_TARGETS = 20


def look_for_checks(project: PythonProject, found: Found, *, ruff_above: bool) -> None:
    """Notes the project's checks other than tests; `ruff_above` says that a run of ruff above covers this folder."""
    _note_syntax(project, found)
    _note_linters(project, found, ruff_above=ruff_above)
    _note_types(project, found)
    _note_build(project, found)
    _note_imports(project, found)


def ruff_configuration(project: PythonProject) -> tuple[str, str] | None:
    """The file and section that configure ruff; None if nothing does."""
    own = project.tree.first(project.root, ".ruff.toml", "ruff.toml")
    if own is not None:
        return (own, "")
    return ("pyproject.toml", "[tool.ruff]") if at(project.pyproject, "tool", "ruff") is not None else None


def _note_syntax(project: PythonProject, found: Found) -> None:
    first = next(project.own_files(), None)
    if first is None:
        return
    start = 0 if project.root == TOP else len(project.root) + 1
    # our own program: compileall writes what it compiled
    found.check(
        "python-syntax",
        "syntax-check",
        ("{python}", "-I", "-c", PYTHON_SYNTAX, *(other[start:] for other in project.nested)),
        tool="python",
        report=ReportFormat.COMPILER,
        found_in=found.where(first),
    )


def _note_linters(project: PythonProject, found: Found, *, ruff_above: bool) -> None:
    configured = ruff_configuration(project)
    if configured is not None and not ruff_above:
        where = found.where(*configured)
        # a project may ask for fixes; a check changes nothing
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
        found.check("ruff", "lint", lint, report=ReportFormat.RUFF, report_on="file", found_in=where)
    own = project.tree.first(project.root, ".ruff.toml", "ruff.toml")
    settings = project.tree.toml(project.path(own)) if own is not None else at(project.pyproject, "tool", "ruff")
    if at(settings, "format") is not None:
        where = found.where(own, "[format]") if own is not None else found.where("pyproject.toml", "[tool.ruff.format]")
        form = ("{python}", "-m", "ruff", "format", "--check", "--no-cache", ".")
        found.check("ruff-format", "lint", form, tool="ruff", found_in=where)
    if at(project.pyproject, "tool", "black") is not None:
        where = found.where("pyproject.toml", "[tool.black]")
        found.check("black", "lint", ("{python}", "-m", "black", "--check", "."), found_in=where)
    for name, sections in ((".flake8", None), ("setup.cfg", project.setup_cfg), ("tox.ini", project.tox_ini)):
        if "flake8" in sections if sections is not None else project.tree.has(project.path(name)):
            argv = ("{python}", "-m", "flake8", "--format=default", "--output-file={report}")
            where = found.where(name, "[flake8]" if sections is not None else "")
            found.check("flake8", "lint", argv, report=ReportFormat.FLAKE8, report_on="file", found_in=where)
            break


def _note_types(project: PythonProject, found: Found) -> None:
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
        found.check(
            "mypy",
            "type-check",
            ("{python}", "-m", "mypy", *options, "--cache-dir={tmp}/mypy", *targets),
            report=ReportFormat.MYPY,
            found_in=found.where(name, section),
        )
    for tool in ("pyright", "basedpyright"):
        configured = at(project.pyproject, "tool", tool) is not None
        if configured or (tool == "pyright" and project.tree.has(project.path("pyrightconfig.json"))):
            found.check(
                tool,
                "type-check",
                ("{python}", "-m", tool, "--outputjson", "--pythonpath", "{python}"),
                report=ReportFormat.PYRIGHT,
                found_in=found.where("pyproject.toml", f"[tool.{tool}]")
                if configured
                else found.where("pyrightconfig.json"),
            )


def _mypy_configuration(project: PythonProject) -> tuple[str, str, bool] | None:
    """Where mypy is configured, and whether it says there what is to be checked."""
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
    """What a type checker is pointed at: folders that sources lie in, or else the project's own packages."""
    folders = tuple(source for source in project.sources if source != TOP)
    if folders:
        return folders
    packages = tuple(place for _, place in project.modules)
    return packages if 0 < len(packages) <= _TARGETS else (".",)


def _note_build(project: PythonProject, found: Found) -> None:
    if at(project.pyproject, "build-system") is not None:
        argv = ("{python}", "-m", "build", "--no-isolation", "--outdir", "{tmp}/dist", ".")
        where = found.where("pyproject.toml", "[build-system]")
        found.check("python-build", "build", argv, tool="build", writes=True, found_in=where)


def _note_imports(project: PythonProject, found: Found) -> None:
    names = project.importable()
    if names:
        found.check(
            "python-imports",
            "import-check",
            ("{python}", "-B", "-c", PYTHON_IMPORTS, *project.sources, "--", *names),
            tool="python",
            report=ReportFormat.COMPILER,
            found_in=found.where(next(place for name, place in project.modules if name == names[0])),
        )
