"""A report is believed only if it is there, whole, readable, and of one mind with the exit code."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.verify.checks import TEST_FORMATS, ReportFormat
from fairwitness.contracts.verify.results import RED
from fairwitness.verify.reports import read_report
from fairwitness.verify.reports.exits import CONVENTIONS, ReportingTool, exit_problem
from fairwitness.verify.reports.reader import BYTES, READERS, SILENT_WHEN_CLEAN
from verify.reports.reading import REAL, SAMPLES, read, report, told

F = ReportFormat


def test_every_format_has_a_reader_and_every_tool_a_convention() -> None:
    assert set(READERS) == set(ReportFormat) - {F.EXIT}
    assert set(CONVENTIONS) == set(ReportingTool)
    assert not SILENT_WHEN_CLEAN & TEST_FORMATS


def test_every_sample_is_known_and_every_format_has_one() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == set(REAL)
    assert {format for format, _, _ in REAL.values()} == set(READERS)


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("format", list(READERS))
def test_a_report_that_is_missing_too_large_or_not_utf_8_is_no_evidence(format: ReportFormat) -> None:
    for content, problem in (
        (None, "the report is missing (exit code 0)"),
        (b"\xff\xfe", "the report is not UTF-8 from byte 0 on (exit code 0)"),
        (b" " * (BYTES + 1), f"the report has {BYTES + 1} bytes, more than the {BYTES} that are read (exit code 0)"),
    ):
        found = read_report(format, content, exit_code=0, root="/x")
        assert (found.items, found.problems) == ((), (problem,))


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("format", sorted(set(READERS) - SILENT_WHEN_CLEAN))
@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_report_is_no_evidence(format: ReportFormat, content: bytes) -> None:
    assert read_report(format, content, exit_code=0, root="/x").problems == ("the report is empty (exit code 0)",)


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("name", [name for name in REAL if any(item.outcome in RED for item in report(name).items)])
def test_exit_code_0_never_goes_with_a_red_report(name: str) -> None:
    assert any("the exit code is 0, but the report says" in problem for problem in report(name, exit_code=0).problems)


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("name", [name for name, (_, code, _) in REAL.items() if code == 0])
def test_an_exit_code_that_says_red_never_goes_with_a_green_report(name: str) -> None:
    for code in (1, 2, 8, 101, 127, 137):
        assert report(name, exit_code=code).problems


@pytest.mark.req("P9")
@pytest.mark.parametrize("name", list(REAL))
def test_a_command_that_did_not_end_by_itself_has_no_report_to_believe(name: str) -> None:
    format, _, folder = REAL[name]
    found = read_report(format, (SAMPLES / name).read_bytes(), exit_code=None, root=folder)
    assert any("did not end by itself" in problem for problem in found.problems)


@pytest.mark.req("P9", "X1")
def test_the_whole_table_of_exit_codes() -> None:
    codes = (0, 1, 2, 3, 4, 5, 8, 101, 126, 137, 200, -9)
    table = {
        tool.value: "  ".join(
            f"{code}:{'.' if exit_problem(tool, code, red=0) is None else 'x'}"
            f"{'.' if exit_problem(tool, code, red=2) is None else 'x'}"
            for code in codes
        )
        for tool in ReportingTool
    }
    assert table == snapshot(
        {
            "pytest": "0:.x  1:x.  2:xx  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "unittest": "0:.x  1:x.  2:xx  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "go test": "0:.x  1:x.  2:x.  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "cargo test": "0:.x  1:xx  2:xx  3:xx  4:xx  5:xx  8:xx  101:x.  126:xx  137:xx  200:xx  -9:xx",
            "jest": "0:.x  1:x.  2:xx  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "an idle runner": "0:.x  1:xx  2:xx  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "mocha": "0:.x  1:x.  2:x.  3:x.  4:x.  5:x.  8:x.  101:x.  126:x.  137:x.  200:x.  -9:xx",
            "the test runner": "0:.x  1:x.  2:x.  3:x.  4:x.  5:x.  8:x.  101:x.  126:xx  137:xx  200:xx  -9:xx",
            "ruff": "0:.x  1:x.  2:xx  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "flake8": "0:.x  1:x.  2:xx  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "mypy": "0:.x  1:x.  2:xx  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "pyright": "0:.x  1:x.  2:xx  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "eslint": "0:.x  1:x.  2:xx  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "tsc": "0:.x  1:x.  2:x.  3:xx  4:xx  5:xx  8:xx  101:xx  126:xx  137:xx  200:xx  -9:xx",
            "the compiler": "0:.x  1:x.  2:x.  3:x.  4:x.  5:x.  8:x.  101:x.  126:xx  137:xx  200:xx  -9:xx",
        }
    )


@pytest.mark.req("P9")
def test_what_each_tool_says_of_itself_when_it_broke() -> None:
    said = {
        f"{tool.value} {code}": exit_problem(tool, code, red=1)
        for tool, convention in CONVENTIONS.items()
        for code in convention.broke
    }
    assert said == snapshot(
        {
            "pytest 2": "pytest ended with exit code 2: it was interrupted, or gave up at a file it cannot collect",
            "pytest 3": "pytest ended with exit code 3: it failed internally",
            "pytest 4": "pytest ended with exit code 4: it was called wrongly, or what it was asked for is not there",
            "pytest 5": "pytest ended with exit code 5: no test was collected",
            "unittest 2": "unittest ended with exit code 2: it was called wrongly",
            "unittest 5": "unittest ended with exit code 5: no test was collected",
            "an idle runner 1": "an idle runner ended with exit code 1: no test was collected",
            "an idle runner 8": "an idle runner ended with exit code 8: no test was collected",
            "ruff 2": "ruff ended with exit code 2: it could not do its work",
            "flake8 2": "flake8 ended with exit code 2: it could not do its work",
            "mypy 2": "mypy ended with exit code 2: errors prevented further checking",
            "pyright 2": "pyright ended with exit code 2: it failed fatally",
            "pyright 3": "pyright ended with exit code 3: its configuration cannot be read",
            "pyright 4": "pyright ended with exit code 4: it was called wrongly",
            "eslint 2": "eslint ended with exit code 2: it could not do its work",
            "tsc 3": "tsc ended with exit code 3: the project is invalid",
            "tsc 4": "tsc ended with exit code 4: project references form a circle",
        }
    )


@pytest.mark.req("P9")
def test_without_a_report_the_command_itself_is_the_one_thing() -> None:
    assert told(read_report(F.EXIT, None, exit_code=0, root="")) == ["passed: exit"]
    assert told(read_report(F.EXIT, b"x", exit_code=3, root="", tests=True)) == ["failed: exit"]
    assert told(read_report(F.EXIT, None, exit_code=None, root="")) == ["problem: the command did not end by itself"]
    assert told(read_report(F.EXIT, None, exit_code=127, root="")) == snapshot(
        ["problem: exit code 127: a program it needs could not be started"]
    )


@pytest.mark.req("P9")
def test_things_that_are_no_tests_may_be_none_at_all() -> None:
    text = b"<testsuite/>"
    assert read_report(F.JUNIT, text, exit_code=0, root="", tests=False).problems == ()
    assert read_report(F.JUNIT, text, exit_code=0, root="", tests=True).problems == ("no test was collected",)
    assert read_report(F.RUFF, b"[]", exit_code=0, root="", tests=True).problems == ("no test was collected",)


@pytest.mark.req("P9", "X1")
def test_why_nothing_ran_is_told_before_that_nothing_ran() -> None:
    assert report("pytest-none.xml", exit_code=4).problems == snapshot(
        (
            "pytest ended with exit code 4: it was called wrongly, or what it was asked for is not there",
            "no test was collected",
        )
    )


@pytest.mark.req("P9")
@pytest.mark.parametrize("name", list(REAL))
def test_ids_are_the_same_in_every_checkout(name: str) -> None:
    format, code, folder = REAL[name]
    content = (SAMPLES / name).read_bytes()
    elsewhere = content.replace(folder.encode(), b"/another/place (1)/x")
    moved = read_report(format, elsewhere, exit_code=code, root="/another/place (1)/x/")
    assert [item.id for item in moved.items] == [item.id for item in report(name).items]
    assert not any("/tmp/gen" in item.id for item in report(name).items)


@pytest.mark.req("P9")
def test_only_the_root_itself_is_taken_out_of_texts() -> None:
    text = (
        "/work/tree/a.py:1:1: E1 in /work/tree/b and /work/tree, not /work/tree2/c or /x/work/tree/d\n"
        "./b.py:1:1: E1 file:///work/tree/e\n"
    )
    assert told(read(F.FLAKE8, text, 1)) == snapshot(
        ["failed: a.py:E1:in b and ., not /work/tree2/c or /x/work/tree/d", "failed: b.py:E1:e"]
    )
    assert told(read(F.FLAKE8, "./b.py:1:1: E1 in ./c\n", 1, root=".")) == ["failed: b.py:E1:in ./c"]


@pytest.mark.req("P9")
def test_more_things_than_are_read_is_a_problem() -> None:
    lines = "a.py:1:1: E1 x\n" * 200_001
    assert told(read(F.FLAKE8, lines, 1)) == ["problem: the report holds more than the 200000 things that are read"]


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    ("format", "text"),
    [
        (F.TAP, "1..200001\n" + "ok\n" * 200_002),
        (F.CARGO, "running 200001 tests\n" + "".join(f"test t{n} ... ok\n" for n in range(200_002))),
        (
            F.UNITTEST,
            "".join(f"t{n} (m.C) ... ok\n" for n in range(200_002)) + f"\n{'-' * 70}\nRan 200002 tests in 1s\n\nOK\n",
        ),
        (
            F.GO_TEST,
            "".join(f'{{"Action":"pass","Package":"p","Test":"T{n}"}}\n' for n in range(200_002)),
        ),
    ],
)
def test_readers_stop_at_more_things_than_are_read(format: ReportFormat, text: str) -> None:
    assert any("200000" in problem for problem in read(format, text).problems)
