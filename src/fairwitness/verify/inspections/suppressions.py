"""Find added marks that disable a check for a line, a block or a file.

Only comments and attributes count, never strings. Marks are counted per file before and after, and a line that came
from another file of the change brings its marks along: moving code is no finding. Two kinds of marks are said and do
not block: those that only leave lines out of coverage, and those that name a rule, hold for one line or item, and say
why. Everything wider or silent blocks, and a person accepts it by path.
"""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from fairwitness.rules.oracle import PathKind, kind_of_path
from fairwitness.verify.inspections.languages import Lang, language_of
from fairwitness.verify.inspections.lexer import SOURCE_LENGTH, Lexed, lexed
from fairwitness.verify.inspections.line_diff import lines_of
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

_MARKS_PER_PIECE = 50
"""More marks than this in one piece of a comment are not counted: the first ones block already."""
_CODES = r"[\w\s,.:\[\]()/@=-]{0,200}"
COMMENTS: tuple[tuple[re.Pattern[str], bool], ...] = (
    (re.compile(r"#\s*(?:ruff|flake8)\s*:\s*noqa\b" + _CODES, re.IGNORECASE), True),
    (re.compile(r"#\s*ruff\s*:\s*(?:disable|ignore)\b" + _CODES, re.IGNORECASE), True),
    (re.compile(r"#\s*noqa\b(?:\s*:" + _CODES + ")?", re.IGNORECASE), True),
    (re.compile(r"#\s*type\s*:\s*ignore\b" + _CODES), True),
    (
        re.compile(r"#\s*(?:mypy|pyright|basedpyright|pytype|pyre|pylint|ty)\s*:\s*(?:ignore|disable|skip)" + _CODES),
        True,
    ),
    (re.compile(r"#\s*mypy\s*:\s*(?:ignore-errors|allow-\w|disable-error-code|follow-imports)" + _CODES), True),
    (re.compile(r"#\s*pyright\s*:\s*(?:basic|report\w+\s*=\s*(?:false|none))" + _CODES, re.IGNORECASE), True),
    (re.compile(r"#\s*pyre-(?:ignore|fixme|unsafe)" + _CODES), True),
    (re.compile(r"#\s*nosec\b" + _CODES), True),
    (re.compile(r"#\s*nosemgrep\b" + _CODES), True),
    (re.compile(r"pragma\s*:\s*(?:allowlist|whitelist)[\s-]+(?:nextline[\s-]+)?secret", re.IGNORECASE), True),
    (re.compile(r"#\s*pragma\s*:\s*no\s*(?:cover|branch)", re.IGNORECASE), False),
    (re.compile(r"\b(?:eslint|oxlint|tslint|jshint|stylelint)[-:]disable" + _CODES), True),
    (re.compile(r"@ts-(?:ignore|nocheck|expect-error)\b"), True),
    (re.compile(r"@flow\s+(?:off|weak)|\$FlowFixMe\b|\$FlowIgnore\b"), True),
    (re.compile(r"\b(?:biome|deno-lint|rome|prettier|standard)-ignore\b" + _CODES), True),
    (re.compile(r"\b(?:istanbul|c8|v8)\s+ignore\b"), False),
    (re.compile(r"\bnolint\b(?::" + _CODES + ")?"), True),
    (re.compile(r"\bNOLINT(?:NEXTLINE|BEGIN)?\b" + r"(?:\([\w,\s.*-]{0,200}\))?"), True),
    (re.compile(r"\bcppcheck-suppress\b" + _CODES), True),
    (re.compile(r"#nosec\b|//\s*#nosec\b"), True),
    (re.compile(r"\blint:(?:ignore|file-ignore)\b" + _CODES), True),
    (re.compile(r"\bLCOV_EXCL_\w+|\bGCOVR?_EXCL_\w+"), False),
    (re.compile(r"\b(?:CHECKSTYLE[:.]OFF|NOPMD|NOSONAR|noinspection)\b" + _CODES), True),
)
"""Patterns of comments, and whether each blocks."""
CODE: dict[Lang, tuple[re.Pattern[str], ...]] = {
    Lang.PYTHON: (re.compile(r"@(?:typing\.)?no_type_check\b"),),
    Lang.SCRIPT: (),
    Lang.RUST: (
        re.compile(r"#\s*!?\s*\[\s*(?:allow|expect)\s*\([^\])]{0,300}"),
        re.compile(r"#\s*!?\s*\[\s*cfg_attr\s*\([^\]]{0,200}\b(?:allow|expect)\s*\([^\])]{0,300}"),
    ),
    Lang.GO: (),
    Lang.NATIVE: (
        re.compile(r"#\s*pragma\s+(?:GCC|clang)\s+diagnostic\s+(?:ignored|warning)\s*\S{0,80}"),
        re.compile(r"#\s*pragma\s+GCC\s+system_header|#\s*pragma\s+warning\s*\(\s*(?:disable|suppress)[^)]{0,80}"),
        re.compile(r"_Pragma\s*\(|__attribute__\s*\(\(\s*(?:no_sanitize\w*)|\bno_sanitize\b"),
    ),
    Lang.JAVA: (re.compile(r"@(?:SuppressWarnings|Suppress|SuppressFBWarnings|SuppressLint)\b[^)]{0,200}"),),
}
"""Patterns of code, for languages without such comments."""


_RULES = r"[\w@/.:-]+(?:\s*,\s*[\w@/.:-]+)*"
NARROW: tuple[re.Pattern[str], ...] = (
    re.compile(r"#\s*noqa\s*:\s*[A-Z]{1,6}\d{1,5}(?:[\s,]+[A-Z]{1,6}\d{1,5})*", re.IGNORECASE),
    re.compile(r"#\s*(?:type|pyright|basedpyright|ty)\s*:\s*ignore\[[\w,\s-]{1,200}\]"),
    re.compile(rf"#\s*pylint\s*:\s*disable(?:-next)?={_RULES}"),
    re.compile(r"#\s*nosec\s+B\d{3}(?:[\s,]+B\d{3})*"),
    re.compile(rf"\beslint-disable-(?:next-line|line)\s+{_RULES}"),
    re.compile(rf"\bbiome-ignore\s+{_RULES}"),
    re.compile(rf"\bnolint:{_RULES}"),
    re.compile(r"\bNOLINT(?:NEXTLINE)?\([\w,\s.-]{1,200}\)"),
    re.compile(rf"\bcppcheck-suppress\s+{_RULES}"),
)
"""Marks that name their rule and apply to one line."""
_PYTHON_TYPES = frozenset({"mypy", "pyright", "basedpyright"})
HEEDED: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = (
    (re.compile(r"#\s*ruff\b", re.IGNORECASE), frozenset({"ruff"})),
    (re.compile(r"#\s*(?:flake8|noqa)\b", re.IGNORECASE), frozenset({"ruff", "flake8"})),
    (re.compile(r"#\s*type\b"), _PYTHON_TYPES),
    (re.compile(r"#\s*mypy\b"), frozenset({"mypy"})),
    (re.compile(r"#\s*(?:based)?pyright\b"), _PYTHON_TYPES - {"mypy"}),
    (re.compile(r"#\s*pylint\b"), frozenset({"pylint"})),
    (re.compile(r"eslint\b"), frozenset({"eslint"})),
    (re.compile(r"@ts-"), frozenset({"typescript"})),
)
"""The tools that heed a mark; another tool's silence says nothing about it."""
_NARROW_CODE = re.compile(r"#\s*\[\s*(?:allow|expect)\s*\(|@Suppress\w*\s*\(")
_REASON = re.compile(r"[^\W\d_]{2,}\W+[^\W\d_]{2,}")
"""Two words at least."""


class SuppressionMark(NamedTuple):
    """One mark in a file."""

    line: int
    text: str
    blocks: bool
    is_narrow: bool
    """It names its rule and applies to one line."""

    @property
    def heeded_by(self) -> frozenset[str]:
        """The tools that heed it."""
        return next((tools for pattern, tools in HEEDED if pattern.match(self.text)), frozenset())


def suppressions(changes: Iterable[ChangedText]) -> tuple[InspectionFinding, ...]:
    """Return findings about every mark that the change adds to production code and tests."""
    files = tuple(change for change in changes if language_of(change.path) is not None)
    moved = _removed_lines(files)
    return bounded(finding for change in files for finding in _of_file(change, moved))


def _removed_lines(files: tuple[ChangedText, ...]) -> Counter[str]:
    """Return the lines that were removed from a file and are nowhere else in it."""
    gone: Counter[str] = Counter()
    for change in files:
        gone += _lines_at(change.before, change.removed) - _lines_at(change.after, change.added)
    return gone


def _lines_at(text: str | None, numbers: Iterable[int]) -> Counter[str]:
    lines = lines_of(text or "")
    return Counter(lines[number - 1].strip() for number in numbers if number <= len(lines))


def _of_file(change: ChangedText, moved: Counter[str]) -> Iterator[InspectionFinding]:
    language = language_of(change.path)
    if language is None or change.after is None or kind_of_path(change.path) is PathKind.DOCS:
        return
    if len(change.after) > SOURCE_LENGTH:
        yield finding_at(FindingRule.SCAN_LIMITED, change.path, None, "too long to look for suppressions", blocks=True)
        return
    before = Counter(mark.text for mark in marks(change.before or "", language))
    marked = list(marks(change.after, language))
    more = Counter(mark.text for mark in marked) - before
    lines = lines_of(change.after)
    added = set(change.added)
    # marks on added lines are new; the rest are on lines that only seem unchanged
    for mark in sorted(marked, key=lambda mark: (mark.line not in added, mark.line)):
        if more[mark.text] <= 0:
            continue
        more[mark.text] -= 1
        line = lines[mark.line - 1].strip() if mark.line <= len(lines) else ""
        if moved[line] > 0 and mark.line in added:
            moved[line] -= 1
            continue
        text = f"{quoted(mark.text)} is new: {quoted(line)}"
        yield finding_at(FindingRule.SUPPRESSION_ADDED, change.path, mark.line, text, blocks=mark.blocks)


def marks_by_line(text: str, path: str) -> dict[int, list[SuppressionMark]]:
    """Return the marks of a file that block, by line."""
    language = language_of(path)
    found: dict[int, list[SuppressionMark]] = {}
    for mark in marks(text, language) if language is not None else ():
        if mark.blocks:
            found.setdefault(mark.line, []).append(mark)
    return found


def without_marks(text: str, path: str, numbers: Collection[int]) -> str:
    """Return a text without the suppressing comments on some lines; marks of code, such as attributes, stay."""
    language = language_of(path)
    if language is None:
        return text
    comments = dict(lexed(text, language).comments)
    lines = text.split("\n")
    for number in numbers:
        comment = comments.get(number)
        if comment is not None and number <= len(lines) and comment.rstrip() in lines[number - 1]:
            head, _, tail = lines[number - 1].rpartition(comment.rstrip())
            lines[number - 1] = head + _unmarked(comment.rstrip()) + tail
    return "\n".join(lines)


def _unmarked(comment: str) -> str:
    for pattern, _ in COMMENTS:
        comment = pattern.sub("", comment)
    return comment


def marks(text: str, language: Lang) -> Iterator[SuppressionMark]:
    """Yield every mark in a text."""
    source = lexed(text, language)
    for number, comment in source.comments:
        for piece in windows(comment):
            yield from _in_comment(number, piece)
    beside = dict(source.comments)
    for number, line in enumerate(_code(source, language), 1):
        found = (each for piece in windows(line) for pattern in CODE[language] for each in pattern.finditer(piece))
        for match in found:
            told = _REASON.search(clipped(beside.get(number, ""))) is not None or "reason =" in line
            blocks = not (told and _NARROW_CODE.match(match.group()))
            yield SuppressionMark(number, _normal(match.group()), blocks, is_narrow=False)


def _code(source: Lexed, language: Lang) -> tuple[str, ...]:
    # a pragma names its warning in a string; everything else is looked for outside of strings
    return source.code if language in {Lang.NATIVE, Lang.JAVA} else source.bare


def _in_comment(line: int, comment: str) -> Iterator[SuppressionMark]:
    found = list(itertools.islice(_found(comment), _MARKS_PER_PIECE))
    rest = comment
    for match, narrow, _ in found:
        start, end = (narrow or match).span()
        rest = rest[:start] + "|" * (end - start) + rest[end:]
    is_told = _REASON.search(rest) is not None
    for match, narrow, blocks in found:
        blocks_still = blocks and not (is_told and narrow is not None)
        yield SuppressionMark(line, _normal(match.group()), blocks_still, is_narrow=narrow is not None)


def _found(comment: str) -> Iterator[tuple[re.Match[str], re.Match[str] | None, bool]]:
    """Yield the marks of a comment, each with the part that names its rule, and whether such marks block."""
    taken: list[tuple[int, int]] = []
    for pattern, blocks in COMMENTS:
        for match in pattern.finditer(comment):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                taken.append(match.span())
                narrow = (each.match(comment, match.start()) for each in NARROW)
                yield match, next(filter(None, narrow), None), blocks


def _normal(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
