"""Find what a change does to existing tests.

Python is compared by its syntax tree, other languages and unreadable Python line by line. A test that stands under
another name or path with the same content has moved: that is said, and does not block.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from fairwitness.verify.inspections.languages import Lang, is_collected, is_test_path, language_of
from fairwitness.verify.inspections.line_test_changes import added_marks, inline_rust_tests, line_changes_of_tests
from fairwitness.verify.inspections.model import (
    ChangedText,
    FindingRule,
    InspectionFinding,
    bounded,
    finding_at,
    quoted,
)
from fairwitness.verify.inspections.python_module_changes import module_changes
from fairwitness.verify.inspections.python_source import SOURCE_LENGTH, UnreadableSource, is_docstring, parse, shape
from fairwitness.verify.inspections.python_tests import FLAKY, XFAILS, PythonTest, assertions, silencers, tests_of

_BENDING = frozenset({"setattr", "delattr", "setitem", "exec", "eval", "exit", "globals", "patch", "start", "update"})

Moves = dict[str, str]
"""Ids of tests that were renamed or moved, and their new ids."""


def python_changes(path: str, before: str, after: str, *, new_path: str, moves: Moves) -> Iterator[InspectionFinding]:
    """Yield findings about the tests of one module; `UnreadableSource` if one of the texts cannot be parsed."""
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
            yield finding_at(FindingRule.TEST_MOVED, path, line, f"it is {moves[test]} now", subject=test, blocks=False)
        else:
            yield finding_at(FindingRule.TEST_DELETED, path, line, "the test is gone", subject=test, blocks=True)
    for name, tests in new.items():
        if name not in old and silencers(*tests[-1].node.decorator_list):
            # a skipped new test proves nothing, but removes nothing either
            test = f"{new_path}::{name}"
            yield finding_at(
                FindingRule.SKIP_ADDED, new_path, tests[-1].node.lineno, "new and not run", subject=test, blocks=False
            )
    yield from module_changes(path, old_tree, new_tree)


def _compared(path: str, test: str, old: list[PythonTest], new: list[PythonTest]) -> Iterator[InspectionFinding]:
    before, after = old[-1], new[-1]
    line = after.node.lineno
    if len(new) > len(old):
        yield finding_at(
            FindingRule.TEST_CHANGED,
            path,
            line,
            "a later definition of the same name replaces it",
            subject=test,
            blocks=True,
        )
        return
    if before.content == after.content:
        return
    hushed = Counter(silencers(after.node)) - Counter(silencers(before.node))
    if hushed:
        words = ", ".join(sorted(hushed))
        kind = "retried" if set(hushed) <= FLAKY else "expected to fail" if set(hushed) <= XFAILS else "skipped"
        yield finding_at(FindingRule.SKIP_ADDED, path, line, f"it is now {kind} ({words})", subject=test, blocks=True)
    yield from _parameters(path, test, before, after)
    yield from _body(path, test, before, after, hushed=bool(hushed))


def _parameters(path: str, test: str, before: PythonTest, after: PythonTest) -> Iterator[InspectionFinding]:
    line = after.node.lineno
    old, new = before.parameters, after.parameters
    for names, cases in old.items():
        if names not in new:
            yield finding_at(
                FindingRule.PARAMETERS_NARROWED, path, line, "a parametrize is gone", subject=test, blocks=True
            )
        elif new[names] != cases:
            now = new[names]
            if cases is None or now is None:
                yield finding_at(
                    FindingRule.PARAMETERS_NARROWED,
                    path,
                    line,
                    "its cases come from elsewhere now",
                    subject=test,
                    blocks=True,
                )
            elif gone := Counter(cases) - Counter(now):
                text = f"{gone.total()} of its {len(cases)} cases are gone or changed"
                yield finding_at(FindingRule.PARAMETERS_NARROWED, path, line, text, subject=test, blocks=True)
    if set(new) - set(old):
        yield finding_at(
            FindingRule.TEST_CHANGED, path, line, "it takes other parameters now", subject=test, blocks=True
        )


def _body(path: str, test: str, before: PythonTest, after: PythonTest, *, hushed: bool) -> Iterator[InspectionFinding]:
    line = after.node.lineno
    lost_marks = Counter(before.marks) - Counter(after.marks)
    new_marks = Counter(after.marks) - Counter(before.marks)
    # without the skip the test counts again
    freed = sum(1 for mark in before.node.decorator_list if shape(mark) in lost_marks and silencers(mark))
    if new_marks.total() > (1 if hushed else 0) or lost_marks.total() > freed:
        yield finding_at(FindingRule.TEST_CHANGED, path, line, "its decorators changed", subject=test, blocks=True)
    if before.signature != after.signature:
        yield finding_at(FindingRule.TEST_CHANGED, path, line, "its arguments changed", subject=test, blocks=True)
    if type(before.node) is not type(after.node):
        yield finding_at(
            FindingRule.TEST_CHANGED, path, line, "it changed between async and not", subject=test, blocks=True
        )
    if before.body == after.body:
        return
    had, has = assertions(before.node), assertions(after.node)
    if has < had:
        yield finding_at(
            FindingRule.ASSERTIONS_DROPPED, path, line, f"{had} assertions, {has} now", subject=test, blocks=True
        )
    elif _only_asserts_more(before, after):
        yield finding_at(
            FindingRule.TEST_CHANGED, path, line, f"{has - had} assertions more", subject=test, blocks=False
        )
    elif not hushed:
        text = f"its body changed: {quoted(_first_difference(before, after))}"
        yield finding_at(FindingRule.TEST_CHANGED, path, line, text, subject=test, blocks=True)


def _only_asserts_more(before: PythonTest, after: PythonTest) -> bool:
    wanted = list(before.body)
    for statement in after.node.body:
        if wanted and shape(statement) == wanted[0]:
            wanted.pop(0)
        elif not (_is_plain_assertion(statement) or is_docstring(statement)):
            return False
    return not wanted


def _is_plain_assertion(statement: ast.stmt) -> bool:
    """Return whether a statement is an assertion that can only fail: it binds nothing and has no other effect."""
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


_PROSE = frozenset({".md", ".rst", ".adoc"})
_NO_DATA = re.compile(
    r"requirements.*\.txt|.*lock.*|\.git\w*|Makefile|CMakeLists\.txt|package\.json|tsconfig.*|.*\.(ini|toml|cfg)"
)
_DATA_FOLDERS = frozenset({"test", "tests", "__tests__", "testdata", "__snapshots__"})


def tests_changed(changes: Iterable[ChangedText]) -> tuple[InspectionFinding, ...]:
    """Return findings about every test file, and every Rust file with tests inside, that the change touches."""
    files = tuple(changes)
    moves = moved_tests(files)
    renamed = _renamed(files)
    return bounded(finding for change in files for finding in _of_file(change, renamed, moves))


def moved_tests(changes: Iterable[ChangedText]) -> Moves:
    """Return the ids of Python tests that were renamed or moved, with their new ids."""
    gone: list[tuple[str, PythonTest]] = []
    new: dict[tuple[object, ...], list[str]] = {}
    for change in changes:
        if language_of(change.path) is not Lang.PYTHON or not is_test_path(change.path):
            continue
        before, after = _tests(change.before), _tests(change.after)
        gone.extend((f"{change.path}::{name}", test) for name, test in before.items() if name not in after)
        if is_collected(change.path):
            for name, test in after.items():
                if name not in before:
                    new.setdefault(test.content, []).append(f"{change.path}::{name}")
    moves: Moves = {}
    for test_id, test in gone:
        places = new.get(test.content, [])
        name = test_id.rpartition("::")[2]
        same_name = [place for place in places if place.rpartition("::")[2] == name]
        if places:
            moves[test_id] = (same_name or places)[0]
            places.remove(moves[test_id])
    return moves


def _tests(text: str | None) -> dict[str, PythonTest]:
    try:
        return {name: tests[-1] for name, tests in tests_of(parse(text or "")).items()}
    except UnreadableSource:
        return {}


def _renamed(changes: tuple[ChangedText, ...]) -> dict[str, ChangedText]:
    """Return removed test files with the new test file that has their content."""
    new = [change for change in changes if change.before is None and change.after and _may_hold_tests(change.path)]
    found_at: dict[str, ChangedText] = {}
    for change in changes:
        if change.before is None or change.after is not None or not _may_hold_tests(change.path):
            continue
        same = [other for other in new if other.after == change.before and _may_move(change.path, other.path)]
        if same:
            found_at[change.path] = same[0]
        elif language_of(change.path) is Lang.PYTHON and (likely := _most_alike(change, new)):
            found_at[change.path] = likely
    return found_at


def _may_hold_tests(path: str) -> bool:
    return is_test_path(path) or language_of(path) is Lang.RUST


def _may_move(old: str, new: str) -> bool:
    return PurePosixPath(old).suffix == PurePosixPath(new).suffix and (is_collected(new) or not is_collected(old))


def _most_alike(change: ChangedText, new: list[ChangedText]) -> ChangedText | None:
    names = set(_tests(change.before))
    shared = [(len(names & set(_tests(other.after))), -at) for at, other in enumerate(new) if is_collected(other.path)]
    count, at = max(shared, default=(0, 0))
    return new[-at] if names and 2 * count >= len(names) else None


def _of_file(change: ChangedText, renamed: dict[str, ChangedText], moves: Moves) -> Iterator[InspectionFinding]:
    language = language_of(change.path)
    if not is_test_path(change.path):
        if language is Lang.RUST and change.before is not None and change.path not in renamed:
            yield from inline_rust_tests(change)
        return
    if change.before is None:
        if language is Lang.PYTHON:
            yield from _new_python(change)
        elif language is not None:
            yield from added_marks(change, language)
    elif language is None:
        yield from _data(change)
    elif change.after is None:
        yield from _file_gone(change, renamed.get(change.path), moves)
    elif language is Lang.PYTHON:
        yield from _python(change, moves)
    else:
        yield from line_changes_of_tests(change, language)


def _python(change: ChangedText, moves: Moves) -> Iterator[InspectionFinding]:
    before, after = change.before or "", change.after or ""
    try:
        yield from python_changes(change.path, before, after, new_path=change.path, moves=moves)
        yield from (each for each in line_changes_of_tests(change, Lang.PYTHON) if each.rule is FindingRule.EXIT_ADDED)
    except UnreadableSource as reason:
        too_much = max(len(before), len(after)) > SOURCE_LENGTH
        yield finding_at(FindingRule.UNREADABLE, change.path, None, f"compared line by line: {reason}", blocks=too_much)
        yield from line_changes_of_tests(change, Lang.PYTHON)


def _new_python(change: ChangedText) -> Iterator[InspectionFinding]:
    """Yield findings about a new test file: its skips remove nothing, but it must not end the run of other tests."""
    for name, test in _tests(change.after).items():
        if silencers(*test.node.decorator_list):
            yield finding_at(
                FindingRule.SKIP_ADDED,
                change.path,
                test.node.lineno,
                "new and not run",
                subject=f"{change.path}::{name}",
                blocks=False,
            )
    for each in added_marks(change, Lang.PYTHON):
        if each.rule is FindingRule.EXIT_ADDED:
            # what is not collected may well be a program of its own that a test starts
            yield finding_at(each.rule, each.path, each.line, each.text, blocks=is_collected(change.path))


def _file_gone(change: ChangedText, now: ChangedText | None, moves: Moves) -> Iterator[InspectionFinding]:
    before = change.before or ""
    if now is not None and now.after == before:
        yield finding_at(FindingRule.TEST_MOVED, change.path, None, f"the file is {now.path} now", blocks=False)
        return
    if language_of(change.path) is Lang.PYTHON:
        try:
            after = (now.after or "") if now else ""
            new_path = now.path if now else change.path
            if now:
                yield finding_at(
                    FindingRule.TEST_MOVED, change.path, None, f"most of the file is {now.path} now", blocks=False
                )
            yield from _of_moved(change.path, before, after, new_path, moves, whole=now is None)
            return
        except UnreadableSource as reason:
            yield finding_at(FindingRule.UNREADABLE, change.path, None, str(reason), blocks=False)
    yield finding_at(FindingRule.TEST_DELETED, change.path, None, "the test file is gone", blocks=True)


def _of_moved(
    path: str, before: str, after: str, new_path: str, moves: Moves, *, whole: bool
) -> Iterator[InspectionFinding]:
    """Yield findings test by test; helpers of a removed file are not reported."""
    findings = list(python_changes(path, before, after, new_path=new_path, moves=moves))
    if whole:
        findings = [
            finding for finding in findings if finding.rule in {FindingRule.TEST_DELETED, FindingRule.TEST_MOVED}
        ]
        if not findings:
            findings = [finding_at(FindingRule.TEST_DELETED, path, None, "the test file is gone", blocks=True)]
    yield from findings


def _data(change: ChangedText) -> Iterator[InspectionFinding]:
    """Yield findings about test data: it may grow, but a removed line removes an expectation."""
    place = PurePosixPath(change.path)
    if (
        _NO_DATA.fullmatch(place.name)
        or place.suffix.lower() in _PROSE
        or not _DATA_FOLDERS & {part.lower() for part in place.parts[:-1]}
    ):
        return
    if change.after is None:
        yield finding_at(
            FindingRule.TEST_DATA_CHANGED, change.path, None, "a file that tests may compare with is gone", blocks=True
        )
        return
    lines = (change.before or "").split("\n")
    gone = [number for number in change.removed if number <= len(lines) and lines[number - 1].strip()]
    if gone:
        text = f"{len(gone)} lines that tests may compare with are gone or changed: {quoted(lines[gone[0] - 1])}"
        yield finding_at(FindingRule.TEST_DATA_CHANGED, change.path, None, text, blocks=True)
