"""The tests of a Python module, by their ids, and what they are marked with."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from fairwitness.verify.inspections.python_source import Definition, Function, dotted, shape, without_docstring

SKIPS = frozenset({"skip", "skipif", "skipIf", "skipUnless", "skipTest", "importorskip", "SkipTest", "Skip"})
XFAILS = frozenset({"xfail", "expectedFailure"})
FLAKY = frozenset({"flaky", "repeat", "retry", "rerun"})
SETUP = re.compile(
    r"(setup|teardown)(_(module|function|method|class))?|(setUp|tearDown)(Module|Class)?|asyncSetUp|asyncTearDown|"
    r"load_tests|__getattr__"
)
_ASSERTING = re.compile(r"assert\w*|fail|failIf\w*|failUnless\w*")
_RAISING = frozenset({"raises", "warns", "deprecated_call", "expect", "approx_equal"})


@dataclass(frozen=True, slots=True)
class PythonTest:
    """One test function or method."""

    name: str
    """`Class::test_it`, without the path."""
    node: Function

    @property
    def marks(self) -> tuple[str, ...]:
        """The shapes of its decorators, parametrize apart."""
        return tuple(shape(mark) for mark in self.node.decorator_list if not is_parametrize(mark))

    @property
    def parameters(self) -> dict[str, tuple[str, ...] | None]:
        """What each parametrize names, and the shapes of its cases; None where they are not written out."""
        return {
            shape(*mark.args[:1]): _cases(mark)
            for mark in self.node.decorator_list
            if isinstance(mark, ast.Call) and is_parametrize(mark)
        }

    @property
    def body(self) -> tuple[str, ...]:
        """The shapes of its statements, docstring apart."""
        return tuple(shape(statement) for statement in without_docstring(self.node.body))

    @property
    def signature(self) -> str:
        """The shape of its arguments, annotations apart."""
        return shape(self.node.args, annotations=False)

    @property
    def content(self) -> tuple[object, ...]:
        """Everything but its name: equal for a test that was only renamed or moved."""
        decorators = tuple(shape(mark) for mark in self.node.decorator_list)
        return type(self.node).__name__, decorators, self.signature, self.body


def tests_of(tree: ast.Module) -> dict[str, list[PythonTest]]:
    """Return tests by name; a name that is defined twice has two, of which the last one counts."""
    tests: dict[str, list[PythonTest]] = {}
    for name, node in definitions(tree.body):
        if not isinstance(node, ast.ClassDef) and is_test_name(node.name):
            tests.setdefault(name, []).append(PythonTest(name, node))
    return tests


def definitions(body: Iterable[ast.stmt], within: str = "") -> list[tuple[str, Definition]]:
    """Functions and classes of a module, with those of classes and of `if` and `try` blocks inside it."""
    found: list[tuple[str, Definition]] = []
    for statement in body:
        if isinstance(statement, Definition):
            found.append((within + statement.name, statement))
            if isinstance(statement, ast.ClassDef):
                found.extend(definitions(statement.body, f"{within}{statement.name}::"))
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            found.extend(definitions(_inner(statement), within))
    return found


def _inner(statement: ast.If | ast.Try | ast.With) -> list[ast.stmt]:
    if isinstance(statement, ast.With):
        return statement.body
    if isinstance(statement, ast.If):
        return [*statement.body, *statement.orelse]
    handled = [inner for handler in statement.handlers for inner in handler.body]
    return [*statement.body, *handled, *statement.orelse, *statement.finalbody]


def is_test_name(name: str) -> bool:
    """Return whether pytest or unittest would take a function of this name for a test."""
    return name.startswith("test")


def is_parametrize(mark: ast.expr) -> bool:
    """Return whether a decorator gives a test its cases."""
    return dotted(mark).rpartition(".")[2] in {"parametrize", "parameterize"}


def _cases(mark: ast.Call) -> tuple[str, ...] | None:
    values = mark.args[1] if len(mark.args) > 1 else None
    for keyword in mark.keywords:
        if keyword.arg == "argvalues":
            values = keyword.value
        elif keyword.arg != "ids":
            return None
    if isinstance(values, ast.List | ast.Tuple | ast.Set):
        return tuple(shape(case) for case in values.elts)
    return None


def last_words(*nodes: ast.AST) -> list[str]:
    """Return the last word of everything that is called, raised or used as a decorator or attribute in some code."""
    words = []
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute):
                words.append(inner.attr)
            elif isinstance(inner, ast.Name):
                words.append(inner.id)
    return words


def silencers(*nodes: ast.AST) -> list[str]:
    """Words in some code that keep a test from counting: skips, expected failures, retries."""
    quiet = SKIPS | XFAILS | FLAKY
    return [word for word in last_words(*nodes) if word in quiet]


def assertions(node: ast.AST) -> int:
    """Return how often some code states what it expects."""
    return sum(1 for inner in ast.walk(node) if _asserts(inner))


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    word = dotted(node.func).rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    return word in _RAISING or _ASSERTING.fullmatch(word) is not None


def is_fixture(node: ast.AST) -> bool:
    """Return whether a definition is a pytest fixture."""
    return isinstance(node, Function) and any(_is_fixture_mark(mark) for mark in node.decorator_list)


def is_autouse(node: ast.AST) -> bool:
    """Return whether a definition is a fixture that every test gets, asked for or not."""
    return isinstance(node, Function) and any(
        isinstance(mark, ast.Call)
        and _is_fixture_mark(mark)
        and any(keyword.arg == "autouse" and not _is_false(keyword.value) for keyword in mark.keywords)
        for mark in node.decorator_list
    )


def fixture_name(node: Function) -> str:
    """Return the name that tests ask for a fixture by."""
    for mark in node.decorator_list:
        for keyword in mark.keywords if isinstance(mark, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return node.name


def _is_fixture_mark(mark: ast.expr) -> bool:
    return dotted(mark).rpartition(".")[2] in {"fixture", "yield_fixture"}


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value
