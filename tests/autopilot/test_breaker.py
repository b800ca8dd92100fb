"""The circuit breaker on real runs: each limit opens it, nothing starts while it is open, and a person closes it."""

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from autopilot.grounds import Document, Grounds, Run, part
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus
from fairwitness.errors import NotReady
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.runs.dispatch.budget_account import STARTED

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


def assert_stopped(run: Run, setting: str, *, status: AutopilotRunStatus = AutopilotRunStatus.PAUSED) -> Document:
    """The breaker opened for this last, the run stands still, and nothing was started since; what was told of it."""
    events = run.rows()
    at = max(place for place, event in enumerate(events) if event.type == "circuit_breaker_opened")
    opened = events[at]
    assert opened.data["setting"] == setting
    assert {event.type for event in events[at + 1 :]} <= {"run_halted", "checkpoint_written"}
    assert all(row.observed_at <= opened.timestamp for row in run.observations(STARTED))
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
    assert run.carry() is WatchEnd.PERSON
    assert assert_stopped(run, "no_progress_threshold")["value"] == 2
    assert "plan-1-1-3" not in run.outcomes()


@pytest.mark.req("A4")
def test_the_same_error_again_and_again_opens_it_and_pauses_the_run(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"same_error_threshold": 2, "no_progress_threshold": MANY})
    refuse_plans(grounds, "Line 14 of it is empty.", "Line 15 of it is empty.", "Line 16 of it is empty.")
    run = grounds.begin()
    assert run.carry() is WatchEnd.PERSON
    details = assert_stopped(run, "same_error_threshold")
    assert (details["value"], details["last_error"]) == (
        2,
        "coordination_failure: Line <n> of it is empty.",
    )


@pytest.mark.req("A4")
def test_retries_of_the_whole_run_open_it_and_pause_the_run(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"max_total_retries_per_run": 1})
    grounds.plays("p1-part-1", calls=[part("1-part", "bad\n")])
    run = grounds.begin()
    assert run.carry() is WatchEnd.PERSON
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
    assert run.carry() is WatchEnd.PERSON
    assert_stopped(run, "cost_cap_tokens_per_phase")
    assert len(run.steps()) == steps
    assert len(run.observations(STARTED)) == steps - 2  # neither preflight nor triage asks anybody
    assert tokens_of(run) <= cap


@pytest.mark.req("A4")
def test_a_cap_is_passed_by_no_more_than_one_reservation(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"cost_cap_tokens_per_phase": 110_000})
    grounds.plays("research-1-1-1", usage=(30_000, 0))  # twice, which is more than a researcher may use
    grounds.plays("research-1-1-1", usage=(30_000, 0), number=2)
    run = grounds.begin()
    assert run.carry() is not WatchEnd.COMPLETED
    largest = max(row.detail["reservation"]["asked"]["tokens"] for row in run.observations(STARTED))
    assert tokens_of(run) <= 110_000 + largest
    promised = [row.detail["reservation"]["asked"]["tokens"] for row in run.observations(STARTED)]
    assert sum(promised[:-1]) <= 110_000


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("cap", "usage"),
    [
        pytest.param(50_000, (25_000, 0), id="reached by a step"),
        pytest.param(60_000, (20_000, 0), id="would be passed by the next"),
    ],
)
def test_tokens_of_the_whole_run_fail_it(tmp_path: Path, cap: int, usage: tuple[int, int]) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=2, breaker={"cost_cap_tokens_total": cap})
    grounds.plays("research-1-1-1", usage=usage)
    run = grounds.begin()
    assert run.carry() in (WatchEnd.FAILED, WatchEnd.BUDGET)
    assert_stopped(run, "cost_cap_tokens_total", status=AutopilotRunStatus.FAILED)
    assert tokens_of(run) <= cap
    assert run.statuses()["2"] == "not_started"


def hurried(times: int) -> Clock:
    """A clock that goes so many times as fast as it should."""
    began = system_clock()
    return lambda: began + (system_clock() - began) * times


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("setting", "status"),
    [
        ("wall_clock_timeout_minutes_per_phase", AutopilotRunStatus.PAUSED),
        ("wall_clock_timeout_minutes_total", AutopilotRunStatus.FAILED),
    ],
)
def test_time_of_work_opens_it(tmp_path: Path, setting: str, status: AutopilotRunStatus) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={setting: 1})
    run = grounds.begin()
    assert run.carry_with(clock=hurried(600)) == "done"
    details = assert_stopped(run, setting, status=status)
    assert details["value"] >= 1
    assert run.steps()[-1][1] != "rate"


@pytest.fixture
def paused(tmp_path: Path) -> tuple[Grounds, Run]:
    """A run that two refused plans have paused."""
    grounds = Grounds.lay_out(tmp_path, breaker={"same_error_threshold": 2, "no_progress_threshold": MANY})
    refuse_plans(grounds, "It is empty.", "It is empty.")
    run = grounds.begin()
    assert run.carry() is WatchEnd.PERSON
    assert_stopped(run, "same_error_threshold")
    return grounds, run


@pytest.mark.req("A4")
def test_resuming_is_refused_while_it_cools_down_and_closes_it_by_progress_after(paused: tuple[Grounds, Run]) -> None:
    _, run = paused
    before = run.types()
    for minutes in (0, 3):
        with pytest.raises(NotReady, match=r"is open for another [1-4]m \d+s"):
            run.resume(clock=partial(later, minutes))
    with pytest.raises(NotReady, match="is open for another"):
        run.carry()
    assert run.types() == before
    assert run.resume(clock=later)
    assert run.state().circuit_breaker.state is BreakerPosition.HALF_OPEN
    assert not run.resume(clock=later)
    assert run.carry() is WatchEnd.COMPLETED
    events = run.rows()
    resumed = next(place for place, event in enumerate(events) if event.type == "run_resumed")
    closed = next(place for place, event in enumerate(events) if event.type == "circuit_breaker_closed")
    ended = [event.data for event in events[resumed:closed] if event.type in ("step_completed", "step_failed")]
    assert [each["step"] for each in ended] == ["plan", "plan_check", "execute"]
    assert run.state().circuit_breaker.state is BreakerPosition.CLOSED
    assert run.statuses() == {"1": "completed"}


@pytest.mark.req("A4")
def test_a_probe_that_fails_opens_it_again(paused: tuple[Grounds, Run]) -> None:
    grounds, run = paused
    grounds.plays("plan_check-1-1-3", refused("Something else is wrong."))
    asked = set(run.outcomes())
    assert run.resume(clock=later)
    assert run.carry() is WatchEnd.PERSON
    assert_stopped(run, "same_error_threshold")
    assert set(run.outcomes()) - asked == {"plan-1-1-3", "plan_check-1-1-3"}
    assert len(run.events("circuit_breaker_opened")) == 2
    with pytest.raises(NotReady, match="is open for another"):
        run.resume()


@pytest.mark.req("A4")
def test_a_phase_cap_that_is_still_reached_lets_no_probe_out(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"cost_cap_tokens_per_phase": 60_000})
    grounds.plays("research-1-1-1", usage=(20_000, 0))
    run = grounds.begin()
    assert run.carry() is WatchEnd.PERSON
    with pytest.raises(NotReady, match="is open for another"):
        run.resume()
    assert run.resume(clock=later)
    assert run.carry() is WatchEnd.PERSON
    assert_stopped(run, "cost_cap_tokens_per_phase")
    assert list(run.outcomes()) == ["research-1-1-1"]


@pytest.mark.req("A4")
def test_a_budget_stops_a_run_and_a_raised_one_goes_on_with_the_same_step(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, settings="[budget]\ntokens = 60000\n")
    run = grounds.begin()
    assert run.carry() is WatchEnd.BUDGET
    assert_stopped(run, "cost_cap_tokens_total", status=AutopilotRunStatus.FAILED)
    assert list(run.outcomes()) == ["research-1-1-1"]
    asked = run.types().count("step_started")
    settings = run.file("fairwitness.toml")
    assert run.carry() is WatchEnd.BUDGET  # nothing was raised
    assert list(run.outcomes()) == ["research-1-1-1"]
    grounds.commit("fairwitness.toml", settings.replace("60000", "900000"))
    assert run.carry() is WatchEnd.COMPLETED
    began = [(each["step"], each["attempt"]) for each in run.events("step_started")]
    assert began[:4] == [("preflight", 1), ("triage", 1), ("research", 1), ("plan", 1)]
    assert len(began) == len(set(began)) == asked + 5
