"""How many tests, skips, expected failures and assertions a change's files hold, before and after.

Python is counted by its syntax tree, other languages by patterns outside of comments and strings. The numbers are for
comparing two versions of the same file with each other, not one project with another.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Self

from fairwitness.verify.inspections.languages import Lang, is_test_path, language_of
from fairwitness.verify.inspections.lexer import lexed
from fairwitness.verify.inspections.line_test_changes import SKIPS as SKIP_MARKS
from fairwitness.verify.inspections.line_test_changes import rust_test_lines
from fairwitness.verify.inspections.model import ChangedText, clipped
from fairwitness.verify.inspections.python_source import UnreadableSource, parse
from fairwitness.verify.inspections.python_tests import SKIPS, XFAILS, assertions, last_words, tests_of

_TESTS = {
    Lang.PYTHON: re.compile(r"^\s*(?:async\s+)?def\s+test\w*"),
    Lang.SCRIPT: re.compile(r"\bx?(?:it|test|specify)(?:\.\w+){0,3}\s*(?:\(|`)"),
    Lang.RUST: re.compile(r"#\s*\[\s*(?:\w+::)?(?:test|rstest|test_case)\b"),
    Lang.GO: re.compile(r"^func\s+(?:\([^)]{0,60}\)\s*)?(?:Test|Fuzz|Example)\w*\s*\(|\bt\.Run\s*\("),
    Lang.NATIVE: re.compile(
        r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST|TEST_CASE|SCENARIO|BOOST_AUTO_TEST_CASE)\s*\("
        r"|^\s*(?:static\s+)?(?:void|int|bool)\s+test\w*\s*\([^;]{0,200}$"
    ),
    Lang.JAVA: re.compile(r"@(?:Test|ParameterizedTest|RepeatedTest|Property)\b"),
}
_XFAILS = {
    Lang.PYTHON: re.compile(r"\bxfail\b|\bexpectedFailure\b"),
    Lang.SCRIPT: re.compile(r"\b(?:it|test)\s*\.\s*(?:fails|failing)\b"),
    Lang.RUST: re.compile(r"#\s*\[\s*should_panic\b"),
    Lang.GO: re.compile(r"(?!)"),
    Lang.NATIVE: re.compile(r"\[!(?:mayfail|shouldfail)"),
    Lang.JAVA: re.compile(r"\bexpected\s*=\s*\w+\.class"),
}
_ASSERTIONS = {
    Lang.PYTHON: re.compile(r"^\s*assert\b|\.assert\w*\s*\("),
    Lang.SCRIPT: re.compile(
        r"\bexpect(?:\.\w+)?\s*\(|\bassert(?:\.\w+)?\s*\(|\bt\.(?:is|deepEqual|true|false|throws|equal|ok)\s*\("
    ),
    Lang.RUST: re.compile(r"\b(?:debug_)?assert(?:_\w+)?!"),
    Lang.GO: re.compile(r"\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\(|\b(?:assert|require)\.\w+\s*\("),
    Lang.NATIVE: re.compile(
        r"\b(?:EXPECT|ASSERT|CHECK|REQUIRE|TEST_ASSERT|BOOST_CHECK|BOOST_REQUIRE|BOOST_TEST)(?:_\w+)?\s*\(|\bassert\s*\("
    ),
    Lang.JAVA: re.compile(r"\b(?:assert\w*|fail|verify)\s*\(|\bassertThat\b"),
}


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one or several texts."""

    tests: int = 0
    skips: int = 0
    xfails: int = 0
    assertions: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Counts)))


@dataclass(frozen=True, slots=True)
class Drift:
    """The counts of each changed test file, and their sums."""

    files: tuple[tuple[str, Counts, Counts], ...]
    """Path, before, after."""

    @property
    def before(self) -> Counts:
        return sum((before for _, before, _ in self.files), Counts())

    @property
    def after(self) -> Counts:
        return sum((after for _, _, after in self.files), Counts())

    @classmethod
    def of(cls, changes: Iterable[ChangedText]) -> Self:
        """Return the drift of a change, as far as its own files show it."""
        counted = (
            (change.path, count(change.path, change.before), count(change.path, change.after)) for change in changes
        )
        return cls(tuple((path, old, new) for path, old, new in counted if old != Counts() or new != Counts()))

    def __str__(self) -> str:
        """Return the counts that changed; "as many tests and assertions as before" if none did."""
        before, after = self.before, self.after
        counts = ((each.name, getattr(before, each.name), getattr(after, each.name)) for each in fields(Counts))
        changed = [f"{name} {old} → {new}" for name, old, new in counts if old != new]
        return ", ".join(changed) or "as many tests and assertions as before"


def count(path: str, text: str | None) -> Counts:
    """Return the counts of one file; zero for production code, except for tests inside a Rust file."""
    language = language_of(path)
    if text is None or language is None or not (is_test_path(path) or language is Lang.RUST):
        return Counts()
    if language is Lang.PYTHON:
        try:
            return _python(text)
        except UnreadableSource:
            pass
    return _lines(text, language, whole=is_test_path(path))


def _python(text: str) -> Counts:
    tree = parse(text)
    words = last_words(tree)
    return Counts(
        tests=len(tests_of(tree)),
        skips=sum(1 for word in words if word in SKIPS),
        xfails=sum(1 for word in words if word in XFAILS),
        assertions=assertions(tree),
    )


def _lines(text: str, language: Lang, *, whole: bool) -> Counts:
    source = lexed(text, language)
    counted = None if whole else rust_test_lines(source)
    code = [
        (clipped(bare), clipped(line))
        for number, (bare, line) in enumerate(zip(source.bare, source.code, strict=True), 1)
        if counted is None or number in counted
    ]
    xfails = sum(len(_XFAILS[language].findall(line)) for _, line in code)
    return Counts(
        tests=sum(len(_TESTS[language].findall(bare)) for bare, _ in code),
        skips=max(0, sum(len(SKIP_MARKS[language].findall(line)) for _, line in code) - xfails),
        xfails=xfails,
        assertions=sum(len(_ASSERTIONS[language].findall(bare)) for bare, _ in code),
    )
