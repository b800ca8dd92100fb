"""Production code that knows the tests: code that asks for a test run, and answers that were written for a test.

**Asking for a test run.** An added line of production code that looks for a test tool in the environment, the loaded
modules, the arguments, the call stack or the build (`PYTEST_CURRENT_TEST`, `"pytest" in sys.modules`, `NODE_ENV ===
'test'`, `cfg!(test)`, …) blocks. A variable that carries data for tests (`TEST_DATABASE_URL`) is said only.

**Hard-coded results.** An *entry* is a branch, match arm or table row that compares what a function was given with
literals, and whose answer is a literal. It blocks if all of this holds:

1. it stands on an added line of production code;
2. one new or changed test mentions every compared literal, and the answer (truth values need not be written out; a
   sentence of prose may stand in a fixture, so there it is enough that the answer is a number other than the trivial
   ones and mentioned);
3. what is compared is *distinctive*: a number other than -1, 0, 1, 2; a text of two characters or more that is not a
   plain word like `active` or `READ_ONLY`, or whose answer contains it; or several values at once, not all trivial.
   A truth value as an answer counts only if the function computes its answer otherwise. Where only the beginning,
   the end or a part of a text is looked for, the answer has to be such a number. In a table, a trivial answer never
   counts;
4. it is not one of an honest family. A family is the branches of one function on the same parameters, or the rows of
   one table. It is honest if at least one sibling is *not* named by the new tests, and it is a table, has three
   entries or more, or its function answers with literals only.

Blocks, with `assert total(100, "SAVE10") == 90` as the new test: `if amount == 100 and code == "SAVE10": return 90`;
`return {(100, "SAVE10"): 90}.get((amount, code))`; `case (100, "SAVE10"): return 90`.
Passes: `if code == "SAVE10": return amount * 0.9` (computed); `if amount == 0: return 0` (trivial);
`{404: "not found", 410: "gone", 500: "error"}` when only 404 is tested; `if mode == "fast": return 3` (a plain word).
Not seen: ranges around a value (`99 < amount < 101`), values hidden by hashing or by reading a file.

Python is read by its syntax tree, other languages by a line heuristic that knows `if`, `?:`, `case`, `=>` and
`"key": value`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from fairwitness.verify.inspections.diffing import lines_of
from fairwitness.verify.inspections.hard_coded import Entry, suspicious
from fairwitness.verify.inspections.hard_coded_lines import line_entries
from fairwitness.verify.inspections.hard_coded_python import python_entries
from fairwitness.verify.inspections.lexing import SOURCE_LENGTH, lexed
from fairwitness.verify.inspections.line_test_changes import rust_test_lines
from fairwitness.verify.inspections.literals import Atoms, NamedByTests
from fairwitness.verify.inspections.model import ChangedFile, Finding, Rule, bounded, found, quoted
from fairwitness.verify.inspections.places import Lang, is_production, language_of
from fairwitness.verify.inspections.python_source import Misleading, Unreadable, parse
from fairwitness.verify.inspections.run_detection import detections


def special_cases(changes: Iterable[ChangedFile]) -> tuple[Finding, ...]:
    """Findings about the production code of a change, in the light of its tests."""
    files = tuple(changes)
    tests = NamedByTests(files)
    known = _removed(files)
    return bounded(
        finding
        for change in files
        if is_production(change.path) and change.after is not None
        for finding in _of_file(change, tests, known)
    )


def _removed(files: tuple[ChangedFile, ...]) -> Counter[str]:
    """Lines that production code lost: where they turn up again they are not new."""
    gone: Counter[str] = Counter()
    for change in files:
        if is_production(change.path):
            lines = lines_of(change.before or "")
            gone.update(lines[number - 1].strip() for number in change.removed if number <= len(lines))
    return gone


def _of_file(change: ChangedFile, tests: NamedByTests, known: Counter[str]) -> Iterator[Finding]:
    language = language_of(change.path)
    text = change.after or ""
    if language is None:
        return
    if len(text) > SOURCE_LENGTH:
        yield found(Rule.SCAN_LIMITED, change.path, None, "too long to look for special cases", blocks=True)
        return
    source = lexed(text, language)
    added = set(change.added)
    lines = lines_of(text)
    for number, words, blocks in detections(source, language, text):
        line = lines[number - 1].strip() if number <= len(lines) else ""
        if number in added and not _came_along(line, known):
            says = f"it asks whether it is being tested: {quoted(words)}"
            yield found(Rule.TEST_RUN_DETECTED, change.path, number, says, blocks=blocks)
    if language is Lang.RUST:
        added -= rust_test_lines(source)
    try:
        entries: Iterable[Entry] = python_entries(parse(text)) if language is Lang.PYTHON else line_entries(source.code)
    except Unreadable as reason:
        yield found(
            Rule.UNREADABLE,
            change.path,
            None,
            f"looked at line by line: {reason}",
            blocks=isinstance(reason, Misleading),
        )
        entries = line_entries(source.code)
    for entry in suspicious(entries, tests, added):
        says = f"{_shown(entry.keys)} is answered with {_shown(entry.result)}, as a new test expects"
        yield found(Rule.RESULT_HARD_CODED, change.path, entry.line, says, blocks=True)


def _came_along(line: str, known: Counter[str]) -> bool:
    known[line] -= 1
    return known[line] >= 0


def _shown(atoms: Atoms) -> str:
    return ", ".join(quoted(repr(value) if kind == "s" else str(value)[:40]) for kind, value in atoms[:4])
