"""What happened to tests that were there before the change.

Python is compared by its syntax tree, other languages and unreadable Python line by line. A test that stands under
another name or path with the same content has moved: that is said, and does not block.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from fairwitness.verify.inspections.line_test_changes import added_marks, inline_rust_tests, line_changes_of_tests
from fairwitness.verify.inspections.model import ChangedFile, Finding, Rule, bounded, found, quoted
from fairwitness.verify.inspections.places import Lang, is_collected, is_test_path, language_of
from fairwitness.verify.inspections.python_source import SOURCE_LENGTH, Unreadable, parse
from fairwitness.verify.inspections.python_test_changes import Moves, python_changes
from fairwitness.verify.inspections.python_tests import PythonTest, silencers, tests_of

_PROSE = frozenset({".md", ".rst", ".adoc"})
_NO_DATA = re.compile(
    r"requirements.*\.txt|.*lock.*|\.git\w*|Makefile|CMakeLists\.txt|package\.json|tsconfig.*|.*\.(ini|toml|cfg)"
)
_DATA_FOLDERS = frozenset({"test", "tests", "__tests__", "testdata", "__snapshots__"})


def tests_changed(changes: Iterable[ChangedFile]) -> tuple[Finding, ...]:
    """Findings about every test file, and every Rust file with tests inside, that the change touches."""
    files = tuple(changes)
    moves = moved_tests(files)
    renamed = _renamed(files)
    return bounded(finding for change in files for finding in _of_file(change, renamed, moves))


def moved_tests(changes: Iterable[ChangedFile]) -> Moves:
    """Ids of Python tests that are gone from where they were, and where the same test stands now."""
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
    except Unreadable:
        return {}


def _renamed(changes: tuple[ChangedFile, ...]) -> dict[str, ChangedFile]:
    """Test files that are gone, and the new test file that holds what they held."""
    new = [change for change in changes if change.before is None and change.after and _may_hold_tests(change.path)]
    found_at: dict[str, ChangedFile] = {}
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


def _most_alike(change: ChangedFile, new: list[ChangedFile]) -> ChangedFile | None:
    names = set(_tests(change.before))
    shared = [(len(names & set(_tests(other.after))), -at) for at, other in enumerate(new) if is_collected(other.path)]
    count, at = max(shared, default=(0, 0))
    return new[-at] if names and 2 * count >= len(names) else None


def _of_file(change: ChangedFile, renamed: dict[str, ChangedFile], moves: Moves) -> Iterator[Finding]:
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


def _python(change: ChangedFile, moves: Moves) -> Iterator[Finding]:
    before, after = change.before or "", change.after or ""
    try:
        yield from python_changes(change.path, before, after, new_path=change.path, moves=moves)
        yield from (each for each in line_changes_of_tests(change, Lang.PYTHON) if each.rule is Rule.EXIT_ADDED)
    except Unreadable as reason:
        too_much = max(len(before), len(after)) > SOURCE_LENGTH
        yield found(Rule.UNREADABLE, change.path, None, f"compared line by line: {reason}", blocks=too_much)
        yield from line_changes_of_tests(change, Lang.PYTHON)


def _new_python(change: ChangedFile) -> Iterator[Finding]:
    """A new test file takes nothing away by its skips; it does if it can end the run of all others."""
    for name, test in _tests(change.after).items():
        if silencers(*test.node.decorator_list):
            yield found(
                Rule.SKIP_ADDED,
                change.path,
                test.node.lineno,
                "new and not run",
                subject=f"{change.path}::{name}",
                blocks=False,
            )
    for each in added_marks(change, Lang.PYTHON):
        if each.rule is Rule.EXIT_ADDED:
            # what is not collected may well be a program of its own that a test starts
            yield found(each.rule, each.path, each.line, each.text, blocks=is_collected(change.path))


def _file_gone(change: ChangedFile, now: ChangedFile | None, moves: Moves) -> Iterator[Finding]:
    before = change.before or ""
    if now is not None and now.after == before:
        yield found(Rule.TEST_MOVED, change.path, None, f"the file is {now.path} now", blocks=False)
        return
    if language_of(change.path) is Lang.PYTHON:
        try:
            after = (now.after or "") if now else ""
            new_path = now.path if now else change.path
            if now:
                yield found(Rule.TEST_MOVED, change.path, None, f"most of the file is {now.path} now", blocks=False)
            yield from _of_moved(change.path, before, after, new_path, moves, whole=now is None)
            return
        except Unreadable as reason:
            yield found(Rule.UNREADABLE, change.path, None, str(reason), blocks=False)
    yield found(Rule.TEST_DELETED, change.path, None, "the test file is gone", blocks=True)


def _of_moved(path: str, before: str, after: str, new_path: str, moves: Moves, *, whole: bool) -> Iterator[Finding]:
    """Test by test; helpers of a file that is gone as a whole are gone with it."""
    findings = list(python_changes(path, before, after, new_path=new_path, moves=moves))
    if whole:
        findings = [finding for finding in findings if finding.rule in {Rule.TEST_DELETED, Rule.TEST_MOVED}]
        if not findings:
            findings = [found(Rule.TEST_DELETED, path, None, "the test file is gone", blocks=True)]
    yield from findings


def _data(change: ChangedFile) -> Iterator[Finding]:
    """What tests compare with may grow; a line that is gone is an expectation less."""
    place = PurePosixPath(change.path)
    if (
        _NO_DATA.fullmatch(place.name)
        or place.suffix.lower() in _PROSE
        or not _DATA_FOLDERS & {part.lower() for part in place.parts[:-1]}
    ):
        return
    if change.after is None:
        yield found(
            Rule.TEST_DATA_CHANGED, change.path, None, "a file that tests may compare with is gone", blocks=True
        )
        return
    lines = (change.before or "").split("\n")
    gone = [number for number in change.removed if number <= len(lines) and lines[number - 1].strip()]
    if gone:
        text = f"{len(gone)} lines that tests may compare with are gone or changed: {quoted(lines[gone[0] - 1])}"
        yield found(Rule.TEST_DATA_CHANGED, change.path, None, text, blocks=True)
