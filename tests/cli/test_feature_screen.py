"""A feature run on the screen: the whole plan at once, a line for all that ended, and never more than fits."""

import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from app.report_ledgers import HOSTILE, MOMENT, FeatureWalk, finished, going
from cli.graph_ledgers import fits
from fairwitness.app.views.feature import STEPS, FeatureView
from fairwitness.app.views.followed_run import follow_run
from fairwitness.cli.screens.feature import (
    LINES,
    FeatureJsonLines,
    FeatureLive,
    FeaturePlain,
    FeatureSilent,
    FollowedFeature,
    live_lines,
    packed,
)
from fairwitness.ledger.summary import events_after


def look_for(walk: FeatureWalk) -> FeatureView:
    return FeatureView(walk.run_id, clock=lambda: MOMENT + timedelta(seconds=300))


def plain_of(walk: FeatureWalk) -> str:
    """What the plain screen says of a run from its first event on."""
    stream = io.StringIO()
    with FeaturePlain(look_for(walk), stream) as screen:
        for event in events_after(walk.ledger.database, walk.run_id, 0):
            screen.show(event)
            screen.beat()
    walk.close()
    return stream.getvalue()


@pytest.mark.req("F5")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_whole_plan_is_shown_from_the_first_second(width: int) -> None:
    lines = live_lines(FeatureView("run"), width=width, last="Ctrl-C stops it")
    told = "\n".join(lines)
    assert all(name in told for name in STEPS.values())
    assert len(lines) <= LINES
    assert fits(told, width)
    assert lines[-1] == "Ctrl-C stops it"


@pytest.mark.parametrize("run", [finished, going])
@pytest.mark.parametrize("text", ["plain words", HOSTILE])
@pytest.mark.parametrize("width", [60, 80])
def test_at_every_moment_it_fits(tmp_path: Path, run: Callable[..., FeatureWalk], text: str, width: int) -> None:
    walk = run(tmp_path, text=text)
    view = look_for(walk)
    for event in events_after(walk.ledger.database, walk.run_id, 0):
        view.apply_event(event)
        for height in (3, 8, LINES):
            lines = live_lines(view, width=width, height=height, last=text)
            assert len(lines) <= height
        assert fits("\n".join(live_lines(view, width=width, last="x")), width)
    walk.close()


def test_what_runs_now_has_its_time_and_the_rest_is_counted(tmp_path: Path) -> None:
    walk = going(tmp_path)
    view = look_for(walk)
    for event in events_after(walk.ledger.database, walk.run_id, 0):
        view.apply_event(event)
    walk.close()
    told = "\n".join(live_lines(view, width=80))
    assert "now   ▶ implement running 0 of 6 agents 4m" in told
    assert "done  ✓ setup  ✓ research" in told
    assert "next  · verify" in told
    assert "worker-1" in told
    assert "more" in told
    assert "login  RUNNING  0 of 1 tasks merged  5m" in told.replace("4m 59s", "5m")


def test_plain_is_one_line_for_everything_that_ended(tmp_path: Path) -> None:
    said = plain_of(finished(tmp_path))
    lines = said.splitlines()
    assert "14:30:12Z  research        done      3 of 3 agents   7.0s   6,300 tokens" in lines
    assert any("gate EG-2 task-01: SHUT, 1 of 2 checks; missing: tests" in line for line in lines)
    assert any("gate EG-2 task-01: open, 2 of 2 checks" in line for line in lines)
    assert any("task-01 attempt 1 FAILED: plain words" in line for line in lines)
    assert any("design review   revised   " in line for line in lines)
    assert any("QUESTION gate-post-planning: approve, revise, abort" in line for line in lines)
    assert any("answer to gate-post-planning: approve, by ada" in line for line in lines)
    assert "run COMMITTED, confidence Medium" in said


@pytest.mark.req("F5")
def test_a_step_that_the_program_does_itself_says_nothing_of_agents(tmp_path: Path) -> None:
    told = [line.split("Z  ")[1] for line in plain_of(finished(tmp_path)).splitlines() if " done " in line]
    for ours in ("evidence", "commit"):
        (line,) = [line for line in told if line.startswith(f"{ours} ")]
        assert line.split() == [ours, "done", "3.0s"]
    assert any(line.startswith("research ") and "3 of 3 agents" in line for line in told)


def test_hostile_text_fits_and_does_nothing(tmp_path: Path) -> None:
    assert fits(plain_of(finished(tmp_path, text=HOSTILE)))


def test_a_sign_of_life_is_given_when_nothing_happens(tmp_path: Path) -> None:
    walk = going(tmp_path)
    stream = io.StringIO()
    screen = FeaturePlain(look_for(walk), stream, heartbeat_s=0)
    for event in events_after(walk.ledger.database, walk.run_id, 0):
        screen.show(event)
    walk.close()
    before = len(stream.getvalue())
    screen.beat()
    assert stream.getvalue()[before:].startswith("still RUNNING")
    assert "worker-1" in stream.getvalue()[before:]


def test_a_note_is_said_once(tmp_path: Path) -> None:
    stream = io.StringIO()
    screen = FeaturePlain(FeatureView("run"), stream)
    screen.note = "stopping"
    screen.beat()
    screen.beat()
    assert stream.getvalue() == "stopping\n"


def test_as_json_lines_every_event_stands_once(tmp_path: Path) -> None:
    walk = finished(tmp_path, text=HOSTILE)
    events = events_after(walk.ledger.database, walk.run_id, 0)
    stream = io.StringIO()
    screen = FeatureJsonLines(look_for(walk), stream)
    for event in events:
        screen.show(event)
    walk.close()
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [event.plain() for event in events]


@pytest.mark.parametrize("colour", ["", "1"])
def test_the_living_part_goes_and_the_lines_stay(tmp_path: Path, colour: str) -> None:
    walk = finished(tmp_path)
    stream = io.StringIO()
    console = Console(
        file=stream, width=80, force_terminal=True, highlight=False, markup=False, _environ={"NO_COLOR": colour}
    )
    with FeatureLive(look_for(walk), "Ctrl-C stops it", console=console) as screen:
        for event in events_after(walk.ledger.database, walk.run_id, 0):
            screen.show(event)
            screen.beat()
    walk.close()
    said = stream.getvalue()
    assert "next  · setup" in said
    assert "run COMMITTED" in said
    assert ("\x1b[31m" in said) == (not colour)


@pytest.mark.req("F5")
def test_whoever_joins_late_sees_everything(tmp_path: Path) -> None:
    walk = finished(tmp_path)
    events = events_after(walk.ledger.database, walk.run_id, 0)
    with follow_run(tmp_path, walk.run_id, after=0) as run:
        screen = FeatureSilent(look_for(walk))
        with FollowedFeature(screen) as watched:
            watched.show(run, [])
            watched.show(run, events[-2:])  # told again, taken in once
    walk.close()
    assert screen.view.seq == events[-1].seq
    assert screen.view.steps["step-3b"].visits == 2


def test_items_are_never_broken_in_two() -> None:
    assert packed([], 20, label="done") == []
    assert packed(["a" * 30], 20, label="done") == ["done  " + "a" * 13 + "…"]
