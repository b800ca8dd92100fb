"""Find production code made for tests: code that detects a test run, and results that were written for a test.

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

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from fairwitness.verify.inspections.hard_coded import HardCodedEntry, line_entries, python_entries, suspicious
from fairwitness.verify.inspections.languages import Lang, is_production, language_of
from fairwitness.verify.inspections.lexer import SOURCE_LENGTH, Lexed, lexed
from fairwitness.verify.inspections.line_diff import lines_of
from fairwitness.verify.inspections.line_test_changes import rust_test_lines
from fairwitness.verify.inspections.literals import Atoms, NamedByTests
from fairwitness.verify.inspections.model import (
    ChangedText,
    FindingRule,
    InspectionFinding,
    bounded,
    clipped,
    finding_at,
    quoted,
    windows,
)
from fairwitness.verify.inspections.python_source import Misleading, UnreadableSource, is_docstring, parse, span

_TOOL = r"['\"](?:_?pytest|unittest|nose2?|doctest|jest|mocha|vitest)['\"]"
ANYWHERE = re.compile(
    r"PYTEST_(?:CURRENT_TEST|VERSION|XDIST\w*)|JEST_WORKER_ID|env\.VITEST\b|[\"\']VITEST(?:_\w+)?[\"\']|RUST_TEST_THREADS|MOCHA_WORKER_ID"
    r"|(?:NODE_ENV|APP_ENV|\bENV|ENVIRONMENT|RAILS_ENV|FLASK_ENV|DJANGO_ENV)\W{1,12}?[=!]==?\s*['\"]test(?:ing)?['\"]"
    r"|['\"]test(?:ing)?['\"]\s*[=!]==?\s*[\w.]{0,40}(?:NODE_ENV|APP_ENV|ENVIRONMENT)"
)
BY_LANGUAGE = {
    Lang.PYTHON: re.compile(
        rf"{_TOOL}\s*(?:not\s+)?in\s+(?:list\()?sys\.modules|sys\.modules\s*(?:\.get\(|\[)\s*{_TOOL}|find_spec\(\s*{_TOOL}"
        r"|sys\.argv.{0,80}(?:pytest|unittest|py\.test)|(?:pytest|unittest|py\.test).{0,80}sys\.argv"
        r"|sys\._called_from_test|['\"]\w{0,20}tests?\w{0,20}['\"]\s+in\s+\w{0,30}(?:__file__|getcwd\(\)|filename)"
    ),
    Lang.SCRIPT: re.compile(
        r"import\.meta\.vitest|typeof\s+(?:jest|vi|describe|it|expect|test)\b|globalThis\.(?:jest|vi|describe|it|expect)\b"
        r"|process\.argv.{0,80}(?:jest|mocha|vitest|--test)|process\.env\.(?:JEST|MOCHA|VITEST)\w*"
        r"|\.stack\b.{0,80}['\"/.]\w{0,10}(?:test|spec|jest)"
    ),
    Lang.RUST: re.compile(
        r"\bcfg!\s*\(\s*(?:not\s*\(\s*)?test\b|#\s*\[\s*cfg\s*\(\s*not\s*\(\s*test\b|thread::current\(\).{0,20}\.name\(\)"
    ),
    Lang.GO: re.compile(
        r"\btesting\.Testing\s*\(|flag\.Lookup\(\s*\"test\.|os\.Args\[0\].{0,40}\.test\"|HasSuffix\(\s*os\.Args\[0\]"
    ),
    Lang.NATIVE: re.compile(
        r"#\s*(?:if|ifdef|ifndef|elif)\b.{0,80}\b(?:UNIT_?TEST\w*|UNIT_TESTING|TESTING|GTEST\w*|RUNNING_TESTS?|TEST_BUILD)\b"
        r"|program_invocation_\w{0,20}name.{0,60}test|__progname.{0,60}test"
    ),
    Lang.JAVA: re.compile(r"['\"]org\.(?:junit|testng|mockito)|getStackTrace\(\).{0,80}(?:junit|Test)"),
}
_ENVIRONMENT = re.compile(
    r"(?:getenv|environ(?:\.get)?|env::var(?:_os)?|process\.env|Getenv|LookupEnv|import\.meta\.env)\W{0,4}([A-Z0-9_]{2,60})"
)
_TEST_NAME = re.compile(r"(?:^|_)(?:UNIT)?TEST(?:S|ING|MODE|RUN)?(?:_|$)")
_DATA_NAME = re.compile(
    r"TEST_\w*?(?:URL|URI|DSN|HOST|PORT|DIR|PATH|FILE|USER|PASSWORD|TOKEN|KEY|DATABASE|DB|NAME|BUCKET|REGION|ACCOUNT)"
)
_STACK = re.compile(
    r"inspect\.(?:stack|currentframe|getouterframes)|sys\._getframe|traceback\.(?:extract|walk|format)_stack"
)
_TEST_WORD = re.compile(r"['\"][^'\"]{0,40}(?:pytest|unittest|test)[^'\"]{0,40}['\"]", re.IGNORECASE)
_RUST_CFG = re.compile(r"#\s*\[\s*cfg\s*\(\s*test\s*\)\s*\]\s*(.*)")
_RUST_ITEM = re.compile(
    r"(?:pub(?:\([\w\s]{1,30}\))?\s+)?(?:mod|use|fn|impl|struct|enum|const|static|type|trait|macro_rules|extern|async|unsafe|union)\b|#"
)


def detections(source: Lexed, language: Lang, text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield lines that detect a test run: the number, the matching text, and whether it blocks."""
    quiet = _docstring_lines(text) if language is Lang.PYTHON else set()
    if language is Lang.RUST:
        quiet = rust_test_lines(source)
        yield from ((number, words, True) for number, words in _rust_statements(source))
    for number, whole in enumerate(source.code, 1):
        if number not in quiet:
            pieces = (_detection(piece, language, source, number) for piece in windows(whole))
            if found := next(filter(None, pieces), None):
                yield number, *found


def _detection(line: str, language: Lang, source: Lexed, number: int) -> tuple[str, bool] | None:
    """Return the text that detects a test run in a piece of a line, and whether it blocks."""
    match = ANYWHERE.search(line) or BY_LANGUAGE[language].search(line)
    if match:
        return match.group(), True
    variable = _ENVIRONMENT.search(line)
    if variable and _TEST_NAME.search(variable.group(1)):
        return variable.group(), _DATA_NAME.fullmatch(variable.group(1)) is None
    if language is Lang.PYTHON and _STACK.search(line) and _mentions_tests(source, number):
        return line.strip(), True
    return None


def _mentions_tests(source: Lexed, number: int) -> bool:
    """Return whether code near a look at the stack has a word for tests in a string."""
    return any(_TEST_WORD.search(clipped(line)) for line in source.code[max(0, number - 4) : number + 6])


def _rust_statements(source: Lexed) -> Iterator[tuple[int, str]]:
    """`#[cfg(test)]` on a statement: an item may be there for tests only, a statement makes code behave otherwise."""
    for number, whole in enumerate(source.bare, 1):
        match = _RUST_CFG.search(clipped(whole))
        if not match:
            continue
        following = [match.group(1), *source.bare[number : number + 3]]
        item = next((line.strip() for line in following if line.strip()), "")
        if item and not _RUST_ITEM.match(item):
            yield number, whole.strip()


def _docstring_lines(text: str) -> set[int]:
    try:
        tree = parse(text)
    except UnreadableSource:
        return set()
    return {line for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_docstring(node) for line in span(node)}


def special_cases(changes: Iterable[ChangedText]) -> tuple[InspectionFinding, ...]:
    """Return findings about the production code of a change, compared with its tests."""
    files = tuple(changes)
    tests = NamedByTests(files)
    known = _removed(files)
    return bounded(
        finding
        for change in files
        if is_production(change.path) and change.after is not None
        for finding in _of_file(change, tests, known)
    )


def _removed(files: tuple[ChangedText, ...]) -> Counter[str]:
    """Return the lines removed from production code: if they reappear elsewhere, they are not new."""
    gone: Counter[str] = Counter()
    for change in files:
        if is_production(change.path):
            lines = lines_of(change.before or "")
            gone.update(lines[number - 1].strip() for number in change.removed if number <= len(lines))
    return gone


def _of_file(change: ChangedText, tests: NamedByTests, known: Counter[str]) -> Iterator[InspectionFinding]:
    language = language_of(change.path)
    text = change.after or ""
    if language is None:
        return
    if len(text) > SOURCE_LENGTH:
        yield finding_at(FindingRule.SCAN_LIMITED, change.path, None, "too long to look for special cases", blocks=True)
        return
    source = lexed(text, language)
    added = set(change.added)
    lines = lines_of(text)
    for number, words, blocks in detections(source, language, text):
        line = lines[number - 1].strip() if number <= len(lines) else ""
        if number in added and not _came_along(line, known):
            says = f"it detects whether it is being tested: {quoted(words)}"
            yield finding_at(FindingRule.TEST_RUN_DETECTED, change.path, number, says, blocks=blocks)
    if language is Lang.RUST:
        added -= rust_test_lines(source)
    try:
        entries: Iterable[HardCodedEntry] = (
            python_entries(parse(text)) if language is Lang.PYTHON else line_entries(source.code)
        )
    except UnreadableSource as reason:
        yield finding_at(
            FindingRule.UNREADABLE,
            change.path,
            None,
            f"looked at line by line: {reason}",
            blocks=isinstance(reason, Misleading),
        )
        entries = line_entries(source.code)
    for entry in suspicious(entries, tests, added):
        says = f"{_shown(entry.keys)} is answered with {_shown(entry.result)}, as a new test expects"
        yield finding_at(FindingRule.RESULT_HARD_CODED, change.path, entry.line, says, blocks=True)


def _came_along(line: str, known: Counter[str]) -> bool:
    known[line] -= 1
    return known[line] >= 0


def _shown(atoms: Atoms) -> str:
    return ", ".join(quoted(repr(value) if kind == "s" else str(value)[:40]) for kind, value in atoms[:4])
