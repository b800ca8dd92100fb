"""Compile every Python file below the working folder without writing; arguments: folders to leave out."""

import os
import sys
import warnings
from pathlib import Path

LEFT_OUT = {
    "node_modules",
    "vendor",
    "third_party",
    "site-packages",
    "venv",
    "fixtures",
    "testdata",
    "test_data",
    "templates",
}
LARGEST = 4 << 20


def problem(path: Path) -> tuple[int, int, str] | None:
    """Return line, column and text of a file's syntax error; None if there is none."""
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.lineno or 1, error.offset or 1, error.msg
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return 1, 1, f"{type(error).__name__}: {error}"
    return None


def main() -> int:
    """Print the syntax errors, one line each."""
    warnings.simplefilter("ignore")
    skipped = {Path(name) for name in sys.argv[1:]}
    wrong = 0
    for folder, inner, names in os.walk("."):
        here = Path(folder)
        inner[:] = sorted(
            name for name in inner if name[0] not in ".{" and name not in LEFT_OUT and here / name not in skipped
        )
        for name in sorted(names):
            path = here / name
            if not name.endswith(".py") or path.is_symlink() or path.stat().st_size > LARGEST:
                continue
            found = problem(path)
            if found is not None:
                line, column, words = found
                wrong += 1
                sys.stdout.write(f"{path.as_posix()}:{line}:{column}: error: {' '.join(words.split())}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
