"""Packages have a docstring each, imports point down, names are not used twice, and commands start fast."""

import ast
import contextlib
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import architecture
import pytest

from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from support.fixtures import ROOT
from support.state import own_state

SOURCE = ROOT / "src" / "fairwitness"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]


def _packages() -> list[str]:
    layers = next(contract for contract in CONTRACTS if contract["type"] == "layers")["layers"]
    return [package.strip() for layer in layers for package in layer.split("|")]


def test_no_import_contract_is_missing() -> None:
    assert len(CONTRACTS) == 11
    assert next(contract for contract in CONTRACTS if contract["type"] == "layers")["exhaustive"] is True


@pytest.mark.parametrize("package", _packages())
def test_every_package_opens_with_a_sentence(package: str) -> None:
    path = SOURCE / package / "__init__.py" if (SOURCE / package).is_dir() else SOURCE / f"{package}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring is not None
    assert docstring.splitlines()[0].endswith(".")


@pytest.mark.width("full")
def test_every_module_says_what_lives_in_it() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for folder in (SOURCE, ROOT / "tests", ROOT / "bench", ROOT / "scripts")
        for path in architecture.source_files(folder)
        if ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert silent == []


def test_no_module_is_longer_than_600_lines() -> None:
    long = [
        str(path.relative_to(SOURCE))
        for path in architecture.source_files()
        if len(path.read_text().splitlines()) > 600
    ]
    assert long == []


def _modules_after(*arguments: str, folder: Path) -> set[str]:
    """The modules a fresh `fairwitness …` has loaded when it leaves."""
    program = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('\\n'.join(sorted(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['fairwitness', *{list(arguments)!r}]\n"
        "from fairwitness.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_is_printed_without_a_single_library(tmp_path: Path) -> None:
    loaded = _modules_after("--help", folder=tmp_path)
    assert not loaded & {"click", "rich", "pydantic", "yaml", "sqlite3", "importlib.metadata"}


def test_status_loads_neither_contracts_nor_engine(tmp_path: Path) -> None:
    with contextlib.closing(Ledger.open_file(own_state(tmp_path) / "evidence.db")) as ledger:
        for workflow, type_, data in (
            (Workflow.FEATURE, "run_started", {"slug": "a", "mode": "autonomous", "base_commit": "b"}),
            (Workflow.FORGE, "run.created", {"request": "a"}),
            (Workflow.AUTOPILOT, "run_started", {"phases": ["1"]}),
        ):

            def write(record: Record, workflow: Workflow = workflow, type_: str = type_, data: object = data) -> None:
                record.event(workflow, type_, data, timestamp="2026-02-26T14:30:00Z")  # type: ignore[arg-type]  # of that event

            ledger.record(f"run-{workflow.value}", write)
    runs = [["run-feature"], ["run-forge"]]  # the board of an autopilot run is its fold
    for arguments in (["status", *more] for more in ([], ["--json"], *runs)):
        loaded = _modules_after(*arguments, folder=tmp_path)
        assert {"click", "fairwitness.ledger.run_summary"} <= loaded, arguments
        assert not loaded & {"pydantic", "yaml", "rich", "dbos", "sqlalchemy", "asyncio"}, arguments
        assert not {name for name in loaded if name.startswith(("fairwitness.contracts", "fairwitness.engine"))}


def test_the_remark_about_refs_in_the_closing_block_loads_no_contracts() -> None:
    program = "import sys, fairwitness.app.views.ends, fairwitness.git.ledger_heads; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "fairwitness.git.ledger_heads" in loaded
    assert [name for name in loaded if name == "pydantic" or name.startswith("fairwitness.contracts")] == []


@pytest.mark.width("full")
def test_what_only_agents_need_is_loaded_only_when_one_is_asked(tmp_path: Path) -> None:
    heavy = {"pydantic_ai", "acp", "starlette", "uvicorn", "httpx", "httpx2", "openai", "anthropic", "google.genai"}
    for arguments in (("--help",), ("agents", "list"), ("agents", "show", "judge"), ("doctor",)):
        assert not _modules_after(*arguments, folder=tmp_path) & heavy, arguments


_RECURSING = ("os.walk(", "shutil.rmtree(", ".rglob(")
_OWN_FILES = ("kit/folder_trees.py", "demo/bundle.py", "verify/discovery/programs/")
"""Where they may be named: the module that replaces them, our own package data, and programs inside the sandbox."""


def test_no_tree_of_others_is_walked_by_a_function_that_recurses() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in architecture.source_files()
        for name in _RECURSING
        if name in path.read_text() and not str(path.relative_to(SOURCE)).startswith(_OWN_FILES)
    ]
    assert found == [], "use kit.folder_trees: a command may leave more nested folders than Python's stack is deep"


ONE_IMPORTER_MODULES = 126
HOMONYM_CLASSES = 0
"""May only fall: lower them when you merge or rename. A rule is a module of its own, whoever asks it."""


@cache
def _sources() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name; the demo's repositories are data."""
    return {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text()
        )
        for path in architecture.source_files()
    }


def test_resuming_a_feature_run_loads_no_other_workflow() -> None:
    """Imports come before the first step, so each costs everybody who resumes."""
    names = "fairwitness.app.runs.drive, fairwitness.app.assembly.feature_runner, fairwitness.workflows.feature"
    told = subprocess.run(
        [sys.executable, "-c", f"import sys, {names}; print('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    others = ("fairwitness.runs.autopilot", "fairwitness.runs.forge", "fairwitness.app.run_records.autopilot", "dbos")
    later = ("fairwitness.contracts.autopilot", "fairwitness.verify.inspections", "fairwitness.verify.reports")
    libraries = ("packaging", "pydantic_ai", "openai", "anthropic")
    assert [name for name in told.stdout.split() if name.startswith((*others, *later, *libraries))] == []


@pytest.mark.width("full")
def test_fewer_modules_have_a_single_importer_than_before() -> None:
    sources = _sources()
    importers: dict[str, set[str]] = {name: set() for name in sources}
    for name, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    importers.setdefault(inner if inner in sources else node.module, set()).add(name)
    packages = {name for name in sources if any(other.startswith(f"{name}.") for other in sources)}
    rules = tuple(name for name in sources if name.startswith("fairwitness.rules."))
    single = [name for name in sources if len(importers[name]) == 1 and name not in {*packages, *rules}]
    assert len(single) <= ONE_IMPORTER_MODULES


@pytest.mark.width("full")
def test_fewer_class_names_are_used_twice_than_before() -> None:
    classes = Counter(node.name for tree in _sources().values() for node in tree.body if isinstance(node, ast.ClassDef))
    assert sum(count > 1 for count in classes.values()) <= HOMONYM_CLASSES
