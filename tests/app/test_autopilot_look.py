"""Autopilot runs as people look at them say what the folds say, whoever asks and however much of it was read."""

from pathlib import Path

import pytest

from app.autopilot_grounds import (
    RUN,
    at_step,
    begun,
    completed,
    deferred,
    failed,
    halted,
    lay_out,
    opened,
    over,
    paused,
    started,
    tell,
)
from fairwitness.app.runs.drive import LAST_EVENT_S, needed_silence_s
from fairwitness.app.views.autopilot import (
    all_metrics,
    next_autopilot_command,
    report_of,
    roadmap_phases,
)
from fairwitness.app.views.board import board_of, view_of_run
from fairwitness.app.views.detail import next_command, read_detail, run_lines
from fairwitness.app.views.detail import open_database as opened_database
from fairwitness.app.views.event_lines import event_text
from fairwitness.app.views.followed_run import follow_run
from fairwitness.app.views.run import RunView, WatchEnd
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.errors import UsageError
from fairwitness.ledger.phase_summary import PhaseStatuses
from fairwitness.ledger.summary_event import SummaryEvent
from fairwitness.rules.fold_autopilot import fold_autopilot
from rules.fold_streams import PILOT, PILOT_RUN, SETUP, stream

STREAM = stream(Workflow.AUTOPILOT, PILOT_RUN, PILOT)


def raw(place: int) -> SummaryEvent:
    """An event as it stands in the table."""
    one = STREAM[place]
    return SummaryEvent(
        one.event_id, one.seq, one.timestamp, "autopilot", one.run_id, one.phase, None, None, one.type, 1, one.data
    )


@pytest.mark.req("A5")
def test_after_every_event_the_phases_stand_as_the_fold_says() -> None:
    course, view, state = PhaseStatuses(), RunView(PILOT_RUN), None
    for place, envelope in enumerate(STREAM):
        course.apply_event(raw(place))
        view.apply_event(raw(place))
        folded = fold_autopilot([envelope], SETUP, onto=state)
        assert not isinstance(folded, Problem), folded
        state = folded
        statuses = {phase: record.status.value for phase, record in state.state.phases.items()}
        assert {phase: course.statuses.get(phase, "not_started") for phase in statuses} == statuses, envelope.type
        word = {"running": ("executing", "waiting"), "paused": ("paused",), "failed": ("failed",)}
        assert view.status in word.get(state.state.meta.status.value, ("completed",))


@pytest.mark.req("A5")
def test_a_rating_is_shown_with_its_score() -> None:
    rate = {"status": "fail", "alignment_score": 8.6, "score_band": "good"}
    data = {"step": "rate", "facts": {"steps": {"rate": rate}}}
    words = event_text(raw(0)._replace(type="step_completed", phase="5", data=data))
    assert words is not None
    assert words.endswith("rate: score 8.6")


@pytest.mark.req("A5")
def test_every_event_has_words_and_none_of_them_is_the_raw_one() -> None:
    for place, envelope in enumerate(STREAM):
        words = event_text(raw(place))
        assert words is None or (words and not words.startswith(envelope.type)), envelope.type


def test_an_event_that_is_not_as_it_should_be_is_shown_as_it_is() -> None:
    broken = raw(0)._replace(type="phase_skipped", data={"odd": "\x1b[2J"})
    words = event_text(broken)
    assert words is not None
    assert words.startswith("phase_skipped")
    assert words.isprintable()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "shop")


def line(top: Path) -> tuple[str, bool, int, int, str]:
    (found,), _ = run_lines(top)
    return found.status, found.is_over, found.merged, found.total, found.waits_for


def end(top: Path) -> tuple[WatchEnd | None, str]:
    with opened_database(top) as database:
        view = read_detail(database, RUN).view
    return view.ended(), next_command(view, is_worked_on=False)


@pytest.mark.req("A19")
def test_a_run_waits_for_a_verdict_only_when_nothing_else_can_go_on(top: Path) -> None:
    begun(top, ("1", "2", "3.1"))
    assert line(top) == ("executing", False, 0, 3, "")
    tell(top, started("1"), deferred("1"))
    assert line(top)[0] == "executing"  # 3.1 rests on nothing
    assert end(top) == (None, f"fairwitness resume {RUN}")
    tell(top, started("3.1"))
    assert line(top)[0] == "executing"
    tell(top, completed("3.1"))
    assert line(top) == ("waiting", False, 1, 3, "your verdict on phase 1")
    assert end(top) == (WatchEnd.PERSON, "fairwitness inbox")


@pytest.mark.req("A1")
def test_a_pause_is_no_end_and_a_failure_is_one(top: Path) -> None:
    begun(top)
    tell(top, started("1"), paused())
    assert line(top) == ("paused", False, 0, 2, f"you: fairwitness resume {RUN}")
    assert end(top) == (WatchEnd.PERSON, f"fairwitness resume {RUN}")
    tell(top, failed("1"), halted("over budget: 9 of 8 tokens"))
    assert line(top)[:2] == ("failed", True)
    assert end(top) == (WatchEnd.BUDGET, f"fairwitness autopilot report {RUN}")


@pytest.mark.req("A19", "P16")
def test_silence_alone_never_leaves_a_run_with_a_deferred_phase_to_a_person(top: Path) -> None:
    """It still has to write its report, and a process that takes it up after a kill is silent meanwhile."""
    begun(top)
    tell(top, started("1"), deferred("1"))
    with follow_run(top, RUN) as run:
        assert needed_silence_s(run.view) is None
        tell(top, paused())
        run.news()
        assert needed_silence_s(run.view) == LAST_EVENT_S


def test_the_board_shows_phases_with_step_score_and_tokens(top: Path) -> None:
    begun(top)
    tell(top, started("1"), completed("1", 9.4), started("2"), at_step("2", StepName.EXECUTE))
    with follow_run(top, RUN) as run:
        view = board_of(run.view, run.order())
        assert [(phase.id, phase.name, phase.word, phase.step, phase.score) for phase in view.phases] == [
            ("1", "Sign in", "completed", None, 9.4),
            ("2", "Shop", "in progress", "execute", None),
        ]
        assert (view.current_phase, view.token_cap, view.breaker) == ("2", 5_000_000, "closed")
        tell(top, deferred("2"))
        run.news()
        assert board_of(run.view, run.order()).waiting == ("2",)
    assert next_autopilot_command(top, view_of_run(top, None)) == "fairwitness verdict 2 pass|fail|issues"


def test_the_roadmap_shows_what_runs_left_of_each_phase(top: Path) -> None:
    assert {each.status for each in roadmap_phases(top)} == {"not_started"}
    begun(top)
    tell(top, started("1"), completed("1"), started("2"), failed("2"), halted())
    assert [(each.id, each.status) for each in roadmap_phases(top)] == [
        ("1", "completed"),
        ("2", "failed"),
        ("3", "not_started"),
        ("3.1", "not_started"),
    ]


@pytest.mark.req("A9")
def test_the_numbers_of_runs_come_from_the_ledger_and_have_a_trend_from_two_on(top: Path) -> None:
    assert all_numbers(top) == []
    begun(top)
    tell(top, started("1"), completed("1", 8.0), started("2"), failed("2"))
    assert all_numbers(top) == []  # it has not ended
    tell(top, halted())
    second = begun(top, ("2",), run_id="run-2026-02-27-143000")
    tell(top, started("2"), completed("2", 9.0), over(), run_id=second)
    found = all_metrics(top)
    assert [(each.run_id, each.success_rate) for each in found.runs.root] == [(RUN, 0.5), (second, 1.0)]
    assert found.trend is not None
    assert (found.trend.success_rate_delta, found.trend.avg_alignment_delta) == (0.5, 1.0)


def all_numbers(top: Path) -> list[str]:
    from fairwitness.errors import DatabaseUnusable

    try:
        return [each.run_id for each in all_metrics(top).runs.root]
    except DatabaseUnusable:
        return []


def test_a_report_names_the_documents_that_are_there(top: Path) -> None:
    begun(top)
    (top / ".planning" / "phases" / "1").mkdir(parents=True)
    found = report_of(top, None)
    assert found.documents == (".planning/phases/1",)
    assert found.plain()["metrics"]["run_id"] == RUN
    with pytest.raises(UsageError, match="is not an autopilot run"):
        report_of(top, "run-1")
    with opened(top) as log:
        assert log.run_id == RUN
