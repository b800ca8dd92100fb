"""From a reviewer's findings to its verdict, and what is wrong with a verdict that does not follow from them."""

from collections.abc import Iterator, Mapping

from assay.contracts.common.problems import Problem
from assay.contracts.common.words import Severity, Verdict, worst_verdict
from assay.contracts.feature.review import (
    Category,
    CategoryVerdicts,
    FindingsCount,
    ReviewReturn,
    ReviewVerdict,
)

VERDICT_OF: Mapping[Severity, Verdict] = {
    Severity.BLOCKER: Verdict.BLOCKER,
    Severity.CRITICAL: Verdict.NEEDS_REVISION,
    Severity.MAJOR: Verdict.NEEDS_REVISION,
    Severity.MINOR: Verdict.APPROVE,
}
"""What one finding of a severity does to its category."""


def category_verdict(review: ReviewReturn, category: Category) -> Verdict:
    """The verdict that a reviewer's findings add up to in one category."""
    found = (VERDICT_OF[finding.severity] for finding in review.findings if finding.category is category)
    return worst_verdict((Verdict.APPROVE, *found))


def verdict_of(review: ReviewReturn) -> ReviewVerdict:
    """The verdict file that follows from a reviewer's findings."""
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
    """Everything wrong inside one verdict file."""
    return tuple(_verdict_problems(verdict))


def _verdict_problems(verdict: ReviewVerdict) -> Iterator[Problem]:
    categories = verdict.verdicts
    worst = worst_verdict((categories.security, categories.architecture, categories.correctness))
    if verdict.overall is not worst:
        yield Problem(where=("overall",), expected=f"the worst category, {worst.value}", found=verdict.overall.value)
    counts = verdict.findings_count
    demanded = worst_verdict(
        (
            Verdict.APPROVE,
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
    """Everything wrong inside one reviewer's return: each category is either clean or has findings, and says so."""
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
