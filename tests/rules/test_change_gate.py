"""The gate of `fairwitness verify`: what opens it, what shuts it, and what may be overlooked."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.evidence import CheckRow, Phase, SandboxTier, Tally
from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.verify.report import ChangeRequirements, CheckWithoutEvidence, RequiredCheck
from fairwitness.contracts.verify.results import Evidence, Ran
from fairwitness.rules.change_gate import change_holds, is_excused
from rules.build import OTHER_TREE, QUERY, TREE, claimed, failed, nothing, observed, row

TESTS = RequiredCheck(name="tests", instance="pytest")


def tally(*rows: CheckRow) -> Tally:
    return Tally(query=QUERY, rows=rows)


def base(name: str, *, passed: bool = True, instance: str | None = "pytest") -> CheckRow:
    make = row if passed else failed
    return make(f"baseline-{name}", phase=Phase.BASELINE, round=0, instance=instance, tree=OTHER_TREE)


def ask(
    *rows: CheckRow, before: tuple[CheckRow, ...] = (), silent: tuple[CheckWithoutEvidence, ...] = ()
) -> Open | Blocked:
    asked = ChangeRequirements(tree=TREE, required=(TESTS,), silent=silent)
    return change_holds(tally(*rows), baseline=tally(*before), asked=asked)


def missing(answer: Open | Blocked) -> tuple[str, ...]:
    assert isinstance(answer, Blocked)
    return answer.missing


@pytest.mark.req("X5")
def test_a_passing_required_check_opens_the_gate() -> None:
    passing = row("tests", instance="pytest")
    answer = ask(passing, observed("regressions", True, instance="pytest"), before=(base("tests"),))
    assert isinstance(answer, Open)
    assert (answer.count, answer.threshold) == (1, 1)
    assert passing.id in answer.evidence


@pytest.mark.req("X5")
def test_without_a_required_check_nothing_is_proven() -> None:
    answer = change_holds(
        tally(row("lint", instance="ruff")),
        baseline=tally(),
        asked=ChangeRequirements(tree=TREE, required=(), silent=()),
    )
    assert missing(answer) == ("a check that must pass (no tests were found, and fairwitness.toml names none)",)


@pytest.mark.req("P9")
def test_a_base_that_was_red_blocks_no_good_work_and_hides_no_bad_work() -> None:
    red = failed("tests", instance="pytest")
    before = (base("tests", passed=False),)
    assert isinstance(ask(red, observed("regressions", True, instance="pytest"), before=before), Open)
    assert missing(ask(red, observed("regressions", False, instance="pytest"), before=before)) == (
        "regressions pytest (failed)",
        "tests pytest (red before too, and not compared thing by thing)",
    )
    assert missing(ask(red, before=before)) == ("tests pytest (red before too, and not compared thing by thing)",)
    of_another = observed("regressions", True, instance="api/pytest")
    assert missing(ask(red, of_another, before=before)) == (
        "tests pytest (red before too, and not compared thing by thing)",
    )


@pytest.mark.req("P9")
def test_the_baseline_of_another_project_excuses_nothing() -> None:
    answer = ask(failed("tests", instance="pytest"), before=(base("tests", passed=False, instance="api/pytest"),))
    assert missing(answer) == ("tests pytest (failed)",)


CASES = {
    "passed": (row("tests", instance="pytest"),),
    "broke": (failed("tests", instance="pytest"),),
    "timed out": (nothing("tests", Assessment.TIMEOUT, instance="pytest"),),
    "lost its sandbox": (nothing("tests", Assessment.LOST, instance="pytest"),),
    "contradicted itself": (nothing("tests", Assessment.VIOLATION, instance="pytest"),),
    "has no result": (nothing("tests", None, instance="pytest"),),
    "ran unconfined": (row("tests", instance="pytest", sandbox=SandboxTier.NONE),),
    "ran on another tree": (row("tests", instance="pytest", tree=OTHER_TREE),),
    "was only claimed": (claimed("tests", True, instance="pytest"),),
    "was only observed": (observed("tests", True, instance="pytest"),),
    "was not run": (),
    "passed, a linter broke": (row("tests", instance="pytest"), failed("lint", instance="ruff")),
    "passed, a test vanished": (row("tests", instance="pytest"), observed("test-drift", False)),
    "passed, an oracle was edited": (row("tests", instance="pytest"), observed("oracle-files", False)),
    "passed, new tests are vacuous": (row("tests", instance="pytest"), observed("tests-vacuous", False)),
    "passed, a linter timed out": (row("tests", instance="pytest"), nothing("lint", Assessment.TIMEOUT)),
    "passed, an unknown check says no": (row("tests", instance="pytest"), observed("line-budget", False)),
    "passed, an unknown check says yes": (row("tests", instance="pytest"), observed("line-budget", True)),
}


def test_the_whole_table() -> None:
    def told(answer: Open | Blocked) -> str:
        return "open" if isinstance(answer, Open) else f"{answer.because}: {'; '.join(answer.missing)}"

    before = (base("tests"), base("lint", instance="ruff"))
    assert {name: told(ask(*rows, before=before)) for name, rows in CASES.items()} == snapshot(
        {
            "passed": "open",
            "broke": "1 check says no: tests pytest (regressed)",
            "timed out": "1 is missing: tests pytest (no evidence: timeout)",
            "lost its sandbox": "1 is missing: tests pytest (no evidence: lost)",
            "contradicted itself": "1 is missing: tests pytest (no evidence: violation)",
            "has no result": "1 is missing: tests pytest (no evidence)",
            "ran unconfined": "1 is missing: tests pytest (ran outside a sandbox)",
            "ran on another tree": "1 is missing: tests pytest (stale: tree changed)",
            "was only claimed": "1 is missing: tests pytest (not run)",
            "was only observed": "1 is missing: tests pytest (not run)",
            "was not run": "1 is missing: tests pytest (not run)",
            "passed, a linter broke": "1 check says no: lint ruff (regressed)",
            "passed, a test vanished": "1 needs a person's decision: test-drift (needs a person)",
            "passed, an oracle was edited": "1 needs a person's decision: oracle-files (needs a person)",
            "passed, new tests are vacuous": "1 check says no: tests-vacuous (failed)",
            "passed, a linter timed out": "1 is missing: lint (no evidence: timeout)",
            "passed, an unknown check says no": "1 check says no: line-budget (failed)",
            "passed, an unknown check says yes": "open",
        }
    )


@pytest.mark.req("X5")
@pytest.mark.parametrize("excused", [True, False])
def test_a_check_that_gave_no_evidence_is_missing_unless_excused(excused: bool) -> None:
    silent = CheckWithoutEvidence(name="lint", instance="ruff", reason="ruff is not installed", excused=excused)
    answer = ask(row("tests", instance="pytest"), silent=(silent,))
    assert isinstance(answer, Open) is excused
    lost = nothing("lint", Assessment.LOST, instance="ruff")
    assert isinstance(ask(row("tests", instance="pytest"), lost, silent=(silent,)), Open) is excused
    if not excused:
        assert missing(answer) == ("lint ruff (no evidence: ruff is not installed)",)


def test_a_required_check_says_why_it_is_silent() -> None:
    silent = CheckWithoutEvidence(name="tests", instance="pytest", reason="pytest is not installed", excused=False)
    assert missing(ask(silent=(silent,))) == ("tests pytest (no evidence: pytest is not installed)",)


def ran(evidence: Evidence, reason: str | None = None, environmental: bool = False) -> Ran:
    return Ran(check="ruff", evidence=evidence, reason=reason, environmental=environmental, assessment=None)


@pytest.mark.req("X5")
def test_only_a_supporting_check_that_the_machine_never_let_us_run_is_excused() -> None:
    runs = {
        "passed": ran(Evidence.PASSED),
        "not installed": ran(Evidence.NONE, "ruff is not installed", True),
        "another reason": ran(Evidence.NONE, "no network", True),
        "its own fault": ran(Evidence.NONE, "ruff is not installed", False),
        "no run": None,
    }
    excused = {
        (before, after)
        for (before, first), (after, second) in product(runs.items(), runs.items())
        if second is not None and is_excused(required=False, strict=False, before=first, after=second)
    }
    assert excused == {("not installed", "not installed"), ("another reason", "another reason")}
    never = runs["not installed"]
    assert never is not None
    assert not is_excused(required=True, strict=False, before=never, after=never)
    assert not is_excused(required=False, strict=True, before=never, after=never)


@given(st.lists(st.sampled_from([each for rows in CASES.values() for each in rows])), st.booleans())
def test_more_bad_rows_never_open_a_shut_gate(rows: list[CheckRow], is_first: bool) -> None:
    bad = observed("test-drift", False)
    assert isinstance(ask(*((bad, *rows) if is_first else (*rows, bad))), Blocked)
