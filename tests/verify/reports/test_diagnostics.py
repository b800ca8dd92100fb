"""Linters, type checkers, compilers and jest: ids that stay when lines move, and counts that must fit."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.verify.checks import ReportFormat
from verify.reports.reading import places, read, report, told

F = ReportFormat


@pytest.mark.req("P9")
def test_ruff_flake8_and_mypy_are_read() -> None:
    assert told(report("ruff-many.json")) == snapshot(
        [
            "failed: lint.py:I001:Import block is un-sorted or un-formatted",
            "failed: lint.py:F401:`os` imported but unused",
            "failed: lint.py:F401:`sys` imported but unused",
            "failed: lint.py:F841:Local variable `x` is assigned to but never used",
            "failed: lint.py:F811:Redefinition of unused `f` from line N: `f` redefined here",
            "failed: lint.py:F821:Undefined name `undefined`",
            "failed: syn.py:invalid-syntax:Expected a parameter or the end of the parameter list",
            "failed: syn.py:invalid-syntax:unexpected EOF while parsing",
        ]
    )
    assert told(report("flake8-many.txt")) == snapshot(
        [
            "failed: lint.py:F401:'os' imported but unused",
            "failed: lint.py:F401:'sys' imported but unused",
            "failed: lint.py:E302:expected 2 blank lines, found 0",
            "failed: lint.py:F841:local variable 'x' is assigned to but never used",
            "failed: lint.py:F811:redefinition of unused 'f' from line N",
            "failed: lint.py:E302:expected 2 blank lines, found 0#2",
            "failed: lint.py:F821:undefined name 'undefined'",
            "failed: lint.py:E305:expected 2 blank lines after class or function definition, found 0",
            "failed: syn.py:E999:SyntaxError: invalid syntax",
        ]
    )
    assert told(report("mypy-many.txt")) == snapshot(
        [
            'failed: lint.py:return-value:Incompatible return value type (got "int", expected "str")',
            'failed: lint.py:no-redef:Name "f" already defined on line N',
            'failed: lint.py:name-defined:Name "undefined" is not defined',
            'failed: lint.py:arg-type:Argument 1 to "f" has incompatible type "str"; expected "int"',
            'failed: lint.py:arg-type:Argument 1 to "f" has incompatible type "str"; expected "int"#2',
        ]
    )
    assert places(report("mypy-many.txt"))[1] == snapshot('lint.py:6: Name "f" already defined on line 3')
    assert told(report("ruff-green.json")) == told(report("mypy-green.txt")) == []


@pytest.mark.req("P9")
def test_pyright_eslint_and_tsc_are_read() -> None:
    assert [item.id[:70] for item in report("pyright-many.json").items] == snapshot(
        [
            'lint.py:reportRedeclaration:Function declaration "f" is obscured by a ',
            'lint.py:reportReturnType:Type "int" is not assignable to return type "',
            'lint.py:reportUndefinedVariable:"undefined" is not defined',
            "lint.py:reportArgumentType:Argument of type \"Literal['x']\" cannot be a",
            "lint.py:reportArgumentType:Argument of type \"Literal['x']\" cannot be a",
        ]
    )
    assert report("pyright-many.json").problems == ()
    assert told(report("eslint-many.json")) == snapshot(
        [
            "failed: src/a.js:no-redeclare:'a' is already defined.",
            "failed: src/a.js:no-unused-vars:'a' is assigned a value but never used.",
            "skipped: src/a.js:no-undef:'b' is not defined.",
            "failed: src/a.js:no-unused-vars:'unused' is defined but never used.",
            "failed: src/a.js:no-unused-vars:'x' is assigned a value but never used.",
            "failed: src/b.js:fatal:Parsing error: Unexpected token (",
        ]
    )
    assert told(report("tsc-many.txt")) == snapshot(
        [
            "failed: a.ts:TS2322:Type 'string' is not assignable to type 'number'.",
            "failed: a.ts:TS2322:Type 'string' is not assignable to type 'number'.#2",
            "failed: a.ts:TS2304:Cannot find name 'nothing'.",
            "failed: a.ts:TS2322:Type 'number' is not assignable to type 'string'.",
            "failed: a.ts:TS2345:Argument of type 'string' is not assignable to parameter of type 'number'.",
            "failed: a.ts:TS2345:Argument of type 'string' is not assignable to parameter of type 'number'.#2",
        ]
    )
    assert told(report("tsc-pretty.txt")) == snapshot(
        [
            "failed: a.ts:TS2322:Type 'string' is not assignable to type 'number'.",
            "failed: a.ts:TS2304:Cannot find name 'nothing'.",
        ]
    )
    assert told(report("eslint-green.json")) == []


@pytest.mark.req("P9")
def test_errors_of_compiler_linker_and_make_are_red_and_warnings_are_not() -> None:
    assert told(report("gcc-many.txt")) == snapshot(
        [
            "skipped: warn.h:unused-variable:unused variable ‘x’",
            "skipped: warn.h:return-type:no return statement in function returning non-void",
            "skipped: warn.c:unused-variable:unused variable ‘unused’",
            "skipped: warn.c:unused-variable:unused variable ‘unused’#2",
            "failed: warn.c:error:‘undeclared’ undeclared (first use in this function)",
            "skipped: warn.c:format:format ‘%s’ expects argument of type ‘char *’, but argument 2 has type ‘int’",
            "skipped: warn.c:int-conversion:passing argument 1 of ‘twice’ makes integer from pointer without a cast",
            "skipped: warn.c:return-type:control reaches end of non-void function",
            "skipped: warn.h:unused-function:‘g’ defined but not used",
        ]
    )
    assert told(report("gcc-link.txt")) == snapshot(
        [
            "skipped: l.c:implicit-function-declaration:implicit declaration of function ‘f’",
            "failed: l.c:link:undefined reference to `f'",
            "failed: collect2:ld returned 1 exit status",
        ]
    )
    assert told(read(F.COMPILER, "make: *** [Makefile:2: all] Error 1\n", 2)) == snapshot(
        ["failed: make:[: all] Error 1"]
    )
    assert told(read(F.COMPILER, "make[1]: *** No rule to make target 'x'.  Stop.\n", 2)) == snapshot(
        ["failed: make:No rule to make target 'x'. Stop."]
    )


@pytest.mark.req("P9")
def test_jest_has_files_titles_and_files_that_could_not_run() -> None:
    assert told(report("jest-many.json")) == snapshot(
        [
            "passed: jt/a.test.js::adds",
            "failed: jt/a.test.js::fails",
            "skipped: jt/a.test.js::skipped",
            "skipped: jt/a.test.js::todo",
            "passed: jt/a.test.js::suite > inner",
            "failed: jt/a.test.js::suite > deeper > leaf",
            "passed: jt/a.test.js::same",
            "passed: jt/a.test.js::same#2",
            "xfailed: jt/a.test.js::expected",
            "error: jt/b.test.js",
        ]
    )


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("mypy-many.txt", "Found 5", "Found 4", "mypy says that it found 4, but lists 5"),
        ("mypy-many.txt", "Found 5 errors in 1 file (checked 1 source file)\n", "", "mypy's last line is not there"),
        ("mypy-green.txt", "in 1 source", "in 0 source", "mypy checked no file"),
        ("tsc-pretty.txt", "Found 2", "Found 3", "tsc says that it found 3, but lists 2"),
        ("eslint-many.json", '"errorCount":4', '"errorCount":3', "counts for src/a.js do not fit its messages"),
        ("pyright-many.json", '"errorCount": 5', '"errorCount": 6', "counts 6 of severity error, but contains 5"),
        ("pyright-many.json", '"filesAnalyzed": 1', '"filesAnalyzed": 0', "pyright checked no file"),
        ("jest-many.json", '"numTotalTests": 9', '"numTotalTests": 8', "counts 8 tests, but contains 9"),
        ("jest-many.json", '"numPassedTests": 5', '"numPassedTests": 9', "counts 9 passed, but contains 5"),
        ("jest-many.json", '"numFailedTests": 2', '"numFailedTests": 0', "counts 0 failed, but contains 2"),
        ("jest-many.json", '"success": false', '"success": true', "says success=true, but 3 failed"),
        ("jest-many.json", '"wasInterrupted": false', '"wasInterrupted": true', "jest was interrupted"),
        ("jest-many.json", '"status": "todo"', '"status": "odd"', "the unknown status 'odd'"),
        ("flake8-many.txt", "E999 SyntaxError: invalid syntax\n", "E999 Synt", "its last line has no end"),
    ],
)
def test_a_report_that_does_not_add_up_is_a_problem(name: str, old: str, new: str, problem: str) -> None:
    assert problem in " | ".join(report(name, old=old, new=new).problems)


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("format", [F.RUFF, F.ESLINT, F.PYRIGHT, F.JEST])
@pytest.mark.parametrize(
    "text", ["{", '{"a":1,"a":2}', "[NaN]", "[" * 100_000, '"a"', "[1]", '[{"filename":1}]', "{}", "1" * 5000]
)
def test_json_that_is_not_what_the_tool_writes_is_a_problem(format: ReportFormat, text: str) -> None:
    assert "is not what" in read(format, text).problems[0]


@pytest.mark.req("P9")
def test_json_with_more_values_than_any_report_is_refused_before_it_is_read() -> None:
    assert "more than 4000000 lists and objects" in read(F.RUFF, "[" + "[]," * 4_000_000 + "[]]").problems[0]


@pytest.mark.req("P9")
def test_an_eslint_that_looked_at_nothing_is_a_problem() -> None:
    assert read(F.ESLINT, "[]").problems == ("eslint checked no file",)


@pytest.mark.req("P9")
def test_warnings_are_red_only_if_the_tool_failed_for_them() -> None:
    text = (
        '[{"filePath":"/work/tree/a.js","errorCount":0,"warningCount":1,'
        '"messages":[{"ruleId":null,"severity":1,"message":"m","line":1}]}]'
    )
    assert told(read(F.ESLINT, text, 0)) == ["skipped: a.js:eslint:m"]
    assert told(read(F.ESLINT, text, 1)) == ["failed: a.js:eslint:m"]
    warning = "a.c:1:1: warning: w [-Wx]\n"
    assert told(read(F.COMPILER, warning, 1)) == snapshot(
        ["skipped: a.c:x:w", "problem: the exit code is 1, but nothing in the report failed"]
    )


@pytest.mark.req("P9")
def test_what_pyright_only_mentions_is_left_out() -> None:
    text = (
        '{"generalDiagnostics":[{"file":"a.py","severity":"information","message":"i"},'
        '{"file":"a.py","severity":"warning","message":"w"}],'
        '"summary":{"filesAnalyzed":1,"errorCount":0,"warningCount":1}}'
    )
    assert told(read(F.PYRIGHT, text)) == ["skipped: a.py:warning:w"]


@pytest.mark.req("P9")
def test_a_tsc_that_cannot_check_at_all_is_no_evidence() -> None:
    text = "error TS18003: No inputs were found in config file '/work/tree/tsconfig.json'.\n"
    assert told(read(F.TSC, text, 2)) == snapshot(
        [
            "problem: tsc could not check: No inputs were found in config file 'tsconfig.json'.",
            "problem: the exit code is 2, but nothing in the report failed",
        ]
    )


@pytest.mark.req("P9")
@pytest.mark.parametrize("format", [F.FLAKE8, F.TSC, F.COMPILER])
def test_silence_is_a_clean_report_only_of_tools_that_are_silent_when_clean(format: ReportFormat) -> None:
    assert told(read(format, "", 0)) == []
    assert read(format, "", 1).problems == ("the exit code is 1, but nothing in the report failed",)


@pytest.mark.req("P9", "X1")
def test_a_diagnostic_keeps_its_id_when_lines_move_and_equal_ones_are_counted() -> None:
    before = read(
        F.MYPY, 'a.py:1: error: Name "f" already defined on line 3  [no-redef]\nFound 1 error in 1 file (x)\n', 1
    )
    after = read(
        F.MYPY, 'a.py:9: error: Name "f" already defined on line 12  [no-redef]\nFound 1 error in 1 file (x)\n', 1
    )
    assert [item.id for item in before.items] == [item.id for item in after.items]
    assert (before.items[0].line, after.items[0].line) == (1, 9)
