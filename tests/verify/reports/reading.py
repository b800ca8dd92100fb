"""Real reports, kept as the tools wrote them, and how tests read them."""

from pathlib import Path

from fairwitness.contracts.verify.checks import ReportFormat
from fairwitness.contracts.verify.results import Report
from fairwitness.verify.reports import read_report

SAMPLES = Path(__file__).parent / "samples"

F = ReportFormat
REAL: dict[str, tuple[ReportFormat, int, str]] = {
    "pytest-many.xml": (F.JUNIT, 1, "/tmp/gen/py"),
    "pytest-collect.xml": (F.JUNIT, 2, "/tmp/gen/py"),
    "pytest-continue.xml": (F.JUNIT, 1, "/tmp/gen/py"),
    "pytest-xunit2.xml": (F.JUNIT, 1, "/tmp/gen/py"),
    "pytest-none.xml": (F.JUNIT, 5, "/tmp/gen/py"),
    "node-many.xml": (F.JUNIT, 1, "/tmp/gen/node"),
    "node-green.xml": (F.JUNIT, 0, "/tmp/gen/node"),
    "node-ours.xml": (F.JUNIT, 1, "/tmp/gen/node"),
    "ctest-many.xml": (F.JUNIT, 8, "/tmp/gen/c"),
    "ctest-none.xml": (F.JUNIT, 8, "/tmp/gen/c"),
    "vitest-many.xml": (F.JUNIT, 1, "/tmp/gen/js"),
    "vitest-none.xml": (F.JUNIT, 1, "/tmp/gen/js"),
    "mocha-many.xml": (F.JUNIT, 2, "/tmp/gen/js"),
    "surefire-many.xml": (F.JUNIT, 1, "/tmp/gen/mv"),
    "go-many.jsonl": (F.GO_TEST, 1, "/tmp/gen/go"),
    "node-many.tap": (F.TAP, 1, "/tmp/gen/node"),
    "tape-many.tap": (F.TAP, 1, "/tmp/gen/js"),
    "ava-many.tap": (F.TAP, 1, "/tmp/gen/js"),
    "subtests-14.tap": (F.TAP, 1, "/tmp/gen/js"),
    "cargo-many.txt": (F.CARGO, 101, "/tmp/gen/rs"),
    "cargo-both.txt": (F.CARGO, 0, "/tmp/gen/rs"),
    "cargo-compile.txt": (F.CARGO, 101, "/tmp/gen/rs"),
    "unittest-3.8.txt": (F.UNITTEST, 1, "/tmp/gen/py"),
    "unittest-3.11.txt": (F.UNITTEST, 1, "/tmp/gen/py"),
    "unittest-3.12.txt": (F.UNITTEST, 1, "/tmp/gen/py"),
    "unittest-load.txt": (F.UNITTEST, 1, "/tmp/gen/py"),
    "unittest-green.txt": (F.UNITTEST, 0, "/tmp/gen/py"),
    "jest-many.json": (F.JEST, 1, "/tmp/gen/js"),
    "jest-none.json": (F.JEST, 1, "/tmp/gen/js"),
    "ruff-many.json": (F.RUFF, 1, "/tmp/gen/py"),
    "ruff-green.json": (F.RUFF, 0, "/tmp/gen/py"),
    "flake8-many.txt": (F.FLAKE8, 1, "/tmp/gen/py"),
    "mypy-many.txt": (F.MYPY, 1, "/tmp/gen/py"),
    "mypy-syntax.txt": (F.MYPY, 2, "/tmp/gen/py"),
    "mypy-green.txt": (F.MYPY, 0, "/tmp/gen/py"),
    "pyright-many.json": (F.PYRIGHT, 1, "/tmp/gen/py"),
    "eslint-many.json": (F.ESLINT, 1, "/tmp/gen/js"),
    "eslint-green.json": (F.ESLINT, 0, "/tmp/gen/js"),
    "tsc-many.txt": (F.TSC, 1, "/tmp/gen/js/ts"),
    "tsc-pretty.txt": (F.TSC, 1, "/tmp/gen/js/ts"),
    "gcc-many.txt": (F.COMPILER, 1, "/tmp/gen/c"),
    "gcc-link.txt": (F.COMPILER, 1, "/tmp/gen/c"),
    "make-many.txt": (F.COMPILER, 2, "/tmp/gen/c"),
}
"""Every sample: its format, the exit code its tool ended with, the folder it ran in."""


def sample(name: str) -> bytes:
    """A sample's bytes."""
    return (SAMPLES / name).read_bytes()


def report(name: str, *, exit_code: int | None = None, old: str = "", new: str = "", root: str | None = None) -> Report:
    """A sample read as it is, or with one passage replaced, or with another exit code."""
    format, code, folder = REAL[name]
    content = sample(name).decode()
    assert old in content
    return read_report(
        format,
        content.replace(old, new).encode() if old else content.encode(),
        exit_code=code if exit_code is None else exit_code,
        root=folder if root is None else root,
    )


def read(format: ReportFormat, text: str, exit_code: int | None = 0, root: str = "/work/tree") -> Report:
    """A text read as a report."""
    return read_report(format, text.encode(), exit_code=exit_code, root=root)


def told(found: Report) -> list[str]:
    """A report as lines, problems last."""
    items = [f"{item.outcome.value}: {item.id}" for item in found.items]
    return items + [f"problem: {problem}" for problem in found.problems]


def places(found: Report) -> list[str]:
    """Where a report's things stand, and what they say."""
    return [f"{item.path}:{item.line}: {item.message}" for item in found.items if item.path or item.message]
