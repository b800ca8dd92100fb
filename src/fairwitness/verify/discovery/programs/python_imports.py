"""Import modules, each in a new process, and print which fail; arguments: folders, `--`, modules.

A module that ends the process while it is imported was not imported: it has to come to the line after, and to say a
word there that it was not told before.
"""

import os
import subprocess
import sys
from pathlib import Path

CHILD = """
import sys
word = sys.stdin.readline()
sys.path[:0] = sys.argv[2:]
module = __import__(sys.argv[1])
place = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
sys.__stdout__.write("\\n" + word + place + "\\n")
sys.__stdout__.flush()
"""
PATIENCE_S = 30


def place_of(module: str, folders: list[str]) -> str:
    """Return the file of a module, relative to the working folder."""
    for folder in folders:
        for tail in (f"{module}/__init__.py", f"{module}.py", module):
            if (Path(folder) / tail).exists():
                return (Path(folder) / tail).as_posix()
    return module


def problem(module: str, folders: list[str]) -> str | None:
    """Return why a module cannot be imported from here; None if it can."""
    word = os.urandom(16).hex() + "\n"
    argv = [sys.executable, "-B", "-c", CHILD, module, *(str(Path(folder).resolve()) for folder in folders)]
    try:
        done = subprocess.run(argv, input=word, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"importing it took longer than {PATIENCE_S} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"importing it ended the process with {done.returncode}"
    said, _, place = done.stdout.rpartition(word)
    if not said:
        return "importing it ended the process"
    if not Path(place.strip()).resolve().is_relative_to(Path.cwd()):
        return "it was not loaded from this tree"
    return None


def main() -> int:
    """Print the modules that cannot be imported, one line each."""
    cut = sys.argv.index("--")
    folders, modules = sys.argv[1:cut], sys.argv[cut + 1 :]
    wrong = 0
    for module in modules:
        found = problem(module, folders)
        if found is not None:
            wrong += 1
            sys.stdout.write(f"{place_of(module, folders)}:1:1: error: {' '.join(found.split())}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
