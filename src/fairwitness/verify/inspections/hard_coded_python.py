"""Written-out answers in Python, by its syntax tree: `if`, conditional expressions, `match`, and tables looked up."""

import ast
from collections.abc import Iterator

from fairwitness.verify.inspections.hard_coded import Entry
from fairwitness.verify.inspections.literals import Atoms, literal_atoms
from fairwitness.verify.inspections.python_source import Function, names_in, span

ALTERNATIVES = 200
_FUNCTIONS = frozenset(
    {
        "int",
        "str",
        "float",
        "round",
        "abs",
        "len",
        "tuple",
        "list",
        "sorted",
        "sum",
        "min",
        "max",
        "hash",
        "repr",
        "set",
        "frozenset",
    }
)
_METHODS = frozenset(
    {
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "casefold",
        "title",
        "capitalize",
        "hexdigest",
        "encode",
        "replace",
        "split",
        "copy",
    }
)


def python_entries(tree: ast.Module) -> Iterator[Entry]:
    """Every entry of a module."""
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, Function):
            yield from _Body(node, number).entries()
    yield from _tables(tree)


class _Body:
    """One function: its parameters, what is made of them, and how it answers."""

    def __init__(self, function: Function, number: int) -> None:
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        self._function = function
        self._number = number
        self._given = {argument.arg for argument in every if argument is not None}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and self.is_given(node.value):
                self._given |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        self._bypasses = any(
            isinstance(node, ast.Return) and node.value is not None and not _answers(node.value)
            for node in ast.walk(function)
        )

    def entries(self) -> Iterator[Entry]:
        for node in ast.walk(self._function):
            if isinstance(node, ast.If):
                result = _result(node.body)
                if result is not None:
                    yield from self._made(node.test, result[0], {*span(node.test), result[1]})
                other = _result(node.orelse) if isinstance(node.test, ast.Compare) else None
                if other is not None and isinstance(node.test, ast.Compare) and _is(node.test, ast.NotEq):
                    yield from self._made(_turned(node.test), other[0], {*span(node.test), other[1]})
            elif isinstance(node, ast.IfExp):
                atoms = literal_atoms(node.body)
                if atoms:
                    yield from self._made(node.test, atoms, set(span(node)))
            elif isinstance(node, ast.Match) and self.is_given(node.subject):
                yield from self._matched(node)

    def _made(self, test: ast.expr, result: Atoms, lines: set[int]) -> Iterator[Entry]:
        about = " ".join(sorted(names_in(test) & self._given))
        whole = self._alternatives(test)[:ALTERNATIVES]
        for keys in whole or self._parts(test)[:ALTERNATIVES]:
            if keys and result:
                yield Entry(
                    test.lineno,
                    frozenset(lines),
                    keys,
                    result,
                    (about, self._number),
                    is_table=False,
                    bypasses=self._bypasses,
                    is_part=not whole,
                )

    def _matched(self, node: ast.Match) -> Iterator[Entry]:
        about = " ".join(sorted(names_in(node.subject)))
        for case in node.cases:
            result = _result(case.body)
            if result is None:
                continue
            lines = frozenset({case.pattern.lineno, result[1]})
            choices = _patterns(case.pattern)
            if case.guard is not None:
                choices = [*choices, *self._alternatives(case.guard)]
            for keys in choices[:ALTERNATIVES]:
                yield Entry(case.pattern.lineno, lines, keys, result[0], (about, self._number), False, self._bypasses)

    def _alternatives(self, test: ast.expr) -> list[Atoms]:
        """The sets of values for which a condition holds, as far as it compares for equality."""
        if isinstance(test, ast.BoolOp):
            parts = [self._alternatives(value) for value in test.values]
            if isinstance(test.op, ast.Or):
                return [keys for part in parts for keys in part]
            combined: list[Atoms] = [()]
            for part in parts:
                if part:
                    combined = [(*keys, *more) for keys in combined for more in part][:ALTERNATIVES]
            return [keys for keys in combined if keys]
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return []
        left, right = test.left, test.comparators[0]
        if isinstance(test.ops[0], ast.Eq | ast.Is):
            for given, value in ((left, right), (right, left)):
                atoms = literal_atoms(value)
                if atoms and self.is_given(given):
                    return [atoms]
        elif (
            isinstance(test.ops[0], ast.In)
            and self.is_given(left)
            and isinstance(right, ast.Tuple | ast.List | ast.Set)
        ):
            return [atoms for item in right.elts if (atoms := literal_atoms(item))]
        return []

    def _parts(self, test: ast.expr) -> list[Atoms]:
        """Texts that a condition looks for inside of what was given."""
        if isinstance(test, ast.BoolOp):
            return [keys for value in test.values for keys in self._parts(value)]
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and len(test.args) == 1:
            if test.func.attr in {"startswith", "endswith"} and self.is_given(test.func.value):
                return [(each,) for each in literal_atoms(test.args[0]) or ()]
        elif isinstance(test, ast.Compare) and _is(test, ast.In) and self.is_given(test.comparators[0]):
            atoms = literal_atoms(test.left)
            return [atoms] if atoms else []
        return []

    def is_given(self, node: ast.expr) -> bool:
        """Whether an expression is made of nothing but the function's parameters."""
        if isinstance(node, ast.Name):
            return node.id in self._given
        if isinstance(node, ast.Attribute | ast.Subscript):
            return self.is_given(node.value)
        if isinstance(node, ast.Tuple | ast.List):
            return bool(node.elts) and all(self.is_given(item) for item in node.elts)
        if isinstance(node, ast.BinOp):
            sides = [side for side in (node.left, node.right) if not isinstance(side, ast.Constant)]
            return bool(sides) and all(self.is_given(side) for side in sides)
        if isinstance(node, ast.JoinedStr):
            held = [value.value for value in node.values if isinstance(value, ast.FormattedValue)]
            return bool(held) and all(self.is_given(value) for value in held)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                return node.func.id in _FUNCTIONS and bool(node.args) and self.is_given(node.args[0])
            return (
                isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and self.is_given(node.func.value)
            )
        return False


def _result(body: list[ast.stmt]) -> tuple[Atoms, int] | None:
    """The written-out answer of a branch, and its line."""
    for statement in body:
        value: ast.expr | None = None
        if isinstance(statement, ast.Return) or (
            isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)
        ):
            value = statement.value
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
            value = statement.value.value
        if value is not None and (atoms := literal_atoms(value)):
            return atoms, statement.lineno
    return None


def _answers(value: ast.expr) -> bool:
    """Whether a returned value is written out, or a choice between written-out ones."""
    if isinstance(value, ast.IfExp):
        return _answers(value.body) and _answers(value.orelse)
    return literal_atoms(value) is not None or (isinstance(value, ast.Constant) and value.value is None)


def _patterns(pattern: ast.pattern) -> list[Atoms]:
    if isinstance(pattern, ast.MatchValue):
        atoms = literal_atoms(pattern.value)
        return [atoms] if atoms else []
    if isinstance(pattern, ast.MatchOr):
        return [keys for each in pattern.patterns for keys in _patterns(each)]
    if isinstance(pattern, ast.MatchSequence):
        parts = [_patterns(each) for each in pattern.patterns]
        keys = tuple(atom for part in parts if part for atom in part[0])
        return [keys] if keys else []
    return []


def _is(test: ast.Compare, kind: type[ast.cmpop]) -> bool:
    return len(test.ops) == 1 and isinstance(test.ops[0], kind)


def _turned(test: ast.Compare) -> ast.Compare:
    return ast.copy_location(ast.Compare(test.left, [ast.Eq()], test.comparators), test)


def _tables(tree: ast.Module) -> Iterator[Entry]:
    """Entries of dictionaries that something else than a literal is looked up in."""
    looked_up: set[str] = set()
    direct: set[int] = set()
    for node in ast.walk(tree):
        table: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and literal_atoms(node.slice) is None:
            table = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"get", "pop"}:
            table = node.func.value if node.args and literal_atoms(node.args[0]) is None else None
        if isinstance(table, ast.Name):
            looked_up.add(table.id)
        elif isinstance(table, ast.Attribute):
            looked_up.add(table.attr)
        elif isinstance(table, ast.Dict):
            direct.add(id(table))
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and id(node) in direct:
            yield from _entries_of(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id in looked_up for target in targets):
                yield from _entries_of(node.value)


def _entries_of(table: ast.Dict) -> Iterator[Entry]:
    for key, value in zip(table.keys, table.values, strict=True):
        keys, result = literal_atoms(key) if key is not None else None, literal_atoms(value)
        if key is not None and keys and result:
            lines = frozenset({*span(key), *span(value)})
            yield Entry(key.lineno, lines, keys, result, ("table", table.lineno * 1000 + table.col_offset), True, True)
