"""JUnit XML of every writer we meet: ids, outcomes and totals, on real reports."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.verify.checks import ReportFormat
from fairwitness.contracts.verify.results import ItemOutcome
from verify.reports.reading import places, read, report, told

J = ReportFormat.JUNIT
CASE = '<testcase classname="a" name="b"/>'


@pytest.mark.req("P9", "X1")
def test_a_pytest_report_gives_the_node_ids_of_pytest() -> None:
    found = report("pytest-many.xml")
    assert told(found) == snapshot(
        [
            "skipped: tests/test_skipped_whole.py",
            "passed: tests/unit/test_many.py::TestShape::test_inherited",
            "passed: tests/unit/test_many.py::TestShape::TestInner::test_deep[1]",
            "passed: tests/unit/test_many.py::TestShape::TestInner::test_deep[x::y]",
            "passed: tests/unit/test_many.py::TestShape::TestInner::test_deep[a/b.py]",
            "passed: tests/unit/test_many.py::TestShape::TestInner::test_deep[\\xe9 \\xfc]",
            "passed: tests/unit/test_many.py::TestShape::TestInner::test_deep[[x]]",
            "passed: tests/unit/test_many.py::TestShape::TestInner::test_deep[a\\nb]",
            "failed: tests/unit/test_many.py::TestShape::test_bad",
            "xfailed: tests/unit/test_many.py::OldStyle::test_expected",
            "passed: tests/unit/test_many.py::OldStyle::test_old",
            "failed: tests/unit/test_many.py::OldStyle::test_sub",
            "failed: tests/unit/test_many.py::OldStyle::test_unexpected",
            "error: tests/unit/test_many.py::test_setup",
            "error: tests/unit/test_many.py::test_teardown",
            "failed: tests/unit/test_many.py::test_twice",
            "skipped: tests/unit/test_many.py::test_skipped",
            "xfailed: tests/unit/test_many.py::test_known",
            "failed: tests/unit/test_many.py::test_strict",
            "passed: tests/unit/test_many.py::test_lenient",
            "failed: tests/unit/test_many.py::test_subtests",
            "passed: pkg/mod.py::mod.add",
        ]
    )
    assert places(found)[1:4] == snapshot(
        ["tests/unit/test_many.py:None: ", "tests/unit/test_many.py:7: ", "tests/unit/test_many.py:7: "]
    )


@pytest.mark.req("P9")
def test_a_file_that_pytest_cannot_collect_is_an_error_of_that_file() -> None:
    assert told(report("pytest-continue.xml")) == snapshot(
        ["error: tests/test_broken.py", "passed: tests/unit/test_many.py::OldStyle::test_old"]
    )
    assert places(report("pytest-continue.xml"))[0] == snapshot(
        "tests/test_broken.py:None: collection failure: ModuleNotFoundError: No module named 'nothing_of_the_kind'"
    )


@pytest.mark.req("P9", "X1")
def test_a_collection_that_stopped_everything_is_no_evidence() -> None:
    assert told(report("pytest-collect.xml")) == snapshot(
        [
            "error: tests/test_broken.py",
            "skipped: tests/test_skipped_whole.py",
            "problem: pytest ended with exit code 2: it was interrupted, or gave up at a file it cannot collect",
        ]
    )


@pytest.mark.req("P9")
def test_without_files_pytest_ids_keep_their_dots() -> None:
    assert told(report("pytest-xunit2.xml")) == snapshot(
        [
            "passed: tests.unit.test_many.TestShape::test_inherited",
            "passed: tests.unit.test_many.TestShape.TestInner::test_deep[1]",
            "passed: tests.unit.test_many.TestShape.TestInner::test_deep[x::y]",
            "passed: tests.unit.test_many.TestShape.TestInner::test_deep[a/b.py]",
            "passed: tests.unit.test_many.TestShape.TestInner::test_deep[\\xe9 \\xfc]",
            "passed: tests.unit.test_many.TestShape.TestInner::test_deep[[x]]",
            "passed: tests.unit.test_many.TestShape.TestInner::test_deep[a\\nb]",
            "failed: tests.unit.test_many.TestShape::test_bad",
            "xfailed: tests.unit.test_many.OldStyle::test_expected",
            "passed: tests.unit.test_many.OldStyle::test_old",
            "failed: tests.unit.test_many.OldStyle::test_sub",
            "failed: tests.unit.test_many.OldStyle::test_unexpected",
            "error: tests.unit.test_many::test_setup",
            "error: tests.unit.test_many::test_teardown",
            "failed: tests.unit.test_many::test_twice",
            "skipped: tests.unit.test_many::test_skipped",
            "xfailed: tests.unit.test_many::test_known",
            "failed: tests.unit.test_many::test_strict",
            "passed: tests.unit.test_many::test_lenient",
            "failed: tests.unit.test_many::test_subtests",
        ]
    )


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("name", ["pytest-none.xml", "ctest-none.xml", "vitest-none.xml", "jest-none.json"])
def test_a_run_without_tests_is_a_problem_in_the_same_words(name: str) -> None:
    found = report(name)
    assert (found.items, found.problems) == ((), ("no test was collected",))


@pytest.mark.req("P9")
@pytest.mark.parametrize("code", [0, 1, 3, 4])
def test_a_run_without_tests_is_a_problem_with_every_exit_code(code: int) -> None:
    assert "no test was collected" in report("pytest-none.xml", exit_code=code).problems


@pytest.mark.req("P9")
def test_nodes_own_report_has_suites_in_its_ids_and_totals_in_its_comments() -> None:
    assert told(report("node-many.xml")) == snapshot(
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
            "passed: parent > sub one",
            "failed: parent > sub two",
            "passed: adds#2",
            "error: test/c.test.js",
        ]
    )
    assert told(report("node-green.xml")) == ["passed: adds"]
    torn = report("node-many.xml", old="tests 16", new="tests 17")
    assert torn.problems == snapshot(("the report counts 17 tests and 2 suites, but contains 18",))
    assert report("node-many.xml", old="fail 5", new="fail 0").problems == snapshot(
        ("the report counts 0 failed tests, but contains 4",)
    )
    assert report("node-green.xml", old="fail 0", new="fail 1").problems == snapshot(
        ("the report counts 1 failed tests, but contains 0",)
    )


@pytest.mark.req("P9")
def test_our_reporter_for_node_names_files() -> None:
    assert told(report("node-ours.xml")) == snapshot(
        [
            "passed: test/a.test.js::adds",
            "failed: test/a.test.js::fails",
            "skipped: test/a.test.js::skipped",
            "xfailed: test/a.test.js::todo fails",
            "skipped: test/a.test.js::todo passes",
            "passed: test/a.test.js::with # hash and \\ back",
            "passed: test/a.test.js::same",
            "passed: test/a.test.js::same#2",
            "passed: test/a.test.js::suite > inner",
            "failed: test/a.test.js::suite > inner fails",
            "passed: test/a.test.js::suite > deeper > leaf",
            "passed: test/a.test.js::parent > sub one",
            "failed: test/a.test.js::parent > sub two",
            "failed: test/a.test.js::parent",
            "passed: test/b.test.js::adds",
            "error: test/c.test.js",
        ]
    )


@pytest.mark.req("P9")
def test_ctest_calls_a_missing_program_skipped_and_we_do_not() -> None:
    assert told(report("ctest-many.xml")) == snapshot(
        [
            "passed: ok",
            "failed: bad",
            "failed: crash",
            "failed: slow",
            "skipped: skipped",
            "error: missing",
            "skipped: disabled",
        ]
    )


@pytest.mark.req("P9")
def test_vitest_and_mocha_and_surefire_are_read() -> None:
    assert told(report("vitest-many.xml")) == snapshot(
        [
            "passed: t/a.test.mjs::adds",
            "failed: t/a.test.mjs::fails",
            "skipped: t/a.test.mjs::skipped",
            "skipped: t/a.test.mjs::todo",
            "passed: t/a.test.mjs::expected",
            "passed: t/a.test.mjs::suite > inner",
            "failed: t/a.test.mjs::suite > deeper > leaf",
            "passed: t/a.test.mjs::same",
            "passed: t/a.test.mjs::same#2",
            "error: t/b.test.mjs",
        ]
    )
    assert told(report("mocha-many.xml")) == snapshot(
        [
            "passed: mo/a.js::suite::ok",
            "failed: mo/a.js::suite::bad",
            "skipped: mo/a.js::suite::later",
            "skipped: mo/a.js::suite::pending",
            "passed: mo/a.js::suite deep::leaf",
            'failed: mo/a.js::hook::"before all" hook for "never"',
        ]
    )
    assert told(report("surefire-many.xml")) == snapshot(
        [
            "passed: org.example.SumTest::adds",
            "failed: org.example.SumTest::subtracts",
            "error: org.example.SumTest::divides",
            "skipped: org.example.SumTest::later",
            "passed: org.example.SumTest::each{int}[1]",
        ]
    )


@pytest.mark.req("P9")
def test_mocha_ends_with_the_number_of_failures() -> None:
    assert report("mocha-many.xml", exit_code=200).problems == ()
    assert report("vitest-many.xml", exit_code=200).problems == snapshot(
        ("exit code 200: the command was killed or could not be started",)
    )
    assert report("mocha-many.xml", old='errors="2"', new='errors="1"').problems == snapshot(
        ("the report says errors='1' for the suite 'Mocha Tests', but contains 2",)
    )
    assert report("mocha-many.xml", old='tests="5"', new='tests="9"').problems == snapshot(
        ("the report says tests='9' for the suite 'Mocha Tests', but contains 6",)
    )


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("pytest-many.xml", 'failures="7"', 'failures="6"'),
        ("pytest-many.xml", 'errors="3"', 'errors="0"'),
        ("pytest-many.xml", 'skipped="5"', 'skipped="4"'),
        ("pytest-many.xml", 'tests="30"', 'tests="21"'),
        ("pytest-many.xml", 'tests="30"', 'tests="many"'),
        ("ctest-many.xml", 'tests="7"', 'tests="8"'),
        ("ctest-many.xml", 'failures="3"', 'failures="2"'),
        ("vitest-many.xml", 'tests="10"', 'tests="11"'),
        ("surefire-many.xml", 'skipped="1"', 'skipped="0"'),
        ("node-many.xml", 'tests="3" failures="1"', 'tests="3" failures="0"'),
    ],
)
def test_a_report_whose_own_totals_disagree_is_a_problem(name: str, old: str, new: str) -> None:
    (problem,) = report(name, old=old, new=new).problems
    assert problem.startswith("the report says")


@pytest.mark.req("P9")
def test_a_test_that_failed_and_broke_in_its_teardown_is_one_test() -> None:
    assert [item.outcome for item in report("pytest-many.xml").items if item.id.endswith("test_twice")] == [
        ItemOutcome.FAILED
    ]


@pytest.mark.req("P9")
def test_equal_names_are_numbered_and_a_number_that_is_taken_is_passed_over() -> None:
    names = ("x", "x#2", "x", "x")
    cases = "".join(f'<testcase name="{name}"/>' for name in names)
    assert told(read(J, f"<testsuite>{cases}</testsuite>")) == [
        "passed: x",
        "passed: x#2",
        "passed: x#3",
        "passed: x#4",
    ]


@pytest.mark.req("P9")
def test_a_test_whose_file_no_other_case_names_is_placed_by_its_capital_letters() -> None:
    case = '<testcase classname="tests.unit.test_a.TestA.TestB" name="test_c" file="lib/base.py" line="4"/>'
    found = read(J, f'<testsuite name="pytest" tests="1">{case}</testsuite>')
    assert told(found) == ["passed: tests/unit/test_a.py::TestA::TestB::test_c"]
    assert found.items[0].line is None


@pytest.mark.req("P9")
def test_pytest_is_known_by_its_cases_when_its_suite_is_renamed() -> None:
    cases = (
        '<testcase classname="test_a" name="test_b" file="test_a.py" line="1"/>'
        '<testcase classname="data.yaml" name="case one" file="data.yaml" line="0"/>'
        '<testcase classname="" name="test_odd" file="test_a.py"/>'
        '<testcase classname="test_a" name="test_x" file="test_a.py" line="2">'
        '<skipped message="xfail-marked test passes unexpectedly"/></testcase>'
    )
    found = read(J, f'<testsuite name="mine">{cases}</testsuite>', 1)
    assert told(found) == snapshot(
        ["passed: test_a.py::test_b", "passed: data.yaml::case one", "passed: test_odd", "failed: test_a.py::test_x"]
    )


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    ("inner", "outcome"),
    [
        ("", ItemOutcome.PASSED),
        ("<failure/>", ItemOutcome.FAILED),
        ("<error/>", ItemOutcome.ERROR),
        ("<failure/><error/>", ItemOutcome.FAILED),
        ("<skipped/>", ItemOutcome.SKIPPED),
        ("<skipped/><failure/>", ItemOutcome.FAILED),
        ('<skipped type="todo"/><failure/>', ItemOutcome.XFAILED),
        ('<skipped type="pytest.xfail"/>', ItemOutcome.XFAILED),
        ("<system-out>failure</system-out><flakyFailure/>", ItemOutcome.PASSED),
    ],
)
def test_what_stands_in_a_case_is_its_outcome(inner: str, outcome: ItemOutcome) -> None:
    (item,) = read(J, f'<testsuites><testcase name="a">{inner}</testcase></testsuites>', 1).items
    assert item.outcome is outcome


@pytest.mark.req("P9")
@pytest.mark.parametrize("status", ["fail", "failed", "error"])
def test_a_case_that_calls_itself_failed_is_failed(status: str) -> None:
    assert told(read(J, f'<testsuite><testcase name="a" status="{status}"/></testsuite>', 1)) == ["failed: a"]


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<testsuite><testcase name='a'>", "torn or not XML"),
        ("<testsuite/><testsuite/>", "torn or not XML"),
        ("not xml", "torn or not XML"),
        ("<html/>", "not a JUnit report: it begins with <html>"),
        ('<!DOCTYPE x [<!ENTITY e "e">]><testsuite><testcase name="&e;"/></testsuite>', "a DOCTYPE is refused"),
        ("<!DOCTYPE testsuite SYSTEM 'file:///etc/passwd'><testsuite/>", "a DOCTYPE is refused"),
        ("<testsuite>&lol;</testsuite>", "undefined entity"),
        ("<testsuite>" * 65 + "</testsuite>" * 65, "nested deeper than 64 levels"),
        ("<testsuite><properties><testcase name='a'/></properties></testsuite>", "a testcase that stands in no suite"),
        ("<testsuite><testcase name='a'><testsuite/></testcase></testsuite>", "a suite inside <testcase>"),
    ],
)
def test_xml_that_is_torn_hostile_or_something_else_is_a_problem(text: str, reason: str) -> None:
    found = read(J, text)
    assert found.items == ()
    assert reason in found.problems[0]


@pytest.mark.req("P9")
def test_a_declared_encoding_changes_nothing() -> None:
    text = f'<?xml version="1.0" encoding="UTF-16"?><testsuite>{CASE}</testsuite>'
    assert told(read(J, text)) == ["passed: a::b"]


@pytest.mark.req("P9")
def test_terminal_codes_in_a_report_neither_break_it_nor_reach_an_id() -> None:
    failure = '<failure message="\x1b]0;x\x07a&#10;b"/>'
    text = f'<testsuite><testcase name="\x1b[31mred\u202e\x07">{failure}</testcase></testsuite>'
    (item,) = read(J, text, 1).items
    assert (item.id, item.message) == ("[31mred", "]0;xa b")


@pytest.mark.req("P9")
def test_a_test_without_a_name_is_a_problem() -> None:
    assert read(J, "<testsuite><testcase/></testsuite>").problems == ("a test has no name",)
    assert "a test has no name" in read(J, '<testsuite name="pytest"><testcase/></testsuite>').problems


@pytest.mark.req("P9")
def test_a_long_name_is_cut_and_stays_different_from_others_like_it() -> None:
    long = "n" * 3000
    cases = f'<testcase name="{long}a"/><testcase name="{long}b"/>'
    first, second = read(J, f"<testsuite>{cases}</testsuite>").items
    assert len(first.id) == len(second.id) == 1000
    assert first.id != second.id


@pytest.mark.req("P9")
def test_a_class_name_with_hundreds_of_parts_is_not_taken_apart() -> None:
    name = ".".join(["a"] * 200)
    text = f'<testsuite name="pytest"><testcase classname="{name}" name="t" file="x.py" line="1"/></testsuite>'
    assert told(read(J, text)) == [f"passed: {name}::t"]


@pytest.mark.req("P9")
def test_more_cases_or_suites_than_are_read_is_a_problem() -> None:
    assert "more than the 200000 cases" in read(J, f"<testsuite>{'<testcase/>' * 200_001}</testsuite>").problems[0]
    assert "more than the 200000 suites" in read(J, f"<testsuites>{'<testsuite/>' * 200_001}</testsuites>").problems[0]


@pytest.mark.req("P9")
def test_only_the_beginning_of_a_failures_text_is_kept() -> None:
    failure = f"<failure>{'x' * 50_000}<b>in</b>side</failure>"
    (item,) = read(J, f'<testsuite><testcase name="a">{failure}</testcase></testsuite>', 1).items
    assert item.message == "x" * 2000
