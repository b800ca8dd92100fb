"""The meaning of each tool's exit codes, and whether one agrees with the report: exit code 0 alone is no evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

NO_TESTS = "no test was collected"
"""The problem of a report without a test; callers compare with this text."""


class ReportingTool(StrEnum):
    """The tool that wrote a report, by its exit codes."""

    PYTEST = "pytest"
    UNITTEST = "unittest"
    GO = "go test"
    CARGO = "cargo test"
    JEST = "jest"
    IDLE = "an idle runner"
    """A runner that fails if there is nothing to run: jest and vitest with 1, ctest with 8."""
    MOCHA = "mocha"
    RUNNER = "the test runner"
    """Any other: ctest, node, vitest, surefire, a TAP producer."""
    RUFF = "ruff"
    FLAKE8 = "flake8"
    MYPY = "mypy"
    PYRIGHT = "pyright"
    ESLINT = "eslint"
    TSC = "tsc"
    COMPILER = "the compiler"


@dataclass(frozen=True, slots=True)
class Convention:
    """The exit codes of a tool; 0 always means that nothing is red."""

    red: frozenset[int] | None
    """Codes that mean failures. None: any code below those of a shell."""
    broke: Mapping[int, str] = field(default_factory=dict)
    """Codes that mean that the tool could not do its work, with the reason."""
    warnings_may_fail: bool = False
    """Whether it can be configured to fail on warnings alone."""


_ONE = frozenset({1})
CONVENTIONS: Mapping[ReportingTool, Convention] = {
    ReportingTool.PYTEST: Convention(
        _ONE,
        {
            2: "it was interrupted, or gave up at a file it cannot collect",
            3: "it failed internally",
            4: "it was called wrongly, or what it was asked for is not there",
            5: NO_TESTS,
        },
    ),
    ReportingTool.UNITTEST: Convention(_ONE, {2: "it was called wrongly", 5: NO_TESTS}),
    ReportingTool.GO: Convention(frozenset({1, 2})),
    ReportingTool.CARGO: Convention(frozenset({101})),
    ReportingTool.JEST: Convention(_ONE),
    ReportingTool.IDLE: Convention(frozenset(), {1: NO_TESTS, 8: NO_TESTS}),
    ReportingTool.MOCHA: Convention(frozenset(range(1, 256))),  # how many failed
    ReportingTool.RUNNER: Convention(None),
    ReportingTool.RUFF: Convention(_ONE, {2: "it could not do its work"}),
    ReportingTool.FLAKE8: Convention(_ONE, {2: "it could not do its work"}),
    ReportingTool.MYPY: Convention(_ONE, {2: "errors prevented further checking"}),
    ReportingTool.PYRIGHT: Convention(
        _ONE,
        {2: "it failed fatally", 3: "its configuration cannot be read", 4: "it was called wrongly"},
        warnings_may_fail=True,
    ),
    ReportingTool.ESLINT: Convention(_ONE, {2: "it could not do its work"}, warnings_may_fail=True),
    # 1: diagnostics, nothing written; 2: diagnostics, and output written nevertheless
    ReportingTool.TSC: Convention(
        frozenset({1, 2}), {3: "the project is invalid", 4: "project references form a circle"}
    ),
    ReportingTool.COMPILER: Convention(None),
}
_SHELL = 126
"""Codes from here on are a shell's: not executable, not found, ended by a signal."""


def exit_problem(tool: ReportingTool, exit_code: int | None, *, red: int) -> str | None:
    """Return why an exit code and a report with that many red things do not fit together; None if they do."""
    convention = CONVENTIONS[tool]
    if exit_code is None:
        return "the command did not end by itself, so its report may be cut short"
    if exit_code == 0:
        return f"the exit code is 0, but the report says that {red} failed" if red else None
    if exit_code in convention.broke:
        return f"{tool.value} ended with exit code {exit_code}: {convention.broke[exit_code]}"
    if convention.red is None or exit_code not in convention.red:
        if not 0 < exit_code < _SHELL:
            return f"exit code {exit_code}: the command was killed or could not be started"
        if convention.red is not None:
            return f"exit code {exit_code} is none that {tool.value} gives for what it finds"
    if not red:
        return f"the exit code is {exit_code}, but nothing in the report failed"
    return None
