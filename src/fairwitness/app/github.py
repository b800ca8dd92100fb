"""A verification for GitHub Actions: at most ten annotations of each kind, and a summary of the job."""

import os
from pathlib import Path

from fairwitness.contracts.verify.report import VerifyReport
from fairwitness.contracts.verify.results import BAD

MOST = 10
"""GitHub shows no more of one kind."""


def annotations(report: VerifyReport) -> str:
    """Workflow commands, one to a line."""
    errors = [
        _command("error", f"{one.rule}: {one.text}", one.path, one.line)
        for one in report.findings
        if one.blocks and one.accepted is None
    ]
    for line in report.checks:
        bad = [moved for moved in line.moved if moved.move in BAD]
        errors += [_command("error", f"{line.id}: {moved.id} {moved.move.value}") for moved in bad]
    errors += [_command("error", f"{one.check}: {one.reason}") for one in report.missing if not one.excused]
    notices = [_command("notice", note) for note in report.notes]
    title = _command("notice" if report.answer.answer == "open" else "error", _sentence(report))
    return "".join(f"{line}\n" for line in (title, *errors[: MOST - 1], *notices[: MOST - 1]))


def write_summary(report: VerifyReport) -> None:
    """Adds the table to the job's summary, where GitHub asks for one."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if place:
        with Path(place).open("a", encoding="utf-8") as summary:
            summary.write(markdown(report))


def markdown(report: VerifyReport) -> str:
    """The report as a Markdown table."""
    rows = [
        _row(line.name, line.id, line.baseline.value, line.after.value, line.reason or "") for line in report.checks
    ]
    rows += [_row(one.check, "", "", "no evidence", one.reason) for one in report.missing]
    found = [f"- `{_cell(one.path)}` {_cell(one.rule)}: {_cell(one.text)}" for one in report.findings if one.blocks]
    parts = [f"### fairwitness verify: {_sentence(report)}", ""]
    parts += ["| check | id | before | after | what became of it |", "| --- | --- | --- | --- | --- |", *rows, ""]
    return "\n".join([*parts, *found, ""]) + "\n"


def _sentence(report: VerifyReport) -> str:
    answer = report.answer
    if answer.answer == "open":
        return f"the change holds: {answer.count} of {answer.threshold} required checks"
    return f"blocked: {answer.because}: {'; '.join(answer.missing[:5])}"


def _command(kind: str, text: str, path: str | None = None, line: int | None = None) -> str:
    place = [f"file={_escaped(path, value=True)}"] if path else []
    if path and line:
        place.append(f"line={line}")
    return f"::{kind}{' ' if place else ''}{','.join(place)}::{_escaped(text)}"


def _escaped(text: str, *, value: bool = False) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C") if value else escaped


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Text of a change inside a table: no markup of its own, no link, no line."""
    plain = text.replace("\\", "\\\\").replace("\n", " ").replace("\r", " ")
    for sign in "|`<>[]!*_":
        plain = plain.replace(sign, f"\\{sign}")
    return plain[:300]
