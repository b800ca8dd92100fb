"""Inspect the diff of a change: what it does to tests, configuration and checks, and whether it stays in its plan.

A declared entry of a plan is a path, a folder with a slash at its end, or a pattern in which `*` and `?` match within a
folder and `**` matches any number of folders. A test file is covered only if it is declared itself. Entries that point
outside the repository cover nothing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.verify.report import FindingLine
from fairwitness.git.changes import FileChange
from fairwitness.git.objects import TreeEntry
from fairwitness.git.shadow import Shadow
from fairwitness.rules.globs import covers
from fairwitness.verify.inspections.model import ChangedText, FindingRule, InspectionFinding
from fairwitness.verify.inspections.oracle_files import oracle_files
from fairwitness.verify.inspections.secrets import secrets
from fairwitness.verify.inspections.special_cases import special_cases
from fairwitness.verify.inspections.suppressions import suppressions
from fairwitness.verify.inspections.tests_changed import tests_changed
from fairwitness.verify.model import ProposedChange

SEGMENTS = 64
"""How many segments a declared entry may have; a longer one covers nothing."""


def outside(changes: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    """Return the changed paths that no declared entry covers, in their order.

    >>> outside(["src/a.py", "src/deep/b.py", "tests/test_a.py"], ["src/**", "docs/"])
    ('tests/test_a.py',)
    """
    entries = [entry for entry in map(_segments, declared) if entry]
    return tuple(path for path in changes if not any(covers(entry, path.split("/")) for entry in entries))


def _segments(entry: str) -> list[str]:
    """Return the segments of a declared entry; none if it is not a valid path or pattern."""
    text = entry.strip()
    while text.startswith("./"):
        text = text[2:]
    if text.endswith("/"):
        text += "**"
    segments = text.split("/")
    if "" in segments or ".." in segments or "." in segments or "\\" in text or len(segments) > SEGMENTS:
        return []
    return segments


TEXT_LIMIT = 2 << 20
"""Files above this are not read line by line."""

INSPECTED: tuple[tuple[str, str], ...] = (
    ("oracle-files", "no test, linter or build rule was weakened"),
    ("suppressions", "no check was switched off in a file"),
    ("special-cases", "no code detects that it is being tested"),
    ("readiness-secrets", "the change contains no secret"),
)
"""The checks that always get a row, with the text of a row without findings."""
INSPECTIONS = {
    "oracle-files": (tests_changed, oracle_files),
    "suppressions": (suppressions,),
    "special-cases": (special_cases,),
    "readiness-secrets": (secrets,),
}


class Texts(NamedTuple):
    """The changed files as texts, and the paths that are too large to inspect."""

    files: tuple[ChangedText, ...]
    too_large: tuple[str, ...]


def changed_texts(shadow: Shadow, change: ProposedChange) -> Texts:
    """Return the changed text files with both contents, read in one batch; binaries and links are left out."""
    texts = [file for file in change.files if not file.is_binary]
    sizes = shadow.sizes(entry.id for file in texts for entry in _plain(file))
    large = {id_ for id_, size in sizes.items() if size is not None and size > TEXT_LIMIT}
    contents = dict(shadow.blobs((id_ for id_ in sizes if id_ not in large), limit=TEXT_LIMIT))
    seen = [file for file in texts if not any(entry.id in large for entry in _plain(file))]
    return Texts(
        files=tuple(
            ChangedText.between(file.path, _text(file.old_entry, contents), _text(file.new_entry, contents))
            for file in seen
        ),
        too_large=tuple(file.path for file in texts if file not in seen),
    )


def _plain(file: FileChange) -> list[TreeEntry]:
    return [entry for entry in (file.old_entry, file.new_entry) if entry is not None and entry.mode.startswith("100")]


def _text(entry: TreeEntry | None, contents: Mapping[str, bytes]) -> str | None:
    return contents[entry.id].decode(errors="replace") if entry is not None and entry.id in contents else None


def inspect(change: ProposedChange, texts: Texts) -> tuple[FindingLine, ...]:
    """Return all findings, each with the user's reason if they accepted it."""
    lines = [
        FindingLine(
            check="readiness-secrets",
            rule=FindingRule.UNREADABLE.value,
            path=path,
            text=f"it is larger than {TEXT_LIMIT >> 20} MiB and was not inspected",
            blocks=True,
            subject=path,
            accepted=change.accepted(path),
        )
        for path in texts.too_large
    ]
    lines += [
        _line(check, finding, change)
        for check, inspections in INSPECTIONS.items()
        for inspection in inspections
        for finding in inspection(texts.files)
    ]
    if change.declared is not None:
        lines += [
            FindingLine(
                check="scope",
                rule="out-of-scope",
                path=path,
                text="no task of the plan declares this file",
                blocks=True,
                subject=path,
                accepted=change.accepted(path),
            )
            for path in outside([file.path for file in change.files], change.declared)
        ]
    return tuple(lines)


def _line(check: str, finding: InspectionFinding, change: ProposedChange) -> FindingLine:
    subject = finding.subject or finding.path
    declared = change.declared is not None and check == "oracle-files" and not outside([finding.path], change.declared)
    accepted = change.accepted(subject) or ("the plan declares it" if declared else None)
    return FindingLine(
        check=check,
        rule=finding.rule.value,
        path=finding.path,
        line=finding.line,
        text=finding.text,
        blocks=finding.blocks,
        subject=subject,
        accepted=accepted if finding.blocks else None,
    )
