"""Review rules: from a reviewer's findings to a verdict, and from all verdicts to the run's next move."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple, assert_never

from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.decisions import Advance, Halt, HaltOutcome, Retry, RetryOf, Revise, Wait
from fairwitness.contracts.common.evidence import CheckRow
from fairwitness.contracts.common.gates import Blocked, GateAnswer
from fairwitness.contracts.common.policy import OnExhausted, Policy
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Severity, worst_verdict
from fairwitness.contracts.feature.events import Degradation
from fairwitness.contracts.feature.facts import ReviewFacts, Step
from fairwitness.contracts.feature.review import (
    Category,
    CategoryVerdicts,
    FindingsCount,
    Perspective,
    ReviewReturn,
    ReviewScope,
    ReviewVerdict,
)
from fairwitness.rules.feature_paths import REVIEWERS_OF, route_on
from fairwitness.rules.feature_retry import under_way
from fairwitness.rules.feature_routes import RouteOutcome, as_read
from fairwitness.rules.gates import (
    categories_covered,
    majority_approves,
    no_blocker,
    reviewers_submitted,
    verdicts,
)

VERDICT_OF: Mapping[Severity, CategoryVerdict] = {
    Severity.BLOCKER: CategoryVerdict.BLOCKER,
    Severity.CRITICAL: CategoryVerdict.NEEDS_REVISION,
    Severity.MAJOR: CategoryVerdict.NEEDS_REVISION,
    Severity.MINOR: CategoryVerdict.APPROVE,
}
"""The verdict that one finding of each severity leads to."""


def category_verdict(review: ReviewReturn, category: Category) -> CategoryVerdict:
    """Return the verdict that a reviewer's findings lead to in one category."""
    found = (VERDICT_OF[finding.severity] for finding in review.findings if finding.category is category)
    return worst_verdict((CategoryVerdict.APPROVE, *found))


def verdict_of(review: ReviewReturn) -> ReviewVerdict:
    """Return the verdict file for a reviewer's findings."""
    verdicts = {category: category_verdict(review, category) for category in Category}
    counts = dict.fromkeys(Severity, 0)
    for finding in review.findings:
        counts[finding.severity] += 1
    return ReviewVerdict(
        reviewer_perspective=review.reviewer_perspective,
        scope=review.scope,
        verdicts=CategoryVerdicts(
            security=verdicts[Category.SECURITY],
            architecture=verdicts[Category.ARCHITECTURE],
            correctness=verdicts[Category.CORRECTNESS],
        ),
        overall=worst_verdict(tuple(verdicts.values())),
        findings_count=FindingsCount(
            blocker=counts[Severity.BLOCKER],
            critical=counts[Severity.CRITICAL],
            major=counts[Severity.MAJOR],
            minor=counts[Severity.MINOR],
        ),
        summary=review.summary,
    )


def verdict_problems(verdict: ReviewVerdict) -> tuple[Problem, ...]:
    """Return all problems of one verdict file."""
    return tuple(_verdict_problems(verdict))


def _verdict_problems(verdict: ReviewVerdict) -> Iterator[Problem]:
    categories = verdict.verdicts
    worst = worst_verdict((categories.security, categories.architecture, categories.correctness))
    if verdict.overall is not worst:
        yield Problem(where=("overall",), expected=f"the worst category, {worst.value}", found=verdict.overall.value)
    counts = verdict.findings_count
    demanded = worst_verdict(
        (
            CategoryVerdict.APPROVE,
            *(
                VERDICT_OF[severity]
                for severity, count in (
                    (Severity.BLOCKER, counts.blocker),
                    (Severity.CRITICAL, counts.critical),
                    (Severity.MAJOR, counts.major),
                )
                if count
            ),
        )
    )
    if worst_verdict((worst, demanded)) is not worst:
        yield Problem(where=("verdicts",), expected=f"no milder than its findings, {demanded.value}", found=worst.value)


def review_problems(review: ReviewReturn) -> tuple[Problem, ...]:
    """Return all problems of one reviewer's return: each category is either declared clean or has findings."""
    with_findings = {finding.category for finding in review.findings}
    problems = [
        Problem(
            where=("clean_categories",), expected=f"'{category.value}', or a finding in it", found="neither of them"
        )
        for category in Category
        if category not in with_findings and category not in review.clean_categories
    ]
    problems += [
        Problem(where=("clean_categories", index), expected="a category without findings", found=category.value)
        for index, category in enumerate(review.clean_categories)
        if category in with_findings
    ]
    return tuple(problems)


SHOWING = frozenset(
    {Tool.READ_FILE, Tool.GREP_SEARCH, Tool.RUN_IN_TERMINAL, Tool.TERMINAL_OUTPUT, Tool.RUN_CHECK, Tool.GET_ERRORS}
)
"""The tools that show what is in files, and not only their names."""
_OWN_NAMES = frozenset(tool.value for tool in Tool)
_SUBMISSION = "submit_result"
UNREAD = (
    "no file was opened in this review, so it is not complete: a diff or a description in the request is not enough."
    " Open what you judge with read_file, grep_search or git, then send the whole answer again"
)


def shows_files(tool: str) -> bool:
    """Return True if a successful call of this tool opened a file; an external agent names its tools as it likes.

    >>> [shows_files(tool) for tool in ("read_file", "list_dir", "Read till/money.py", "mcp: submit_result")]
    [True, False, True, False]
    """
    return tool in SHOWING if tool in _OWN_NAMES else _SUBMISSION not in tool


def is_unread(role: Role, opened: int | None, tier: EnforcementTier) -> bool:
    """Return True if an agent reviewed without opening a file. It is known only if Fair Witness runs its tools.

    >>> [is_unread(Role.REVIEWER, 0, tier) for tier in (EnforcementTier.A, EnforcementTier.C)]
    [True, False]
    """
    return tier is EnforcementTier.A and is_unseen(role, opened)


def is_unseen(role: Role, opened: int | None) -> bool:
    """Return True if nothing that a reviewer opened was seen."""
    return role is Role.REVIEWER and opened == 0


class Situation(StrEnum):
    """The possible combinations of a round's reviews, worst first."""

    BLOCKER = "a reviewer found a blocker"
    INCOMPLETE = "a verdict is missing"
    NO_MAJORITY = "too few approvals"
    SECURITY_DISSENT = "enough reviewers approve, but one requests a security change"
    DISSENT = "enough reviewers approve; one requests another change"
    UNANIMOUS = "all approve"


class ReviewConsequence(StrEnum):
    """What follows from a situation."""

    HALT = "halt the run"
    FILE_AGAIN = "ask the reviewer again, once; then stop, resumable"
    REVISE = "send it back"
    EXHAUSTED = "design: findings bind the planner; code: as review.on_exhausted says"
    GO_WITH_DISSENT = "go on, the dissent is a known issue"
    GO = "go on"


RESOLUTIONS: Mapping[tuple[Situation, bool], ReviewConsequence] = {
    (Situation.BLOCKER, True): ReviewConsequence.HALT,
    (Situation.BLOCKER, False): ReviewConsequence.HALT,
    (Situation.INCOMPLETE, True): ReviewConsequence.FILE_AGAIN,
    (Situation.INCOMPLETE, False): ReviewConsequence.FILE_AGAIN,
    (Situation.NO_MAJORITY, True): ReviewConsequence.REVISE,
    (Situation.NO_MAJORITY, False): ReviewConsequence.EXHAUSTED,
    (Situation.SECURITY_DISSENT, True): ReviewConsequence.REVISE,
    (Situation.SECURITY_DISSENT, False): ReviewConsequence.EXHAUSTED,
    (Situation.DISSENT, True): ReviewConsequence.GO_WITH_DISSENT,
    (Situation.DISSENT, False): ReviewConsequence.GO_WITH_DISSENT,
    (Situation.UNANIMOUS, True): ReviewConsequence.GO,
    (Situation.UNANIMOUS, False): ReviewConsequence.GO,
}
"""The consequence of each situation, by whether another round is left."""

STEP_OF: Mapping[ReviewScope, Step] = {
    ReviewScope.DESIGN: Step.DESIGN_REVIEW,
    ReviewScope.CODE: Step.CODE_REVIEW,
}


class OpenFinding(NamedTuple):
    """A category that a reviewer did not approve."""

    perspective: Perspective
    category: Category
    severity: Severity

    def __str__(self) -> str:
        return f"{self.perspective.value}: {self.category.value} ({self.severity.value})"


def verdicts_of(review: ReviewFacts) -> Mapping[Perspective, Mapping[Category, CheckRow]]:
    """Return the verdicts of the reviewers of this round."""
    return verdicts(review.tally, scope=review.scope, round=review.round, panel=REVIEWERS_OF[review.path])


def open_findings(review: ReviewFacts) -> tuple[OpenFinding, ...]:
    """Return the open findings of this round; a revision request without a severity counts as Critical."""
    return tuple(
        OpenFinding(perspective, category, row.severity or Severity.CRITICAL)
        for perspective, of_one in verdicts_of(review).items()
        for category, row in of_one.items()
        if row.verdict is not CategoryVerdict.APPROVE
    )


def review_gates(review: ReviewFacts, policy: Policy) -> tuple[GateAnswer, GateAnswer, GateAnswer, GateAnswer]:
    """Return the four gates of a review in order: blocker, completeness, coverage, majority."""
    scope, round, panel = review.scope, review.round, REVIEWERS_OF[review.path]
    return (
        no_blocker(review.tally, round=round),
        reviewers_submitted(review.tally, scope=scope, round=round, panel=panel),
        categories_covered(review.tally, scope=scope, round=round, panel=panel),
        majority_approves(review.tally, scope=scope, round=round, policy=policy, panel=panel),
    )


def situation_of(review: ReviewFacts, policy: Policy) -> Situation:
    """Return the situation of a review: a blocker takes precedence, then a missing verdict, then the counts."""
    blocker, submitted, covered, majority = review_gates(review, policy)
    if isinstance(blocker, Blocked):
        return Situation.BLOCKER
    if isinstance(submitted, Blocked) or isinstance(covered, Blocked):
        return Situation.INCOMPLETE
    if isinstance(majority, Blocked):
        return Situation.NO_MAJORITY
    found = open_findings(review)
    if any(finding.category is Category.SECURITY for finding in found):
        return Situation.SECURITY_DISSENT
    return Situation.DISSENT if found else Situation.UNANIMOUS


def rounds_left(review: ReviewFacts, policy: Policy) -> bool:
    """Return True if another round is left."""
    if review.scope is ReviewScope.DESIGN:
        return review.round <= policy.review.design_revisions
    return review.round < policy.review.code_rounds


def after_review(review: ReviewFacts, policy: Policy) -> Advance | Retry | Revise | Wait | Halt:
    """Return what follows from a round of review."""
    step = STEP_OF[review.scope]
    gates = review_gates(review, policy)
    situation = situation_of(review, policy)
    reviewers = [as_read(FeatureAgent.REVIEWER, call, replanning=False) for call in review.reviewers]
    if situation is not Situation.BLOCKER:
        pending = under_way(step, [perspective.value for perspective in REVIEWERS_OF[review.path]], reviewers, policy)
        if isinstance(pending, Advance):
            return pending.model_copy(update={"round": review.round})
        if pending is not None:
            return pending
    found = tuple(str(finding) for finding in open_findings(review))
    match RESOLUTIONS[(situation, rounds_left(review, policy))]:
        case ReviewConsequence.HALT:
            route = route_on(review.path, step, RouteOutcome.BLOCKER)
            reason = f"{route.because}: {', '.join(found) or 'a row of an unknown reviewer'}"
            return Halt(reason=reason, gates=gates, outcome=HaltOutcome.HALTED, resumable=False)
        case ReviewConsequence.FILE_AGAIN:
            return _file_again(review, step, gates, policy)
        case ReviewConsequence.REVISE:
            route = route_on(review.path, step, RouteOutcome.NEEDS_REVISION)
            assert route.to is not None
            reason = f"{route.because}: {situation.value}"
            return Revise(reason=reason, gates=gates, to=route.to.value, round=review.round + 1, findings=found)
        case ReviewConsequence.EXHAUSTED:
            return exhausted(review, policy, why=situation.value)
        case ReviewConsequence.GO_WITH_DISSENT | ReviewConsequence.GO:
            route = route_on(review.path, step, RouteOutcome.DONE)
            assert route.to is not None
            return Advance(
                reason=f"{route.because}: {situation.value}", gates=gates, to=route.to.value, known_issues=found
            )
        case _ as never:
            assert_never(never)


def _file_again(review: ReviewFacts, step: Step, gates: tuple[GateAnswer, ...], policy: Policy) -> Retry | Halt:
    missing = [name.value for name, of_one in verdicts_of(review).items() if len(of_one) < len(Category)]
    # a failed call was retried while it was under way; what is left to ask again is one that came back without its rows
    final = [
        call.instance
        for call in review.reviewers
        if call.instance in missing and (call.cause is not None or call.attempts > policy.retry.dispatch)
    ]
    if final:
        reason = f"{route_on(review.path, step, RouteOutcome.ERROR).because}: {', '.join(final)}"
        return Halt(reason=reason, gates=gates, outcome=HaltOutcome.ERROR, resumable=True)
    reason = f"verdicts are missing: {', '.join(missing)}"
    return Retry(reason=reason, gates=gates, step=step.value, what=RetryOf.CALL, instances=tuple(missing))


def exhausted(review: ReviewFacts, policy: Policy, *, why: str) -> Advance | Halt:
    """Return what follows when no further round is left and the work is not approved."""
    step = STEP_OF[review.scope]
    route = route_on(review.path, step, RouteOutcome.EXHAUSTED)
    assert route.to is not None
    gates = review_gates(review, policy)
    found = tuple(str(finding) for finding in open_findings(review))
    reason = f"{route.because}: {why}"
    if review.scope is ReviewScope.DESIGN:
        return Advance(
            reason=reason,
            gates=gates,
            to=route.to.value,
            constraints=found,
            degradations=(Degradation.DESIGN_NOT_APPROVED.value,),
        )
    if policy.review.on_exhausted is OnExhausted.ERROR:
        return Halt(
            reason=f"review.on_exhausted is error: {why}", gates=gates, outcome=HaltOutcome.ERROR, resumable=False
        )
    return Advance(
        reason=reason,
        gates=gates,
        to=route.to.value,
        known_issues=found,
        degradations=(Degradation.REVIEW_EXHAUSTED.value,),
    )
