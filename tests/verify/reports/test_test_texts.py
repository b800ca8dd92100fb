"""Test runners that report in text: TAP, cargo, unittest, and the events of go."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.verify.checks import ReportFormat
from verify.reports.reading import places, read, report, told

TAP, CARGO, GO, UNITTEST = ReportFormat.TAP, ReportFormat.CARGO, ReportFormat.GO_TEST, ReportFormat.UNITTEST
RESULT = "test result: ok. {} passed; {} failed; 0 ignored; 0 measured; 0 filtered out\n"


@pytest.mark.req("P9")
def test_tap_of_node_has_subtests_under_their_parents_and_places() -> None:
    assert told(report("node-many.tap")) == snapshot(
        [
            "passed: adds",
            "failed: fails",
            "skipped: skipped",
            "xfailed: todo fails",
            "skipped: todo passes",
            "passed: with # hash and \\ back",
            "passed: same",
            "passed: same#2",
            "passed: suite > inner",
            "failed: suite > inner fails",
            "passed: suite > deeper > leaf",
            "passed: suite > deeper",
            "failed: suite",
            "passed: parent > sub one",
            "failed: parent > sub two",
            "failed: parent",
            "passed: adds#2",
            "error: test/c.test.js",
        ]
    )
    assert places(report("node-many.tap"))[0] == snapshot("test/a.test.js:4: 1 == 2")
    assert report("node-many.tap", old="# tests 16", new="# tests 15").problems == snapshot(
        ("the report counts 15 tests and 2 suites, but contains 18",)
    )


@pytest.mark.req("P9")
def test_tap_14_of_tape_and_of_ava_are_read() -> None:
    assert told(report("subtests-14.tap")) == snapshot(
        [
            "passed: outer > first",
            "failed: outer > second",
            "failed: outer",
            "passed: buffered > inside",
            "passed: buffered",
            "skipped: skipped",
            "xfailed: known",
        ]
    )
    assert told(report("tape-many.tap")) == snapshot(
        ["passed: one is one", "failed: one is two", "passed: should be truthy"]
    )
    assert told(report("ava-many.tap")) == snapshot(
        ["skipped: later", "xfailed: some day", "passed: ok", "failed: bad", "passed: known"]
    )


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1..2\nok 1\n", "the tests: the plan is 2, but there are 1"),
        ("1..1\nok 1\nok 2\n", "the tests: the plan is 1, but there are 2"),
        ("ok 1\n", "the tests: there is no plan, so nobody knows whether all of them are there"),
        ("1..1\n1..1\nok 1\n", "a plan appears twice"),
        ("1..2\nok 1\nBail out! no disk\n", "the run was given up: no disk"),
        ("1..1\nok 1\nBail out!\n", "the run was given up: no reason"),
        ("1..0 # SKIP not here\n", "all tests are skipped: not here"),
        ("1..1\n    ok 1 - lost\n    1..1\nok 1\n    ok 1 - more\n", "there are subtests whose test is not there"),
        ("1..1\n    ok 1 - a\nok 1 - outer\n", "the subtests of 'outer': there is no plan"),
        ("1..1\n        ok 1 - deep\nok 1 - outer\n", "subtests of 'outer' belong to no test"),
        ("1..1\nok 1 - a\n  ---\n  x: 1\n", "a block in it has no end"),
        ("1..1\nok 1 - a {\n    ok 1 - b\n    1..1\n", "a block in it has no end"),
        ("hello\n", "there is no TAP in the report"),
    ],
)
def test_tap_that_is_not_whole_is_a_problem(text: str, problem: str) -> None:
    assert problem in " | ".join(read(TAP, text).problems)


@pytest.mark.req("P9")
def test_tap_names_are_unescaped_and_numbers_stand_in_for_missing_ones() -> None:
    text = "1..5\nok 1 - a \\# b\nok 2\nok\nnot ok 4 - c # skip\nok 5 - }\n}\n" + " " * 400 + "ok 9\n"
    assert told(read(TAP, text, 1)) == snapshot(
        ["passed: a # b", "passed: (test 2)", "passed: (test without a number)", "failed: c", "passed: }"]
    )


@pytest.mark.req("P9")
def test_cargo_has_binaries_doc_tests_and_what_was_ignored() -> None:
    assert told(report("cargo-many.txt")) == snapshot(
        [
            "passed: tests::adds",
            "failed: tests::bad",
            "passed: tests::deep::inner",
            "skipped: tests::net",
            "passed: tests::panics",
            "failed: tests::panics_not",
            "skipped: tests::slow",
            "failed: bad",
            "passed: whole",
            "passed: src/lib.rs - add",
            "skipped: src/lib.rs - add#2",
            "passed: src/lib.rs - add - compile",
        ]
    )
    messages = {item.id: item.message for item in report("cargo-many.txt").items}
    assert messages["tests::panics_not"] == "note: test did not panic as expected at src/lib.rs:20:48"
    assert messages["bad"] == "thread 'bad' (12169) panicked at tests/integration.rs:2:20: no"
    assert told(report("cargo-both.txt")) == snapshot(
        [
            "passed: thing: src/lib.rs::tests::adds",
            "passed: thing: src/lib.rs::tests::bad",
            "passed: thing: src/lib.rs::tests::deep::inner",
            "skipped: thing: src/lib.rs::tests::net",
            "passed: thing: src/lib.rs::tests::panics",
            "passed: thing: src/lib.rs::tests::panics_not",
            "skipped: thing: src/lib.rs::tests::slow",
            "passed: integration: tests/integration.rs::bad",
            "passed: integration: tests/integration.rs::whole",
            "passed: thing: doc tests::src/lib.rs - add",
            "skipped: thing: doc tests::src/lib.rs - add#2",
            "passed: thing: doc tests::src/lib.rs - add - compile",
        ]
    )


@pytest.mark.req("P9", "X1")
def test_code_that_does_not_compile_is_no_evidence_and_no_test() -> None:
    assert told(report("cargo-compile.txt")) == snapshot(
        [
            "problem: it could not be built: this file contains an unclosed delimiter",
            "problem: the exit code is 101, but nothing in the report failed",
            "problem: no test was collected",
        ]
    )


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("running 2 tests\ntest a ... ok\n", "did not come to their end"),
        ("running 1 test\ntest a ... ok\nrunning 1 test\ntest b ... ok\n", "did not come to their end"),
        (
            "running 2 tests\ntest a ... ok\n\n" + RESULT.format(1, 0),
            "2 tests were to run in a test binary, but 1 ended",
        ),
        (
            "running 1 test\ntest a ... ok\n" + RESULT.format(2, 0),
            "totals do not fit the tests of a test binary",
        ),
        (
            "running 1 test\ntest a ... FAILED\n" + RESULT.format(0, 1),
            "totals do not fit",
        ),
        (
            RESULT.format(2, 0),
            "totals stand twice for one test binary",
        ),
        ("running 2 tests\ntest a ... ok\ntest a ... ok\n", "a ended twice"),
    ],
)
def test_cargo_that_does_not_add_up_is_a_problem(text: str, problem: str) -> None:
    assert problem in " | ".join(read(CARGO, text).problems)


@pytest.mark.req("P9")
def test_a_benchmark_of_cargo_passes_when_it_ran() -> None:
    text = (
        "running 1 test\ntest b ... bench:          12 ns/iter (+/- 1)\n\n"
        "test result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out; finished in 0.1s\n"
    )
    assert told(read(CARGO, text)) == ["passed: b"]


@pytest.mark.req("P9")
@pytest.mark.parametrize("version", ["3.8", "3.11", "3.12"])
def test_every_version_of_unittest_says_the_same(version: str) -> None:
    found = report(f"unittest-{version}.txt")
    assert told(found) == snapshot(
        [
            "skipped: ut.Skipped.test_a",
            "failed: ut.Sums.test_bad",
            "passed: ut.Sums.test_documented",
            "error: ut.Sums.test_error",
            "xfailed: ut.Sums.test_known",
            "passed: ut.Sums.test_ok",
            "passed: ut.Sums.test_prints",
            "skipped: ut.Sums.test_skip",
            "failed: ut.Sums.test_sub",
            "skipped: ut.Sums.test_subskip",
            "failed: ut.Sums.test_surprise",
            "error: ut.Fixture",
        ]
    )
    assert places(found)[1] == snapshot("None:None: AssertionError: 1 != 2")


@pytest.mark.req("P9")
def test_a_module_that_unittest_cannot_import_is_an_error_of_that_module() -> None:
    assert told(report("unittest-load.txt")) == snapshot(["error: test_bad", "passed: test_good.T.test_a"])
    assert told(report("unittest-green.txt")) == snapshot(["passed: u2.test_good.T.test_a"])


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Ran 11 tests", "Ran 12 tests", "the report says that 12 tests ran, but 11 began"),
        ("failures=2", "failures=1", "the report says failures=1, but lists 2"),
        ("errors=2", "errors=0", "the report says errors=0, but lists 2"),
        ("skipped=4", "skipped=3", "the report says skipped=3, but lists 4"),
        ("FAILED (", "OK (", "the report ends with OK, but 5 failed"),
        ("test_ok (ut.Sums.test_ok) ... ok\n", "", "the report says that 11 tests ran, but 10 began"),
        (
            "test_ok (ut.Sums.test_ok) ... ok\n",
            "test_ok (ut.Sums.test_ok) ... \n",
            "tests began and did not end: ut.Sums.test_ok",
        ),
        ("test_bad (ut.Sums.test_bad) ... FAIL\n", "", "ut.Sums.test_bad failed, but never began"),
        ("Ran 11 tests in 0.001s", "", "there is no `Ran … tests` at its end"),
    ],
)
def test_unittest_that_does_not_add_up_is_a_problem(old: str, new: str, problem: str) -> None:
    assert problem in " | ".join(report("unittest-3.11.txt", old=old, new=new).problems)


@pytest.mark.req("P9")
@pytest.mark.parametrize(("word", "code"), [("OK", 0), ("NO TESTS RAN", 5)])
def test_unittest_without_tests_is_a_problem(word: str, code: int) -> None:
    text = f"\n{'-' * 70}\nRan 0 tests in 0.000s\n\n{word}\n"
    assert read(UNITTEST, text, code).problems == ("no test was collected",)


@pytest.mark.req("P9")
def test_go_has_tests_by_package_and_packages_that_do_not_build() -> None:
    assert told(report("go-many.jsonl")) == snapshot(
        [
            "passed: example.com/sum::TestAdds",
            "failed: example.com/sum::TestTable",
            "failed: example.com/sum::TestTable/one",
            "skipped: example.com/sum::TestLater",
            "error: example.com/sum/broken",
        ]
    )


def _go(*events: str) -> str:
    return "".join("{" + event + "}\n" for event in events)


START, RUN = '"Action":"start","Package":"p"', '"Action":"run","Package":"p","Test":"T"'
PASS, FAIL = '"Action":"pass","Package":"p"', '"Action":"fail","Package":"p"'
T_PASS, T_FAIL = PASS + ',"Test":"T"', FAIL + ',"Test":"T"'


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (_go(START, RUN, T_PASS), "the package p has no end"),
        (_go(RUN, T_PASS), "the package p has no end"),
        (_go(START, RUN, PASS), "tests began and did not end: T"),
        (_go(START, RUN, T_FAIL, PASS), "T failed, but its package p did not"),
        (_go(START, RUN, T_PASS, T_PASS, PASS), "p T ended twice"),
        (_go(RUN, T_PASS, PASS).rstrip("\n"), "its last line has no end"),
        (_go(START, '"Action":"dance","Package":"p"', PASS), "an event of the unknown kind 'dance'"),
        (_go('"Action":"run"'), "an event 'run' names no package"),
        ("hello\n", "line 1 is no event of go test"),
        ('{"Action":1}\n', "line 1 is no event of go test: Action: input should be a valid string"),
        (_go(START, PASS), "no test was collected"),
    ],
)
def test_events_of_go_that_do_not_add_up_are_a_problem(text: str, problem: str) -> None:
    assert problem in " | ".join(read(GO, text).problems)


@pytest.mark.req("P9")
def test_a_test_that_took_its_package_of_go_down_is_an_error() -> None:
    assert told(read(GO, _go(START, RUN, FAIL), 1)) == ["error: p", "error: p::T"]
    assert told(read(GO, "FAIL\tp/q [build failed]\n", 2)) == ["error: p/q"]
