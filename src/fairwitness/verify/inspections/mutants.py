"""Wrong forms of the changed Python code, whole files each, which good tests notice and vacuous ones do not.

Mutants are spread over the changed lines: each line gets one before any line gets a second, and the seed decides which
lines come first. The same change and seed always give the same mutants.
"""

import ast
import hashlib
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from fairwitness.kit.text import visible
from fairwitness.verify.inspections.languages import Lang, is_production, language_of
from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.python_source import (
    Function,
    UnreadableSource,
    dotted,
    is_docstring,
    is_import,
    names_in,
    parse,
    shape,
)

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_NEXT: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
"""The same comparison, with its bound on the other side."""
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
_SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.FloorDiv: "//", ast.And: "and", ast.Or: "or",
}  # fmt: skip
_NEUTRAL = {
    "int": "0", "float": "0.0", "str": "''", "bool": "False", "list": "[]", "dict": "{}", "tuple": "()", "set": "set()",
    "bytes": "b''", "Decimal": "0",
}  # fmt: skip
_TALK = re.compile(
    r"(?:.*\.)?_?(?:log|logger|logging)\.\w+|(?:.*\.)?(?:warn|debug|print|echo|cast|TypeVar|NewType|ParamSpec)"
)
_LEFT_OUT = frozenset({"annotation", "returns", "decorator_list", "bases", "pattern", "msg", "slice", "keys"})
"""Fields of nodes that are not looked into: types, decorators, and what is looked up by."""
_NOT_IN = (ast.Call, ast.keyword, ast.Attribute, ast.Subscript)
"""Nodes in which a text is most likely a name, a format or an option."""

LAST_RESORT = 5
"""The rank of answering None: a caller may trip over it, and the weakest of assertions notices it."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One edit of a text: the node that is replaced, and by what."""

    node: ast.expr | ast.stmt
    text: str
    says: str
    rank: int
    """Low for the ones that a good test is surest to notice and a bad one least likely to trip over."""


@dataclass(frozen=True, slots=True)
class _Where:
    """What is around a node."""

    function: Function | None = None
    recursive: bool = False
    fragile: bool = False
    """Whether the opposite answer would probably crash."""


def mutations(tree: ast.Module) -> Iterator[Mutation]:
    """Yield every mutation of a module, in no order that matters."""
    pending: list[tuple[ast.AST, _Where]] = [(tree, _Where())]
    while pending:
        node, where = pending.pop()
        if isinstance(node, ast.stmt) and _is_left_alone(node):
            continue
        if isinstance(node, Function):
            where = _Where(node, _calls(node, node.name))
        pending.extend(_inside(node, where))
        if isinstance(node, ast.expr):
            yield from _of_expression(node, where)
        elif isinstance(node, ast.stmt):
            yield from _of_statement(node, where)


def _is_left_alone(node: ast.stmt) -> bool:
    """Return whether a mutation could not be detected by a test of behaviour, or would break the program itself."""
    if is_import(node) or is_docstring(node) or isinstance(node, ast.While | ast.Assert | ast.Delete):
        return True
    if isinstance(node, ast.If):
        return dotted(node.test).endswith("TYPE_CHECKING") or any(
            isinstance(inner, ast.Name) and inner.id == "__name__" for inner in ast.walk(node.test)
        )
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(target, ast.Name) and target.id.startswith("__") for target in targets)
    if isinstance(node, Function):
        return any(dotted(mark).endswith("overload") for mark in node.decorator_list)
    return isinstance(node, ast.Expr) and _talks(node.value)


def _talks(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _TALK.fullmatch(dotted(node.func)) is not None


def _calls(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(inner, ast.Call) and dotted(inner.func).rpartition(".")[2] == name for inner in ast.walk(node)
    )


def _inside(node: ast.AST, where: _Where) -> Iterator[tuple[ast.AST, _Where]]:
    """Yield what is inside of a node and may be changed, and what is around it there."""
    if isinstance(node, ast.JoinedStr | ast.Raise) or (isinstance(node, ast.expr) and _talks(node)):
        return  # positions inside of an f-string are not those of the file before Python 3.12
    if isinstance(node, ast.Call) and where.function is not None and _calls(node, where.function.name):
        return  # other arguments could make a recursion endless
    guard = isinstance(node, ast.If | ast.IfExp) and (where.recursive or where.function is None or _raises(node))
    between = isinstance(node, ast.BoolOp) and _guards(node)
    for name, value in ast.iter_fields(node):
        if name in _LEFT_OUT or (isinstance(node, ast.ClassDef) and name == "keywords"):
            continue
        inner_where = _Where(where.function, where.recursive, where.fragile or between or (guard and name == "test"))
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and _is_name_in(node):
                continue
            if isinstance(inner, ast.AST):
                yield inner, inner_where


def _raises(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Raise) for inner in ast.walk(node))


def _is_name_in(node: ast.AST) -> bool:
    """Return whether a text inside of a node is most likely something that must be spelled right to run at all."""
    return isinstance(node, _NOT_IN) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod))


def _of_expression(node: ast.expr, where: _Where) -> Iterator[Mutation]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _of_comparison(node, where)
    elif isinstance(node, ast.BoolOp) and not where.fragile and not _guards(node):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        says = f"`{_SIGNS[type(node.op)]}` became `{_SIGNS[type(other)]}`"
        yield Mutation(node, _spelled(ast.BoolOp(other, node.values)), says, 1)
    elif isinstance(node, ast.BinOp):
        yield from _of_arithmetic(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and not where.fragile:
        yield Mutation(node, _spelled(node.operand), "`not` is gone", 0)
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node)
    elif isinstance(node, ast.IfExp) and not (where.fragile or where.recursive or where.function is None):
        negated = ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        yield Mutation(node, _spelled(negated), "condition negated", 1)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_comparison(node: ast.Compare, where: _Where) -> Iterator[Mutation]:
    old = type(node.ops[0])
    if not where.fragile:
        new = _OPPOSITE[old]
        rank = 4 if old in {ast.Is, ast.IsNot} else 0  # what is not None mostly is used at once
        text = _spelled(ast.Compare(node.left, [new()], node.comparators))
        yield Mutation(node, text, f"`{_SIGNS[old]}` became `{_SIGNS[new]}`", rank)
    if old in _NEXT:
        text = _spelled(ast.Compare(node.left, [_NEXT[old]()], node.comparators))
        yield Mutation(node, text, f"`{_SIGNS[old]}` became `{_SIGNS[_NEXT[old]]}`", 3)


def _of_arithmetic(node: ast.BinOp) -> Iterator[Mutation]:
    if isinstance(node.left, ast.Constant) and isinstance(node.op, ast.Mod):
        return
    kept = node.right if isinstance(node.left, ast.Constant) else node.left
    yield Mutation(node, _spelled(kept), "operand dropped", 0)
    # only with a number on one side it is sure that the other operator exists
    if type(node.op) in _ARITHMETIC and any(_is_number(side) for side in (node.left, node.right)):
        new = _ARITHMETIC[type(node.op)]
        text = _spelled(ast.BinOp(node.left, new(), node.right))
        yield Mutation(node, text, f"`{_SIGNS[type(node.op)]}` became `{_SIGNS[new]}`", 1)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _guards(node: ast.BoolOp) -> bool:
    """`x is not None and x.y`: with the other operator the second part would not run."""
    first, *others = node.values
    names = names_in(first)
    return not _is_plain(first) and any(names & names_in(other) for other in others)


def _is_plain(node: ast.expr) -> bool:
    """Return whether a node compares with a value; such a test does not guard the operation after it."""
    return isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn)


def _of_constant(node: ast.Constant) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, bool):
        yield Mutation(node, str(not value), f"`{value}` became `{not value}`", 1)
    elif isinstance(value, int | float) and abs(value) < 10**15:
        yield Mutation(node, f"({value + 1!r})", f"`{value}` became `{value + 1!r}`", 1)
    elif isinstance(value, str):
        short = value if len(value) <= 20 else f"{value[:19]}…"
        yield Mutation(node, "''" if value else "'mutant'", f"{short!r} became {'' if value else 'mutant'!r}", 2)


def _of_call(node: ast.Call) -> Iterator[Mutation]:
    """Yield a keyword with a written-out value that is not given: what is optional has a default."""
    for keyword in node.keywords:
        if keyword.arg in {"key", "reverse", "default", "start", "maxsplit", "sep", "ndigits"}:
            rest = [other for other in node.keywords if other is not keyword]
            yield Mutation(node, _spelled(ast.Call(node.func, node.args, rest)), f"`{keyword.arg}=` is gone", 4)


def _of_statement(node: ast.stmt, where: _Where) -> Iterator[Mutation]:
    if isinstance(node, ast.If) and where.function is not None and not where.recursive and not _raises(node):
        yield Mutation(node.test, _spelled(ast.UnaryOp(ast.Not(), node.test)), "condition negated", 1)
    elif isinstance(node, ast.Raise):
        yield Mutation(node, "pass", "`raise` is gone", 0)
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield from _of_return(node, node.value, where)
    elif isinstance(node, ast.AugAssign):
        yield Mutation(node, "pass", "statement deleted", 1)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and where.function is not None:
        yield Mutation(node, "pass", "call deleted", 3)


def _of_return(node: ast.Return, value: ast.expr, where: _Where) -> Iterator[Mutation]:
    returns = where.function.returns if where.function is not None else None
    neutral = _NEUTRAL.get(dotted(returns).rpartition(".")[2]) if returns is not None else None
    if neutral is None and isinstance(value, ast.Compare):
        neutral = "False"
    elif neutral is None and isinstance(value, ast.JoinedStr):
        neutral = "''"
    elif neutral is None and isinstance(value, ast.List | ast.ListComp):
        neutral = "[]"
    rank = 2 if neutral else LAST_RESORT
    yield Mutation(node, f"return {neutral or 'None'}", f"returns {neutral or 'None'}", rank)


def _spelled(node: ast.expr) -> str:
    """Return the text of an expression, in parentheses; nothing that compiles if it has none."""
    try:
        return f"({ast.unparse(node)})"
    except (ValueError, RecursionError):
        return "("


SOURCE_LENGTH = 250_000
"""Maximum length of a file that is mutated."""
TRIES = 5
"""How many mutations are tried for each wanted mutant."""
ENOUGH = 5
"""Mutations of better kinds that make the last resort unnecessary."""
PER_LINE = 8
"""Mutations of one line that are tried."""
_LINE_END = re.compile(rb"\r\n|\n")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one mutation."""

    id: str
    path: str
    line: int
    description: str
    content: str
    """The whole text of the file."""


@dataclass(frozen=True, slots=True)
class _Source:
    path: str
    text: str
    shape: str
    line_starts: tuple[int, ...]
    """Where each line starts, in bytes: that is how Python counts columns."""


def mutants(changed: Sequence[ChangedText], *, limit: int, seed: int) -> tuple[Mutant, ...]:
    """Return at most `limit` mutants of the added lines of production code."""
    texts = {change.path: change.after for change in changed if change.after is not None and is_production(change.path)}
    lines = {change.path: change.added for change in changed}
    return mutants_of_covered(texts, lines, limit=limit, seed=seed)


def mutants_of_covered(
    texts: Mapping[str, str], lines: Mapping[str, Collection[int]], *, limit: int, seed: int
) -> tuple[Mutant, ...]:
    """Return at most `limit` mutants of the given lines: for a change of tests alone, the lines that they run."""
    by_line: dict[tuple[str, int], list[Mutation]] = {}
    sources: dict[str, _Source] = {}
    for path in sorted(texts):
        if language_of(path) is Lang.PYTHON and lines.get(path):
            _collect(path, texts[path], set(lines[path]), sources, by_line)
    if sum(each.rank < LAST_RESORT for found in by_line.values() for each in found) >= ENOUGH:
        by_line = {place: [each for each in found if each.rank < LAST_RESORT] for place, found in by_line.items()}
    chosen: list[Mutant] = []
    seen: set[str] = set()
    for (path, line), mutation in islice(_spread(by_line, seed), limit * TRIES):
        if len(chosen) >= limit:
            break
        content = _mutated(sources[path], mutation)
        if content is not None and content not in seen:
            seen.add(content)
            says = visible(mutation.says)
            number = sum(1 for mutant in chosen if (mutant.path, mutant.line) == (path, line)) + 1
            chosen.append(Mutant(f"{path}:{line}:{number}", path, line, says, content))
    return tuple(chosen)


def _collect(
    path: str,
    text: str,
    wanted: set[int],
    sources: dict[str, _Source],
    by_line: dict[tuple[str, int], list[Mutation]],
) -> None:
    if text.startswith("\ufeff") or len(text) > SOURCE_LENGTH:
        return  # a byte order mark would shift every column
    try:
        tree = _compiled(text)
        found = [each for each in mutations(tree) if each.node.lineno in wanted]
    except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # a file that cannot be parsed has no mutants; other inspections report it
    starts = (0, *(end.end() for end in _LINE_END.finditer(text.encode())))
    sources[path] = _Source(path, text, shape(tree), starts)
    for each in found:
        by_line.setdefault((path, each.node.lineno), []).append(each)


def _spread(by_line: Mapping[tuple[str, int], list[Mutation]], seed: int) -> Iterator[tuple[tuple[str, int], Mutation]]:
    """Yield the best mutation of each line, then the second best of each, and so on; the seed orders the lines."""
    places = sorted(by_line, key=lambda place: _drawn(seed, *place))
    ranked = {
        place: sorted(by_line[place], key=lambda each: (each.rank, _drawn(seed, each.node.col_offset, each.says)))
        for place in places
    }
    for turn in range(PER_LINE):
        for place in places:
            if turn < len(ranked[place]):
                yield place, ranked[place][turn]


def _drawn(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).digest()


def _compiled(text: str) -> ast.Module:
    """Return the tree of a text that Python would run."""
    tree = parse(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(tree, "<mutant>", "exec", dont_inherit=True)
    return tree


def _mutated(source: _Source, mutation: Mutation) -> str | None:
    """Return the file with one mutation; None if it does not compile or is unchanged."""
    node = mutation.node
    data = source.text.encode()
    start = source.line_starts[node.lineno - 1] + node.col_offset
    end = source.line_starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    content = (data[:start] + mutation.text.encode() + data[end:]).decode(errors="replace")
    try:
        tree = _compiled(content)
    except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None if shape(tree) == source.shape else content
