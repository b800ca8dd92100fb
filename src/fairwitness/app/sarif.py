"""A verification as SARIF 2.1.0: what got worse and what was found, at their places, for code scanning tools."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import fairwitness
from fairwitness.contracts.verify.report import VerifyReport
from fairwitness.contracts.verify.results import BAD, Moved
from fairwitness.kit.files import replace_file
from fairwitness.kit.json_text import render

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(report: VerifyReport) -> dict[str, Any]:
    """The report as one SARIF run."""
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
    """Writes the file whole or not at all."""
    replace_file(path.absolute().parent, path.name, render(sarif(report)).encode())


def _result(rule: str, text: str, path: str | None, line: int | None, level: str) -> dict[str, Any]:
    result: dict[str, Any] = {"ruleId": rule, "level": level, "message": {"text": text}}
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
