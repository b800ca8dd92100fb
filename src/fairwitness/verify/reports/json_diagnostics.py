"""Linters and type checkers that report in JSON: ruff, eslint, pyright."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from fairwitness.verify.reports.exits import Tool
from fairwitness.verify.reports.found import Found, NotJson, Parsed, Relative, Reported, diagnostic, read_json

_Count = Annotated[int, Field(ge=0)]


class _RuffPlace(Reported):
    row: int


class _RuffDiagnostic(Reported):
    code: str | None
    filename: str
    location: _RuffPlace | None
    message: str


_RUFF = TypeAdapter(list[_RuffDiagnostic])


def read_ruff(text: str, relative: Relative) -> Parsed:
    """`ruff check --output-format json`."""
    parsed = Parsed(Tool.RUFF)
    try:
        found = read_json(text, _RUFF)
    except NotJson as error:
        parsed.problems.append(f"the report is not what ruff writes: {error}")
        return parsed
    parsed.found += [
        diagnostic(
            each.filename,
            each.location.row if each.location else None,
            each.code or "invalid-syntax",  # older versions give a syntax error no code
            each.message,
            relative=relative,
        )
        for each in found
    ]
    return parsed


class _EslintMessage(Reported):
    ruleId: str | None  # noqa: N815 - as eslint spells it
    severity: int
    message: str
    line: int | None = None
    fatal: bool = False


class _EslintFile(Reported):
    filePath: str  # noqa: N815 - as eslint spells it
    messages: list[_EslintMessage]
    errorCount: _Count  # noqa: N815 - as eslint spells it
    warningCount: _Count  # noqa: N815 - as eslint spells it


_ESLINT = TypeAdapter(list[_EslintFile])
_ESLINT_ERROR = 2


def read_eslint(text: str, relative: Relative) -> Parsed:
    """`eslint --format json`."""
    parsed = Parsed(Tool.ESLINT)
    try:
        files = read_json(text, _ESLINT)
    except NotJson as error:
        parsed.problems.append(f"the report is not what eslint writes: {error}")
        return parsed
    if not files:
        parsed.problems.append("eslint looked at no file")
    for file in files:
        errors = sum(each.severity == _ESLINT_ERROR for each in file.messages)
        if (file.errorCount, file.warningCount) != (errors, len(file.messages) - errors):
            parsed.problems.append(f"the report's counts for {relative.path(file.filePath)} do not fit its messages")
        parsed.found += [_eslint(file.filePath, each, relative) for each in file.messages]
    return parsed


def _eslint(path: str, each: _EslintMessage, relative: Relative) -> Found:
    code = each.ruleId or ("fatal" if each.fatal else "eslint")
    warning = each.severity != _ESLINT_ERROR
    return diagnostic(path, each.line, code, each.message, relative=relative, tolerated=warning)


class _PyrightPosition(Reported):
    line: int


class _PyrightRange(Reported):
    start: _PyrightPosition


class _PyrightDiagnostic(Reported):
    file: str
    severity: str
    message: str
    range: _PyrightRange | None = None
    rule: str | None = None


class _PyrightSummary(Reported):
    filesAnalyzed: _Count  # noqa: N815 - as pyright spells it
    errorCount: _Count  # noqa: N815 - as pyright spells it
    warningCount: _Count  # noqa: N815 - as pyright spells it


class _Pyright(Reported):
    generalDiagnostics: list[_PyrightDiagnostic]  # noqa: N815 - as pyright spells it
    summary: _PyrightSummary


_PYRIGHT = TypeAdapter(_Pyright)


def read_pyright(text: str, relative: Relative) -> Parsed:
    """`pyright --outputjson`; what is only information is left out."""
    parsed = Parsed(Tool.PYRIGHT)
    try:
        whole = read_json(text, _PYRIGHT)
    except NotJson as error:
        parsed.problems.append(f"the report is not what pyright writes: {error}")
        return parsed
    for word, said in (("error", whole.summary.errorCount), ("warning", whole.summary.warningCount)):
        counted = sum(each.severity == word for each in whole.generalDiagnostics)
        if said != counted:
            parsed.problems.append(f"the report counts {said} of severity {word}, but holds {counted}")
    if not whole.summary.filesAnalyzed:
        parsed.problems.append("pyright looked at no file")
    for each in whole.generalDiagnostics:
        if each.severity == "information":
            continue
        line = each.range.start.line + 1 if each.range else None  # it counts lines from 0
        warning = each.severity == "warning"
        code = each.rule or each.severity
        parsed.found.append(diagnostic(each.file, line, code, each.message, relative=relative, tolerated=warning))
    return parsed
