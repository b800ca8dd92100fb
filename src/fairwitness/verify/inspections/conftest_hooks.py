"""Changes of conftest.py, and modules that shadow a tool: what can affect a test run besides fixtures."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from fairwitness.verify.inspections.model import ChangedText, FindingRule, InspectionFinding, finding_at
from fairwitness.verify.inspections.python_module_changes import module_changes
from fairwitness.verify.inspections.python_source import Function, UnreadableSource, dotted, is_docstring, parse, shape
from fairwitness.verify.inspections.python_tests import fixture_name, is_autouse, is_fixture

STARTUP = frozenset({"sitecustomize.py", "usercustomize.py"})
SHADOWED = frozenset({"pytest", "_pytest", "unittest", "coverage", "pluggy", "hypothesis", "doctest", "xdist"})
"""Modules of test tools that a folder of the repository could shadow."""
_ROOTS = frozenset({"src", "lib", "python", "test", "tests"})
_BUILT_IN = frozenset(
    {
        "monkeypatch",
        "request",
        "tmp_path",
        "tmp_path_factory",
        "tmpdir",
        "capsys",
        "capfd",
        "caplog",
        "recwarn",
        "pytestconfig",
    }
)
_ENDS = frozenset({"os._exit", "os.abort", "os.kill", "sys.exit", "exit", "quit", "pytest.exit", "atexit.register"})
_BENDS = re.compile(
    r"(.*\.)?(setattr|delattr|setitem|delitem|patch(\.\w+)?|mock_open|exec|eval|__import__|import_module|addaudithook|"
    r"settrace|setprofile|insert|append|reload)"
)


def conftest_changes(change: ChangedText) -> Iterator[InspectionFinding]:
    """Yield findings about one conftest.py."""
    try:
        before, after = parse(change.before or ""), parse(change.after or "")
    except UnreadableSource as reason:
        yield finding_at(
            FindingRule.UNREADABLE, change.path, None, f"a conftest.py that cannot be read: {reason}", blocks=True
        )
        return
    if change.after is None:
        yield finding_at(FindingRule.TEST_CONFIG_HOOK, change.path, None, "the conftest.py is gone", blocks=True)
        return
    known = Counter((text, code) for _, text, code in _powers(before))
    said: set[int] = set()
    for line, text, code in _powers(after):
        known[text, code] -= 1
        if known[text, code] < 0:
            said.add(line)
            yield finding_at(FindingRule.TEST_CONFIG_HOOK, change.path, line, text, blocks=True)
    yield from (finding for finding in _definitions(change.path, before, after) if finding.line not in said)


def shadowing(change: ChangedText) -> Iterator[InspectionFinding]:
    """Yield a finding for a file that Python loads before, or instead of, the test tools."""
    place = PurePosixPath(change.path)
    if change.after is None or change.before is not None:
        changed = change.before is not None and change.after is not None
        if changed and place.name in STARTUP:
            yield finding_at(
                FindingRule.TEST_CONFIG_HOOK, change.path, None, "it runs before every test run", blocks=True
            )
        return
    if place.name in STARTUP or place.suffix == ".pth":
        yield finding_at(FindingRule.TEST_CONFIG_HOOK, change.path, None, "it runs before every test run", blocks=True)
    elif place.suffix == ".py" and _module_at_a_root(place) in SHADOWED:
        yield finding_at(FindingRule.TEST_CONFIG_HOOK, change.path, None, "it may shadow a test tool", blocks=True)


def _module_at_a_root(place: PurePosixPath) -> str:
    """Return the name that a file can be imported by from a folder that may be on the path; nothing if it is deeper."""
    parts = place.with_suffix("").parts
    name = parts[:-1] if parts[-1] == "__init__" else parts
    return name[-1] if name and set(name[:-1]) <= _ROOTS else ""


def _powers(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield what in a conftest.py can change the result of a test run: line, description and shape of the code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr) and (text := _power(node)):
            yield node.lineno, text, shape(node)
    for statement in tree.body:
        if isinstance(statement, ast.Expr) and not is_docstring(statement):
            yield statement.lineno, "a call that runs when it is loaded", shape(statement)
        elif isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Attribute | ast.Subscript) for target in statement.targets
        ):
            yield statement.lineno, "it sets something in another module", shape(statement)


def _power(node: ast.AST) -> str:
    if isinstance(node, Function):
        if node.name.startswith("pytest_"):
            return f"hook {node.name}"
        if is_autouse(node) and _bends(node):
            return f"autouse fixture {node.name} replaces things"
        if is_fixture(node) and fixture_name(node) in _BUILT_IN:
            return f"fixture {fixture_name(node)} replaces pytest's own"
    elif isinstance(node, ast.ImportFrom | ast.Import):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        if any(name.split(".")[0] == "_pytest" for name in names):
            return "it imports the insides of pytest"
    elif isinstance(node, ast.Call) and dotted(node.func) in _ENDS:
        return f"{dotted(node.func)} can end the test run"
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for name in (dotted(target) for target in targets):
            if name in {"collect_ignore", "collect_ignore_glob", "pytest_plugins", "pytestmark"}:
                return f"{name} is set"
            if name.startswith("sys.modules"):
                return "it replaces a module"
    return ""


def _bends(function: Function) -> bool:
    arguments = {argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]}
    if arguments & {"monkeypatch", "mocker", "request"}:
        return True
    return any(
        (isinstance(node, ast.Call) and _BENDS.fullmatch(dotted(node.func)))
        or (
            isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
        )
        for node in ast.walk(function)
    )


def _definitions(path: str, before: ast.Module, after: ast.Module) -> Iterator[InspectionFinding]:
    """Yield findings about fixtures and helpers: new ones do not block; changed ones affect all tests that use them."""
    for finding in module_changes(path, before, after):
        rule = FindingRule.TEST_CONFIG_HOOK if finding.blocks else FindingRule.TEST_CONFIG_FIXTURE
        autouse = "acts on every test" in finding.text
        if autouse:
            # a fixture that replaces things is already reported
            yield finding_at(FindingRule.TEST_CONFIG_FIXTURE, path, finding.line, finding.text, blocks=False)
        else:
            yield finding_at(rule, path, finding.line, finding.text, blocks=finding.blocks)
    known = {node.name for node in before.body if isinstance(node, Function)}
    for node in after.body:
        if is_fixture(node) and isinstance(node, Function) and node.name not in known and not is_autouse(node):
            yield finding_at(
                FindingRule.TEST_CONFIG_FIXTURE, path, node.lineno, f"fixture {node.name} is new", blocks=False
            )
