"""A walkthrough is a claim: what it says of files and tests is held against what the harness saw."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.forge.documents import TestResult, Walkthrough
from fairwitness.rules.claims import DOUBTFUL, SeenAttempt, differences, is_doubtful, trace_of
from support.fixtures import value_of


def _said(files: tuple[str, ...] = (), tests: dict[str, TestResult] | None = None, **more: Any) -> Walkthrough:
    value = value_of("004/walkthrough.md")
    value["files_changed"] = [{"path": path, "reason": "it had to"} for path in files]
    value.pop("tests", None)
    if tests is not None:
        value["tests"] = [{"name": name, "result": result.value} for name, result in tests.items()]
    return Walkthrough.model_validate(value | more)


PASS, FAIL, SKIP, ERROR = TestResult.PASS, TestResult.FAIL, TestResult.SKIP, TestResult.ERROR


@pytest.mark.req("F2")
def test_what_is_told_as_it_was_seen_differs_in_nothing() -> None:
    assert differences(_said(("a.py", "b.py"), {"tests": PASS}), SeenAttempt({"b.py", "a.py"})) == ()
    assert differences(_said(), SeenAttempt(())) == ()


@pytest.mark.req("F2")
def test_files_that_were_invented_and_files_that_were_kept_quiet_are_named() -> None:
    assert differences(_said(("a.py", "z.py", "y.py")), SeenAttempt(["a.py", "c.py"])) == snapshot(
        (
            "the walkthrough names files that did not change: y.py, z.py",
            "files changed that the walkthrough does not name: c.py",
        )
    )


@pytest.mark.req("F2")
def test_of_many_files_the_first_are_named_and_the_others_counted() -> None:
    many = [f"f{number}.py" for number in range(9)]
    assert differences(_said(), SeenAttempt(many[:5])) == snapshot(
        ("files changed that the walkthrough does not name: f0.py, f1.py, f2.py, f3.py, f4.py",)
    )
    assert differences(_said(), SeenAttempt(many)) == snapshot(
        ("files changed that the walkthrough does not name: f0.py, f1.py, f2.py, f3.py, f4.py and 4 more",)
    )


@pytest.mark.req("F2")
def test_the_whole_table_of_what_is_claimed_of_tests_while_the_harness_saw_red() -> None:
    cases: dict[str, dict[str, TestResult] | None] = {
        "nothing": None,
        "no test": {},
        **{result.value: {"t1": result} for result in TestResult},
        **{
            f"{one.value} and {other.value}": {"t1": one, "t2": other}
            for one, other in product(TestResult, TestResult)
            if list(TestResult).index(one) < list(TestResult).index(other)
        },
    }
    table = {
        name: differences(_said(tests=tests), SeenAttempt((), red={"unit", "lint"})) for name, tests in cases.items()
    }
    disputed = "the walkthrough says that t1 pass; lint, unit failed when Fair Witness ran them"
    assert {name: bool(found) for name, found in table.items()} == snapshot(
        {
            "nothing": False,
            "no test": False,
            "pass": True,
            "fail": False,
            "skip": False,
            "error": False,
            "pass and fail": False,
            "pass and skip": True,
            "pass and error": False,
            "fail and skip": False,
            "fail and error": False,
            "skip and error": False,
        }
    )
    assert {line for found in table.values() for line in found} == {disputed}


PATHS = st.sets(st.sampled_from(["a.py", "b.py", "src/c.py", "d.md", "e", "f", "g"]))


@pytest.mark.req("F2")
@settings(max_examples=100)
@given(PATHS, PATHS, st.booleans(), st.booleans())
def test_there_is_a_difference_exactly_if_files_differ_or_a_claimed_green_was_red(
    told: set[str], changed: set[str], is_green: bool, is_red: bool
) -> None:
    said = _said(tuple(sorted(told)), {"unit": PASS if is_green else FAIL})
    found = differences(said, SeenAttempt(changed, red={"tests"} if is_red else ()))
    assert len(found) == bool(told - changed) + bool(changed - told) + (is_green and is_red)
    assert found == differences(said, SeenAttempt(sorted(changed, reverse=True), red=["tests"] if is_red else []))
    assert all(line and "\n" not in line for line in found)


@pytest.mark.req("F2")
@pytest.mark.parametrize(("confidence", "doubtful"), [(0.0, True), (0.59, True), (DOUBTFUL, False), (1.0, False)])
def test_a_worker_below_six_tenths_is_doubtful(confidence: float, doubtful: bool) -> None:
    assert DOUBTFUL == 0.6
    assert is_doubtful(_said(confidence=confidence)) is doubtful


@pytest.mark.req("F2")
def test_files_that_were_in_conflict_may_be_named_or_not() -> None:
    seen = SeenAttempt(["a.py", "b.py"], settled=["b.py", "c.py"])
    assert differences(_said(("a.py",)), seen) == ()
    assert differences(_said(("a.py", "b.py", "c.py")), seen) == ()
    assert differences(_said(), seen) == ("files changed that the walkthrough does not name: a.py",)


@pytest.mark.req("F2", "X1")
def test_a_test_that_no_file_has_is_invented_though_everything_is_green() -> None:
    said = _said(tests={"t.py::test_a": PASS, "test_b": FAIL, "the whole suite": PASS})
    assert differences(said, SeenAttempt(())) == ()
    assert differences(said, SeenAttempt((), absent={"test_a", "test_b"})) == (
        "the walkthrough tells of tests that do not exist: t.py::test_a, test_b",
    )


@pytest.mark.parametrize(
    ("name", "trace"),
    [
        ("tests/test_a.py::TestB::test_c[x y-1]", "test_c"),
        ("`test_money`", "test_money"),
        ("test_money()", "test_money"),
        ("till.tests.Money.test_sum", "test_sum"),
        ("money::tests::it_adds", "it_adds"),
        ("TestMoney/empty", "TestMoney"),
        ("testAdds", "testAdds"),
        ("money_test", "money_test"),
        ("tests/test_a.py", None),
        ("test_money.js", None),
        ("money_test.go", None),
        ("pytest", None),
        ("tests", None),
        ("sh check.sh", None),
        ("money::adds numbers", None),
        ("all tests of test_money", None),
    ],
)
def test_a_claim_names_a_single_test_or_none(name: str, trace: str | None) -> None:
    assert trace_of(name) == trace
