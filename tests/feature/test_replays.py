"""The kept runs decided again from their facts alone: a changed rule names the decision that it flips."""

from typing import NamedTuple

import pytest

from fairwitness.app.runs.replay import differences
from fairwitness.contracts.common.policy import Policy, ReviewPolicy, VerificationPolicy
from fairwitness.contracts.feature.facts import FeatureFacts
from fairwitness.rules.feature_decision import decide
from feature.keeping import load, names


class Flipped(NamedTuple):
    """A decision that would not be taken so any more."""

    number: int
    step: str | None
    stood: str
    now: str
    fields: tuple[str, ...]


def _flipped(name: str, policy: Policy | None = None) -> list[Flipped]:
    kept = load(name)
    rules = policy or Policy.model_validate(kept["policy"])
    found = []
    for each in kept["decisions"]:
        now = decide(FeatureFacts.model_validate(each["facts"]), rules)
        fields = tuple(flip.what for flip in differences(each["decision"], now.plain()))
        if fields:
            stood, told = f"{each['kind']}: {each['reason']}", f"{now.kind}: {now.reason}"
            found.append(Flipped(each["number"], each["step"], stood, told, fields))
    return found


@pytest.mark.req("P14")
@pytest.mark.parametrize("name", names())
def test_the_same_facts_lead_to_the_same_decisions(name: str) -> None:
    assert _flipped(name) == []


@pytest.mark.req("P14")
def test_another_quorum_flips_the_decision_about_the_review_and_no_other() -> None:
    stricter = Policy(review=ReviewPolicy(approvals=3))
    (flip,) = [
        each for each in _flipped("review-dissent", stricter) if each.stood.split(":")[0] != each.now.split(":")[0]
    ]
    assert (flip.number, flip.step) == (13, "step-7")
    assert flip.stood.startswith("advance: the reviewers approve the code")
    assert flip.now == "revise: the reviewers request changes to the code: too few approvals"
    assert {"kind", "reason", "to", "gates"} <= set(flip.fields)


def test_a_higher_threshold_of_evidence_flips_the_decision_about_the_tasks() -> None:
    stricter = Policy(verification=VerificationPolicy(standard_checks=9, large_checks=9))
    flip = _flipped("happy-autonomous", stricter)[0]
    assert (flip.number, flip.step) == (12, "step-6")
    assert flip.stood == "advance: every task has its evidence"
    assert flip.now == "replan: tasks lack evidence: task-01, task-02, task-03, task-04"


def test_fewer_iterations_flip_a_replan_into_going_on() -> None:
    shorter = Policy(verification=VerificationPolicy(iterations=1, revert_from=1))
    kinds = [
        (each.step, each.stood.split(":")[0], each.now.split(":")[0]) for each in _flipped("replanned-once", shorter)
    ]
    assert ("step-6", "replan", "revert") in kinds
