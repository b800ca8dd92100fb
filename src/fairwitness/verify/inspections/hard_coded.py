"""Find hard-coded results: branches and table rows whose answer is a literal, and which of them are suspicious."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from fairwitness.verify.inspections.literals import (
    NUMBER,
    STRING,
    Atom,
    Atoms,
    NamedByTests,
    literal_atoms,
    number_atom,
)
from fairwitness.verify.inspections.model import clipped
from fairwitness.verify.inspections.python_source import Function, names_in, span

SMALL = frozenset({-1, 0, 1, 2})
ENTRIES = 5_000
"""Maximum of entries per file."""
_WORD = re.compile(r"[a-z]+(?:[_. -][a-z]+){0,3}|[A-Z]+(?:[_-][A-Z]+){0,3}")


@dataclass(frozen=True, slots=True)
class HardCodedEntry:
    """One condition on given values whose answer is a literal."""

    line: int
    lines: frozenset[int]
    """Its lines."""
    keys: Atoms
    """All values that the condition compares with."""
    result: Atoms
    family: tuple[str, int]
    """Siblings share it: branches of one function on the same thing, entries of one table."""
    is_table: bool
    bypasses: bool
    """Whether the function computes its answer otherwise."""
    is_part: bool = False
    """Whether only a part of what was given is compared: how a text begins or ends, what it contains."""


def suspicious(entries: Iterable[HardCodedEntry], tests: NamedByTests, added: set[int]) -> list[HardCodedEntry]:
    """Return entries on added lines that look as if they were written for the tests."""
    families: dict[tuple[str, int], list[HardCodedEntry]] = {}
    for entry in islice(entries, ENTRIES):
        families.setdefault(entry.family, []).append(entry)
    guilty: dict[tuple[int, Atoms], HardCodedEntry] = {}
    for family in families.values():
        named = [entry for entry in family if is_named(entry, tests)]
        if not is_honest_family(family, named):
            for entry in named:
                if not added.isdisjoint(entry.lines) and is_distinctive(entry):
                    guilty[entry.line, entry.keys] = entry
    return sorted(guilty.values(), key=lambda entry: entry.line)


def is_named(entry: HardCodedEntry, tests: NamedByTests) -> bool:
    """Return whether a new test mentions what is compared and what is answered.

    A sentence of prose may stand in a fixture that the change does not touch; there the answer is enough.
    """
    if tests.names(entry.keys, entry.result):
        return True
    return all(_is_prose(key) for key in entry.keys) and _is_telling(entry.result) and tests.names((), entry.result)


def is_honest_family(family: list[HardCodedEntry], named: list[HardCodedEntry]) -> bool:
    """Return whether siblings that no test names show that this is a real lookup."""
    if len(named) == len(family):
        return False
    return family[0].is_table or len(family) >= 3 or not family[0].bypasses


def is_distinctive(entry: HardCodedEntry) -> bool:
    """Return whether the compared values are so special that they must come from a test."""
    if all(kind == "b" for kind, _ in entry.result) and not entry.bypasses:
        return False  # a truth value without other computation is a classification
    if entry.is_table and all(_is_small(each) for each in entry.result):
        return False  # numbers for names: a test mentions those by chance
    if entry.is_part and not _is_telling(entry.result):
        return False  # code often decides by the beginning of a text
    if len(entry.keys) >= 2:
        return any(not _is_small(each) for each in (*entry.keys, *entry.result))
    (key,) = entry.keys
    kind, value = key
    if kind == "n":
        return value not in SMALL
    if kind != "s" or len(str(value)) < 2:
        return False
    return _is_prose(key) or _WORD.fullmatch(str(value)) is None or _spells_out(str(value), entry.result)


def _spells_out(key: str, result: Atoms) -> bool:
    """Return whether the answer contains the compared text, so that it may have been computed from it."""
    return any(
        kind == "s" and key.lower() in str(value).lower() and len(str(value)) > len(key) for kind, value in result
    )


def _is_prose(each: Atom) -> bool:
    kind, value = each
    return kind == "s" and len(str(value).split()) >= 3


def _is_telling(result: Atoms) -> bool:
    """Return whether an answer is a distinctive number."""
    return all(kind == "n" and not _is_small((kind, value)) for kind, value in result)


def _is_small(each: Atom) -> bool:
    kind, value = each
    return kind == "b" or value in SMALL or value == ""


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


def python_entries(tree: ast.Module) -> Iterator[HardCodedEntry]:
    """Yield every entry of a module."""
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, Function):
            yield from _Body(node, number).entries()
    yield from _tables(tree)


class _Body:
    """One function: its parameters, values derived from them, and its answers."""

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

    def entries(self) -> Iterator[HardCodedEntry]:
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

    def _made(self, test: ast.expr, result: Atoms, lines: set[int]) -> Iterator[HardCodedEntry]:
        about = " ".join(sorted(names_in(test) & self._given))
        whole = self._alternatives(test)[:ALTERNATIVES]
        for keys in whole or self._parts(test)[:ALTERNATIVES]:
            if keys and result:
                yield HardCodedEntry(
                    test.lineno,
                    frozenset(lines),
                    keys,
                    result,
                    (about, self._number),
                    is_table=False,
                    bypasses=self._bypasses,
                    is_part=not whole,
                )

    def _matched(self, node: ast.Match) -> Iterator[HardCodedEntry]:
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
                yield HardCodedEntry(
                    case.pattern.lineno, lines, keys, result[0], (about, self._number), False, self._bypasses
                )

    def _alternatives(self, test: ast.expr) -> list[Atoms]:
        """Return the sets of values for which a condition holds, as far as it compares for equality."""
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
        """Return whether an expression is made of nothing but the function's parameters."""
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
    """Return the written-out answer of a branch, and its line."""
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
    """Return whether a returned value is written out, or a choice between written-out ones."""
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


def _tables(tree: ast.Module) -> Iterator[HardCodedEntry]:
    """Yield entries of dictionaries that something else than a literal is looked up in."""
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


def _entries_of(table: ast.Dict) -> Iterator[HardCodedEntry]:
    for key, value in zip(table.keys, table.values, strict=True):
        keys, result = literal_atoms(key) if key is not None else None, literal_atoms(value)
        if key is not None and keys and result:
            lines = frozenset({*span(key), *span(value)})
            yield HardCodedEntry(
                key.lineno, lines, keys, result, ("table", table.lineno * 1000 + table.col_offset), True, True
            )


_LITERAL = rf"(?:{STRING}|{NUMBER})[fFuUlL]{{0,3}}"
_NAME = r"(?<!\w)[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*(?:\(\))?|\[\w{1,20}\]){0,4}"
_EQUAL = re.compile(
    rf"(?P<name>{_NAME})\s*===?\s*(?P<value>{_LITERAL})|(?P<value2>{_LITERAL})\s*===?\s*(?P<name2>{_NAME})"
    rf"|(?P<name3>{_NAME})\.equals(?:IgnoreCase)?\(\s*(?P<value3>{STRING})\s*\)"
    rf"|\bstrn?cmp\(\s*(?P<name4>{_NAME})\s*,\s*(?P<value4>{STRING})[^)]{{0,20}}\)\s*==\s*0"
    rf"|!\s*strn?cmp\(\s*(?P<name5>{_NAME})\s*,\s*(?P<value5>{STRING})"
)
_ANSWER = rf"(?:[A-Za-z_][\w:]{{0,40}}[(!]\(?\s*){{0,2}}(?P<answer>{_LITERAL}|true|false)\s*(?:\.\w+\(\))?\s*\)*"
_RETURN = re.compile(rf"\breturn\s+\(?\s*{_ANSWER}\s*;?")
_BARE = re.compile(rf"\s*{_ANSWER}\s*;?\s*(?:\}}.*)?$")
_BRACED = re.compile(rf"\{{\s*(?:return\s+)?{_ANSWER}\s*;?\s*\}}")
_TERNARY = re.compile(rf"\?\s*{_ANSWER}\s*:")
_CASE = re.compile(rf"^\s*(?:case|when)\s+(?P<keys>{_LITERAL}(?:\s*,\s*{_LITERAL}){{0,8}})\s*(?::|->|=>)")
_ARM = re.compile(rf"^\s*(?P<keys>\(?\s*{_LITERAL}(?:\s*[,|]\s*{_LITERAL}){{0,8}}\s*\)?)\s*=>\s*{_ANSWER}\s*,?\s*$")
_PAIR = re.compile(rf"^\s*\[?(?P<keys>{STRING}|{NUMBER})\]?\s*:\s*{_ANSWER}\s*,?\s*$")
_ONE = re.compile(rf"(?P<string>{STRING})|(?P<number>{NUMBER})")
_FIELDS = re.compile(
    r".*(?:\.|->|::)(?:status|statusCode|status_code|code|type|kind|key|keyCode|errno|method|tag|nodeName|tagName|"
    r"length|len\(\)|size\(\)|size)"
)
"""Fields that code commonly compares with well-known values."""
_NEAR = 4
"""Lines between siblings."""


def line_entries(code: Sequence[str]) -> Iterator[HardCodedEntry]:
    """Yield every entry of a text whose comments are gone."""
    family = 0
    last: dict[str, int] = {}
    for number, whole in enumerate(code, 1):
        line = clipped(whole)
        for kind, keys, answer, answered_at in _on_line(line, code, number):
            if number - last.get(kind, -100) > _NEAR:
                family += 1
            last[kind] = answered_at
            result = _atom(answer)
            if result is not None:
                bypasses = kind == "branch" and result[0] != "b"
                yield HardCodedEntry(
                    number, frozenset({number, answered_at}), keys, (result,), (kind, family), kind == "table", bypasses
                )


def _on_line(line: str, code: Sequence[str], number: int) -> Iterator[tuple[str, Atoms, str, int]]:
    arm, case, pair = _ARM.match(line), _CASE.match(line), _PAIR.match(line)
    if arm:
        yield "table", _keys(arm.group("keys")), arm.group("answer"), number
    elif pair:
        yield "table", _keys(pair.group("keys")), pair.group("answer"), number
    elif case:
        answer = _answer(line[case.end() :], code, number, bare=False)
        if answer:
            yield "table", _keys(case.group("keys")), *answer
    else:
        yield from _branch(line, code, number)


def _branch(line: str, code: Sequence[str], number: int) -> Iterator[tuple[str, Atoms, str, int]]:
    keys: list[Atom] = []
    end = 0
    for match in _EQUAL.finditer(line):
        name = next(value for key, value in match.groupdict().items() if key.startswith("name") and value)
        value = next(value for key, value in match.groupdict().items() if key.startswith("value") and value)
        known = _atom(value)
        if known and not _FIELDS.fullmatch(name):
            keys.append(known)
            end = match.end()
    if not keys:
        return
    rest = line[end:]
    ternary = _TERNARY.search(rest)
    if ternary:
        yield "branch", tuple(keys), ternary.group("answer"), number
    elif re.search(r"\bif\b", line[:end]) and (answer := _answer(rest, code, number, bare=True)):
        yield "branch", tuple(keys), *answer


def _answer(rest: str, code: Sequence[str], number: int, *, bare: bool) -> tuple[str, int] | None:
    """Return the answer after a condition, on its line or on one of the next two."""
    here = _RETURN.search(rest) or _BRACED.search(rest)
    if here:
        return here.group("answer"), number
    following = [(at, clipped(code[at - 1])) for at in range(number + 1, min(number + 3, len(code) + 1))]
    for at, line in following:
        if not line.strip():
            continue
        there = _RETURN.match(line.lstrip()) or (_BARE.match(line) if bare else None)
        return (there.group("answer"), at) if there else None
    return None


def _keys(text: str) -> Atoms:
    return tuple(atom for match in _ONE.finditer(text) if (atom := _atom(match.group())) is not None)


def _atom(text: str) -> Atom | None:
    if text in {"true", "false"}:
        return ("b", text == "true")
    if text[:1] in "\"'`":
        return ("s", text[1:-1])
    match = _ONE.match(text)
    return number_atom(match.group()) if match else None
