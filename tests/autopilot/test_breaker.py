"""The circuit breaker on real runs: each limit opens it, nothing starts while it is open, and a person closes it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from assay.app.runs import End
from assay.contracts.autopilot.breaker import BreakerPosition
from assay.contracts.autopilot.words import RunStatus
from assay.errors import NotReady
from assay.kit.clock import system_clock
from assay.steps.dispatch.account import STARTED
from autopilot.grounds import Document, Grounds, Run, part

pytestmark = pytest.mark.timeout(180)

MANY = 50
"""A limit that no run here reaches."""


def later(minutes: float = 6) -> datetime:
    """A moment after the cooldown."""
    return system_clock() + timedelta(minutes=minutes)


def refused(why: str) -> Document:
    """What a plan checker says who refuses a plan."""
    issue = {"severity": "blocker", "description": why}
    return {"pass": False, "issues": [issue], "confidence": 9.0, "blocker_count": 1, "warning_count": 0}


def refuse_plans(grounds: Grounds, *reasons: str) -> None:
    """One plan after the other is refused."""
    for number, why in enumerate(reasons, start=1):
        grounds.plays(f"plan_check-1-1-{number}", refused(why))


def assert_stopped(run: Run, setting: str, *, status: RunStatus = RunStatus.PAUSED) -> Document:
    """The breaker opened for this last, the run stands still, and nothing was started since; what was told of it."""
    events = run.rows()
    at = max(place for place, event in enumerate(events) if event.type == "circuit_breaker_opened")
    opened = events[at]
    assert opened.data["setting"] == setting
    assert {event.type for event in events[at + 1 :]} <= {"run_halted", "checkpoint_written"}
    started = run.observations(STARTED)
    assert started
    assert all(row.observed_at <= opened.timestamp for row in started)
    state = run.state()
    assert (state.meta.status, state.circuit_breaker.state) == (status, BreakerPosition.OPEN)
    assert run.statuses()["1"] == "in_progress"
    assert run.events("phase_failed") == run.events("phase_completed") == []
    details: Document = opened.data
    return details


@pytest.mark.req("A4")
def test_steps_without_progress_open_it_and_pause_the_run(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"no_progress_threshold": 2, "same_error_threshold": MANY})
    refuse_plans(grounds, "It leaves out the label.", "Nobody reviews it.", "It is too long.")
    run = grounds.begin()
    assert run.carry() is End.PERSON
    assert assert_stopped(run, "no_progress_threshold")["value"] == 2
    assert "plan-1-1-3" not in run.outcomes()


@pytest.mark.req("A4")
def test_the_same_error_again_and_again_opens_it_and_pauses_the_run(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"same_error_threshold": 2, "no_progress_threshold": MANY})
    refuse_plans(grounds, "Line 14 of it is empty.", "Line 15 of it is empty.", "Line 16 of it is empty.")
    run = grounds.begin()
    assert run.carry() is End.PERSON
    details = assert_stopped(run, "same_error_threshold")
    assert (details["value"], details["last_error"]) == (
        2,
        "executor_wrong_approach: Line <n> of it is empty.",
    )


@pytest.mark.req("A4")
def test_retries_of_the_whole_run_open_it_and_pause_the_run(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"max_total_retries_per_run": 1})
    grounds.plays("p1-part-1", calls=[part("1-part", "bad\n")])
    run = grounds.begin()
    assert run.carry() is End.PERSON
    assert assert_stopped(run, "max_total_retries_per_run")["value"] == 1
    assert run.steps()[-1] == ("1-1", "execute", True)
    assert [each["attempt"] for each in run.events("task_retried")] == [1]


def tokens_of(run: Run) -> int:
    """What its dispatches used."""
    return sum(outcome.usage.tokens or 0 for outcome in run.outcomes().values())


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("cap", "usage", "steps"),
    [
        pytest.param(50_000, (25_000, 0), 3, id="reached by a step"),
        pytest.param(60_000, (20_000, 0), 3, id="would be passed by the next"),
        pytest.param(49_999, (900, 40), 2, id="less than the first asks for"),
    ],
)
def test_tokens_of_a_phase_open_it_and_pause_the_run(
    tmp_path: Path, cap: int, usage: tuple[int, int], steps: int
) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"cost_cap_tokens_per_phase": cap})
    grounds.plays("research-1-1-1", usage=usage)
    run = grounds.begin()
    assert run.carry() is End.PERSON
    if steps == 2:
        assert run.observations(STARTED) == []
    else:
        assert_stopped(run, "cost_cap_tokens_per_phase")
    assert len(run.steps()) == steps
    assert tokens_of(run) <= cap
