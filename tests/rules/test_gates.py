"""The six gates: what opens them, what shuts them, every trap closed, and the worth of every row in sentences."""
# the sentences of the tables stay whole

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.evidence import CheckRow, Phase, Provenance, SandboxTier, Tally
from fairwitness.contracts.common.gates import Blocked, Gate, GateAnswer, Open
from fairwitness.contracts.common.policy import Policy, ReviewPolicy, VerificationPolicy
from fairwitness.contracts.common.vocabulary import Assessment, CategoryVerdict, Risk, Size
from fairwitness.contracts.feature.facts import ChangedFile, ChangeKind
from fairwitness.contracts.feature.review import Category, Perspective, ReviewScope
from fairwitness.rules.evidence_worth import ACCEPTED_SOURCES, CHECKS, RowWorth, Voice, kind_of, latest, row_worth
from fairwitness.rules.gates import (
    baseline_exists,
    categories_covered,
    is_verified,
    majority_approves,
    no_blocker,
    reviewers_submitted,
    task_gates,
    verification_sufficient,
)
from rules.build import (
    OTHER_TREE,
    QUERY,
    TREE,
    A,
    B,
    R,
    baseline,
    claimed,
    failed,
    nothing,
    observed,
    reviewer,
    row,
    tally,
    task,
    verdict,
    votes,
)

QUICK = settings(max_examples=150)
STANDARD = Size.STANDARD


def _eg2(*rows: CheckRow, size: Size = STANDARD, iteration: int = 1, **more: object) -> Open | Blocked:
    return verification_sufficient(tally(*rows), size=size, iteration=iteration, **more)  # type: ignore[arg-type]  # a test passes the gate's own keywords through


def _missing(answer: GateAnswer) -> tuple[str, ...]:
    assert isinstance(answer, Blocked)
    return answer.missing


@pytest.mark.req("P9")
def test_enough_passing_checks_open_the_gate_and_are_named() -> None:
    rows = [row("tests", id=11), row("lint", id=7)]
    assert _eg2(*rows) == Open(gate=Gate.VERIFICATION_SUFFICIENT, evidence=(7, 11), count=2, threshold=2, query=QUERY)


@pytest.mark.req("P9")
def test_one_check_where_two_are_needed_blocks_and_says_what_is_missing() -> None:
    assert _eg2(row("tests")) == Blocked(
        gate=Gate.VERIFICATION_SUFFICIENT,
        missing=("1 more passing check",),
        because="1 of 2 checks passed",
        count=1,
        threshold=2,
        query=QUERY,
    )
    assert _missing(_eg2()) == ("2 more passing checks",)


@pytest.mark.req("P9")
def test_a_large_task_needs_three_checks_and_the_secret_scan() -> None:
    three = [row("tests"), row("lint"), row("build")]
    assert _missing(_eg2(*three, size=Size.LARGE)) == ("readiness-secrets (not run)",)
    assert isinstance(_eg2(*three, observed("readiness-secrets", True), size=Size.LARGE), Open)
    assert isinstance(_eg2(*three[:2], row("readiness-secrets"), size=Size.LARGE), Open)
    two_and_seen = _eg2(*three[:2], observed("readiness-secrets", True), size=Size.LARGE)
    assert _missing(two_and_seen) == ("1 more passing check",)
    claim = _eg2(*three, claimed("readiness-secrets", True), size=Size.LARGE)
    assert _missing(claim) == ("readiness-secrets (not run)",)
    found = _eg2(*three, observed("readiness-secrets", False), size=Size.LARGE)
    assert _missing(found) == ("readiness-secrets (failed)",)


@pytest.mark.req("P9")
def test_the_thresholds_are_settings_that_can_only_rise() -> None:
    policy = Policy(verification=VerificationPolicy(standard_checks=3, large_checks=4))
    assert _missing(_eg2(row("tests"), row("lint"), policy=policy)) == ("1 more passing check",)
    with pytest.raises(ValueError, match="greater than or equal to 2"):
        VerificationPolicy(standard_checks=1)
    with pytest.raises(ValueError, match="greater than or equal to 3"):
        VerificationPolicy(large_checks=2)


@pytest.mark.req("P9")
def test_a_failed_check_blocks_even_when_the_count_is_reached() -> None:
    answer = _eg2(row("tests"), row("lint"), failed("build"))
    assert isinstance(answer, Blocked)
    assert (answer.missing, answer.because, answer.count) == (("build (failed)",), "build (failed)", 2)


@pytest.mark.req("P9")
@pytest.mark.parametrize("assessment", [Assessment.TIMEOUT, Assessment.VIOLATION, Assessment.LOST, None])
def test_a_check_without_evidence_is_missing_even_when_the_count_is_reached(assessment: Assessment | None) -> None:
    answer = _eg2(row("tests"), row("lint"), nothing("build", assessment))
    told = assessment.value if assessment else "no result"
    assert _missing(answer) == (f"build (no evidence: {told})",)
    assert isinstance(answer, Blocked)
    assert answer.because == f"checks without evidence: build (no evidence: {told})"


@pytest.mark.req("P9")
def test_every_reason_is_told() -> None:
    few = _eg2(failed("tests"), failed("lint"), row("build"))
    assert isinstance(few, Blocked)
    assert few.because == "tests (failed), lint (failed); 1 of 2 checks passed"
    lacking = _eg2(
        row("tests"), row("lint"), nothing("build", Assessment.LOST), nothing("type-check", Assessment.TIMEOUT)
    )
    assert isinstance(lacking, Blocked)
    assert lacking.because == ("checks without evidence: build (no evidence: lost), type-check (no evidence: timeout)")


@pytest.mark.req("P9")
def test_a_row_that_contradicts_its_own_assessment_falls_to_the_failing_side() -> None:
    good = (row("tests"), row("lint"))
    assert _missing(_eg2(*good, row("build", passed=True, assessment=Assessment.FAIL))) == ("build (failed)",)
    assert _missing(_eg2(*good, row("build", passed=False, assessment=Assessment.PASS))) == ("build (failed)",)
    assert _missing(_eg2(*good, row("build", passed=True, assessment=Assessment.LOST))) == (
        "build (no evidence: lost)",
    )


@pytest.mark.req("P9")
@pytest.mark.parametrize("tier", [SandboxTier.NONE, None])
def test_what_ran_outside_a_sandbox_opens_nothing(tier: SandboxTier | None) -> None:
    assert _missing(_eg2(row("tests", sandbox=tier), row("lint"))) == (
        "tests (ran outside a sandbox)",
        "1 more passing check",
    )
    assert _missing(_eg2(failed("tests", sandbox=tier), row("lint"), row("build"))) == ("tests (failed)",)


@pytest.mark.req("P9")
def test_claims_and_sightings_never_count_and_a_sighting_that_says_no_blocks() -> None:
    good = (row("tests"), row("lint"))
    assert _missing(_eg2(claimed("tests", True), claimed("lint", True))) == ("2 more passing checks",)
    assert _missing(_eg2(observed("tests", True), observed("lint", True))) == ("2 more passing checks",)
    assert isinstance(_eg2(*good, claimed("build", False)), Open)
    assert isinstance(_eg2(*good, observed("build", True)), Open)
    for name in ("scope", "secrets", "oracle-guard", "baseline-discrepancy", "build"):
        assert _missing(_eg2(*good, observed(name, False))) == (f"{name} (failed)",)
    for name in ("test-drift", "oracle-files", "expectations"):
        assert _missing(_eg2(*good, observed(name, False))) == (f"{name} (needs a person)",)


@pytest.mark.req("P9")
def test_a_later_claim_does_not_cover_a_command_that_failed() -> None:
    rows = (row("lint"), row("build"), failed("tests"), claimed("tests", True), observed("tests", True))
    assert _missing(_eg2(*rows)) == ("tests (failed)",)


@pytest.mark.req("P9")
def test_a_revert_blocks_its_iteration_and_is_superseded_by_the_next() -> None:
    undone = observed("revert-task-01", False, round=2)
    second = [row("tests", round=2), row("lint", round=2)]
    third = [row("tests", round=3), row("lint", round=3)]
    assert _missing(_eg2(*second, undone, iteration=2)) == ("revert-task-01 (failed)",)
    assert _missing(_eg2(*second, undone, iteration=2, tree=TREE)) == ("revert-task-01 (failed)",)
    assert isinstance(_eg2(*second, undone, *third, iteration=3), Open)


@pytest.mark.req("P9")
def test_rows_of_an_earlier_iteration_neither_count_nor_block() -> None:
    assert _missing(_eg2(row("tests"), row("lint"), iteration=2)) == ("2 more passing checks",)
    fresh = [row("tests", round=2), row("lint", round=2)]
    assert isinstance(_eg2(failed("tests"), failed("build"), *fresh, iteration=2), Open)


@pytest.mark.req("P9")
def test_only_the_latest_row_of_a_check_is_heard_and_only_once() -> None:
    assert isinstance(_eg2(failed("tests", id=1), row("tests", id=2), row("lint", id=3)), Open)
    assert _missing(_eg2(row("tests", id=2), failed("tests", id=5), row("lint", id=3), row("build", id=4))) == (
        "tests (failed)",
    )
    assert _missing(_eg2(row("tests", instance="a"), row("tests", instance="b"))) == ("1 more passing check",)


@pytest.mark.req("P9")
def test_rows_of_another_phase_are_no_verification() -> None:
    elsewhere = [row("tests", phase=Phase.BASELINE), row("lint", phase=Phase.REVIEW)]
    assert _missing(_eg2(*elsewhere)) == ("2 more passing checks",)


@pytest.mark.req("P9")
def test_evidence_of_another_tree_is_stale_and_named() -> None:
    moved = row("tests", tree=OTHER_TREE)
    assert _missing(_eg2(moved, row("lint"), row("build"), tree=TREE)) == ("tests (stale: tree changed)",)
    assert _missing(_eg2(row("tests", tree=None), row("lint"), row("build"), tree=TREE)) == (
        "tests (stale: tree changed)",
    )
    dead = _eg2(failed("tests", tree=OTHER_TREE), row("lint"), row("build"), tree=TREE)
    assert _missing(dead) == ("tests (stale: tree changed)",)
    assert isinstance(_eg2(moved, row("lint"), tree=None), Open)
    again = _eg2(moved, row("tests"), row("lint"), tree=TREE)
    assert isinstance(again, Open)
    unbound = _eg2(row("tests"), row("lint"), observed("scope", True), tree=TREE)
    assert isinstance(unbound, Open)
    seen_before = _eg2(row("tests"), row("lint"), observed("scope", True, tree=OTHER_TREE), tree=TREE)
    assert _missing(seen_before) == ("scope (stale: tree changed)",)


@pytest.mark.req("P9")
def test_infeasible_and_undeclared_checks_neither_count_nor_block() -> None:
    good = [row("tests"), row("lint")]
    for holds, name in product((True, False), ("tier3-infeasible", "readiness-observability", "readiness-degradation")):
        assert isinstance(_eg2(*good, observed(name, holds)), Open)
        assert _missing(_eg2(row("tests"), observed(name, holds))) == ("1 more passing check",)
    assert isinstance(_eg2(*good, failed("tier3-infeasible")), Open)
    assert _missing(_eg2(*good, failed("readiness-observability"))) == ("readiness-observability (failed)",)
    assert isinstance(_eg2(row("tests"), row("readiness-degradation")), Open)


@pytest.mark.req("P9")
def test_what_a_task_declared_must_have_passed() -> None:
    good = (row("tests"), row("lint"))
    declared = ("readiness-observability", "ac-1")
    assert _missing(_eg2(*good, observed("readiness-observability", True), required=declared)) == (
        "readiness-observability (not run)",
        "ac-1 (not run)",
    )
    assert isinstance(_eg2(*good, row("readiness-observability"), row("ac-1"), required=declared), Open)
    assert _missing(_eg2(*good, failed("ac-1"), required=("ac-1", "ac-1"))) == ("ac-1 (failed)",)


@pytest.mark.req("P9")
def test_a_criterion_can_fail_a_task_but_not_carry_one() -> None:
    good = (row("tests"), row("lint"))
    assert _missing(_eg2(row("ac-1"), row("ac-2"), row("tests"))) == ("1 more passing check",)
    assert isinstance(_eg2(*good, claimed("ac-1", True), required=("ac-1",)), Open)
    assert _missing(_eg2(*good, claimed("ac-1", False), required=("ac-1",))) == ("ac-1 (failed)",)
    assert _missing(_eg2(*good, failed("ac-1"), claimed("ac-1", True), required=("ac-1",))) == ("ac-1 (failed)",)
    assert _missing(_eg2(*good, observed("ac-1", True), required=("ac-1",))) == ("ac-1 (not run)",)


@pytest.mark.req("P9")
def test_a_name_outside_the_registry_does_not_count_and_is_named() -> None:
    assert _missing(_eg2(row("tests"), row("line-budget"))) == (
        "line-budget (unknown check name)",
        "1 more passing check",
    )
    assert isinstance(_eg2(row("tests"), row("lint"), row("line-budget")), Open)
    assert isinstance(_eg2(row("tests"), row("lint"), claimed("line-budget", False)), Open)
    assert _missing(_eg2(row("tests"), row("lint"), failed("line-budget"))) == ("line-budget (failed)",)


@pytest.mark.req("P9")
def test_a_check_that_passed_before_and_fails_now_is_called_a_regression() -> None:
    answer = _eg2(failed("tests"), row("lint"), row("build"), baseline=tally(baseline("tests")))
    assert isinstance(answer, Blocked)
    assert (answer.missing, answer.because) == (("tests (regressed)",), "tests (regressed)")


@pytest.mark.req("P9")
def test_red_before_the_change_neither_blocks_good_work_nor_counts() -> None:
    before = tally(baseline("tests", passed=False))
    assert isinstance(_eg2(failed("tests"), row("lint"), row("build"), baseline=before), Open)
    assert _missing(_eg2(failed("tests"), row("lint"), baseline=before)) == (
        "tests (failed before the change too)",
        "1 more passing check",
    )


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    "untrue",
    [
        baseline("tests", passed=False, sandbox=SandboxTier.NONE),
        baseline("tests", passed=False, assessment=Assessment.LOST),
        baseline("tests", passed=False, provenance=Provenance.CLAIMED),
        failed("tests", phase=Phase.BASELINE, round=0),
        baseline("lint", passed=False),
    ],
)
def test_a_red_baseline_that_is_no_evidence_excuses_nothing(untrue: CheckRow) -> None:
    answer = _eg2(failed("tests"), row("lint"), row("build"), baseline=tally(untrue))
    assert _missing(answer) == ("tests (failed)",)


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    "said", [{"passed": True, "assessment": Assessment.FAIL}, {"passed": False, "assessment": Assessment.PASS}]
)
def test_a_baseline_that_contradicts_itself_excuses_nothing(said: dict[str, Any]) -> None:
    answer = _eg2(failed("tests"), row("lint"), row("build"), baseline=tally(baseline("tests", **said)))
    assert _missing(answer) == ("tests (regressed)",)


@pytest.mark.req("P9")
def test_a_failed_inspection_is_never_excused_by_the_baseline() -> None:
    before = tally(baseline("secrets", passed=False))
    assert _missing(_eg2(row("tests"), row("lint"), failed("secrets"), baseline=before)) == ("secrets (failed)",)


@pytest.mark.req("P9")
def test_a_baseline_of_any_outcome_is_a_baseline() -> None:
    red, green = baseline("tests", passed=False, id=3), baseline("build", id=9)
    assert baseline_exists(tally(green, red)) == Open(
        gate=Gate.BASELINE_EXISTS, evidence=(3, 9), count=2, threshold=1, query=QUERY
    )
    assert isinstance(baseline_exists(tally(baseline("build", tree=TREE)), tree=TREE), Open)


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    ("useless", "why"),
    [
        (baseline("tests", assessment=Assessment.TIMEOUT), "baseline-tests (no evidence: timeout)"),
        (baseline("tests", assessment=None), "baseline-tests (no evidence: no result)"),
        (baseline("tests", sandbox=SandboxTier.NONE), "baseline-tests (ran outside a sandbox)"),
        (baseline("tests", sandbox=None), "baseline-tests (ran outside a sandbox)"),
        (baseline("tests", provenance=Provenance.CLAIMED), "baseline-tests (only claimed)"),
        (baseline("tests", provenance=Provenance.OBSERVED), "baseline-tests (only observed)"),
        (baseline("tests", tree=OTHER_TREE), "baseline-tests (stale: tree changed)"),
        (row("tests", phase=Phase.BASELINE), "tests (unknown check name)"),
    ],
)
def test_a_baseline_row_that_is_no_evidence_leaves_the_gate_shut_and_says_why(useless: CheckRow, why: str) -> None:
    answer = baseline_exists(tally(useless), tree=TREE)
    assert isinstance(answer, Blocked)
    assert (answer.missing, answer.because) == (("a baseline check", why), "no baseline row is evidence")


@pytest.mark.req("P9")
def test_no_baseline_at_all_is_blocked() -> None:
    assert baseline_exists(tally(row("tests"))) == Blocked(
        gate=Gate.BASELINE_EXISTS,
        missing=("a baseline check",),
        because="nothing was run before the change",
        count=0,
        threshold=1,
        query=QUERY,
    )


@pytest.mark.req("P8", "P9")
def test_a_task_is_judged_at_the_size_its_changed_files_make_it() -> None:
    plain = task()
    touched = task(files=(ChangedFile(path="src/auth.py", change=ChangeKind.MODIFIED),))
    assert is_verified(plain, Policy())
    assert not is_verified(touched, Policy())
    assert [answer.threshold for answer in task_gates(touched, Policy())] == [1, 3]
    assert [answer.threshold for answer in task_gates(task(risk=Risk.RED), Policy())] == [1, 3]
    assert not is_verified(task(baseline=tally()), Policy())
    assert not is_verified(task(tree=OTHER_TREE), Policy())
    assert not is_verified(task(required=("ac-1",)), Policy())
    assert not is_verified(task(), Policy(verification=VerificationPolicy(standard_checks=4)))
    assert not is_verified(task("task-01", failed("tests"), row("lint"), row("build")), Policy())
    assert is_verified(
        task("task-01", failed("tests"), row("lint"), row("build"), baseline=tally(baseline("tests", passed=False))),
        Policy(),
    )


def _executed(name: str, holds: bool) -> CheckRow:
    return row(name) if holds else failed(name)


SAID_BY = {Provenance.EXECUTED: _executed, Provenance.OBSERVED: observed, Provenance.CLAIMED: claimed}


def _table_row(provenance: Provenance, name: str, holds: bool) -> str:
    return row_worth(SAID_BY[provenance](name, holds), tree=None, before={}).value


@pytest.mark.req("P9")
def test_the_worth_of_every_check_from_every_source() -> None:
    examples = {"<x>": "x", "<n>": "1", "<scope>": "code", "<category>": "security"}
    table = []
    for kind in CHECKS:
        if kind.phase is not Phase.AFTER:
            continue
        name = kind.name
        for sign, word in examples.items():
            name = name.replace(sign, word)
        words = [
            f"{source.value} {'yes' if holds else 'no'} {_table_row(source, name, holds)}"
            for source in Provenance
            for holds in (True, False)
        ]
        table.append(f"{name}: {', '.join(words)}")
    assert table == snapshot(
        [
            "ide-diagnostics: executed yes passed, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "syntax-check: executed yes passed, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "build: executed yes passed, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "type-check: executed yes passed, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "lint: executed yes passed, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "tests: executed yes passed, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "import-check: executed yes passed, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "smoke-execution: executed yes passed, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "tier3-infeasible: executed yes says nothing, executed no says nothing, observed yes says nothing, observed no says nothing, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "readiness-observability: executed yes passed, executed no failed, observed yes says nothing, observed no says nothing, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "readiness-degradation: executed yes passed, executed no failed, observed yes says nothing, observed no says nothing, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "readiness-secrets: executed yes passed, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "baseline-discrepancy: executed yes says nothing, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "revert-x: executed yes says nothing, executed no failed, observed yes says nothing, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "ac-1: executed yes holds, executed no failed, observed yes says nothing, observed no failed, claimed yes holds, claimed no failed",  # noqa: E501
            "oracle-files: executed yes holds, executed no failed, observed yes holds, observed no needs a person, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "oracle-x: executed yes passed, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "red-at-baseline-x: executed yes holds, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "scope: executed yes holds, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "secrets: executed yes holds, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "expectations: executed yes holds, executed no failed, observed yes holds, observed no needs a person, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "test-drift: executed yes holds, executed no failed, observed yes holds, observed no needs a person, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "regressions: executed yes holds, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "tests-vacuous: executed yes holds, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "suppressions: executed yes holds, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "special-cases: executed yes holds, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
            "forgery: executed yes holds, executed no failed, observed yes holds, observed no failed, claimed yes says nothing, claimed no says nothing",  # noqa: E501
        ]
    )


@pytest.mark.req("P9")
def test_the_registry_knows_its_names_and_only_in_their_phase() -> None:
    known = ("ide-diagnostics", "revert-task-01", "oracle-a.b_c", "red-at-baseline-test_x", "ac-12", "test-drift")
    for name in known:
        kind = kind_of(name, Phase.AFTER)
        assert kind is not None
        assert kind_of(name, Phase.BASELINE) is None
    for name in ("ac-0", "ac-", "ac-x", "revert-", "oracle--", "tests2", "xtests", "baseline-tests", "readiness-x"):
        assert kind_of(name, Phase.AFTER) is None
    assert kind_of("baseline-discrepancy", Phase.AFTER) is not None
    assert kind_of("baseline-tests", Phase.BASELINE) is not None
    assert kind_of("review-code-security", Phase.REVIEW) is not None
    assert kind_of("review-code-style", Phase.REVIEW) is None
    assert set(ACCEPTED_SOURCES) == set(Voice)


CHECK_NAMES = st.sampled_from(
    ["tests", "lint", "build", "ac-1", "scope", "secrets", "revert-x", "tier3-infeasible", "odd"]
)
ROWS = st.lists(
    st.builds(
        lambda name, holds, provenance, assessment, round, tree: row(
            name, passed=holds, provenance=provenance, assessment=assessment, round=round, tree=tree
        ),
        CHECK_NAMES,
        st.booleans(),
        st.sampled_from(Provenance),
        st.sampled_from([*Assessment, None]),
        st.integers(1, 2),
        st.sampled_from([TREE, OTHER_TREE, None]),
    ),
    max_size=7,
)


@pytest.mark.req("P9", "P14")
@QUICK
@given(ROWS, st.randoms(use_true_random=False), st.sampled_from([TREE, None]))
def test_the_order_of_rows_does_not_matter(rows: list[CheckRow], chance: object, tree: str | None) -> None:
    mixed = list(rows)
    chance.shuffle(mixed)  # type: ignore[attr-defined]  # hypothesis hands a random.Random
    assert _eg2(*rows, tree=tree) == _eg2(*mixed, tree=tree)
    assert _eg2(*rows, tree=tree) == _eg2(*latest(rows), tree=tree)


@pytest.mark.req("P9")
@QUICK
@given(ROWS, CHECK_NAMES)
def test_one_more_failed_command_never_opens_a_gate(rows: list[CheckRow], name: str) -> None:
    if isinstance(_eg2(*rows), Blocked):
        assert isinstance(_eg2(*rows, failed(name)), Blocked)


@pytest.mark.req("P9")
@QUICK
@given(ROWS, CHECK_NAMES)
def test_a_claim_never_opens_a_gate(rows: list[CheckRow], name: str) -> None:
    if isinstance(_eg2(*rows), Blocked):
        assert isinstance(_eg2(*rows, claimed(name, True)), Blocked)


def _review_gates(rows: Tally, scope: ReviewScope = ReviewScope.CODE, round: int = 1) -> list[GateAnswer]:
    return [
        reviewers_submitted(rows, scope=scope, round=round),
        no_blocker(rows, round=round),
        categories_covered(rows, scope=scope, round=round),
        majority_approves(rows, scope=scope, round=round),
    ]


def _told(answer: GateAnswer) -> str:
    if isinstance(answer, Open):
        return f"{answer.gate.value} open {answer.count}/{answer.threshold}"
    return f"{answer.gate.value} shut {answer.count}/{answer.threshold}: {', '.join(answer.missing)} [{answer.because}]"


ALL = (A, A, A)


@pytest.mark.req("P7")
def test_the_four_review_gates_over_a_small_table() -> None:
    cases = {
        "nobody": [],
        "all approve": votes(ALL, ALL, ALL),
        "two approve": votes(ALL, (A, R, A), ALL),
        "one approves": votes(ALL, (A, R, A), (R, A, A)),
        "one is missing": votes(ALL, None, ALL),
        "one blocker": votes(ALL, ALL, (A, A, B)),
        "one category is missing": votes(ALL, ALL, ALL)[:-1],
    }
    table = [
        f"{name}: {'; '.join(_told(answer) for answer in _review_gates(tally(*rows)))}" for name, rows in cases.items()
    ]
    assert table == snapshot(
        [
            "nobody: EG-3 shut 0/3: security-sentinel, architecture-guardian, pragmatic-verifier [0 of 3 reviewers filed a verdict]; EG-4 open 0/0; EG-5 shut 0/3: security-sentinel: security, security-sentinel: architecture, security-sentinel: correctness, architecture-guardian: security, architecture-guardian: architecture, architecture-guardian: correctness, pragmatic-verifier: security, pragmatic-verifier: architecture, pragmatic-verifier: correctness [0 of 3 reviewers judged every category]; EG-6 shut 0/2: approval of security-sentinel, approval of architecture-guardian, approval of pragmatic-verifier [0 of 2 approvals]",  # noqa: E501
            "all approve: EG-3 open 3/3; EG-4 open 0/0; EG-5 open 3/3; EG-6 open 3/2",
            "two approve: EG-3 open 3/3; EG-4 open 0/0; EG-5 open 3/3; EG-6 open 2/2",
            "one approves: EG-3 open 3/3; EG-4 open 0/0; EG-5 open 3/3; EG-6 shut 1/2: approval of architecture-guardian, approval of pragmatic-verifier [1 of 2 approvals]",  # noqa: E501
            "one is missing: EG-3 shut 2/3: architecture-guardian [2 of 3 reviewers filed a verdict]; EG-4 open 0/0; EG-5 shut 2/3: architecture-guardian: security, architecture-guardian: architecture, architecture-guardian: correctness [2 of 3 reviewers judged every category]; EG-6 open 2/2",  # noqa: E501
            "one blocker: EG-3 open 3/3; EG-4 shut 1/0: review-code-correctness without a blocker (pragmatic-verifier) [a reviewer reported a blocker, which approvals cannot outvote]; EG-5 open 3/3; EG-6 open 2/2",  # noqa: E501
            "one category is missing: EG-3 open 3/3; EG-4 open 0/0; EG-5 shut 2/3: pragmatic-verifier: correctness [2 of 3 reviewers judged every category]; EG-6 open 2/2",  # noqa: E501
        ]
    )


@pytest.mark.req("P7")
def test_an_open_review_gate_names_the_rows_behind_it() -> None:
    rows = votes(ALL, (A, R, A), ALL)
    submitted, blocker, covered, majority = _review_gates(tally(*rows))
    ids = tuple(item.id for item in rows)
    assert isinstance(submitted, Open)
    assert isinstance(blocker, Open)
    assert isinstance(covered, Open)
    assert isinstance(majority, Open)
    assert submitted.evidence == blocker.evidence == covered.evidence == ids
    assert majority.evidence == (*ids[:3], *ids[6:])
    assert submitted.query == QUERY


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    "stranger",
    [
        {"round": 2},
        {"phase": Phase.AFTER},
        {"verdict": None},
        {"instance": "gpt"},
        {"instance": None},
        {"check_name": "review-design-security"},
        {"check_name": "review-code-style"},
    ],
)
def test_a_row_that_is_no_verdict_of_this_round_stands_in_for_nobody(stranger: dict[str, object]) -> None:
    two = votes(ALL, ALL, None)
    rows = [item.model_copy(update=stranger) for item in reviewer(Perspective.PRAGMATIC, *ALL)]
    submitted, _, covered, majority = _review_gates(tally(*two, *rows))
    assert _missing(submitted) == ("pragmatic-verifier",)
    assert _missing(covered) == tuple(f"pragmatic-verifier: {category.value}" for category in Category)
    assert isinstance(majority, Open)
    assert majority.count == 2


@pytest.mark.req("P7")
def test_a_reviewer_who_files_one_category_or_no_verdict_does_not_approve() -> None:
    silent = [verdict(Perspective.SECURITY, category, None) for category in Category]
    single = [verdict(Perspective.ARCHITECTURE, Category.SECURITY, A)]
    answer = majority_approves(tally(*silent, *single), scope=ReviewScope.CODE, round=1)
    assert _missing(answer) == tuple(f"approval of {perspective.value}" for perspective in Perspective)
    assert answer.count == 0


@pytest.mark.req("P7")
def test_a_retried_reviewer_is_heard_by_its_latest_rows_but_a_blocker_stays() -> None:
    first, again = reviewer(Perspective.PRAGMATIC, A, R, A), reviewer(Perspective.PRAGMATIC, *ALL)
    others = votes(ALL, (R, A, A), None)
    assert isinstance(majority_approves(tally(*others, *first, *again), scope=ReviewScope.CODE, round=1), Open)
    assert isinstance(majority_approves(tally(*others, *again, *first), scope=ReviewScope.CODE, round=1), Open)
    called = [verdict(Perspective.PRAGMATIC, Category.ARCHITECTURE, B), *reviewer(Perspective.PRAGMATIC, *ALL)]
    blocked = no_blocker(tally(*others, *called), round=1)
    assert _missing(blocked) == ("review-code-architecture without a blocker (pragmatic-verifier)",)
    assert isinstance(no_blocker(tally(*others, *called), round=2), Open)


@pytest.mark.req("P7")
@pytest.mark.parametrize("instance", ["a stranger", None])
def test_a_blocker_of_anybody_counts(instance: str | None) -> None:
    rows = [*votes(ALL, ALL, ALL), verdict(instance, Category.SECURITY, B)]
    assert no_blocker(tally(*rows), round=1) == Blocked(
        gate=Gate.NO_BLOCKER,
        missing=(f"review-code-security without a blocker ({instance or 'no instance'})",),
        because="a reviewer reported a blocker, which approvals cannot outvote",
        count=1,
        threshold=0,
        query=QUERY,
    )


@pytest.mark.req("P7")
def test_a_quorum_of_three_is_a_setting() -> None:
    policy = Policy(review=ReviewPolicy(approvals=3))
    two = tally(*votes(ALL, ALL, (A, A, R)))
    assert isinstance(majority_approves(two, scope=ReviewScope.CODE, round=1), Open)
    answer = majority_approves(two, scope=ReviewScope.CODE, round=1, policy=policy)
    assert _missing(answer) == ("approval of pragmatic-verifier",)
    with pytest.raises(ValueError, match="greater than or equal to 2"):
        ReviewPolicy(approvals=1)


VERDICTS_OF_ONE = st.tuples(*[st.sampled_from([A, R, B]) for _ in Category])


@pytest.mark.req("P7")
@QUICK
@given(st.tuples(*[st.none() | VERDICTS_OF_ONE for _ in Perspective]), st.integers(0, 2))
def test_one_more_approval_never_shuts_a_review_gate(
    said: tuple[tuple[CategoryVerdict, CategoryVerdict, CategoryVerdict] | None, ...], which: int
) -> None:
    kinder = [ALL if index == which else triple for index, triple in enumerate(said)]
    before, after = _review_gates(tally(*votes(*said))), _review_gates(tally(*votes(*kinder)))
    for was, now in zip(before, after, strict=True):
        assert isinstance(was, Blocked) or isinstance(now, Open)


@pytest.mark.req("P9")
def test_the_sentences_a_row_is_told_in_are_all_different() -> None:
    assert len({word.value for word in RowWorth}) == len(RowWorth)


@pytest.mark.req("P7")
def test_a_failing_check_is_named_with_its_reason_and_decides_the_same() -> None:
    why = {"tests": "tests.test_a.A.test_b (AssertionError)", "ac-2": "no command proves it", "lint": "not shown"}
    rows = (row("lint"), failed("tests"))
    plain = _eg2(*rows, required=("ac-2",))
    named = _eg2(*rows, required=("ac-2",), failing=why)
    assert isinstance(plain, Blocked)
    assert isinstance(named, Blocked)
    assert named.missing[0] == "tests (failed): tests.test_a.A.test_b (AssertionError)"
    assert "ac-2 (not run): no command proves it" in named.missing
    assert (plain.count, plain.threshold) == (named.count, named.threshold)
    assert [text.partition(": ")[0] for text in named.missing] == list(plain.missing)
