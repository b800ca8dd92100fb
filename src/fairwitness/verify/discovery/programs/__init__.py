"""Small programs of Fair Witness that a check runs, each passed as an argument of its command line.

A program in the command line needs no file in the sandbox, and the ledger's command says all that was run.
"""

from importlib.resources import files
from urllib.parse import quote


def _source(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


PYTHON_SYNTAX = _source("python_syntax.py")
"""Arguments: folders to leave out."""
PYTHON_IMPORTS = _source("python_imports.py")
"""Arguments: folders to import from, `--`, modules."""
NODE_SYNTAX = _source("node_syntax.js")
"""Arguments: folders to leave out."""
NODE_REPORTER = "data:text/javascript," + quote(_source("node_reporter.mjs"), safe="")
"""For `node --test-reporter`, which loads it like a module."""

PROGRAMS = {
    "python_syntax.py": PYTHON_SYNTAX,
    "python_imports.py": PYTHON_IMPORTS,
    "node_syntax.js": NODE_SYNTAX,
    "node_reporter.mjs": NODE_REPORTER,
}
"""Each program by the name that a shown command has in its place."""
