"""Verdicts and resuming: each is written once, with what follows from it, and refused in a sentence otherwise."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from app.autopilot_grounds import (
    MOMENT,
    RUN,
    begun,
    completed,
    deferred,
    event,
    fixed,
    halted,
    lay_out,
    opened,
    over,
    paused,
    started,
    tell,
    types_of,
)
from fairwitness.app.run_records.autopilot import open_autopilot_run, record_verdict, resume_autopilot, settled_verdicts
from fairwitness.app.runs.answer import answer
from fairwitness.app.runs.verdict import give_verdict
from fairwitness.app.views.inbox import inbox
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.events_run import CircuitBreakerOpened
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, HumanWord, PhaseStatus
from fairwitness.errors import NotReady, UsageError
from fairwitness.store.layout import autopilot as layout

PHASES = tuple(str(number) for number in range(1, 7))
WIDE = "# Roadmap\n\n" + "".join(f"- [ ] **Phase {number}: Part {number}** - one\n" for number in PHASES)
WIDE += "".join(
    f"\n### Phase {number}: Part {number}\n\n**Goal**: It works.\n**Depends on**: Nothing\n"
    "**Success Criteria**:\n\n1. It looks right\n"
    for number in PHASES
)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A run with six phases, of which all wait for a person."""
    folder = lay_out(tmp_path / "shop", WIDE)
    begun(folder, PHASES)
    for phase in PHASES:
        tell(folder, started(phase), deferred(phase))
    return folder


def verdict(top: Path, phase: str, said: HumanWord = HumanWord.PASS, *issues: str) -> tuple[float, float]:
    with open_autopilot_run(top, RUN) as context:
        done = record_verdict(context, phase, said, issues)
        return done.old_limit, done.new_limit


@pytest.mark.req("A19")
def test_a_verdict_settles_its_phase_and_is_told_once(top: Path) -> None:
    verdict(top, "1")
    verdict(top, "2", HumanWord.ISSUES_FOUND, "the total is wrong", " ")
    with opened(top) as log:
        state = log.state().state
    assert state.phases["1"].status is PhaseStatus.COMPLETED
    said = state.phases["2"].human_verdict
    assert (state.phases["2"].status, said and said.issues) == (PhaseStatus.FAILED, ("the total is wrong",))
    assert [each.human_verdict for each in state.meta.deferral_history[:3]] == ["pass", "issues_found", None]
    assert settled_verdicts(top, RUN) == ("verdict:1", "verdict:2")
    with pytest.raises(UsageError, match=r"phase 1 of .* is completed and does not wait for a verdict"):
        verdict(top, "1", HumanWord.FAIL)
    assert types_of(top).count("human_verdict_recorded") == 2


@pytest.mark.req("A19")
def test_the_limit_follows_the_verdicts_by_half_a_point(top: Path) -> None:
    assert [verdict(top, phase) for phase in PHASES[:4]] == [(6.0, 6.0), (6.0, 6.0), (6.0, 5.5), (5.5, 5.0)]
    assert types_of(top).count("deferral_threshold_adjusted") == 2
    assert verdict(top, "5", HumanWord.FAIL) == (5.0, 5.0)
    assert verdict(top, "6", HumanWord.FAIL) == (5.0, 5.5)
    with opened(top) as log:
        assert log.state().state.meta.deferral_confidence == 5.5


@pytest.mark.req("A19")
def test_that_people_are_asked_too_often_is_told_once_for_as_many_deferrals(top: Path) -> None:
    verdict(top, "1")
    verdict(top, "2")
    warned = [name for name in types_of(top) if name == "high_defer_rate_warning"]
    assert len(warned) == 1


@pytest.mark.req("A19")
def test_a_phase_that_nobody_asked_about_is_refused(top: Path) -> None:
    with pytest.raises(UsageError, match="has no phase 9"):
        verdict(top, "9")
    with pytest.raises(UsageError, match="requires at least one"):
        verdict(top, "1", HumanWord.ISSUES_FOUND, "  ")


@pytest.mark.req("A8")
def test_what_a_person_said_is_learned_and_stands_in_the_state_file(top: Path) -> None:
    given = give_verdict(top, "3", "issues", ("too slow",), None)
    assert (given.recorded.run_id, given.recorded.gate, given.is_carried) == (RUN, "verdict:3", False)
    assert "too slow" in (top / layout.LEARNINGS).read_text()
    state = json.loads((top / layout.STATE).read_text())
    assert state["phases"]["3"]["human_verdict"]["issues"] == ["too slow"]


@pytest.mark.req("A19")
def test_a_verdict_can_be_given_as_the_answer_to_a_question(top: Path) -> None:
    (waiting,) = inbox(top)
    assert (waiting.run_id, waiting.question.gate_id) == (RUN, "verdict.1")
    assert "look at the page" in waiting.question.context
    assert [option.id for option in waiting.question.options if option.is_default] == ["issues"]
    with pytest.raises(UsageError, match="issues requires an explanation"):
        answer(top, RUN, "issues", None)
    with pytest.raises(UsageError, match="is not a verdict"):
        answer(top, RUN, "maybe", None)
    answer(top, RUN, "pass", None)
    (waiting,) = inbox(top)
    assert waiting.question.gate_id == "verdict.2"


def status(top: Path) -> AutopilotRunStatus:
    with opened(top) as log:
        return log.state().state.meta.status


@pytest.mark.req("A1")
def test_what_runs_goes_on_and_what_is_completed_stays_so(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop")
    begun(top)
    assert not resume_autopilot(top, RUN)
    tell(top, started("1"), completed("1"), over())
    assert not resume_autopilot(top, RUN)
    assert (status(top), "run_resumed" in types_of(top)) == (AutopilotRunStatus.COMPLETED, False)


@pytest.mark.req("A1")
@pytest.mark.parametrize("stop", [paused(), halted()], ids=["paused", "failed"])
def test_a_run_that_stopped_goes_on_when_a_person_says_so(tmp_path: Path, stop: object) -> None:
    top = lay_out(tmp_path / "shop")
    begun(top)
    tell(top, started("1"), stop)  # type: ignore[arg-type]  # either of two happenings
    before = status(top)
    assert resume_autopilot(top, RUN)
    assert not resume_autopilot(top, RUN)
    with opened(top) as log:
        told = log.ledger.last_event(RUN, "run_resumed")
    assert status(top) is AutopilotRunStatus.RUNNING
    assert told is not None
    assert told.data == {"previous_status": before.value, "from_phase": "1"}


@pytest.mark.req("A4")
def test_a_breaker_that_cools_down_is_waited_for_and_then_half_open(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop")
    begun(top)
    until = MOMENT + timedelta(minutes=5)
    trip = event(CircuitBreakerOpened, setting="no_progress_threshold", value=3, cooldown_until=until.isoformat())
    tell(top, started("1"), trip, paused(), clock=fixed())
    with pytest.raises(NotReady, match="is open for another 4m 30s"):
        resume_autopilot(top, RUN, clock=fixed(MOMENT + timedelta(seconds=30)))
    assert (status(top), types_of(top)[-2:]) == (AutopilotRunStatus.PAUSED, ["run_halted", "checkpoint_written"])
    assert resume_autopilot(top, RUN, clock=fixed(until))
    with opened(top) as log:
        assert log.state().state.circuit_breaker.state is BreakerPosition.HALF_OPEN
