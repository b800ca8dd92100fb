"""What became of the tests that a Python module already held, by its syntax tree.

A test may be laid out, commented, documented and annotated anew, given more cases, or given more assertions. Anything
else about it is a change, and so is whatever its module does outside of its tests, new definitions and imports apart.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from fairwitness.verify.inspections.model import Finding, Rule, found, quoted
from fairwitness.verify.inspections.python_module_changes import module_changes
from fairwitness.verify.inspections.python_source import is_docstring, parse, shape
from fairwitness.verify.inspections.python_tests import FLAKY, XFAILS, PythonTest, assertions, silencers, tests_of

_BENDING = frozenset({"setattr", "delattr", "setitem", "exec", "eval", "exit", "globals", "patch", "start", "update"})

Moves = dict[str, str]
"""Ids of tests that were renamed or moved, and their new ids."""


def python_changes(path: str, before: str, after: str, *, new_path: str, moves: Moves) -> Iterator[Finding]:
    """Findings about the tests of one module; `Unreadable` if one of the texts cannot be parsed."""
    old_tree, new_tree = parse(before), parse(after)
    if shape(old_tree) == shape(new_tree):
        return
    old, new = tests_of(old_tree), tests_of(new_tree)
    for name, tests in old.items():
        test = f"{path}::{name}"
        line = tests[-1].node.lineno
        if name in new:
            yield from _compared(path, test, tests, new[name])
        elif test in moves:
            yield found(Rule.TEST_MOVED, path, line, f"it is {moves[test]} now", subject=test, blocks=False)
        else:
            yield found(Rule.TEST_DELETED, path, line, "the test is gone", subject=test, blocks=True)
    for name, tests in new.items():
        if name not in old and silencers(*tests[-1].node.decorator_list):
            # a new test that is not run proves nothing, but takes nothing away either
            test = f"{new_path}::{name}"
            yield found(Rule.SKIP_ADDED, new_path, tests[-1].node.lineno, "new and not run", subject=test, blocks=False)
    yield from module_changes(path, old_tree, new_tree)


def _compared(path: str, test: str, old: list[PythonTest], new: list[PythonTest]) -> Iterator[Finding]:
    before, after = old[-1], new[-1]
    line = after.node.lineno
    if len(new) > len(old):
        yield found(
            Rule.TEST_CHANGED, path, line, "a later definition of the same name replaces it", subject=test, blocks=True
        )
        return
    if before.content == after.content:
        return
    hushed = Counter(silencers(after.node)) - Counter(silencers(before.node))
    if hushed:
        words = ", ".join(sorted(hushed))
        kind = "retried" if set(hushed) <= FLAKY else "expected to fail" if set(hushed) <= XFAILS else "skipped"
        yield found(Rule.SKIP_ADDED, path, line, f"it is now {kind} ({words})", subject=test, blocks=True)
    yield from _parameters(path, test, before, after)
    yield from _body(path, test, before, after, hushed=bool(hushed))


def _parameters(path: str, test: str, before: PythonTest, after: PythonTest) -> Iterator[Finding]:
    line = after.node.lineno
    old, new = before.parameters, after.parameters
    for names, cases in old.items():
        if names not in new:
            yield found(Rule.PARAMETERS_NARROWED, path, line, "a parametrize is gone", subject=test, blocks=True)
        elif new[names] != cases:
            now = new[names]
            if cases is None or now is None:
                yield found(
                    Rule.PARAMETERS_NARROWED, path, line, "its cases come from elsewhere now", subject=test, blocks=True
                )
            elif gone := Counter(cases) - Counter(now):
                text = f"{gone.total()} of its {len(cases)} cases are gone or changed"
                yield found(Rule.PARAMETERS_NARROWED, path, line, text, subject=test, blocks=True)
    if set(new) - set(old):
        yield found(Rule.TEST_CHANGED, path, line, "it takes other parameters now", subject=test, blocks=True)


def _body(path: str, test: str, before: PythonTest, after: PythonTest, *, hushed: bool) -> Iterator[Finding]:
    line = after.node.lineno
    lost_marks = Counter(before.marks) - Counter(after.marks)
    new_marks = Counter(after.marks) - Counter(before.marks)
    # a skip that was taken away lets the test count again
    freed = sum(1 for mark in before.node.decorator_list if shape(mark) in lost_marks and silencers(mark))
    if new_marks.total() > (1 if hushed else 0) or lost_marks.total() > freed:
        yield found(Rule.TEST_CHANGED, path, line, "its decorators changed", subject=test, blocks=True)
    if before.signature != after.signature:
        yield found(Rule.TEST_CHANGED, path, line, "its arguments changed", subject=test, blocks=True)
    if type(before.node) is not type(after.node):
        yield found(Rule.TEST_CHANGED, path, line, "it changed between async and not", subject=test, blocks=True)
    if before.body == after.body:
        return
    had, has = assertions(before.node), assertions(after.node)
    if has < had:
        yield found(Rule.ASSERTIONS_DROPPED, path, line, f"{had} assertions, {has} now", subject=test, blocks=True)
    elif _only_asserts_more(before, after):
        yield found(Rule.TEST_CHANGED, path, line, f"{has - had} assertions more", subject=test, blocks=False)
    elif not hushed:
        text = f"its body changed: {quoted(_first_difference(before, after))}"
        yield found(Rule.TEST_CHANGED, path, line, text, subject=test, blocks=True)


def _only_asserts_more(before: PythonTest, after: PythonTest) -> bool:
    wanted = list(before.body)
    for statement in after.node.body:
        if wanted and shape(statement) == wanted[0]:
            wanted.pop(0)
        elif not (_is_plain_assertion(statement) or is_docstring(statement)):
            return False
    return not wanted


def _is_plain_assertion(statement: ast.stmt) -> bool:
    """An assertion that can only fail: it binds nothing, and calls nothing that could end or bend the test."""
    return isinstance(statement, ast.Assert) and not any(
        isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)
        or (isinstance(node, ast.Attribute) and (node.attr.startswith("_") or node.attr in _BENDING))
        or (isinstance(node, ast.Name) and node.id in _BENDING)
        for node in ast.walk(statement)
    )


def _first_difference(before: PythonTest, after: PythonTest) -> str:
    old = set(before.body)
    for statement in after.node.body:
        if shape(statement) not in old:
            try:
                return ast.unparse(statement)
            except (RecursionError, ValueError):
                break
    return "lines are gone"
