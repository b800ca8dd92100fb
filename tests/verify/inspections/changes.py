"""Changes to look at, made from two texts."""

from textwrap import dedent

from fairwitness.verify.inspections.model import ChangedFile, Finding


def change(path: str, before: str | None, after: str | None) -> ChangedFile:
    """One changed file; texts may be indented as the test is."""
    return ChangedFile.between(
        path, None if before is None else dedent(before), None if after is None else dedent(after)
    )


def said(findings: tuple[Finding, ...]) -> set[tuple[str, bool]]:
    """Which rules spoke, and whether they block."""
    return {(str(finding.rule), finding.blocks) for finding in findings}


def blocking(findings: tuple[Finding, ...]) -> set[str]:
    """The rules that block."""
    return {str(finding.rule) for finding in findings if finding.blocks}
