"""What the change itself does, read from the diff: to tests, to configuration, to checks, and what it carries."""

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
"""Folders of an entry or path; deeper entries cover nothing."""


def outside(changes: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    """Changed paths that nobody declared, in their order.

    >>> outside(["src/a.py", "src/deep/b.py", "tests/test_a.py"], ["src/**", "docs/"])
    ('tests/test_a.py',)
    """
    entries = [entry for entry in map(_segments, declared) if entry]
    return tuple(path for path in changes if not any(covers(entry, path.split("/")) for entry in entries))


def _segments(entry: str) -> list[str]:
    """The parts of an entry; none if it cannot be meant."""
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
    ("special-cases", "no code knows that it is being tested"),
    ("readiness-secrets", "the change carries no secret"),
)
"""The rows that are always written, and what each says when all is well."""
_INSPECTIONS = {
    "oracle-files": (tests_changed, oracle_files),
    "suppressions": (suppressions,),
    "special-cases": (special_cases,),
    "readiness-secrets": (secrets,),
}


class Texts(NamedTuple):
    """The changed files as texts, and those that are too large to be looked at."""

    files: tuple[ChangedText, ...]
    too_large: tuple[str, ...]


def changed_texts(shadow: Shadow, change: ProposedChange) -> Texts:
    """The changed text files with both contents, read in one go; binaries and links have nothing to read."""
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
    """Every finding, with the reason a person gave where they accepted it."""
    lines = [
        FindingLine(
            check="readiness-secrets",
            rule=FindingRule.UNREADABLE.value,
            path=path,
            text=f"it has more than {TEXT_LIMIT >> 20} MiB, so nobody looked through it",
            blocks=True,
            subject=path,
            accepted=change.accepted(path),
        )
        for path in texts.too_large
    ]
    lines += [
        _line(check, finding, change)
        for check, inspections in _INSPECTIONS.items()
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
