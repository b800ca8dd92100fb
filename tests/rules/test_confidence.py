"""Confidence comes from facts: total, never raised by one more trouble, and the limits of each in sentences."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.policy import Policy, VerificationPolicy
from fairwitness.contracts.common.vocabulary import Confidence, Severity
from fairwitness.contracts.feature.events import Degradation
from fairwitness.contracts.feature.facts import ConfidenceFacts
from fairwitness.rules.confidence import (
    APPROVALS_AT_MOST,
    AT_MOST,
    FINDING_AT_MOST,
    confidence_facts,
    grade,
    may_commit,
)
from rules.build import A, R, baseline, facts, failed, review, row, tally, task, votes

ALL = (A, A, A)
BEST: dict[str, Any] = {
    "unverified": (),
    "whole_verified": True,
    "regressions": (),
    "red_before_too": (),
    "reviewers": 3,
    "approvals": 3,
    "open_findings": (),
    "degradations": (),
}


def _facts(**differs: Any) -> ConfidenceFacts:
    return ConfidenceFacts(**(BEST | differs))


@pytest.mark.req("P11", "P17")
def test_every_degradation_severity_and_count_has_its_limit() -> None:
    assert set(AT_MOST) == set(Degradation)
    assert set(FINDING_AT_MOST) == set(Severity)
    assert set(APPROVALS_AT_MOST) == {(approve, count) for count in (1, 3) for approve in range(count + 1)}


@pytest.mark.req("P11", "P17")
def test_the_whole_table_of_one_trouble() -> None:
    troubles: dict[str, dict[str, Any]] = {
        "nothing wrong": {},
        "two tasks without evidence": {"unverified": ("task-01", "task-02")},
        "the whole not verified": {"whole_verified": False},
        "two regressions": {"regressions": ("lint", "tests")},
        "red before and after": {"red_before_too": ("lint",)},
        **{f"{approvals} approvals": {"approvals": approvals} for approvals in range(4)},
        "not reviewed": {"approvals": None},
        **{f"{count} approvals of one": {"approvals": count, "reviewers": 1} for count in range(2)},
        **{f"one {severity.value} left": {"open_findings": (severity,)} for severity in Severity},
        **{kind.value: {"degradations": (kind,)} for kind in Degradation},
    }
    table = [
        f"{name}: {graded.level.value} {'; '.join(graded.because)}".strip()
        for name, trouble in troubles.items()
        for graded in [grade(_facts(**trouble))]
    ]
    assert table == snapshot(
        [
            "nothing wrong: High",
            "two tasks without evidence: Low at most Low: without enough evidence: task-01, task-02",
            "the whole not verified: Low at most Low: the tree to be committed has not passed its checks",
            "two regressions: Low at most Low: passed before the change and fails now: lint, tests",
            "red before and after: Medium at most Medium: lint failed before the change and fails still",
            "0 approvals: Low at most Low: 0 of 3 reviewers approve",
            "1 approvals: Low at most Low: 1 of 3 reviewers approve",
            "2 approvals: Medium at most Medium: 2 of 3 reviewers approve",
            "3 approvals: High",
            "not reviewed: Low at most Low: the code was not reviewed",
            "0 approvals of one: Low at most Low: 0 of 1 reviewers approve (light path)",
            "1 approvals of one: Medium at most Medium: 1 of 1 reviewers approve (light path)",
            "one Blocker left: Low at most Low: 1 open finding of severity Blocker",
            "one Critical left: Low at most Low: 1 open finding of severity Critical",
            "one Major left: Medium at most Medium: 1 open finding of severity Major",
            "one Minor left: High",
            "fewer_researchers: Medium at most Medium: the run was degraded: fewer researchers",
            "knowledge_failed: High",
            "tier3_infeasible: Medium at most Medium: the run was degraded: tier3 infeasible",
            "single_model: Medium at most Medium: the run was degraded: single model",
            "design_not_approved: Medium at most Medium: the run was degraded: design not approved",
            "replan_exhausted: Low at most Low: the run was degraded: replan exhausted",
            "review_exhausted: Low at most Low: the run was degraded: review exhausted",
            "sandbox_tier: Medium at most Medium: the run was degraded: sandbox tier",
            "unseen_review: Medium at most Medium: the run was degraded: unseen review",
        ]
    )


@pytest.mark.req("P11")
def test_the_worst_limit_holds_and_every_reason_is_told() -> None:
    graded = grade(
        _facts(
            approvals=2,
            open_findings=(Severity.MAJOR, Severity.MINOR, Severity.MAJOR),
            degradations=(Degradation.REVIEW_EXHAUSTED, Degradation.SINGLE_MODEL),
        )
    )
    assert graded.level is Confidence.LOW
    assert graded.because == (
        "at most Medium: 2 of 3 reviewers approve",
        "at most Medium: 2 open findings of severity Major",
        "at most Medium: the run was degraded: single model",
        "at most Low: the run was degraded: review exhausted",
    )


@pytest.mark.req("P11")
def test_only_low_is_not_committed() -> None:
    assert [may_commit(level) for level in (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)] == [True, True, False]


TEXTS = st.lists(st.sampled_from(["tests", "lint"]), max_size=2, unique=True).map(tuple)
FACTS = st.sampled_from((1, 3)).flatmap(
    lambda reviewers: st.builds(
        ConfidenceFacts,
        unverified=TEXTS,
        whole_verified=st.booleans(),
        regressions=TEXTS,
        red_before_too=TEXTS,
        reviewers=st.just(reviewers),
        approvals=st.none() | st.integers(0, reviewers),
        open_findings=st.lists(st.sampled_from(Severity), max_size=3).map(tuple),
        degradations=st.lists(st.sampled_from(Degradation), max_size=3).map(tuple),
    )
)


@pytest.mark.req("P11")
@settings(max_examples=200)
@given(FACTS, st.sampled_from(Degradation), st.sampled_from(Severity))
def test_one_more_trouble_never_raises_confidence(
    known: ConfidenceFacts, degradation: Degradation, severity: Severity
) -> None:
    order = list(Confidence)
    worse = known.model_copy(
        update={
            "degradations": (*known.degradations, degradation),
            "open_findings": (severity, *known.open_findings),
        }
    )
    assert order.index(grade(worse).level) >= order.index(grade(known).level)
    better = known.model_copy(update={"approvals": known.reviewers, "whole_verified": True})
    assert order.index(grade(better).level) <= order.index(grade(known).level)
    assert (grade(known).level is Confidence.HIGH) == (grade(known).because == ())


@pytest.mark.req("P11")
def test_the_facts_are_read_from_the_ledger() -> None:
    red = tally(baseline("tests", passed=False), baseline("lint"), baseline("build", passed=False))
    run = facts(
        tasks=(
            task("task-02", failed("tests"), row("syntax-check"), row("build"), baseline=red),
            task("task-03", failed("lint"), row("tests"), row("build"), baseline=red),
            task("task-01", row("tests")),
        ),
        whole=task("whole", failed("build"), failed("type-check"), row("lint"), row("tests"), baseline=red),
        code_review=review(*votes(ALL, (A, R, A), ALL)),
        degradations=(Degradation.SINGLE_MODEL,),
    )
    assert confidence_facts(run, Policy()) == ConfidenceFacts(
        unverified=("task-01", "task-03"),
        whole_verified=False,
        regressions=("lint",),
        red_before_too=("build", "tests"),
        reviewers=3,
        approvals=2,
        open_findings=(Severity.MAJOR,),
        degradations=(Degradation.SINGLE_MODEL,),
    )


@pytest.mark.req("P11")
def test_what_nobody_looked_at_is_not_trusted() -> None:
    read = confidence_facts(facts(tasks=(task(),)), Policy())
    assert (read.unverified, read.whole_verified, read.approvals, read.open_findings) == ((), False, None, ())
    assert grade(read).level is Confidence.LOW
    unconfined = facts(whole=task("whole", row("tests", sandbox=SandboxTier.NONE), row("lint")))
    assert not confidence_facts(unconfined, Policy()).whole_verified
    assert confidence_facts(facts(whole=task("whole")), Policy()).whole_verified
    demanding = Policy(verification=VerificationPolicy(standard_checks=4))
    read = confidence_facts(facts(tasks=(task(),), whole=task("whole")), demanding)
    assert (read.unverified, read.whole_verified) == (("task-01",), False)


@pytest.mark.req("P7", "P11")
def test_a_finding_without_severity_is_taken_for_critical() -> None:
    rows = [item.model_copy(update={"severity": None}) for item in votes(ALL, (A, R, A), ALL)]
    read = confidence_facts(facts(code_review=review(*rows)), Policy())
    assert read.open_findings == (Severity.CRITICAL,)
