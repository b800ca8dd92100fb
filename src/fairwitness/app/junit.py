"""A verification as JUnit XML: one suite, one case per check and per inspection that found something."""

from pathlib import Path
from xml.sax.saxutils import quoteattr

from fairwitness.contracts.verify.report import CheckLine, VerifyReport
from fairwitness.contracts.verify.results import Evidence
from fairwitness.kit.files import replace_file
from fairwitness.kit.text import visible


def junit(report: VerifyReport) -> str:
    """The report as the text of a JUnit file."""
    cases = [_check(line) for line in report.checks]
    cases += [
        _case("evidence", one.check, 0, "skipped" if one.excused else "error", one.reason)
        for one in report.missing
        if not any(f"{line.name} {line.id}" == one.check for line in report.checks)
    ]
    for check in dict.fromkeys(one.check for one in report.findings if one.blocks and one.accepted is None):
        texts = [f"{one.path}: {one.text}" for one in report.findings if one.check == check and one.blocks]
        cases.append(_case("inspection", check, 0, "failure", "; ".join(texts[:20])))
    failures = sum("<failure" in case for case in cases)
    errors = sum("<error" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    head = (
        f'<testsuite name="fairwitness verify" tests="{len(cases)}" failures="{failures}" errors="{errors}" '
        f'skipped="{skipped}" time="{report.duration_ms / 1000:.3f}">'
    )
    return "\n".join(
        ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", head, *cases, "</testsuite>", "</testsuites>", ""]
    )


def write_junit(report: VerifyReport, path: Path) -> None:
    """Writes the file whole or not at all."""
    replace_file(path.absolute().parent, path.name, junit(report).encode())


def _check(line: CheckLine) -> str:
    name = f"{line.name} {line.id}"
    if line.after is Evidence.NONE:
        return _case(
            "check", name, line.duration_ms, "skipped" if line.excused else "error", line.reason or "no evidence"
        )
    if line.reason:
        return _case("check", name, line.duration_ms, "failure", line.reason)
    return _case("check", name, line.duration_ms, None, "")


def _case(kind: str, name: str, duration_ms: int, outcome: str | None, text: str) -> str:
    opening = f'<testcase classname="fairwitness.{kind}" name={_quoted(name)} time="{duration_ms / 1000:.3f}"'
    return f"{opening}/>" if outcome is None else f"{opening}><{outcome} message={_quoted(text)}/></testcase>"


def _quoted(text: str) -> str:
    """An attribute that any XML reader takes: no control character survives."""
    return quoteattr(visible(text.replace("\n", " ")))
