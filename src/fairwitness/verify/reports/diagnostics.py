"""Reports of linters, type checkers and compilers: ruff, eslint, pyright (JSON); flake8, mypy, tsc, gcc, clang."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, TypeAdapter

from fairwitness.contracts.verify.results import ITEMS, RED
from fairwitness.verify.reports.exits import ReportingTool
from fairwitness.verify.reports.model import (
    TORN,
    InvalidJsonReport,
    JsonReportPart,
    ParsedItem,
    ParsedReport,
    Relative,
    diagnostic,
    lines,
    read_json,
    without_colours,
)

_Count = Annotated[int, Field(ge=0)]


class _RuffPlace(JsonReportPart):
    row: int


class _RuffDiagnostic(JsonReportPart):
    code: str | None
    filename: str
    location: _RuffPlace | None
    message: str


_RUFF = TypeAdapter(list[_RuffDiagnostic])


def read_ruff(text: str, relative: Relative) -> ParsedReport:
    """Read the output of `ruff check --output-format json`."""
    parsed = ParsedReport(ReportingTool.RUFF)
    try:
        diagnostics = read_json(text, _RUFF)
    except InvalidJsonReport as error:
        parsed.problems.append(f"the report is not what ruff writes: {error}")
        return parsed
    parsed.items += [
        diagnostic(
            each.filename,
            each.location.row if each.location else None,
            each.code or "invalid-syntax",  # older versions give a syntax error no code
            each.message,
            relative=relative,
        )
        for each in diagnostics
    ]
    return parsed


class _EslintMessage(JsonReportPart):
    ruleId: str | None  # noqa: N815 - as eslint spells it
    severity: int
    message: str
    line: int | None = None
    fatal: bool = False


class _EslintFile(JsonReportPart):
    filePath: str  # noqa: N815 - as eslint spells it
    messages: list[_EslintMessage]
    errorCount: _Count  # noqa: N815 - as eslint spells it
    warningCount: _Count  # noqa: N815 - as eslint spells it


_ESLINT = TypeAdapter(list[_EslintFile])
_ESLINT_ERROR = 2


def read_eslint(text: str, relative: Relative) -> ParsedReport:
    """Read the output of `eslint --format json`."""
    parsed = ParsedReport(ReportingTool.ESLINT)
    try:
        files = read_json(text, _ESLINT)
    except InvalidJsonReport as error:
        parsed.problems.append(f"the report is not what eslint writes: {error}")
        return parsed
    if not files:
        parsed.problems.append("eslint checked no file")
    for file in files:
        errors = sum(each.severity == _ESLINT_ERROR for each in file.messages)
        if (file.errorCount, file.warningCount) != (errors, len(file.messages) - errors):
            parsed.problems.append(f"the report's counts for {relative.path(file.filePath)} do not fit its messages")
        parsed.items += [_eslint(file.filePath, each, relative) for each in file.messages]
    return parsed


def _eslint(path: str, each: _EslintMessage, relative: Relative) -> ParsedItem:
    code = each.ruleId or ("fatal" if each.fatal else "eslint")
    warning = each.severity != _ESLINT_ERROR
    return diagnostic(path, each.line, code, each.message, relative=relative, tolerated=warning)


class _PyrightPosition(JsonReportPart):
    line: int


class _PyrightRange(JsonReportPart):
    start: _PyrightPosition


class _PyrightDiagnostic(JsonReportPart):
    file: str
    severity: str
    message: str
    range: _PyrightRange | None = None
    rule: str | None = None


class _PyrightSummary(JsonReportPart):
    filesAnalyzed: _Count  # noqa: N815 - as pyright spells it
    errorCount: _Count  # noqa: N815 - as pyright spells it
    warningCount: _Count  # noqa: N815 - as pyright spells it


class _Pyright(JsonReportPart):
    generalDiagnostics: list[_PyrightDiagnostic]  # noqa: N815 - as pyright spells it
    summary: _PyrightSummary


_PYRIGHT = TypeAdapter(_Pyright)


def read_pyright(text: str, relative: Relative) -> ParsedReport:
    """Read the output of `pyright --outputjson`, without diagnostics that are only information."""
    parsed = ParsedReport(ReportingTool.PYRIGHT)
    try:
        whole = read_json(text, _PYRIGHT)
    except InvalidJsonReport as error:
        parsed.problems.append(f"the report is not what pyright writes: {error}")
        return parsed
    for word, said in (("error", whole.summary.errorCount), ("warning", whole.summary.warningCount)):
        counted = sum(each.severity == word for each in whole.generalDiagnostics)
        if said != counted:
            parsed.problems.append(f"the report counts {said} of severity {word}, but contains {counted}")
    if not whole.summary.filesAnalyzed:
        parsed.problems.append("pyright checked no file")
    for each in whole.generalDiagnostics:
        if each.severity == "information":
            continue
        line = each.range.start.line + 1 if each.range else None  # it counts lines from 0
        warning = each.severity == "warning"
        code = each.rule or each.severity
        parsed.items.append(diagnostic(each.file, line, code, each.message, relative=relative, tolerated=warning))
    return parsed


_FLAKE8 = re.compile(r"(?P<path>[^\s:][^:]*):(?P<line>\d{1,9}):(?:\d{1,9}:)? (?P<code>[A-Z]{1,5}\d{1,5}) (?P<text>.*)")
_MYPY = re.compile(
    r"(?P<path>[^\s:][^:]*):(?:(?P<line>\d{1,9}):)?(?:\d{1,9}:){0,3} error: (?P<text>.*?)(?:  \[(?P<code>[\w-]+)\])?"
)
_MYPY_FOUND = re.compile(r"Found (?P<count>\d{1,9}) errors? in \d+ files? \(.*\)")
_MYPY_CLEAN = re.compile(r"Success: no issues found in (?P<files>\d{1,9}) source files?")
_TSC = re.compile(
    r"(?P<path>[^\s(][^(]*?|\S.*?)(?:\((?P<line>\d{1,9}),\d{1,9}\):|:(?P<pretty>\d{1,9}):\d{1,9} -) "
    r"error (?P<code>TS\d{1,6}): (?P<text>.*)"
)
_TSC_WHOLE = re.compile(r"error (?P<code>TS\d{1,6}): (?P<text>.*)")
_TSC_FOUND = re.compile(r"Found (?P<count>\d{1,9}) errors?(?: in .*)?\.?")
_COMPILER = re.compile(
    r"(?P<path>[^\s:][^:]*):(?P<line>\d{1,9}):(?:\d{1,9}:)? (?P<kind>fatal error|error|warning): (?P<text>.*)"
)
_COMPILER_FLAG = re.compile(r" \[-W(?:error=)?(?P<flag>[\w+=-]+)\]$")
_LINKER = re.compile(
    r"(?:\S+: )?(?P<path>[^\s:]+):\(?[^:]*\)?: (?P<text>(?:undefined reference|multiple definition).*)"
)
_PROGRAM = re.compile(r"(?P<name>[\w./+-]+): (?:fatal )?error: (?P<text>.*)")
_MAKE = re.compile(r"g?make(?:\[\d+\])?: \*\*\* (?P<text>.*)")
_ADDRESS = re.compile(r"\(\.\w{1,200}(?:\.\w{1,200}){0,20}\+0x[0-9a-f]+\)|\b\w{1,200}-?\d{0,20}:\d+\b")


def _lines(text: str, parsed: ParsedReport, *, whole: bool = True) -> Iterator[str]:
    if whole and text and not text.endswith("\n"):
        parsed.problems.append(TORN)
    for line in lines(without_colours(text)):
        if len(parsed.items) > ITEMS:
            return
        yield line.rstrip()


def _number(digits: str | None) -> int | None:
    return int(digits) if digits else None


def read_flake8(text: str, relative: Relative) -> ParsedReport:
    """Read flake8's default format."""
    parsed = ParsedReport(ReportingTool.FLAKE8)
    for line in _lines(text, parsed):
        match = _FLAKE8.fullmatch(line)
        if match is not None:
            place = _number(match["line"])
            parsed.items.append(diagnostic(match["path"], place, match["code"], match["text"], relative=relative))
    return parsed


def read_mypy(text: str, relative: Relative) -> ParsedReport:
    """Read mypy's lines, and check the count in its last line."""
    parsed = ParsedReport(ReportingTool.MYPY)
    said: int | None = None
    for line in _lines(text, parsed):
        if (clean := _MYPY_CLEAN.fullmatch(line)) is not None:
            said = 0
            if not int(clean["files"]):
                parsed.problems.append("mypy checked no file")
        elif (total := _MYPY_FOUND.fullmatch(line)) is not None:
            said = int(total["count"])
        elif (match := _MYPY.fullmatch(line)) is not None:
            place, code = _number(match["line"]), match["code"] or "error"
            parsed.items.append(diagnostic(match["path"], place, code, match["text"], relative=relative))
    if said is None:
        parsed.problems.append("the report is truncated: mypy's last line is not there")
    elif said != len(parsed.items):
        parsed.problems.append(f"mypy says that it found {said}, but lists {len(parsed.items)}")
    return parsed


def read_tsc(text: str, relative: Relative) -> ParsedReport:
    """Read tsc's lines, plain or pretty; an error without a file means that tsc could not check."""
    parsed = ParsedReport(ReportingTool.TSC)
    said: int | None = None
    for line in _lines(text, parsed):
        if (whole := _TSC_WHOLE.fullmatch(line)) is not None:
            parsed.problems.append(f"tsc could not check: {whole['text']}")
        elif (total := _TSC_FOUND.fullmatch(line)) is not None:
            said = int(total["count"])
        elif (match := _TSC.fullmatch(line)) is not None:
            place = _number(match["line"] or match["pretty"])
            parsed.items.append(diagnostic(match["path"], place, match["code"], match["text"], relative=relative))
    if said is not None and said != len(parsed.items):
        parsed.problems.append(f"tsc says that it found {said}, but lists {len(parsed.items)}")
    return parsed


def read_compiler(text: str, relative: Relative) -> ParsedReport:
    """Read errors and warnings of gcc, clang and the linker, and make's own error if there is nothing else."""
    parsed = ParsedReport(ReportingTool.COMPILER)
    given_up = []
    for line in _lines(text, parsed, whole=False):  # the last line of a linker or a test may lack a line feed
        if (match := _COMPILER.fullmatch(line)) is not None:
            flag = _COMPILER_FLAG.search(match["text"])
            kind = "error" if match["kind"].endswith("error") else "warning"
            said = match["text"][: flag.start()] if flag else match["text"]
            parsed.items.append(
                diagnostic(
                    match["path"],
                    _number(match["line"]),
                    flag["flag"].rstrip("=") if flag else kind,
                    said,
                    relative=relative,
                    tolerated=kind == "warning",
                )
            )
        elif (missing := _LINKER.fullmatch(line)) is not None:
            parsed.items.append(diagnostic(missing["path"], None, "link", missing["text"], relative=relative))
        elif (program := _PROGRAM.fullmatch(line)) is not None:
            parsed.items.append(diagnostic(None, None, program["name"], program["text"], relative=relative))
        elif (make := _MAKE.fullmatch(line)) is not None:
            given_up.append(diagnostic(None, None, "make", _ADDRESS.sub("", make["text"]), relative=relative))
    if not any(item.outcome in RED for item in parsed.items):
        parsed.items += given_up
    return parsed
