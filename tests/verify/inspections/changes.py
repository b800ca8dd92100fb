"""Changes to look at, made from two texts."""

from textwrap import dedent

from fairwitness.verify.inspections.model import ChangedText, InspectionFinding


def change(path: str, before: str | None, after: str | None) -> ChangedText:
    """One changed file; texts may be indented as the test is."""
    return ChangedText.between(
        path, None if before is None else dedent(before), None if after is None else dedent(after)
    )


def said(findings: tuple[InspectionFinding, ...]) -> set[tuple[str, bool]]:
    """Which rules spoke, and whether they block."""
    return {(str(finding.rule), finding.blocks) for finding in findings}


def blocking(findings: tuple[InspectionFinding, ...]) -> set[str]:
    """The rules that block."""
    return {str(finding.rule) for finding in findings if finding.blocks}
