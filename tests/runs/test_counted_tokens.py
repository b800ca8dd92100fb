"""The figures of a run name the tokens that were reported; the budget also counts what a killed try may have used."""

from typing import Any

import pytest

from fairwitness.contracts.common.budgets import BudgetCaps, Caps
from fairwitness.contracts.common.evidence import Observation
from fairwitness.runs.dispatch.budget_account import CANCELLED, ENDED, budget_of, counted_tokens

NOTHING = Caps(tokens=None, money_micros=None, milliseconds=None)
CAPS = BudgetCaps(dispatch=NOTHING, phase=NOTHING, run=NOTHING)


def row(kind: str, subject: str, detail: dict[str, Any]) -> Observation:
    return Observation(
        run_id="run-1",
        task_id=None,
        key=f"{kind}:{subject}",
        kind=kind,
        subject=subject,
        holds=True,
        detail=detail,
        tree=None,
        observed_at="2026-11-18T01:00:00Z",
    )


def ended(subject: str, spent: int, **usage: int) -> Observation:
    used = {"tokens": spent, "money_micros": 0, "milliseconds": 0}
    counted = {"turns": 1, "source": "gateway", **usage}
    return row(ENDED, subject, {"outcome": {"usage": counted}, "spending": {"phase": "1", "used": used}})


@pytest.mark.req("A4")
def test_a_killed_try_is_in_the_budget_and_not_in_the_figures() -> None:
    rows = (
        row(CANCELLED, "judge", {"used": {"tokens": 500, "money_micros": 0, "milliseconds": 0}}),
        ended("judge", 1_500, tokens_in=900, tokens_out=100),
        ended("verify", 60_000, tokens_in=3_986, tokens_out=187),
    )
    assert counted_tokens(rows) == 500 + 1_000 + 4_173
    assert sum(each.used.tokens for each in budget_of(CAPS, rows).spent.values()) == 61_500


@pytest.mark.req("A4")
def test_what_an_agent_did_not_count_is_what_was_reserved_for_it() -> None:
    assert counted_tokens([ended("plan", 40_000)]) == 40_000


@pytest.mark.req("A4")
def test_a_cancelled_try_of_an_agent_that_counts_nothing_is_counted_once() -> None:
    cancelled = row(CANCELLED, "plan", {"used": {"tokens": 40_000, "money_micros": 0, "milliseconds": 0}})
    assert counted_tokens([cancelled]) == 40_000
    assert counted_tokens([cancelled, ended("plan", 80_000)]) == 80_000
    assert counted_tokens([ended("plan", 80_000), cancelled, ended("judge", 10, tokens_in=6, tokens_out=1)]) == 80_007
