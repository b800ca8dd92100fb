"""What the change itself does, read from the diff: to tests, to configuration, to checks, and what it carries."""

from collections.abc import Sequence

from assay.contracts.verify.report import FindingLine
from assay.git.objects import Entry
from assay.git.shadow import Shadow
from assay.steps.inspections.declared import outside
from assay.steps.inspections.model import ChangedFile, Finding
from assay.steps.inspections.oracle_files import oracle_files
from assay.steps.inspections.secrets import secrets
from assay.steps.inspections.special_cases import special_cases
from assay.steps.inspections.suppressions import suppressions
from assay.steps.inspections.tests_changed import tests_changed
from assay.steps.verify.model import Change

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


def changed_files(shadow: Shadow, change: Change) -> tuple[ChangedFile, ...]:
    """The changed text files with both contents; binaries and links have nothing to read."""
    return tuple(
        ChangedFile.between(file.path, _text(shadow, file.old_entry), _text(shadow, file.new_entry))
        for file in change.files
        if not file.is_binary
    )


def _text(shadow: Shadow, entry: Entry | None) -> str | None:
    if entry is None or not entry.mode.startswith("100"):
        return None
    return shadow.blob(entry.id, limit=TEXT_LIMIT).decode(errors="replace")


def inspect(change: Change, files: Sequence[ChangedFile]) -> tuple[FindingLine, ...]:
    """Every finding, with the reason a person gave where they accepted it."""
    lines = [
        _line(check, finding, change)
        for check, inspections in _INSPECTIONS.items()
        for inspection in inspections
        for finding in inspection(files)
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


def _line(check: str, finding: Finding, change: Change) -> FindingLine:
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
