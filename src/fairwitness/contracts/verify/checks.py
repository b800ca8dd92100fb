"""A check that a repository offers: its command, its report format and its role in verification; and the settings."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Flag, Maybe, Positive, Text, Texts
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Seconds

CheckId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,119}$")]
"""Names one check of one project within a repository: `pytest`, `api/ruff`."""

QUICK_S = 60.0
"""Time limit in seconds of smoke runs, linters and other short checks."""
LONG_S = 900.0
"""Time limit in seconds of tests and builds."""
SHELL_LINE = "sh"
"""The tool of a check that is a line for a shell, and not a program with its arguments."""


class ReportFormat(StrEnum):
    """The format in which a check reports its tests or diagnostics."""

    JUNIT = "junit"
    GO_TEST = "go-test"
    TAP = "tap"
    CARGO = "cargo"
    UNITTEST = "unittest"
    JEST = "jest-json"
    """The output of `jest --json`, the only report that jest writes itself."""
    RUFF = "ruff"
    FLAKE8 = "flake8"
    MYPY = "mypy"
    PYRIGHT = "pyright"
    ESLINT = "eslint"
    TSC = "tsc"
    COMPILER = "compiler"
    """gcc and clang: `file:line:column: error: text`."""
    EXIT = "exit"
    """Only the exit code: one item, the command itself."""


TEST_FORMATS = frozenset(
    {
        ReportFormat.JUNIT,
        ReportFormat.GO_TEST,
        ReportFormat.TAP,
        ReportFormat.CARGO,
        ReportFormat.UNITTEST,
        ReportFormat.JEST,
    }
)
"""Formats whose items are tests; the items of the others are diagnostics, except for `exit`."""


class Language(StrEnum):
    """The language of a project, which decides how its environment is prepared."""

    PYTHON = "python"
    NODE = "node"
    RUST = "rust"
    GO = "go"
    JAVA = "java"
    NATIVE = "native"
    """C and C++."""
    OTHER = "other"


class CheckSpec(Contract):
    """One command that is run in a project before and after a change.

    In `argv`, `{python}` is the interpreter of the prepared environment, `{report}` the file for the report, `{tmp}` a
    private folder for caches; `{ids}`, only in `select`, stands for the items to run again.
    """

    id: CheckId
    name: Text
    """The check's name in the ledger: `tests`, `lint`, `type-check`, `build`, `syntax-check`, …"""
    tier: Annotated[int, Field(ge=1, le=4)]
    root: str
    """The project's folder, relative to the repository; `.` for its top."""
    language: Language
    tool: Text
    """The program whose version is recorded: `pytest`, `ruff`, `node`."""
    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    report: ReportFormat
    report_on: Annotated[str, Field(pattern=r"^(file|stdout|stderr)$")] = "stdout"
    select: Maybe[tuple[str, ...]] = None
    """The command that runs only some items; None if the tool cannot."""
    timeout_s: Seconds = QUICK_S
    writes: Flag
    """Whether it must write into the tree (tests, builds); otherwise the tree is read-only."""
    required: Flag
    network: Flag = False
    found_in: Text
    """Where it was discovered: `pyproject.toml [tool.pytest.ini_options]`, `fairwitness.toml`."""

    def in_repository(self, path: str) -> str:
        """Return a path or test of the project relative to the repository."""
        return path if self.root == "." else f"{self.root}/{path}"

    def covers(self, path: str) -> bool:
        """Return whether a file of the repository is below the project's folder."""
        return self.root == "." or path.startswith(f"{self.root}/")


class Undiscovered(Contract):
    """A check that is configured but cannot be run, with the reason; it counts as missing evidence."""

    id: CheckId
    name: Text
    root: str
    required: Flag
    reason: Text
    found_in: Text
    next_step: str = ""


class Project(Contract):
    """One project of a repository: a folder with its own manifest."""

    root: str
    language: Language
    manifests: Texts
    """Paths, relative to the repository, whose content decides the environment (manifests and locks)."""
    packages: Texts = ()
    """Python: top-level modules of its own. Node: its own package names."""
    sources: Texts = ()
    """Folders (relative to the repository) that its own code is imported from: `src`, `.`"""


class Discovered(Contract):
    """The projects and checks found in a tree."""

    projects: tuple[Project, ...]
    checks: tuple[CheckSpec, ...]
    undiscovered: tuple[Undiscovered, ...]


class DeclaredCheck(Contract):
    """A check declared in fairwitness.toml; required unless declared otherwise."""

    name: Text
    argv: Annotated[Texts, Field(min_length=1)]
    id: Maybe[CheckId] = None
    tier: Annotated[int, Field(ge=1, le=4)] = 2
    root: str = "."
    report: ReportFormat = ReportFormat.EXIT
    report_on: Annotated[str, Field(pattern=r"^(file|stdout|stderr)$")] = "stdout"
    select: Maybe[Texts] = None
    timeout_s: Seconds = LONG_S
    network: Flag = False
    required: Flag = True
    writes: Flag = True


class SetupSettings(Contract):
    """How dependencies are installed, before and outside the evidence runs."""

    network: Flag = False
    commands: tuple[Annotated[Texts, Field(min_length=1)], ...] = ()
    """Commands run in order in `{env}` at the project's root, instead of the discovered ones."""
    env: dict[str, str] = Field(default_factory=dict)
    timeout_s: Seconds = LONG_S


class SandboxSettings(Contract):
    """How strongly commands are isolated."""

    tier: SandboxTier = SandboxTier.UID
    """The weakest acceptable tier."""
    memory_mb: Positive = 4096
    processes: Positive = 512


class OracleMode(StrEnum):
    """How a change of existing tests is judged that the base's own tests do not object to."""

    BASE = "base"
    """A test may be edited, moved or deleted if its form at the base passes with the new code."""
    STRICT = "strict"
    """A person has to accept deleted and weakened tests and loosened configuration; runs of agents use it."""


class VerifySettings(Contract):
    """The settings of verification in fairwitness.toml; always taken from the user's tree, never from the change."""

    check: tuple[DeclaredCheck, ...] = ()
    disable: tuple[CheckId, ...] = ()
    """Discovered checks to leave out; reports list them."""
    roots: Maybe[tuple[str, ...]] = None
    """Folders of the projects to verify; None for all that are found."""
    setup: SetupSettings = SetupSettings()
    sandbox: SandboxSettings = SandboxSettings()
    oracle: OracleMode = OracleMode.BASE
    mutants: Annotated[int, Field(ge=0, le=20)] = 10
    mutants_s: Seconds = 60
