"""A verdict follows from findings: total over severities, never milder, and the whole small table in sentences."""
# ruff: noqa: E501  # the sentences of the table stay whole

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from assay.contracts.common.problems import spell_path
from assay.contracts.common.words import VERDICTS, Severity, Verdict
from assay.contracts.feature.review import Category, ReviewFinding, ReviewReturn, ReviewVerdict
from assay.rules.review import VERDICT_OF, review_problems, verdict_of, verdict_problems
from support import value_of


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
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(FINDINGS, st.tuples(st.sampled_from(Category), st.sampled_from(Severity)))
def test_one_more_finding_never_makes_a_verdict_milder(
    findings: list[tuple[Category, Severity]], more: tuple[Category, Severity]
) -> None:
    before, after = verdict_of(_review(*findings)), verdict_of(_review(*findings, more))
    assert VERDICTS.index(after.overall) >= VERDICTS.index(before.overall)


@pytest.mark.req("P7")
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
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
            "Critical in security: security needs_revision, architecture approve, correctness approve, overall needs_revision",
            "Critical in architecture: security approve, architecture needs_revision, correctness approve, overall needs_revision",
            "Critical in correctness: security approve, architecture approve, correctness needs_revision, overall needs_revision",
            "Major in security: security needs_revision, architecture approve, correctness approve, overall needs_revision",
            "Major in architecture: security approve, architecture needs_revision, correctness approve, overall needs_revision",
            "Major in correctness: security approve, architecture approve, correctness needs_revision, overall needs_revision",
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
    assert [problem.expected for problem in review_problems(silent)] == ["'correctness', or a finding in it"]
    assert [spell_path(problem.where) for problem in review_problems(both)] == ["clean_categories[0]"]


@pytest.mark.req("P7")
def test_no_findings_is_an_approval() -> None:
    assert verdict_of(_review()).overall is Verdict.APPROVE
    assert ReviewFinding.model_fields.keys() >= {"category", "severity", "artifacts", "recommendation", "evidence"}
