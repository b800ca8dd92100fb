"""A verdict follows from findings, and the next move from three verdicts: total, never milder, both tables whole."""
# the sentences of the table stay whole

from itertools import combinations_with_replacement, permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.decisions import (
    Advance,
    Decision,
    ErrorCause,
    Halt,
    HaltOutcome,
    Retry,
    RetryOf,
    Revise,
    Wait,
    WaitsFor,
)
from fairwitness.contracts.common.gates import Gate
from fairwitness.contracts.common.policy import OnExhausted, Policy, RetryPolicy, ReviewPolicy
from fairwitness.contracts.common.problems import spell_path
from fairwitness.contracts.common.vocabulary import VERDICTS, CategoryVerdict, Severity
from fairwitness.contracts.feature.review import (
    Category,
    Perspective,
    ReviewFinding,
    ReviewReturn,
    ReviewScope,
    ReviewVerdict,
)
from fairwitness.rules.review import (
    RESOLUTIONS,
    STEP_OF,
    VERDICT_OF,
    Situation,
    after_review,
    exhausted,
    open_findings,
    review_problems,
    rounds_left,
    situation_of,
    verdict_of,
    verdict_problems,
)
from rules.build import A, B, R, call, review, verdict, votes
from support.fixtures import value_of


def _review(*findings: tuple[Category, Severity]) -> ReviewReturn:
    template = value_of("000/review-return.yaml")
    found = template["findings"][0]
    template["findings"] = [
        found | {"id": f"F-{number}", "category": category, "severity": severity}
        for number, (category, severity) in enumerate(findings)
    ]
    template["clean_categories"] = [category for category in Category if category not in {pair[0] for pair in findings}]
    return ReviewReturn.model_validate(template)


FINDINGS = st.lists(st.tuples(st.sampled_from(Category), st.sampled_from(Severity)), max_size=6)


@pytest.mark.req("P7")
def test_every_severity_has_its_verdict() -> None:
    assert set(VERDICT_OF) == set(Severity)


@pytest.mark.req("P7")
@settings(max_examples=200)
@given(FINDINGS, st.tuples(st.sampled_from(Category), st.sampled_from(Severity)))
def test_one_more_finding_never_makes_a_verdict_milder(
    findings: list[tuple[Category, Severity]], more: tuple[Category, Severity]
) -> None:
    before, after = verdict_of(_review(*findings)), verdict_of(_review(*findings, more))
    assert VERDICTS.index(after.overall) >= VERDICTS.index(before.overall)


@pytest.mark.req("P7")
@settings(max_examples=200)
@given(FINDINGS)
def test_a_derived_verdict_has_no_problem_and_does_not_depend_on_order(
    findings: list[tuple[Category, Severity]],
) -> None:
    verdict = verdict_of(_review(*findings))
    assert verdict_problems(verdict) == ()
    assert verdict == verdict_of(_review(*reversed(findings)))
    assert review_problems(_review(*findings)) == ()


@pytest.mark.req("P7")
def test_the_whole_table_of_one_finding() -> None:
    table = [
        f"{severity.value} in {category.value}: {', '.join(f'{name} {said}' for name, said in verdicts)}"
        for severity, category in product(Severity, Category)
        for verdict in [verdict_of(_review((category, severity)))]
        for verdicts in [[*verdict.verdicts.plain().items(), ("overall", verdict.overall)]]
    ]
    assert table == snapshot(
        [
            "Blocker in security: security blocker, architecture approve, correctness approve, overall blocker",
            "Blocker in architecture: security approve, architecture blocker, correctness approve, overall blocker",
            "Blocker in correctness: security approve, architecture approve, correctness blocker, overall blocker",
            "Critical in security: security needs_revision, architecture approve, correctness approve, overall needs_revision",  # noqa: E501
            "Critical in architecture: security approve, architecture needs_revision, correctness approve, overall needs_revision",  # noqa: E501
            "Critical in correctness: security approve, architecture approve, correctness needs_revision, overall needs_revision",  # noqa: E501
            "Major in security: security needs_revision, architecture approve, correctness approve, overall needs_revision",  # noqa: E501
            "Major in architecture: security approve, architecture needs_revision, correctness approve, overall needs_revision",  # noqa: E501
            "Major in correctness: security approve, architecture approve, correctness needs_revision, overall needs_revision",  # noqa: E501
            "Minor in security: security approve, architecture approve, correctness approve, overall approve",
            "Minor in architecture: security approve, architecture approve, correctness approve, overall approve",
            "Minor in correctness: security approve, architecture approve, correctness approve, overall approve",
        ]
    )


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    ("overall", "security", "counts", "said"),
    [
        ("needs_revision", "needs_revision", {"critical": 1}, []),
        ("approve", "needs_revision", {"critical": 1}, ["overall"]),
        ("approve", "approve", {"critical": 1}, ["verdicts"]),
        ("approve", "approve", {"major": 1}, ["verdicts"]),
        ("approve", "approve", {"minor": 9}, []),
        ("needs_revision", "needs_revision", {"blocker": 1}, ["verdicts"]),
        ("needs_revision", "blocker", {"blocker": 1}, ["overall"]),
        ("blocker", "approve", {}, ["overall"]),
        ("needs_revision", "needs_revision", {}, []),
    ],
)
def test_a_verdict_milder_than_its_findings_or_its_categories_is_caught(
    overall: str, security: str, counts: dict[str, int], said: list[str]
) -> None:
    value = value_of("000/review-findings.yaml")
    value["overall"] = overall
    value["verdicts"]["security"] = security
    value["findings_count"] = {"blocker": 0, "critical": 0, "major": 0, "minor": 0} | counts
    problems = verdict_problems(ReviewVerdict.model_validate(value))
    assert [spell_path(problem.where) for problem in problems] == said


@pytest.mark.req("P7")
def test_a_category_is_clean_or_has_findings_and_the_reviewer_says_which() -> None:
    review = _review((Category.SECURITY, Severity.MINOR))
    silent = review.model_copy(update={"clean_categories": (Category.ARCHITECTURE,)})
    both = review.model_copy(update={"clean_categories": tuple(Category)})
    assert [problem.plain() for problem in review_problems(silent)] == [
        {
            "where": ["clean_categories"],
            "expected": "'correctness', or a finding in it",
            "found": "neither of them",
            "level": "error",
        }
    ]
    assert [problem.plain() for problem in review_problems(both)] == [
        {
            "where": ["clean_categories", 0],
            "expected": "a category without findings",
            "found": "security",
            "level": "error",
        }
    ]


@pytest.mark.req("P7")
def test_the_findings_of_each_severity_are_counted() -> None:
    found = _review(*[(Category.SECURITY, severity) for severity in (*Severity, *Severity, Severity.MINOR)])
    assert verdict_of(found).findings_count.plain() == {"blocker": 2, "critical": 2, "major": 2, "minor": 3}


@pytest.mark.req("P7")
def test_no_findings_is_an_approval() -> None:
    assert verdict_of(_review()).overall is CategoryVerdict.APPROVE
    assert ReviewFinding.model_fields.keys() >= {"category", "severity", "artifacts", "recommendation", "evidence"}


Triple = tuple[CategoryVerdict, CategoryVerdict, CategoryVerdict]
ALL: Triple = (A, A, A)
SAYS: dict[str, Triple | None] = {
    "approves": ALL,
    "wants design revised": (A, R, A),
    "wants security revised": (R, A, A),
    "blocks": (A, A, B),
    "is silent": None,
}
STRICT = Policy(review=ReviewPolicy(on_exhausted=OnExhausted.ERROR))
FINAL = tuple(call(perspective.value, attempts=2) for perspective in Perspective)


def _after(
    said: tuple[Triple | None, ...],
    *,
    scope: ReviewScope = ReviewScope.CODE,
    round: int = 1,
    policy: Policy | None = None,
    **differs: Any,
) -> Decision:
    rows = votes(*said, scope=scope, round=round)
    return after_review(review(*rows, scope=scope, round=round, **differs), policy or Policy())


def _word(decision: Decision) -> str:
    match decision:
        case Advance():
            issues = f" with {len(decision.known_issues)} known issues" if decision.known_issues else ""
            bound = f" with {len(decision.constraints)} constraints" if decision.constraints else ""
            less = f" ({', '.join(decision.degradations)})" if decision.degradations else ""
            return f"advance{issues}{bound}{less}"
        case Halt():
            return f"halt {decision.outcome.value}"
        case _:
            return decision.kind


@pytest.mark.req("P7")
def test_every_situation_has_its_resolution() -> None:
    assert set(RESOLUTIONS) == set(product(Situation, (True, False)))
    assert set(STEP_OF) == set(ReviewScope)
    table = [
        f"{situation.value}, {'rounds left' if left else 'last round'}: {RESOLUTIONS[(situation, left)].value}"
        for situation, left in RESOLUTIONS
    ]
    assert table == snapshot(
        [
            "a reviewer found a blocker, rounds left: halt the run",
            "a reviewer found a blocker, last round: halt the run",
            "a verdict is missing, rounds left: ask the reviewer again, once; then stop, resumable",
            "a verdict is missing, last round: ask the reviewer again, once; then stop, resumable",
            "too few approvals, rounds left: send it back",
            "too few approvals, last round: design: findings bind the planner; code: as review.on_exhausted says",
            "enough reviewers approve, but one requests a security change, rounds left: send it back",
            "enough reviewers approve, but one requests a security change, last round: design: findings bind the planner; code: as review.on_exhausted says",  # noqa: E501
            "enough reviewers approve; one requests another change, rounds left: go on, the dissent is a known issue",
            "enough reviewers approve; one requests another change, last round: go on, the dissent is a known issue",
            "all approve, rounds left: go on",
            "all approve, last round: go on",
        ]
    )


@pytest.mark.req("P7", "P12")
def test_what_three_reviewers_together_lead_to() -> None:
    table = []
    for names in combinations_with_replacement(SAYS, 3):
        said = tuple(SAYS[name] for name in names)
        words = {
            f"{scope.value} {round}": _word(_after(said, scope=scope, round=round))
            for scope in ReviewScope
            for round in (1, 2)
        }
        words["code 2, strict"] = _word(_after(said, round=2, policy=STRICT))
        table.append(f"{', '.join(names)}: {'; '.join(f'{when}: {word}' for when, word in words.items())}")
    assert table == snapshot(
        [
            "approves, approves, approves: design 1: advance; design 2: advance; code 1: advance; code 2: advance; code 2, strict: advance",  # noqa: E501
            "approves, approves, wants design revised: design 1: advance with 1 known issues; design 2: advance with 1 known issues; code 1: advance with 1 known issues; code 2: advance with 1 known issues; code 2, strict: advance with 1 known issues",  # noqa: E501
            "approves, approves, wants security revised: design 1: revise; design 2: advance with 1 constraints (design_not_approved); code 1: revise; code 2: advance with 1 known issues (review_exhausted); code 2, strict: halt error",  # noqa: E501
            "approves, approves, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "approves, approves, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
            "approves, wants design revised, wants design revised: design 1: revise; design 2: advance with 2 constraints (design_not_approved); code 1: revise; code 2: advance with 2 known issues (review_exhausted); code 2, strict: halt error",  # noqa: E501
            "approves, wants design revised, wants security revised: design 1: revise; design 2: advance with 2 constraints (design_not_approved); code 1: revise; code 2: advance with 2 known issues (review_exhausted); code 2, strict: halt error",  # noqa: E501
            "approves, wants design revised, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "approves, wants design revised, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
            "approves, wants security revised, wants security revised: design 1: revise; design 2: advance with 2 constraints (design_not_approved); code 1: revise; code 2: advance with 2 known issues (review_exhausted); code 2, strict: halt error",  # noqa: E501
            "approves, wants security revised, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "approves, wants security revised, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
            "approves, blocks, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "approves, blocks, is silent: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "approves, is silent, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
            "wants design revised, wants design revised, wants design revised: design 1: revise; design 2: advance with 3 constraints (design_not_approved); code 1: revise; code 2: advance with 3 known issues (review_exhausted); code 2, strict: halt error",  # noqa: E501
            "wants design revised, wants design revised, wants security revised: design 1: revise; design 2: advance with 3 constraints (design_not_approved); code 1: revise; code 2: advance with 3 known issues (review_exhausted); code 2, strict: halt error",  # noqa: E501
            "wants design revised, wants design revised, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "wants design revised, wants design revised, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
            "wants design revised, wants security revised, wants security revised: design 1: revise; design 2: advance with 3 constraints (design_not_approved); code 1: revise; code 2: advance with 3 known issues (review_exhausted); code 2, strict: halt error",  # noqa: E501
            "wants design revised, wants security revised, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "wants design revised, wants security revised, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
            "wants design revised, blocks, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "wants design revised, blocks, is silent: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "wants design revised, is silent, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
            "wants security revised, wants security revised, wants security revised: design 1: revise; design 2: advance with 3 constraints (design_not_approved); code 1: revise; code 2: advance with 3 known issues (review_exhausted); code 2, strict: halt error",  # noqa: E501
            "wants security revised, wants security revised, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "wants security revised, wants security revised, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
            "wants security revised, blocks, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "wants security revised, blocks, is silent: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "wants security revised, is silent, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
            "blocks, blocks, blocks: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "blocks, blocks, is silent: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "blocks, is silent, is silent: design 1: halt halted; design 2: halt halted; code 1: halt halted; code 2: halt halted; code 2, strict: halt halted",  # noqa: E501
            "is silent, is silent, is silent: design 1: retry; design 2: retry; code 1: retry; code 2: retry; code 2, strict: retry",  # noqa: E501
        ]
    )


@pytest.mark.req("P7", "P14")
def test_it_does_not_matter_which_perspective_says_what() -> None:
    for names in combinations_with_replacement(SAYS, 3):
        words = {_word(_after(tuple(SAYS[name] for name in order))) for order in permutations(names)}
        assert len(words) == 1


@pytest.mark.req("P7")
@settings(max_examples=200)
@given(
    st.tuples(*[st.sampled_from(list(SAYS.values())) for _ in Perspective]),
    st.integers(0, 2),
    st.sampled_from(ReviewScope),
    st.integers(1, 2),
)
def test_a_blocker_always_halts_and_one_more_approval_never_costs_an_advance(
    said: tuple[Triple | None, ...], which: int, scope: ReviewScope, round: int
) -> None:
    decision = _after(said, scope=scope, round=round)
    if (A, A, B) in said:
        assert isinstance(decision, Halt)
        assert (decision.outcome, decision.resumable) == (HaltOutcome.HALTED, False)
    kinder = tuple(ALL if index == which else triple for index, triple in enumerate(said))
    if isinstance(decision, Advance):
        assert isinstance(_after(kinder, scope=scope, round=round), Advance)
    if isinstance(decision, Revise):
        assert decision.round == round + 1 == 2


@pytest.mark.req("P7")
def test_two_approvals_go_on_and_the_dissent_is_a_known_issue() -> None:
    decision = _after((ALL, (A, R, A), ALL))
    assert isinstance(decision, Advance)
    assert decision.to == "step-8"
    assert decision.known_issues == ("architecture-guardian: architecture (Major)",)
    assert (decision.constraints, decision.degradations) == ((), ())
    assert [answer.gate for answer in decision.gates] == [
        Gate.NO_BLOCKER,
        Gate.REVIEWERS_SUBMITTED,
        Gate.CATEGORIES_COVERED,
        Gate.MAJORITY_APPROVES,
    ]
    assert decision.reason == ("the reviewers approve the code: enough reviewers approve; one requests another change")


@pytest.mark.req("P7")
def test_a_lone_security_objection_forces_a_round_while_one_is_left() -> None:
    lone = (ALL, ALL, (R, A, A))
    decision = _after(lone)
    assert isinstance(decision, Revise)
    assert (decision.to, decision.round, decision.findings) == ("step-5", 2, ("pragmatic-verifier: security (Major)",))
    assert decision.reason == (
        "the reviewers request changes to the code: enough reviewers approve, but one requests a security change"
    )
    assert len(decision.gates) == 4
    last = _after(lone, round=2)
    assert isinstance(last, Advance)
    assert last.degradations == ("review_exhausted",)
    assert last.known_issues == ("pragmatic-verifier: security (Major)",)


@pytest.mark.req("P7")
def test_a_design_is_revised_once_and_then_its_findings_bind_the_planner() -> None:
    said = ((A, R, A), (A, R, A), ALL)
    decision = _after(said, scope=ReviewScope.DESIGN)
    assert isinstance(decision, Revise)
    assert decision.to == "step-3"
    second = _after(said, scope=ReviewScope.DESIGN, round=2)
    assert isinstance(second, Advance)
    assert (second.to, second.degradations, second.known_issues) == ("step-4", ("design_not_approved",), ())
    assert second.constraints == (
        "security-sentinel: architecture (Major)",
        "architecture-guardian: architecture (Major)",
    )
    assert second.reason == "the design was revised once; open findings bind the planner: too few approvals"
    assert len(second.gates) == 4
    without = _after(said, scope=ReviewScope.DESIGN, policy=Policy(review=ReviewPolicy(design_revisions=0)))
    assert isinstance(without, Advance)


@pytest.mark.req("P7")
def test_an_exhausted_code_review_goes_on_low_or_ends_in_error_as_the_setting_says() -> None:
    said = ((A, A, R), (A, R, A), ALL)
    low = _after(said, round=2)
    assert isinstance(low, Advance)
    assert (low.to, low.degradations) == ("step-8", ("review_exhausted",))
    assert len(low.gates) == 4
    assert low.reason == "no round is left; open findings are known issues: too few approvals"
    assert low.known_issues == ("security-sentinel: correctness (Major)", "architecture-guardian: architecture (Major)")
    ended = _after(said, round=2, policy=STRICT)
    assert isinstance(ended, Halt)
    assert (ended.outcome, ended.resumable) == (HaltOutcome.ERROR, False)
    assert ended.reason == "review.on_exhausted is error: too few approvals"
    assert len(ended.gates) == 4
    assert isinstance(_after(said, round=1, policy=STRICT), Revise)
    once = Policy(review=ReviewPolicy(code_rounds=1))
    assert isinstance(_after(said, policy=once), Advance)
    design = exhausted(review(scope=ReviewScope.DESIGN), STRICT, why="x")
    assert isinstance(design, Advance)
    all_three = exhausted(review(), Policy(review=ReviewPolicy(approvals=3)), why="x")
    assert [answer.threshold for answer in all_three.gates] == [0, 3, 3, 3]


@pytest.mark.req("P7")
def test_a_blocker_halts_before_anybody_else_is_waited_for() -> None:
    decision = _after(((A, A, B), None, None), reviewers=(call("security-sentinel"),))
    assert isinstance(decision, Halt)
    assert decision.reason == ("a reported blocker is final: security-sentinel: correctness (Blocker)")
    assert len(decision.gates) == 4
    two = _after(((A, A, B), (B, A, A), ALL))
    assert two.reason.endswith("security-sentinel: correctness (Blocker), architecture-guardian: security (Blocker)")
    stranger = after_review(review(verdict("x", Category.SECURITY, B)), Policy())
    assert stranger.reason == ("a reported blocker is final: a row of an unknown reviewer")


@pytest.mark.req("P7", "P12")
def test_reviewers_are_started_waited_for_and_retried() -> None:
    nobody = _after((None, None, None), reviewers=(), round=2)
    assert isinstance(nobody, Advance)
    assert (nobody.to, nobody.start, nobody.round) == (
        "step-7",
        tuple(perspective.value for perspective in Perspective),
        2,
    )
    running = tuple(call(perspective.value, None) for perspective in Perspective)
    waits = _after((ALL, None, None), reviewers=running)
    assert isinstance(waits, Wait)
    assert waits.waits_for is WaitsFor.CALLS
    failed = (call("security-sentinel", "ERROR"), call("architecture-guardian"), call("pragmatic-verifier"))
    again = _after((None, ALL, ALL), reviewers=failed)
    assert isinstance(again, Retry)
    assert again.instances == ("security-sentinel",)
    broken = (call("security-sentinel", "NEEDS_REVISION"), *failed[1:])
    retried = _after((None, ALL, ALL), reviewers=broken)
    assert isinstance(retried, Retry)


@pytest.mark.req("P7", "P12")
def test_a_reviewer_who_left_a_category_out_is_asked_once_more_then_the_run_stops_resumable() -> None:
    rows = votes(ALL, ALL, ALL)[:-1]
    again = after_review(review(*rows), Policy())
    assert isinstance(again, Retry)
    assert (again.step, again.what, again.instances) == ("step-7", RetryOf.CALL, ("pragmatic-verifier",))
    assert again.reason == "verdicts are missing: pragmatic-verifier"
    assert len(again.gates) == 4
    assert _after((None, ALL, None)).reason == "verdicts are missing: security-sentinel, pragmatic-verifier"
    final = after_review(review(*rows, reviewers=FINAL), Policy())
    assert isinstance(final, Halt)
    assert (final.outcome, final.resumable) == (HaltOutcome.ERROR, True)
    assert final.reason == "fewer than three reviewers judged the code: pragmatic-verifier"
    assert len(final.gates) == 4
    more = Policy(retry=RetryPolicy(dispatch=2))
    assert isinstance(after_review(review(*rows, reviewers=FINAL), more), Retry)


@pytest.mark.req("P7", "P12")
def test_fewer_than_three_reviewers_after_the_retry_is_an_error_that_can_be_resumed() -> None:
    reviewers = (
        call("security-sentinel"),
        call("architecture-guardian", "ERROR", attempts=2),
        call("pragmatic-verifier", "ERROR", ErrorCause.NOT_FOUND),
    )
    decision = _after((ALL, None, None), scope=ReviewScope.DESIGN, reviewers=reviewers)
    assert isinstance(decision, Halt)
    assert (decision.outcome, decision.resumable) == (HaltOutcome.ERROR, True)
    assert decision.reason == (
        "fewer than three reviewers judged the design: architecture-guardian, pragmatic-verifier"
    )


@pytest.mark.req("P7")
def test_a_quorum_of_three_sends_a_lone_dissent_back() -> None:
    three = Policy(review=ReviewPolicy(approvals=3))
    back = _after((ALL, (A, R, A), ALL), policy=three)
    assert isinstance(back, Revise)
    assert [answer.threshold for answer in back.gates] == [0, 3, 3, 3]
    assert situation_of(review(*votes(ALL, (A, R, A), ALL)), three) is Situation.NO_MAJORITY
    assert situation_of(review(*votes(ALL, ALL, ALL)), three) is Situation.UNANIMOUS
    assert _after((ALL, ALL, ALL)).reason == "the reviewers approve the code: all approve"


@pytest.mark.req("P7")
def test_rounds_are_counted_by_scope() -> None:
    left = [
        (scope.value, round, rounds_left(review(scope=scope, round=round), Policy()))
        for scope in ReviewScope
        for round in (1, 2)
    ]
    assert left == [("design", 1, True), ("design", 2, False), ("code", 1, True), ("code", 2, False)]


@pytest.mark.req("P7")
def test_open_findings_are_those_of_this_round_only() -> None:
    rows = [*votes((R, A, A), ALL, ALL, round=1), *votes(ALL, (A, R, A), ALL, round=2)]
    assert [str(found) for found in open_findings(review(*rows, round=2))] == [
        "architecture-guardian: architecture (Major)"
    ]
    assert situation_of(review(*rows, round=1), Policy()) is Situation.SECURITY_DISSENT
    assert situation_of(review(*rows, round=2), Policy()) is Situation.DISSENT
