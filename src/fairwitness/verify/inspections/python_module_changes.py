"""Changes of a Python test module outside its tests: helpers, fixtures, constants, and code that runs on import."""

import ast
from collections import Counter
from collections.abc import Iterator

from fairwitness.verify.inspections.model import FindingRule, InspectionFinding, finding_at
from fairwitness.verify.inspections.python_source import (
    Function,
    bound_names,
    dotted,
    is_docstring,
    is_import,
    names_in,
    shape,
    without_docstring,
)
from fairwitness.verify.inspections.python_tests import (
    SETUP,
    fixture_name,
    is_autouse,
    is_fixture,
    is_test_name,
    silencers,
)

MARKS = frozenset({"pytestmark", "__test__"})


def module_changes(path: str, before: ast.Module, after: ast.Module) -> Iterator[InspectionFinding]:
    """Yield findings about the statements of a module, its tests apart."""
    yield from _Compared(path, before, after).findings()


class _Compared:
    """Two versions of one module."""

    def __init__(self, path: str, before: ast.Module, after: ast.Module) -> None:
        self._path = path
        self._before = before
        self._after = after
        self._mentioned = _mentions(after)
        self._asked_for = {
            argument.arg
            for node in ast.walk(before)
            if isinstance(node, Function) and (is_test_name(node.name) or is_fixture(node))
            for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        }

    def findings(self) -> Iterator[InspectionFinding]:
        yield from self._bodies(self._before.body, self._after.body, "")

    def _bodies(self, before: list[ast.stmt], after: list[ast.stmt], within: str) -> Iterator[InspectionFinding]:
        old, new = _parts(before), _parts(after)
        named_old, named_new = _by_name(old), _by_name(new)
        kept = {shape(statement) for statement in new}
        for statement in old:
            name = _name(statement)
            if name and statement is not named_old[name]:
                continue  # a later definition of the same name is the one that counts
            if name in named_new:
                yield from self._changed(statement, named_new[name], within)
            elif name or shape(statement) not in kept:
                yield self._gone(statement, within)
        known = {shape(statement) for statement in old}
        for statement in new:
            if _name(statement) not in named_old and (_name(statement) or shape(statement) not in known):
                yield from self._added(statement, set(named_old), within)
        twice = Counter(map(_name, new)) - Counter(map(_name, old))
        for name in sorted(name for name in twice if name in named_old):
            yield self._says(named_new[name], f"a second definition of {name} replaces the first", within, blocks=True)
        yield from self._shadowed(before, after, within)

    def _classes(self, before: ast.ClassDef, after: ast.stmt, within: str) -> Iterator[InspectionFinding]:
        if not isinstance(after, ast.ClassDef):
            yield self._says(after, f"class {before.name} is something else now", within, blocks=True)
            return
        inner = f"{within}{before.name}::"
        if hushed := set(silencers(*after.decorator_list)) - set(silencers(*before.decorator_list)):
            yield finding_at(
                FindingRule.SKIP_ADDED,
                self._path,
                after.lineno,
                f"the whole class is now skipped or expected to fail ({', '.join(sorted(hushed))})",
                subject=f"{self._path}::{inner[:-2]}",
                blocks=True,
            )
        elif shape(*before.decorator_list) != shape(*after.decorator_list):
            yield self._says(after, f"the decorators of class {before.name} changed", inner, blocks=True)
        if shape(*before.bases, *before.keywords) != shape(*after.bases, *after.keywords):
            yield self._says(after, f"the bases of class {before.name} changed", inner, blocks=True)
        yield from self._bodies(before.body, after.body, inner)

    def _changed(self, before: ast.stmt, after: ast.stmt, within: str) -> Iterator[InspectionFinding]:
        name = _name(after)
        if isinstance(before, ast.ClassDef):
            yield from self._classes(before, after, within)
        elif shape(before) == shape(after):
            return
        elif name in MARKS:
            yield from self._mark(after, before)
        elif isinstance(before, Function) and shape(before, annotations=False) == shape(after, annotations=False):
            return
        else:
            yield self._says(after, f"{_kind(after)} {name} changed", within, blocks=True)

    def _gone(self, statement: ast.stmt, within: str) -> InspectionFinding:
        name = _name(statement)
        if name in MARKS:
            return self._says(statement, f"{name} is gone", within, blocks=not silencers(statement))
        steers = is_autouse(statement) or SETUP.fullmatch(name) is not None or name == ""
        used = name in self._mentioned or (
            isinstance(statement, Function) and fixture_name(statement) in self._asked_for
        )
        return self._says(statement, f"{_kind(statement)} {name} is gone".rstrip(), within, blocks=steers or used)

    def _added(self, statement: ast.stmt, known: set[str], within: str) -> Iterator[InspectionFinding]:
        name = _name(statement)
        if name in MARKS:
            yield from self._mark(statement, None)
        elif "importorskip" in silencers(statement) or (name == "" and silencers(statement)):
            yield self._skips(statement, "the whole module can be skipped now")
        elif isinstance(statement, Function):
            if is_autouse(statement):
                yield self._says(statement, f"fixture {name} now acts on every test", within, blocks=True)
            elif SETUP.fullmatch(name) or name.startswith("pytest_"):
                yield self._says(statement, f"{name} now acts on tests that were there", within, blocks=True)
            elif is_fixture(statement) and fixture_name(statement) in self._asked_for:
                text = f"fixture {fixture_name(statement)} now replaces the one that tests use"
                yield self._says(statement, text, within, blocks=True)
        elif name == "" or bound_names(statement) & known:
            yield self._says(statement, "a statement that runs on import is new", within, blocks=True)

    def _shadowed(self, before: list[ast.stmt], after: list[ast.stmt], within: str) -> Iterator[InspectionFinding]:
        """Yield names that a new import or assignment takes over from something defined in the module."""
        defined = {name for statement in before if not is_import(statement) for name in bound_names(statement)}
        imported_before = {name for statement in before if is_import(statement) for name in _imported(statement)}
        for statement in after:
            if not is_import(statement):
                continue
            if taken := (_imported(statement) - imported_before) & defined:
                text = f"an import takes over the name {', '.join(sorted(taken))}"
                yield self._says(statement, text, within, blocks=True)
        assigned = [name for statement in after if _is_assignment(statement) for name in bound_names(statement)]
        was = {name for statement in before if _is_assignment(statement) for name in bound_names(statement)}
        functions = {statement.name for statement in before if isinstance(statement, Function | ast.ClassDef)}
        for name in sorted((set(assigned) - was) & functions):
            yield finding_at(
                FindingRule.TEST_MODULE_CHANGED,
                self._path,
                None,
                f"an assignment takes over the name {name}",
                subject=f"{self._path}::{within}{name}",
                blocks=True,
            )

    def _mark(self, statement: ast.stmt, before: ast.stmt | None) -> Iterator[InspectionFinding]:
        old = silencers(before) if before else []
        if "__test__" in bound_names(statement):
            if not shape(statement).endswith("bool:True"):
                yield self._skips(statement, "tests here are no longer collected (__test__)")
        elif len(silencers(statement)) > len(old):
            yield self._skips(statement, "all tests here are now skipped or expected to fail (pytestmark)")
        elif not old:
            yield self._says(statement, "pytestmark changed", "", blocks=True)

    def _skips(self, statement: ast.stmt, text: str) -> InspectionFinding:
        return finding_at(FindingRule.SKIP_ADDED, self._path, statement.lineno, text, blocks=True)

    def _says(self, statement: ast.stmt, text: str, within: str, *, blocks: bool) -> InspectionFinding:
        subject = f"{self._path}::{within[:-2]}" if within else self._path
        return finding_at(
            FindingRule.TEST_MODULE_CHANGED, self._path, statement.lineno, text, subject=subject, blocks=blocks
        )


def _parts(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements that are neither tests nor imports nor text."""
    return [
        statement
        for statement in without_docstring(body)
        if not (isinstance(statement, Function) and is_test_name(statement.name))
        and not is_import(statement)
        and not is_docstring(statement)
        and not _is_main(statement)
    ]


def _name(statement: ast.stmt) -> str:
    """Return the first name that a statement defines; nothing if it does anything else."""
    names = bound_names(statement)
    if isinstance(statement, ast.Assign) and any(
        isinstance(node, ast.Attribute | ast.Subscript) for target in statement.targets for node in ast.walk(target)
    ):
        return ""
    return min(names) if names else ""


def _by_name(statements: list[ast.stmt]) -> dict[str, ast.stmt]:
    return {name: statement for statement in statements if (name := _name(statement))}


def _kind(statement: ast.stmt) -> str:
    if is_fixture(statement):
        return "fixture"
    if isinstance(statement, Function):
        return "function"
    if isinstance(statement, ast.ClassDef):
        return "class"
    return "name" if _name(statement) else "a statement that runs on import"


def _is_assignment(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign | ast.AnnAssign)


def _imported(statement: ast.stmt) -> set[str]:
    return {name for node in ast.walk(statement) if isinstance(node, ast.stmt) for name in bound_names(node)}


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in names_in(statement.test) and not statement.orelse


def _mentions(tree: ast.Module) -> set[str]:
    """Names, attributes and fixture arguments that a module uses anywhere."""
    used = names_in(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            used.add(node.arg)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.add(node.value)
        elif isinstance(node, ast.keyword):
            used.add(dotted(node.value))
    return used
