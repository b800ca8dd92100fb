"""Every kept run, played again on paper: it takes the decisions that are kept, within its bounds, and replays alike."""

import pytest

from fairwitness.app.runs.replay import replay
from fairwitness.contracts.common.decisions import Finish, Halt
from fairwitness.contracts.feature.events import Degradation
from feature.keeping import load, names
from feature.paper_bounds import beyond_bounds
from feature.paper_grounds import played
from feature.paper_scripts import SCRIPTS
from support.summaries import assert_summaries

_AGAIN = "PYTHONPATH=tests .venv/bin/python -m feature.keep"


def test_every_script_is_kept() -> None:
    assert names() == sorted(SCRIPTS), f"then look at the diff of: {_AGAIN}"


@pytest.mark.req("P12")
@pytest.mark.req("P14")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_run_on_paper_decides_as_it_is_kept(name: str) -> None:
    with played(SCRIPTS[name]) as (steps, context):
        told = [[step.number, step.step, step.decision.kind, step.decision.reason] for step in steps]
        kept = [[each[key] for key in ("number", "step", "kind", "reason")] for each in load(name)["decisions"]]
        assert told == kept, f"if that is meant: {_AGAIN}"
        assert isinstance(steps[-1].decision, Finish | Halt)
        assert beyond_bounds(context) == []
        assert [each for each in replay(context.ledger, context.run_id) if each.flips] == []
        told_less = [event.data["kind"] for event in context.ledger.events(context.run_id) if event.type == "degraded"]
        assert_summaries(context.ledger)
        assert told_less == load(name)["decisions"][-1]["facts"]["degradations"]


@pytest.mark.req("P17")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("researchers-two-of-four", Degradation.FEWER_RESEARCHERS),
        ("knowledge-fails-twice", Degradation.KNOWLEDGE_FAILED),
        ("budget-at-knowledge", Degradation.KNOWLEDGE_FAILED),
        ("tier-3-infeasible", Degradation.TIER3_INFEASIBLE),
        ("single-model", Degradation.SINGLE_MODEL),
        ("weaker-sandbox", Degradation.SANDBOX_TIER),
        ("design-exhausted", Degradation.DESIGN_NOT_APPROVED),
        ("iterations-exhausted", Degradation.REPLAN_EXHAUSTED),
        ("review-exhausted", Degradation.REVIEW_EXHAUSTED),
        ("fix-dropped", Degradation.REVIEW_EXHAUSTED),
    ],
)
def test_going_on_with_less_is_on_record_once(name: str, kind: Degradation) -> None:
    assert load(name)["decisions"][-1]["facts"]["degradations"] == [kind.value]


def test_the_same_script_leaves_the_same_ledger() -> None:
    heads = []
    for _ in range(2):
        with played(SCRIPTS["iterations-exhausted"]) as (_, context):
            heads.append(context.ledger.head(context.run_id))
    assert heads[0] == heads[1]
