"""Compare the tests of a file in any language but Python, line by line.

A line that is gone changed a test, unless it was blank, a comment, an import, mere brackets, or stands elsewhere in the
file now. A file that differs only in white space and comments did not change.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from fairwitness.verify.inspections.languages import Lang
from fairwitness.verify.inspections.lexer import Lexed, lexed
from fairwitness.verify.inspections.model import (
    ChangedText,
    FindingRule,
    InspectionFinding,
    clipped,
    finding_at,
    quoted,
    windows,
)

SKIPS = {
    Lang.PYTHON: re.compile(r"\b(skip|skipif|skipIf|skipUnless|xfail|expectedFailure|importorskip|skipTest)\b"),
    Lang.SCRIPT: re.compile(
        r"\b(?:it|test|describe|suite|context|specify)\s*\.\s*(?:skip|todo|fails|failing|skipIf|runIf)\b"
        r"|\bx(?:it|describe|test|context|specify)\s*\(|\bthis\.skip\s*\(|\bt(?:est)?\.(?:skip|todo)\s*\("
        r"|\b(?:skip|todo)\s*:\s*(?:true|['\"`])|\bpending\s*\("
    ),
    Lang.RUST: re.compile(r"#\s*\[\s*(?:ignore\b|cfg_attr\([^\]]*\bignore\b|should_panic\b)"),
    Lang.GO: re.compile(r"\b[a-z]\w*\.(?:Skip|Skipf|SkipNow)\s*\(|\btesting\.Short\s*\("),
    Lang.NATIVE: re.compile(
        r"\bDISABLED_|\bGTEST_SKIP\b|\bTEST_IGNORE|\bBOOST_TEST_IGNORE|\bSKIP\s*\(|\bboost::unit_test::disabled"
        r"|\[(?:\.|!mayfail|!shouldfail)|\bdoctest::(?:skip|may_fail)|\bQSKIP\b|\bRUN_TEST_IGNORE"
    ),
    Lang.JAVA: re.compile(
        r"@(?:Ignore|Disabled\w*|Ignored|EnabledIf\w*)\b|\bAssumptions?\.\w+|\bassume(?:True|False|That)\s*\("
    ),
}
ONLY = re.compile(r"\b(?:it|test|describe|suite|context|specify)\s*\.\s*only\b|\bf(?:it|describe|context)\s*\(")
EXITS = {
    Lang.PYTHON: re.compile(r"\b(?:os\._exit|os\.abort|os\.kill|pytest\.exit)\s*\("),
    Lang.SCRIPT: re.compile(r"\bprocess\.(?:exit|kill|abort|exitCode|reallyExit)\b"),
    Lang.RUST: re.compile(r"\bprocess::(?:exit|abort)\s*\("),
    Lang.GO: re.compile(r"\bos\.Exit\s*\("),
    Lang.NATIVE: re.compile(r"\b(?:_exit|_Exit|quick_exit|exit|abort)\s*\(\s*(?:0|EXIT_SUCCESS)?\s*\)"),
    Lang.JAVA: re.compile(r"\bSystem\.exit\s*\(|\bRuntime\.getRuntime\(\)\.halt\b"),
}
_IMPORT = {
    Lang.PYTHON: re.compile(r"(?:import|from)\b"),
    Lang.SCRIPT: re.compile(
        r"(?:import\b|export\s.*\bfrom\b|(?:const|let|var)\s.*\brequire\s*\(|\}\s*from\b|['\"]use strict)"
    ),
    Lang.RUST: re.compile(r"(?:pub\s+)?(?:use|extern\s+crate|mod\s+\w+\s*;)"),
    Lang.GO: re.compile(r"(?:import|package)\b"),
    Lang.NATIVE: re.compile(r"#\s*(?:include|pragma\s+once|import)\b|using\s"),
    Lang.JAVA: re.compile(r"(?:import|package)\b"),
}
_DECLARED = {
    Lang.PYTHON: re.compile(r"\bdef\s+(test\w*)"),
    Lang.SCRIPT: re.compile(r"\b(?:x?it|x?test|x?describe|suite|context|specify)(?:\.\w+)*\s*\(\s*[\"'`]([^\"'`]+)"),
    Lang.RUST: re.compile(r"\bfn\s+(\w+)"),
    Lang.GO: re.compile(r"\bfunc\s+(Test\w+)"),
    Lang.NATIVE: re.compile(
        r"\b(?:TEST\w*|SCENARIO|BOOST_\w*TEST\w*)\s*\(\s*(?:\w+\s*,\s*)?(?:DISABLED_)?\"?([^\"),]+)"
        r"|\b(?:void|int|bool)\s+(test\w*)\s*\("
    ),
    Lang.JAVA: re.compile(r"\b(?:void|fun)\s+(\w+)\s*\("),
}
"""How a test is declared with its name."""
_OPEN_IMPORT = re.compile(r"(?:import|use|pub use|const|let|var|from)\b[^;'\"]*[{(]\s*[^})]*$")
_ONLY_BRACKETS = re.compile(r"[\s{}()\[\];,]*")
_RUST_TESTS = re.compile(r"#\s*\[\s*cfg\s*\(\s*(?:test|all\s*\(\s*test\b[^\]]*)\s*\)\s*\]")


def line_changes_of_tests(change: ChangedText, language: Lang) -> Iterator[InspectionFinding]:
    """Yield findings about a changed test file."""
    before, after = lexed(change.before or "", language), lexed(change.after or "", language)
    yield from _lines(change, language, before, after, change.removed, change.added)


def inline_rust_tests(change: ChangedText) -> Iterator[InspectionFinding]:
    """Yield findings about the tests inside of a Rust file that is not only tests."""
    before, after = lexed(change.before or "", Lang.RUST), lexed(change.after or "", Lang.RUST)
    old, new = rust_test_lines(before), rust_test_lines(after)
    if old and not new:
        yield finding_at(
            FindingRule.TEST_DELETED, change.path, min(old), "the tests inside of the file are gone", blocks=True
        )
        return
    removed = [line for line in change.removed if line in old]
    added = [line for line in change.added if line in new]
    yield from _lines(change, Lang.RUST, before, after, removed, added)


def rust_test_lines(text: Lexed) -> set[int]:
    """Return lines of items under `#[cfg(test)]`, braces counted in code only."""
    lines: set[int] = set()
    number = 0
    while number < len(text.bare):
        if not _RUST_TESTS.search(clipped(text.bare[number])):
            number += 1
            continue
        start, depth, opened = number, 0, False
        while number < len(text.bare):
            line = text.bare[number]
            depth += line.count("{") - line.count("}")
            opened = opened or "{" in line
            number += 1
            if (opened and depth <= 0) or (not opened and line.rstrip().endswith(";")):
                break
        lines.update(range(start + 1, number + 1))
    return lines


def _lines(
    change: ChangedText, language: Lang, before: Lexed, after: Lexed, removed: Iterable[int], added: Iterable[int]
) -> Iterator[InspectionFinding]:
    if _squeezed(before.code) == _squeezed(after.code):
        return
    imports = _import_lines(before, language)
    old = {number: _whole(before.code, number) for number in removed if number not in imports}
    new = {number: _whole(after.code, number) for number in added}
    lost = {number: line for number, line in old.items() if not _ONLY_BRACKETS.fullmatch(line)}
    yield from _marks(change, language, after, list(old.values()), list(new))
    appeared = Counter(map(_normal, new.values()))
    gone = []
    for number, line in lost.items():
        if appeared[_normal(line)] > 0:
            appeared[_normal(line)] -= 1
        else:
            gone.append(number)
    if gone:
        count = f" and {len(gone) - 1} lines more" if len(gone) > 1 else ""
        text = f"{quoted(lost[gone[0]])}{count} changed or gone (line {gone[0]} before)"
        yield finding_at(FindingRule.TEST_CHANGED, change.path, None, text, blocks=True)
    elif lost:
        yield finding_at(
            FindingRule.TEST_CHANGED, change.path, None, f"{len(lost)} lines stand elsewhere now", blocks=False
        )


def _marks(
    change: ChangedText, language: Lang, after: Lexed, old: list[str], added: list[int]
) -> Iterator[InspectionFinding]:
    """Skips, narrowings and exits on added lines, as far as they were not there before."""
    for rule, pattern, text in (
        (FindingRule.SKIP_ADDED, SKIPS[language], "a skip or expected failure is new"),
        (FindingRule.TESTS_NARROWED, ONLY if language is Lang.SCRIPT else None, "only this one runs now"),
        (FindingRule.EXIT_ADDED, EXITS[language], "the test run can end here"),
    ):
        if pattern is None:
            continue
        allowed = sum(len(pattern.findall(piece)) for line in old for piece in windows(line))
        for number in added:
            # a program that a test starts may exit: only code counts; a skip may be a tag in a string
            line = _whole(after.bare if rule is FindingRule.EXIT_ADDED else after.code, number)
            for _ in range(sum(len(pattern.findall(piece)) for piece in windows(line))):
                allowed -= 1
                if allowed < 0:
                    takes_away = rule is not FindingRule.SKIP_ADDED or not _in_new_test(change, language, after, number)
                    yield finding_at(rule, change.path, number, f"{text}: {quoted(line)}", blocks=takes_away)


def _in_new_test(change: ChangedText, language: Lang, after: Lexed, number: int) -> bool:
    """Return whether a line belongs to a test that is new in the file."""
    annotates = _at(after.bare, number).lstrip().startswith(("#", "@"))
    lines = range(number, number + 8) if annotates else range(number, max(number - 200, 0), -1)
    for place in lines:
        declared = _DECLARED[language].search(_at(after.code, place))
        if declared:
            name = next(group for group in declared.groups() if group)
            return name.strip() not in (change.before or "")
    return False


def added_marks(change: ChangedText, language: Lang) -> Iterator[InspectionFinding]:
    """Skips, narrowings and exits in a test file that is new: a skip there takes nothing away."""
    after = lexed(change.after or "", language)
    for finding in _marks(change, language, after, [], list(change.added)):
        takes_away = finding.rule is not FindingRule.SKIP_ADDED
        yield finding_at(finding.rule, finding.path, finding.line, finding.text, blocks=takes_away)


def _import_lines(text: Lexed, language: Lang) -> set[int]:
    lines: set[int] = set()
    number = 0
    while number < len(text.code):
        line = clipped(text.code[number]).strip()
        if _IMPORT[language].match(line) or _OPEN_IMPORT.match(line):
            end = _end_of_import(text, number, language)
            lines.update(range(number + 1, end + 2))
            number = end
        number += 1
    return lines


def _end_of_import(text: Lexed, start: int, language: Lang) -> int:
    """Return the last line of an import that may go over several; the line itself if it is none after all."""
    depth = 0
    for number in range(start, min(start + 60, len(text.bare))):
        line = text.bare[number]
        depth += line.count("{") + line.count("(") - line.count("}") - line.count(")")
        if depth <= 0:
            whole = " ".join(text.code[start : number + 1])
            is_one = language is not Lang.SCRIPT or re.search(r"\bfrom\b|\brequire\s*\(|\bimport\b", whole)
            return number if is_one else start
    return start


def _at(lines: tuple[str, ...], number: int) -> str:
    return clipped(_whole(lines, number))


def _whole(lines: tuple[str, ...], number: int) -> str:
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _normal(line: str) -> str:
    return re.sub(r"\s+", "", line).rstrip(",;")


def _squeezed(lines: tuple[str, ...]) -> str:
    return re.sub(r"\s+", " ", " ".join(line.strip() for line in lines)).strip()
