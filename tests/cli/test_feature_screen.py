"""A feature run on the screen: the whole plan at once, a line for all that ended, and never more than fits."""

import io
import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from app.report_ledgers import HOSTILE, MOMENT, FeatureWalk, finished, going
from cli.graph_ledgers import fits
from fairwitness.app.views.feature import FeatureView
from fairwitness.app.views.followed_run import follow_run
from fairwitness.cli.screens.feature import FeatureLines, live_lines, packed
from fairwitness.cli.screens.run import LINES, JsonLines, LiveScreen, PlainLines
from fairwitness.ledger.feature_summary import STEPS
from fairwitness.ledger.summary import events_after


def look_for(walk: FeatureWalk) -> FeatureView:
    return FeatureView(walk.run_id, clock=lambda: MOMENT + timedelta(seconds=300))


def plain_of(walk: FeatureWalk, root: Path, *, shown: int | None = None) -> str:
    """What the plain screen says of a run from its first event on."""
    stream = io.StringIO()
    with follow_run(root, walk.run_id) as run:
        PlainLines(FeatureLines(look_for(walk)), stream, is_ours=True, shown=shown).show(run, [])
    walk.close()
    return stream.getvalue()


@pytest.mark.req("F5")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_whole_plan_is_shown_from_the_first_second(width: int) -> None:
    lines = live_lines(FeatureView("run"), width=width)
    told = "\n".join(lines)
    assert all(name in told for name in STEPS.values())
    assert len(lines) < LINES
    assert fits(told, width)


@pytest.mark.parametrize("run", [finished, going])
@pytest.mark.parametrize("text", ["plain words", HOSTILE])
@pytest.mark.parametrize("width", [60, 80])
def test_at_every_moment_it_fits(tmp_path: Path, run: Callable[..., FeatureWalk], text: str, width: int) -> None:
    walk = run(tmp_path, text=text)
    view = look_for(walk)
    for event in events_after(walk.ledger.database, walk.run_id, 0):
        view.apply_event(event)
        for height in (3, 8, LINES):
            lines = live_lines(view, width=width, height=height)
            assert len(lines) <= height
        assert fits("\n".join(live_lines(view, width=width)), width)
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
    lines = plain_of(finished(tmp_path), tmp_path).splitlines()
    for line in (
        "14:30:12Z  step      research       done       7.0s  3 agents   6k tokens",
        "14:30:27Z  step      design review  revised    1.0s: a reviewer wants another design",
        "14:30:29Z  step      design         done       1.0s                        again",
        "14:30:35Z  waiting   gate-post-planning: approve, revise, abort?",
        "14:30:36Z  answer    gate-post-planning: approve, by ada",
        "14:30:42Z  task      task-01        failed   attempt 1, retrying: plain words",
        "14:30:43Z  gate      task-01        blocked  EG-2: 1 passed check, 2 required; not proven: tests",
        "14:30:51Z  gate      task-01        open     EG-2: 2 passed checks, 2 required",
    ):
        assert line in lines, "\n".join(lines)
    assert lines[-1].split("  ", 1)[1].startswith("run       committed, confidence Medium, after ")


@pytest.mark.req("F5")
@pytest.mark.parametrize("text", ["plain words", HOSTILE])
def test_a_line_is_one_event_that_begins_with_its_time_and_a_word_of_a_fixed_list(tmp_path: Path, text: str) -> None:
    said = plain_of(finished(tmp_path, text=text), tmp_path)
    kinds = ["run", "step", "task", "gate", "review", "answer", "waiting", "degraded", "commit"]
    for line in said.splitlines():
        assert re.match(rf"\d\d:\d\d:\d\dZ  ({'|'.join(kinds)}) {{2,}}\S", line), line
    assert said.replace("\n", "").isprintable()


@pytest.mark.req("F5")
def test_a_gate_is_told_when_it_opens_and_when_it_is_blocked_and_not_again(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()
    for opens in (True, True, False, False, True):
        walk.gate("EG-2", "task-01", opens=opens, count=2, threshold=2)
    words = [line.split()[3] for line in plain_of(walk, tmp_path).splitlines() if "gate " in line]
    assert words == ["open", "blocked", "open"]


def test_a_screen_that_continues_another_shows_only_what_is_new(tmp_path: Path) -> None:
    walk = finished(tmp_path)
    last = events_after(walk.ledger.database, walk.run_id, 0)[-1].seq
    assert len(plain_of(walk, tmp_path, shown=last - 2).splitlines()) == 2


@pytest.mark.req("F5")
def test_a_step_that_the_program_does_itself_says_nothing_of_agents(tmp_path: Path) -> None:
    said = plain_of(finished(tmp_path), tmp_path)
    told = [line.split("  step ")[1].strip() for line in said.splitlines() if " done " in line]
    for ours in ("evidence", "commit"):
        (line,) = [line for line in told if line.startswith(f"{ours} ")]
        assert line.split() == [ours, "done", "3.0s"]
    assert any(line.startswith("research ") and "3 agents" in line for line in told)


def test_a_sign_of_life_is_given_when_nothing_happens(tmp_path: Path) -> None:
    walk = going(tmp_path)
    stream = io.StringIO()
    with follow_run(tmp_path, walk.run_id) as run:
        screen = PlainLines(FeatureLines(look_for(walk)), stream, heartbeat_s=0, is_ours=True)
        screen.show(run, [])
        before = len(stream.getvalue())
        screen.show(run, [])
    walk.close()
    assert stream.getvalue()[before:].startswith("still RUNNING")
    assert "worker-1" in stream.getvalue()[before:]


def test_a_note_is_said_once(tmp_path: Path) -> None:
    walk = going(tmp_path)
    stream = io.StringIO()
    with follow_run(tmp_path, walk.run_id) as run:
        screen = PlainLines(FeatureLines(look_for(walk)), stream, is_ours=True)
        run.note = "stopping"
        screen.show(run, [])
        screen.show(run, [])
    walk.close()
    assert stream.getvalue().count("stopping\n") == 1


def test_as_json_lines_every_event_stands_once(tmp_path: Path) -> None:
    walk = finished(tmp_path, text=HOSTILE)
    events = events_after(walk.ledger.database, walk.run_id, 0)
    stream = io.StringIO()
    with follow_run(tmp_path, walk.run_id) as run:
        screen = JsonLines(stream)
        screen.show(run, [])
        screen.show(run, events[-2:])  # told again, printed once
    walk.close()
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [event.plain() for event in events]


@pytest.mark.parametrize("colour", ["", "1"])
def test_the_living_part_goes_and_the_lines_stay(tmp_path: Path, colour: str) -> None:
    walk = finished(tmp_path)
    stream = io.StringIO()
    console = Console(
        file=stream, width=80, force_terminal=True, highlight=False, markup=False, _environ={"NO_COLOR": colour}
    )
    with follow_run(tmp_path, walk.run_id) as run:
        events, run.past = run.past, ()
        with LiveScreen(FeatureLines(look_for(walk)), "Ctrl-C stops it", console=console) as screen:
            screen.show(run, [])
            for event in events:
                screen.show(run, [event])
    walk.close()
    said = stream.getvalue()
    assert "next  · setup" in said
    assert "run       committed" in said
    assert "Ctrl-C stops it" in said
    assert ("\x1b[31m" in said) == (not colour)


@pytest.mark.req("F5")
def test_whoever_joins_late_sees_everything(tmp_path: Path) -> None:
    walk = finished(tmp_path)
    events = events_after(walk.ledger.database, walk.run_id, 0)
    stream, lines = io.StringIO(), FeatureLines(look_for(walk))
    with follow_run(tmp_path, walk.run_id) as run:
        screen = PlainLines(lines, stream)
        screen.show(run, [])
        said = stream.getvalue()
        screen.show(run, events[-2:])  # told again, taken in once
    walk.close()
    assert stream.getvalue() == said
    assert lines.view.seq == events[-1].seq
    assert lines.view.feature.steps["step-3b"].visits == 2


def test_items_are_never_broken_in_two() -> None:
    assert packed([], 20, label="done") == []
    assert packed(["a" * 30], 20, label="done") == ["done  " + "a" * 13 + "…"]


@pytest.mark.req("P12")
def test_without_a_process_no_agent_is_shown_at_work(tmp_path: Path) -> None:
    walk = going(tmp_path)
    view = look_for(walk)
    for event in events_after(walk.ledger.database, walk.run_id, 0):
        view.apply_event(event)
    walk.close()
    carried = live_lines(view, width=80)
    left = live_lines(view, width=80, is_worked_on=False)
    assert any("▶ implement running" in line for line in carried)
    assert any("■ implement stopped" in line for line in left)
    assert len(left) < len(carried)
    assert not any("attempt" in line for line in left)
