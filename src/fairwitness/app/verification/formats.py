"""A verification as JUnit XML, as GitHub annotations with a job summary, and as SARIF 2.1.0."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import fairwitness
from fairwitness.contracts.verify.report import CheckLine, VerifyReport
from fairwitness.contracts.verify.results import BAD, Evidence, Moved
from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.files import replace_file
from fairwitness.kit.json_text import render
from fairwitness.kit.plugins import REPORTS, plug_ins
from fairwitness.kit.redaction import redact
from fairwitness.kit.text import visible


def junit(report: VerifyReport) -> str:
    """Return the report as JUnit XML: one suite, one case per check and per inspection with findings."""
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
    """Write the file atomically."""
    replace_file(path.absolute().parent, path.name, junit(report).encode())


def write_report(report: VerifyReport, format_: str, path: Path, *, repository: Path) -> None:
    """Write the report in a format that an installed package adds; `UsageError` if none adds it."""
    known = {plug_in.name: plug_in for plug_in in plug_ins(REPORTS, repository=repository)}
    if format_ not in known:
        step = f"choose one of {', '.join(known)}" if known else "install a package that adds it (docs/extending.md)"
        raise UsageError(f"there is no report format {visible(format_)!r}", next_step=step)
    text = known[format_].call(report.plain())
    if not isinstance(text, str):
        package = known[format_].package
        raise NotReady(f"the report format {format_} of {package} is no text", next_step="repair the package")
    replace_file(path.absolute().parent, path.name, redact(text).encode(errors="replace"))


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
    """Return text for an XML attribute, without control characters."""
    return quoteattr(_shown(text.replace("\n", " ")))


def _shown(text: str) -> str:
    """Return foreign text without secrets and with control characters escaped."""
    return visible(redact(text))


MOST = 10
"""GitHub shows at most this many annotations of one kind."""


def annotations(report: VerifyReport) -> str:
    """Return GitHub workflow commands, one per line."""
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
    """Append the table to the job summary, if GitHub provides a file for it."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if place:
        with Path(place).open("a", encoding="utf-8") as summary:
            summary.write(markdown(report))


def markdown(report: VerifyReport) -> str:
    """Return the report as a Markdown table."""
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
    lines = "\n".join(map(_shown, text.replace("\r", "\n").split("\n")))
    escaped = lines.replace("%", "%25").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C") if value else escaped


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Return foreign text for a table cell, without markup, links and line breaks."""
    plain = _shown(" ".join(text.split())).replace("\\", "\\\\")
    for sign in "|`<>[]!*_":
        plain = plain.replace(sign, f"\\{sign}")
    return plain[:300]


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(report: VerifyReport) -> dict[str, Any]:
    """Return the report as one SARIF run."""
    results = [
        _result(one.rule, one.text, one.path, one.line, "error" if one.blocks and one.accepted is None else "note")
        for one in report.findings
    ]
    for line in report.checks:
        results += [
            _result(f"{line.name}-{moved.move.value.replace(' ', '-')}", _text(moved), _path(moved), None, "error")
            for moved in line.moved
            if moved.move in BAD
        ]
    results += [
        _result("no-evidence", f"{one.check}: {one.reason}", None, None, "error")
        for one in report.missing
        if not one.excused
    ]
    rules = [{"id": rule} for rule in sorted({result["ruleId"] for result in results})]
    driver = {"name": "fairwitness", "version": fairwitness.__version__, "rules": rules}
    properties = {
        "run": report.run_id,
        "answer": report.answer.answer,
        "base": report.base.tree,
        "head": report.head.tree,
    }
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results, "properties": properties}],
    }


def write_sarif(report: VerifyReport, path: Path) -> None:
    """Write the file atomically."""
    replace_file(path.absolute().parent, path.name, render(sarif(report)).encode())


def _result(rule: str, text: str, path: str | None, line: int | None, level: str) -> dict[str, Any]:
    result: dict[str, Any] = {"ruleId": rule, "level": level, "message": {"text": _shown(text)}}
    if path is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(path), "uriBaseId": "%SRCROOT%"}}
        if line is not None:
            place["region"] = {"startLine": line}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _text(moved: Moved) -> str:
    return f"{moved.id} {moved.move.value}" + (f": {moved.message}" if moved.message else "")


def _path(moved: Moved) -> str | None:
    path = moved.id.split("::", 1)[0].split(":", 1)[0]
    return path if "/" in path or "." in path else None
