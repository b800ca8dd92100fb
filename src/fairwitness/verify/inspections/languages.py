"""The language of a file by its path, and whether it is a test or production code."""

from enum import StrEnum
from pathlib import PurePosixPath

from fairwitness.rules.oracle import PathKind, kind_of_path


class Lang(StrEnum):
    """Languages that inspections read."""

    PYTHON = "python"
    SCRIPT = "script"
    """JavaScript and TypeScript."""
    RUST = "rust"
    GO = "go"
    NATIVE = "native"
    """C and C++."""
    JAVA = "java"


SUFFIXES = {
    ".py": Lang.PYTHON,
    ".pyi": Lang.PYTHON,
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"), Lang.SCRIPT),
    ".rs": Lang.RUST,
    ".go": Lang.GO,
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), Lang.NATIVE),
    **dict.fromkeys((".java", ".kt"), Lang.JAVA),
}


def language_of(path: str) -> Lang | None:
    """Return the language of a path, by its ending."""
    return SUFFIXES.get(PurePosixPath(path).suffix.lower())


def is_test_path(path: str) -> bool:
    """Return whether a file holds tests, or what tests compare with.

    >>> [is_test_path(p) for p in ("tests/data/a.json", "pkg/test_a.py", "src/app.test.ts", "src/latest.py")]
    [True, True, True, False]
    """
    return kind_of_path(path) is PathKind.TEST


def is_collected(path: str) -> bool:
    """Return whether pytest would look for tests in a Python file by its name."""
    name = PurePosixPath(path).name
    return name.endswith(".py") and (name.startswith("test") or name.endswith(("_test.py", "_tests.py")))


def is_production(path: str) -> bool:
    """Return whether a path is source code that a product ships."""
    return language_of(path) is not None and kind_of_path(path) is PathKind.PRODUCTION
