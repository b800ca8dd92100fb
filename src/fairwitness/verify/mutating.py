"""Which wrong forms of the code the new tests are held against.

Where production code was changed, its changed lines are mutated. A change of tests alone has none: then the functions
and classes that the new tests name are, since those are what the tests claim to look after.
"""

import ast
from collections.abc import Iterator, Sequence

from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.git.shadow import Shadow
from fairwitness.rules.oracle import PathKind, kind_of_path
from fairwitness.verify.cascade import Checked
from fairwitness.verify.inspections.model import ChangedFile
from fairwitness.verify.inspections.mutants import Mutant, mutants
from fairwitness.verify.model import Change

FILE_LIMIT = 1 << 20
MOST_FILES = 400
"""Production files that are searched for what the new tests name."""


def chosen_mutants(
    shadow: Shadow,
    change: Change,
    checked: Checked,
    files: Sequence[ChangedFile],
    new: Sequence[str],
    settings: VerifySettings,
) -> tuple[Mutant, ...]:
    """The mutants, chosen by the tree: the same change is held against the same ones."""
    seed = int(change.head.tree[:8], 16)
    own = [file for file in files if file.after is not None and _is_python_code(file.path)]
    if not own:
        own = list(_named_by(shadow, change, checked, new))
    return mutants(own, limit=settings.mutants, seed=seed)


def _is_python_code(path: str) -> bool:
    return path.endswith(".py") and kind_of_path(path) is PathKind.PRODUCTION


def _named_by(shadow: Shadow, change: Change, checked: Checked, new: Sequence[str]) -> Iterator[ChangedFile]:
    """Production files with the lines of what the new tests name, as if those lines had been changed."""
    spec = checked.spec
    entries = shadow.entries(change.head.tree)
    tests = {spec.in_repository(id_.split("::", 1)[0]) for id_ in new} & set(entries)
    names = {name for path in tests for name in _names(_parsed(_text(shadow, entries[path].id)))}
    code = [path for path in entries if path.startswith(spec.in_repository("")) and _is_python_code(path)]
    for path in code[:MOST_FILES]:
        text = _text(shadow, entries[path].id)
        lines = sorted(_lines_of(_parsed(text), names))
        if lines:
            yield ChangedFile(path, text, text, tuple(lines), ())


def _text(shadow: Shadow, blob: str) -> str:
    return shadow.blob(blob, limit=FILE_LIMIT).decode(errors="replace")


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module(body=[], type_ignores=[])


def _names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def _lines_of(module: ast.Module, names: set[str]) -> Iterator[int]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name in names:
            yield from range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
