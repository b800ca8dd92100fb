"""Interrupted calls are counted and shown beside what was counted, on every screen and for every workflow."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.report_ledgers import FeatureWalk, finished, going
from cli.runner import fairwitness
from fairwitness.app.report.builder import write_report
from fairwitness.app.views.agent_usage import (
    CANCELLED,
    ENDED,
    STARTED,
    AgentUsage,
    CallRow,
    total,
    usage_by_role,
    usage_line,
)
from fairwitness.app.views.ends import end_lines
from fairwitness.app.views.followed_run import follow_run
from fairwitness.runs.dispatch import budget_account
from support.state import own_state


def started(call: str, tokens: int = 40_000, micros: int = 500_000, role: str = "coder") -> CallRow:
    """A try that begins, with what is reserved for it."""
    asked = {"tokens": tokens, "money_micros": micros, "milliseconds": 1}
    return CallRow(STARTED, call, {"role": role, "reservation": {"id": call, "phase": None, "asked": asked}})


def over(kind: str, call: str, tokens: int | None = 100, cost: int | None = 2000, role: str = "coder") -> CallRow:
    """A try that ends or is stopped."""
    usage = {"tokens_in": tokens, "tokens_out": tokens, "cost_micros": cost}
    return CallRow(kind, call, {"role": role, "outcome": {"usage": usage}})


@pytest.mark.parametrize(
    ("rows", "is_worked_on", "expected"),
    [
        ([], False, "0 agent calls, 0 tokens"),
        ([started("a"), over(ENDED, "a")], False, "1 agent call, 200 tokens, $0.00"),
        ([started("a")], True, "0 agent calls, 0 tokens"),
        ([started("a")], False, "0 agent calls, 0 tokens; 1 interrupted call used at most 40,000 tokens, $0.50"),
        (
            [started("a"), started("a")],
            True,
            "0 agent calls, 0 tokens; 1 interrupted call used at most 40,000 tokens, $0.50",
        ),
        (
            [started("a"), started("a"), started("a"), over(ENDED, "a", cost=1_000_000)],
            False,
            "1 agent call, 200 tokens, $1.00; 2 interrupted calls used at most 80,000 tokens, $1.00",
        ),
        (
            [started("a"), over(CANCELLED, "a"), started("a"), over(ENDED, "a", cost=None)],
            False,
            "2 agent calls, 400 tokens, $0.00",
        ),
        (
            [started("a", tokens=0), started("a", tokens=0), over(ENDED, "a", cost=None)],
            True,
            "1 agent call, 200 tokens; 1 interrupted call used an unknown number of tokens",
        ),
        (
            [started("a", micros=0), started("b"), over(ENDED, "b", cost=None)],
            False,
            "1 agent call, 200 tokens; 1 interrupted call used at most 40,000 tokens",
        ),
    ],
)
def test_a_try_that_neither_ended_nor_was_stopped_is_interrupted(
    rows: list[CallRow], is_worked_on: bool, expected: str
) -> None:
    assert usage_line(total(usage_by_role(rows, is_worked_on=is_worked_on).values())) == expected


def test_usage_is_kept_by_role_and_only_what_was_reported_is_counted() -> None:
    rows = [started("a"), over(ENDED, "a", tokens=None, cost=None), started("b", role="judge"), started("c")]
    used = usage_by_role([*rows, over(ENDED, "c")], is_worked_on=False)
    assert used["coder"].plain() == AgentUsage(2, 1, 100, 100, 1, 2000).plain()
    assert (used["judge"].calls, used["judge"].interrupted) == (0, 1)


@pytest.mark.parametrize("detail", [{}, {"outcome": []}, {"outcome": {"usage": {"tokens_in": "x"}}}, {"role": 3}])
@pytest.mark.parametrize("kind", [STARTED, CANCELLED, ENDED])
def test_rows_that_say_nothing_are_counted_as_calls_without_numbers(kind: str, detail: dict[str, Any]) -> None:
    used = total(usage_by_role([CallRow(kind, "a", detail)], is_worked_on=False).values())
    assert (used.calls + used.interrupted, used.tokens) == (1, 0)


def test_the_kinds_are_those_that_runs_record() -> None:
    assert (STARTED, CANCELLED, ENDED) == (budget_account.STARTED, budget_account.CANCELLED, budget_account.ENDED)


def begun(walk: FeatureWalk, *calls: str) -> None:
    """Tries that were killed."""
    for number, call in enumerate(calls):
        walk.see(f"dispatch:{call}:try-{number + 1}", STARTED, started(call).detail, subject=call)


@pytest.mark.req("F5")
def test_closing_block_and_report_show_interrupted_calls(tmp_path: Path) -> None:
    walk = finished(tmp_path, text="Log in")
    begun(walk, "lost-1", "lost-1")
    walk.close()
    with follow_run(tmp_path, walk.run_id) as run:
        (cost,) = [line for line in end_lines(run) if line.startswith("cost")]
    counted = "6 agent calls, 12,600 tokens, $0.01"
    assert cost == f"cost      {counted}; 2 interrupted calls used at most 80,000 tokens, $1.00"
    page = write_report(tmp_path, walk.run_id, out=tmp_path / "report.html").path.read_text()
    assert "2 interrupted calls used at most 80,000 tokens, $1.00; the table does not include them." in page
    assert "12,600 or more" in page


@pytest.mark.req("F5")
def test_status_of_a_run_that_was_killed_shows_the_calls_that_it_lost(tmp_path: Path) -> None:
    walk = going(tmp_path, text="Log in")
    begun(walk, "lost-1")
    walk.close()
    own_state(tmp_path)
    said = fairwitness("status", walk.run_id, cwd=tmp_path, COLUMNS="200").stdout
    assert "; 1 interrupted call used at most 40,000 tokens, $0.50" in said
    plain = json.loads(fairwitness("status", walk.run_id, "--json", cwd=tmp_path).stdout)
    assert (plain["usage"]["interrupted"], plain["usage"]["most_tokens"]) == (1, 40_000)
