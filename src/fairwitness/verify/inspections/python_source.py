"""Parse Python texts without running them, within limits, and compare them by their syntax.

Two pieces of code have the same shape if they differ only in layout, comments and docstrings.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator

SOURCE_LENGTH = 500_000
"""Characters of a text that is still parsed."""
DEPTH = 150
"""Levels of a syntax tree; deeper ones are refused, so that nothing that walks one runs out of stack."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_LONE_RETURN = re.compile(r"\r(?!\n)")
_LOADS = (ast.Load, ast.Store, ast.Del)


class UnreadableSource(Exception):
    """The text is not Python that can be parsed; the message is the reason."""


class Misleading(UnreadableSource):
    """It could be read, but its lines would not be where git says they are."""


def parse(text: str) -> ast.Module:
    """Return the syntax tree of a text; `UnreadableSource` if there is none."""
    if len(text) > SOURCE_LENGTH:
        raise UnreadableSource(f"it has {len(text)} characters, more than {SOURCE_LENGTH}")
    if _LONE_RETURN.search(text):
        # to Python that is a line end, to git it is not: line numbers would point elsewhere
        raise Misleading("a carriage return stands alone in it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.removeprefix("\ufeff"))
    except SyntaxError as error:
        raise UnreadableSource(f"line {error.lineno or 1} is not valid Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise UnreadableSource(f"it cannot be parsed: {type(error).__name__}") from None
    if _too_deep(tree):
        raise UnreadableSource(f"it is nested more than {DEPTH} levels deep")
    return tree


def _too_deep(tree: ast.AST) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def shape(*nodes: ast.AST, annotations: bool = True) -> str:
    """Return a text that is equal for code that does the same; without annotations if they are not wanted."""
    words: list[str] = []
    stack: list[object] = list(reversed(nodes))
    while stack:
        item = stack.pop()
        if isinstance(item, str | int | float | complex | bytes | None) or item is ...:
            words.append(_spelled(item))
        elif isinstance(item, list):
            words.append(f"[{len(item)}")
            stack.extend(reversed(item))
        elif isinstance(item, ast.AST) and not isinstance(item, _LOADS):
            words.append(type(item).__name__)
            stack.extend(reversed(list(_fields(item, annotations=annotations))))
    return " ".join(words)


def _spelled(value: object) -> str:
    # hexadecimal, because Python refuses to spell very long whole numbers in tens
    return f"{type(value).__name__}:{hex(value) if type(value) is int else value!r}"


def _fields(node: ast.AST, *, annotations: bool) -> Iterator[object]:
    for name, value in ast.iter_fields(node):
        if name in {"type_comment", "kind", "type_ignores"}:
            continue
        if name in {"annotation", "returns"} and not annotations:
            continue
        if name == "body" and isinstance(node, ast.Module | Definition):
            yield without_docstring(value)
        else:
            yield value


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a body after its docstring."""
    return body[1:] if body and is_docstring(body[0]) else body


def is_docstring(statement: ast.stmt) -> bool:
    """Return whether a statement is a text and nothing else."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a name or attribute, a called or subscripted one included; empty for anything else."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Name):
            return ".".join([node.id, *reversed(parts)])
        else:
            return ""


def names_in(*nodes: ast.AST) -> set[str]:
    """Return every name that code mentions."""
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def bound_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement defines, if it does nothing else."""
    if isinstance(statement, Definition):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Assign):
        return {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return {statement.target.id}
    return set()


def is_import(statement: ast.stmt) -> bool:
    """Return whether a statement does nothing but import, be it in a `try` or under `TYPE_CHECKING`."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass):
        return True
    if isinstance(statement, ast.If):
        return dotted(statement.test).endswith("TYPE_CHECKING") and _only_imports(statement.body, statement.orelse)
    if isinstance(statement, ast.Try):
        fallbacks = [inner for handler in statement.handlers for inner in handler.body if not _is_none_or_flag(inner)]
        return _only_imports(
            [inner for inner in statement.body if not _is_none_or_flag(inner)],
            fallbacks,
            [inner for inner in statement.orelse if not _is_none_or_flag(inner)],
            statement.finalbody,
        )
    return False


def _only_imports(*bodies: Iterable[ast.stmt]) -> bool:
    return all(is_import(statement) for body in bodies for statement in body)


def _is_none_or_flag(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and all(isinstance(target, ast.Name) for target in statement.targets)
        and isinstance(statement.value, ast.Constant)
        and (statement.value.value is None or isinstance(statement.value.value, bool))
        and not {"__test__", "pytestmark"} & bound_names(statement)
    )


def span(node: ast.stmt | ast.expr) -> range:
    """Return the lines of a node, decorators included."""
    decorators = node.decorator_list if isinstance(node, Definition) else []
    start = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return range(start, (node.end_lineno or node.lineno) + 1)
