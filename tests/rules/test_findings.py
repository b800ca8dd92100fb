"""Which findings are open, under which name they are answered, and which files they make writable."""

from typing import Any

import pytest

from fairwitness.contracts.feature.review import Perspective, ReviewReturn
from fairwitness.rules.findings import MOST_FILES, RaisedFinding, named_files, raised, still_open, unanswered
from support.fixtures import value_of

SECURITY, ARCHITECTURE, PRAGMATIC = Perspective


def _finding(id_: str, category: str = "security", severity: str = "Major", *artifacts: str) -> dict[str, Any]:
    template: dict[str, Any] = value_of("000/review-return.yaml")["findings"][0]
    return template | {
        "id": id_,
        "category": category,
        "severity": severity,
        "artifacts": list(artifacts) or ["till/a.py"],
    }


def _review(
    *findings: dict[str, Any], by: Perspective = SECURITY, round_: int = 1, earlier: dict[str, str] | None = None
) -> ReviewReturn:
    template = value_of("000/review-return.yaml")
    judged = [{"id": id_, "resolution": said} for id_, said in (earlier or {}).items()]
    return ReviewReturn.model_validate(
        template
        | {
            "reviewer_perspective": by.value,
            "round": round_,
            "findings": list(findings),
            "clean_categories": [],
            "earlier_findings": judged,
        }
    )


def _ids(*reviews: ReviewReturn) -> list[str]:
    return [each.id for each in still_open(reviews)]


@pytest.mark.req("P7")
def test_every_finding_of_the_last_round_is_open_whatever_its_severity_and_the_vote() -> None:
    assert _ids() == []
    found = [
        _review(_finding("F-1"), _finding("F-2", severity="Minor")),
        _review(by=ARCHITECTURE),
        _review(_finding("F-1", "correctness"), by=PRAGMATIC),
    ]
    assert _ids(*found) == ["security-sentinel/F-1", "security-sentinel/F-2", "pragmatic-verifier/F-1"]


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    ("second", "is_open"),
    [
        (_review(round_=2, earlier={"F-1": "addressed"}), False),
        (_review(round_=2, earlier={"security-sentinel/F-1": "addressed"}), False),
        (_review(round_=2, earlier={"F-1": "partly"}), True),
        (_review(round_=2, earlier={"F-1": "unresolved"}), True),
        (_review(round_=2), False),
        (_review(_finding("F-9", "correctness"), round_=2), False),
        (_review(_finding("F-9"), round_=2), True),
        (_review(_finding("F-1"), round_=2), True),
        (_review(round_=2, by=PRAGMATIC), True),
    ],
    ids=[
        "addressed",
        "addressed, by its full name",
        "partly",
        "unresolved",
        "nothing more found",
        "only in another category",
        "another one of its category, and not a word about it",
        "found again",
        "its reviewer has not judged again",
    ],
)
def test_only_the_reviewer_that_raised_a_finding_settles_it(second: ReviewReturn, is_open: bool) -> None:
    opened = _ids(_review(_finding("F-1")), second)
    assert opened.count("security-sentinel/F-1") == int(is_open)


def test_a_reviewer_that_files_again_replaces_what_it_said_in_that_round() -> None:
    assert _ids(_review(_finding("F-1")), _review(_finding("F-2"))) == ["security-sentinel/F-2"]


@pytest.mark.req("P7")
def test_a_finding_without_an_answer_is_named() -> None:
    found = raised([_review(_finding("F-1"), _finding("F-2"))])
    assert unanswered(found, {"security-sentinel/F-1"}) == ("security-sentinel/F-2",)
    assert unanswered(found, {"security-sentinel/F-1", "security-sentinel/F-2"}) == ()


def _named(*artifacts: str) -> tuple[str, ...]:
    return named_files(raised([_review(_finding("F-1", "security", "Major", *artifacts))]))


@pytest.mark.req("P7")
def test_a_finding_makes_the_files_that_it_names_writable_and_nothing_else() -> None:
    assert _named("docs/index.md:12", "./README.md", "till/a.py:3-9", "till/a.py:1:5", "Makefile") == (
        "docs/index.md",
        "README.md",
        "till/a.py",
    )
    refused = (
        "design-output.yaml D-4",
        "**/*.py",
        "../other/a.py",
        ".git/config",
        "/etc/passwd",
        "D-4",
        "src/{a,b}.py",
    )
    assert _named(*refused) == ()
    assert len(_named(*(f"docs/{number}.md" for number in range(50)))) == MOST_FILES


def test_a_finding_has_the_name_of_its_reviewer() -> None:
    (each,) = raised([_review(_finding("F-1"), by=ARCHITECTURE)])
    assert isinstance(each, RaisedFinding)
    assert each.id == "architecture-guardian/F-1"
