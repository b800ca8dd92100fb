"""From a rating to what would raise it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.contracts.autopilot.rating import RatingReturn, band_of
from fairwitness.rules.integrity_evidence import places
from fairwitness.rules.rating import deficiencies, improvement_paths
from fairwitness.rules.scores import mean_score

KNOWN = frozenset({"src/a.py", "src/b.py"})


def item(criterion: str, score: float, **more: Any) -> dict[str, Any]:
    return {
        "criterion": criterion,
        "score": score,
        "max_score": 10.0,
        "verification_command": "true",
        "command_output": "",
        "evidence": "src/a.py:3 returns the sum",
        "justification": "an empty list is not handled",
    } | more


def rating(*items: dict[str, Any]) -> RatingReturn:
    score = mean_score([each["score"] for each in items])
    return RatingReturn.model_validate(
        {
            "alignment_score": score,
            "scorecard": list(items),
            "aggregate_justification": "so so",
            "side_effects": [],
            "commands_run": ["true"],
            "score_band": band_of(score),
        }
    )


@pytest.mark.req("A13")
def test_each_criterion_below_nine_names_file_deficiency_and_what_it_brings_widest_gap_first() -> None:
    found = improvement_paths(rating(item("one", 8.5), item("two", 9.0), item("three", 7.5)), {}, KNOWN)
    assert [(each.file, each.deficiency, each.impact) for each in found] == [
        ("src/a.py", "an empty list is not handled", "raises criterion 3 from 7.5 to 9.0"),
        ("src/a.py", "an empty list is not handled", "raises criterion 1 from 8.5 to 9.0"),
    ]


@pytest.mark.req("A13")
def test_the_file_is_what_the_justification_names_then_the_evidence_then_the_plan() -> None:
    said = rating(
        item("one", 8.0, justification="src/b.py:7 drops the sign"),
        item("two", 8.0, justification="gone.py:1 is missing"),
        item("three", 8.0, evidence="nothing is shown"),
        item("four", 8.0, evidence="nothing is shown"),
    )
    found = {each.criterion: each.target_file for each in deficiencies(said, {"three": "src/b.py"}, KNOWN, 90)}
    assert found == {"one": "src/b.py", "two": "src/a.py", "three": "src/b.py"}


@pytest.mark.req("A13")
def test_a_higher_target_leaves_more_to_be_raised() -> None:
    said = rating(item("one", 9.2), item("two", 9.6))
    assert [len(improvement_paths(said, {}, KNOWN, target)) for target in (90, 95, 98)] == [0, 1, 2]


@given(st.text())
def test_places_are_found_in_any_text_and_never_twice(text: str) -> None:
    found = places(text)
    assert len(set(found)) == len(found)
    assert all(f"{place}:" in text for place in found)
