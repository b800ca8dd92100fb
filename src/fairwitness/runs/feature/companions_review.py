"""What is left of a review: the findings for people, and the verdict that follows from them by rule."""

from collections.abc import Iterator

from fairwitness.contracts.common.words import SEVERITIES, Verdict
from fairwitness.contracts.feature.review import Category, ReviewFinding, ReviewReturn, ReviewVerdict
from fairwitness.kit.documents import Format, render
from fairwitness.kit.markdown import (
    Markdown,
    cell,
    item,
    items,
    line,
    listed,
    page,
    table,
    texts,
)
from fairwitness.rules.review import category_verdict, verdict_of

HEADINGS: dict[Category, str] = {
    Category.SECURITY: "## Security",
    Category.ARCHITECTURE: "## Architecture",
    Category.CORRECTNESS: "## Correctness",
}


def review_verdict(review: ReviewReturn) -> ReviewVerdict:
    """Schema 9: the verdict is derived, so it cannot be milder than what was found."""
    return verdict_of(review)


def verdict_page(review: ReviewReturn) -> str:
    """`review-verdicts/<scope>-<perspective>.yaml`."""
    return render(review_verdict(review).plain(), Format.YAML)


def findings_page(review: ReviewReturn) -> str:
    """`review-findings/<scope>-<perspective>.md`."""
    return page(_findings(review), whole="the reviewer's answer in the ledger")


def _findings(review: ReviewReturn) -> Iterator[Markdown]:
    verdict = review_verdict(review)
    yield Markdown(f"# Review of the {review.scope.value}: {review.reviewer_perspective.value}, round {review.round}")
    yield Markdown(
        "Rendered by Fair Witness from what the reviewer returned: claims, not evidence. The verdict follows by rule."
    )
    yield line(review.summary)
    yield Markdown("## Verdict")
    yield Markdown(f"Overall: **{verdict.overall.value}**")
    yield table(
        ("Category", "Verdict", "Findings"),
        [
            (
                each.value,
                _shown(category_verdict(review, each)),
                str(len(_of(review, each))),
            )
            for each in Category
        ],
        "None.",
    )
    for category in Category:
        yield Markdown(HEADINGS[category])
        yield from _category(review, category)
    yield from _earlier(review)
    yield Markdown("## Limits")
    yield texts(review.known_limits or (), "The reviewer named no limit of its review.")


def _shown(verdict: Verdict) -> Markdown:
    return Markdown(verdict.value if verdict is Verdict.APPROVE else f"**{verdict.value}**")


def _of(review: ReviewReturn, category: Category) -> list[ReviewFinding]:
    """A category's findings, worst first."""
    found = [each for each in review.findings if each.category is category]
    return sorted(found, key=lambda each: SEVERITIES.index(each.severity))


def _category(review: ReviewReturn, category: Category) -> Iterator[Markdown]:
    found = _of(review, category)
    for finding in found:
        yield Markdown(f"### {finding.severity.value} {line(finding.id, 80)}: {line(finding.title)}")
        yield items(
            [
                item(Markdown("Found:"), finding.description),
                Markdown(f"- In: {listed(finding.artifacts)}"),
                item(Markdown("Do:"), finding.recommendation),
                *(item(Markdown("Rests on:"), each) for each in finding.evidence),
            ],
            "",
        )
    if found:
        if category in review.clean_categories:
            yield Markdown("The reviewer also called this category clean; the findings stand.")
    elif category in review.clean_categories:
        yield Markdown("Looked at, and called clean.")
    else:
        yield Markdown("No finding, and no word that it was looked at.")


def _earlier(review: ReviewReturn) -> Iterator[Markdown]:
    yield Markdown("## Earlier findings")
    yield table(
        ("Finding", "What became of it", "Note"),
        [(cell(each.id), each.resolution.value, each.note or "") for each in review.earlier_findings or ()],
        "The reviewer says nothing of an earlier round.",
    )
