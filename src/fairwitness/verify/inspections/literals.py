"""Literals of code by kind and value, and which of them the changed tests contain."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from fairwitness.verify.inspections.languages import Lang, is_test_path, language_of
from fairwitness.verify.inspections.lexer import lexed
from fairwitness.verify.inspections.line_diff import lines_of
from fairwitness.verify.inspections.model import ChangedText, clipped
from fairwitness.verify.inspections.python_source import (
    Definition,
    Function,
    UnreadableSource,
    is_docstring,
    parse,
    span,
)

Atom = tuple[str, object]
"""A kind and a value: ("n", 90), ("s", "SAVE10"), ("b", True); numbers of one value are one, however written."""
Atoms = tuple[Atom, ...]

NUMBER = r"-?\d[\d_]{0,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?"
STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\\n])*`"
_TOKEN = re.compile(rf"(?P<string>{STRING})|(?<![\w.])(?P<number>{NUMBER})")
_FOLDED = 10**12
ATOMS = 20_000
"""Literals of one file that are looked at."""


def atom(value: object) -> Atom | None:
    """Return a value as an atom; None if its kind cannot identify a result."""
    if isinstance(value, bool):
        return ("b", value)
    if isinstance(value, int | float):
        return ("n", value) if abs(value) < 1e300 else None
    if isinstance(value, str):
        return ("s", value)
    return ("s", value.decode("latin-1")) if isinstance(value, bytes) else None


def literal_atoms(node: ast.expr) -> Atoms | None:
    """Return the atoms of an expression that is written out as a value; None if anything has to be looked up for it."""
    if isinstance(node, ast.Constant):
        known = atom(node.value)
        return (known,) if known else None
    if isinstance(node, ast.UnaryOp | ast.BinOp):
        value = _folded(node)
        known = atom(value) if value is not None else None
        return (known,) if known else None
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return _joined(node.elts)
    if isinstance(node, ast.Dict):
        return _joined([item for pair in zip(node.keys, node.values, strict=True) for item in pair])
    if (
        isinstance(node, ast.Call)
        and not node.keywords
        and node.args
        and isinstance(node.func, ast.Name | ast.Attribute)
    ):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        # Decimal("90"), date(2024, 1, 1): a value by another spelling
        return _joined(node.args) if name[:1].isupper() or name in {"date", "datetime", "frozenset", "float"} else None
    return None


def _joined(nodes: Iterable[ast.expr | None]) -> Atoms | None:
    joined: list[Atom] = []
    for node in nodes:
        inner = literal_atoms(node) if node is not None else None
        if inner is None:
            return None
        joined.extend(inner)
    return tuple(joined)


def _folded(node: ast.expr) -> float | str | None:
    """Return the value of arithmetic on literals, as far as it stays small."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int | float | str) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _folded(node.operand)
        return -inner if isinstance(inner, int | float) else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _folded(node.left), _folded(node.right)
    if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
        return (left + right)[:10_000]
    if isinstance(left, str | None) or isinstance(right, str | None) or max(abs(left), abs(right)) > _FOLDED:
        return None
    match node.op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case _:
            return None


def text_atoms(line: str) -> Iterator[Atom]:
    """Yield the atoms of a line in any language."""
    for token in _TOKEN.finditer(clipped(line)):
        text = token.group()
        if token.lastgroup == "string":
            yield ("s", text[1:-1])
        else:
            yield number_atom(text)


def number_atom(text: str) -> Atom:
    """Return a number of any language as an atom."""
    plain = text.replace("_", "")
    return ("n", float(plain) if set(plain) & {".", "e", "E"} else int(plain))


class NamedByTests:
    """What the new and changed tests mention, test by test."""

    def __init__(self, changes: Iterable[ChangedText]) -> None:
        shared: set[Atom] = set()
        cases: list[set[Atom]] = []
        for change in changes:
            if is_test_path(change.path) and change.after is not None:
                for names, is_shared in _of_test_file(change):
                    if is_shared:
                        shared |= names
                    else:
                        cases.append(names)
        self._cases = [case | shared for case in cases] or [shared]

    def names(self, keys: Collection[Atom], results: Collection[Atom]) -> bool:
        """Return whether one test mentions all of these values; truth values can be asserted without being written."""
        wanted = [*keys, *(result for result in results if result[0] != "b")]
        return any(all(self._mentions(case, each) for each in wanted) for case in self._cases)

    @staticmethod
    def _mentions(case: set[Atom], wanted: Atom) -> bool:
        if wanted in case:
            return True
        kind, value = wanted
        if kind == "s":
            try:
                return ("n", float(str(value))) in case
            except ValueError:
                return False
        return kind == "n" and ("s", str(value)) in case


def _of_test_file(change: ChangedText) -> Iterator[tuple[set[Atom], bool]]:
    """Atoms on added lines, per test function, and those of the rest of the file."""
    text, added = change.after or "", set(change.added)
    language = language_of(change.path)
    if language is Lang.PYTHON:
        try:
            yield from _of_python(parse(text), added)
            return
        except UnreadableSource:
            pass
    lines = lexed(text, language).code if language else tuple(lines_of(text))
    names: set[Atom] = set()
    for number in change.added:
        if number <= len(lines) and len(names) < ATOMS:
            names.update(text_atoms(lines[number - 1]))
    yield names, language is None


def _of_python(tree: ast.Module, added: set[int]) -> Iterator[tuple[set[Atom], bool]]:
    shared: set[Atom] = set()
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.ClassDef):
            pending.extend(statement.body)
        elif isinstance(statement, Function) and not added.isdisjoint(span(statement)):
            yield set(_constants(statement, added)), not statement.name.startswith("test")
        elif not isinstance(statement, Definition):
            shared.update(_constants(statement, added))
    yield shared, True


def _constants(root: ast.stmt, added: set[int]) -> Iterator[Atom]:
    for node in ast.walk(root):
        if isinstance(node, ast.Expr) and is_docstring(node):
            continue
        if isinstance(node, ast.Constant | ast.UnaryOp | ast.BinOp) and not added.isdisjoint(span(node)):
            yield from literal_atoms(node) or ()
