"""Input and output of inspections: changed files and findings.

Line numbers count from 1 and lines end at `\\n`, as git counts them. Texts come from a change and are hostile: a
finding's own text is made visible and cut short, its path and subject stay as they are because they are names.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fairwitness.kit.text import visible
from fairwitness.verify.inspections.line_diff import line_changes

TEXT_LENGTH = 300
"""Characters of a finding's text."""
QUOTE_LENGTH = 80
"""Characters that are quoted from a file."""
FINDINGS_PER_FILE = 50
"""More findings than this of one rule in one file are only counted."""


LINE_LENGTH = 2_000
"""Characters that patterns look at in one go."""
_OVERLAP = 200
"""Characters that two windows of a line share; no mark that is looked for is longer."""
_RUN = re.compile(r"\s{9,}")


class FindingRule(StrEnum):
    """What an inspection may find."""

    TEST_CHANGED = "test-changed"
    TEST_DELETED = "test-deleted"
    TEST_MOVED = "test-moved"
    TEST_MODULE_CHANGED = "test-module-changed"
    TEST_DATA_CHANGED = "test-data-changed"
    ASSERTIONS_DROPPED = "assertions-dropped"
    PARAMETERS_NARROWED = "parameters-narrowed"
    SKIP_ADDED = "skip-added"
    TESTS_NARROWED = "tests-narrowed"
    EXIT_ADDED = "exit-added"
    """A test file that can end the whole run."""
    TEST_CONFIG_HOOK = "test-config-hook"
    TEST_CONFIG_FIXTURE = "test-config-fixture"
    CONFIG_CHANGED = "config-changed"
    SUPPRESSION_ADDED = "suppression-added"
    TEST_RUN_DETECTED = "test-run-detected"
    RESULT_HARD_CODED = "result-hard-coded"
    SECRET = "secret"
    SCAN_LIMITED = "scan-limited"
    """Something was inspected less closely than usual, because it is too large."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ChangedText:
    """One path of a change; a text is None where the file is not there."""

    path: str
    before: str | None
    after: str | None
    added: tuple[int, ...]
    """Lines of `after` that are new or changed."""
    removed: tuple[int, ...]
    """Lines of `before` that are gone or changed."""

    @classmethod
    def between(cls, path: str, before: str | None, after: str | None) -> "ChangedText":
        """Return the change of a file, with the changed line numbers computed."""
        removed, added = line_changes(before or "", after or "")
        return cls(path, before, after, added, removed)


@dataclass(frozen=True, slots=True)
class InspectionFinding:
    """One finding of an inspection."""

    rule: FindingRule
    path: str
    line: int | None
    text: str
    subject: str | None
    """The test or path that a person names to accept it."""
    blocks: bool


def finding_at(
    rule: FindingRule, path: str, line: int | None, text: str, *, blocks: bool, subject: str | None = None
) -> InspectionFinding:
    """Return a finding whose text is safe to show; the path is the subject unless another is named."""
    shown = visible(text)
    if len(shown) > TEXT_LENGTH:
        shown = f"{shown[: TEXT_LENGTH - 1]}…"
    return InspectionFinding(rule, path, line, shown, path if subject is None else subject, blocks)


def quoted(text: str) -> str:
    """Return a piece of a file, short and in quotation marks."""
    piece = " ".join(text[: QUOTE_LENGTH * 4].split())
    return f"`{piece[: QUOTE_LENGTH - 1]}…`" if len(piece) > QUOTE_LENGTH else f"`{piece}`"


def squeezed(line: str) -> str:
    """Return a line whose long runs of white space are short.

    Patterns with `\\s*` take a time that grows with the square of such a run, and padding hides what follows it.
    """
    return _RUN.sub("        ", line) if len(line) > LINE_LENGTH // 10 else line


def clipped(line: str) -> str:
    """Return a line, squeezed and cut to the length that patterns can search in bounded time."""
    return squeezed(line)[:LINE_LENGTH]


def windows(line: str) -> list[str]:
    """Return a line in pieces that patterns can search in bounded time; nothing of it is left out."""
    whole = squeezed(line)
    starts = range(0, max(1, len(whole) - _OVERLAP), LINE_LENGTH - _OVERLAP)
    return [whole[start : start + LINE_LENGTH] for start in starts]


def bounded(findings: Iterable[InspectionFinding]) -> tuple[InspectionFinding, ...]:
    """Return at most `FINDINGS_PER_FILE` findings per rule and file, plus one with the count of the rest."""
    kept: list[InspectionFinding] = []
    seen: Counter[tuple[FindingRule, str]] = Counter()
    blocking: set[tuple[FindingRule, str]] = set()
    for finding in findings:
        key = (finding.rule, finding.path)
        seen[key] += 1
        if seen[key] <= FINDINGS_PER_FILE:
            kept.append(finding)
        elif finding.blocks:
            blocking.add(key)
    for (rule, path), count in seen.items():
        if count > FINDINGS_PER_FILE:
            more = f"and {count - FINDINGS_PER_FILE} more of {rule}"
            kept.append(finding_at(rule, path, None, more, blocks=(rule, path) in blocking))
    return tuple(kept)
