"""`fairwitness autopilot` as a person types it: setting up, looking, resuming, and wrong arguments."""

import json
import re
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.autopilot_grounds import (
    ROADMAP,
    RUN,
    at_step,
    begun,
    commit,
    completed,
    deferred,
    event,
    failed,
    halted,
    lay_out,
    over,
    paused,
    started,
    tell,
    types_of,
)
from cli.graph_grounds import NEEDS_SANDBOX
from cli.graph_ledgers import HOSTILE, fits
from cli.runner import fairwitness
from fairwitness.contracts.autopilot.events_run import CircuitBreakerOpened
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.kit.clock import system_clock

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "shop")


def said(top: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """What a command prints where nobody sits at a terminal; it leaves as it should, and its lines fit."""
    done = fairwitness(*arguments, cwd=top, COLUMNS="80")
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    assert "--json" in arguments or fits(done.stdout.replace(str(top), "."), is_plain=True), done.stdout
    return done


def plain(top: Path, *arguments: str, code: int = 0) -> Any:
    return json.loads(said(top, *arguments, "--json", code=code).stdout)


@pytest.mark.req("A2")
def test_what_init_writes_is_asked_to_be_filled_in_and_then_shown(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop", None)
    assert "fairwitness autopilot init" in said(top, "autopilot", "next", code=2).stderr
    done = said(top, "autopilot", "init")
    assert done.stdout.splitlines() == [
        "written   .planning/ROADMAP.md",
        "written   .planning/config.json",
        "written   .gitignore",
    ]
    assert done.stderr.startswith("next:  fill in .planning/ROADMAP.md")
    assert plain(top, "autopilot", "init")["files"][".planning/ROADMAP.md"] == "kept"
    told = said(top, "autopilot", "next", code=2).stderr
    line = next(n for n, text in enumerate((top / ".planning/ROADMAP.md").read_text().splitlines(), 1) if "TBD" in text)
    assert told.startswith(f"fairwitness: .planning/ROADMAP.md:{line}: phase 1 has no goal yet")
    shown = said(top, "autopilot", "status").stdout
    assert shown.splitlines()[0].split() == ["·", "1", "not", "started", "First", "slice"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no phases given"),
        (("--lenient",), "no phases given"),
        (("7-9",), "a phase of the roadmap"),
        (("later",), "found later"),
        (("1", "--force", "--quality"), "--force and --quality exclude each other"),
        (("1", "--cycles", "0"), "--cycles"),
        (("1", "--speed"), "--speed"),
        (("1", "2"), "unexpected extra argument"),
        (("status", "run-1"), "run-1 is not an autopilot run"),
        (("1", "--plain", "--json"), "choose one"),
    ],
)
def test_what_cannot_be_meant_leaves_two_with_a_sentence_and_a_next_step(
    top: Path, arguments: tuple[str, ...], told: str
) -> None:
    begun(top)
    tell(top, halted())
    done = said(top, "autopilot", *arguments, code=2)
    assert (told in done.stderr, "next:  " in done.stderr, done.stdout) == (True, True, "")


def test_a_repository_without_runs_says_so(top: Path) -> None:
    for arguments in (("resume",), ("report",), ("lock",)):
        done = fairwitness("autopilot", *arguments, cwd=top)
        assert done.returncode in (2, 3)
        assert "next:  " in done.stderr


@pytest.mark.req("A14")
def test_a_forbidden_pair_is_told_in_the_latest_run_if_there_is_one(top: Path) -> None:
    begun(top)
    said(top, "autopilot", "all", "--force", "--complete", code=2)
    assert types_of(top)[-1] == "flag_mutual_exclusivity_error"


def test_the_board_shows_every_phase_and_what_comes_next(top: Path) -> None:
    begun(top)
    tell(top, started("1"), completed("1", 9.4), started("2"), at_step("2", StepName.PLAN_CHECK))
    done = said(top, "autopilot", "status")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{RUN}  RUNNING  1/2 phases  0 of 5.0M tokens")
    assert lines[1].split() == ["✓", "1", "Sign", "in", "completed", "9.4"]
    assert lines[2].split() == ["▶", "2", "Shop", "plan", "check"]
    assert [line.split()[1] for line in lines[3:]] == ["3", "3.1"]
    assert done.stderr == f"next:  fairwitness resume {RUN}\n"
    shown = plain(top, "autopilot", "status")
    assert (shown["run"]["current_step"], shown["roadmap"][0]["status"]) == ("plan_check", "completed")


def test_status_and_watch_and_inbox_know_a_run_of_phases(top: Path) -> None:
    begun(top)
    tell(top, started("1"), deferred("1"))
    listed = said(top, "status").stdout
    assert "autopilot" in listed
    assert "0/2 phases" in listed
    assert "waits for your verdict on phase 1" in listed
    detail = said(top, "status", RUN)
    assert "waits for you" in detail.stdout
    assert detail.stderr == "next:  fairwitness inbox\n"
    assert plain(top, "status", RUN)["phases"] == {"1": "needs_human_verification", "2": "not_started"}
    watched = said(top, "watch", RUN, code=4)
    assert "phase     1              waiting  for your verdict: no command can see it" in watched.stdout
    assert "WAITING FOR YOU: 0 of 2 phases passed" in watched.stdout
    assert f"\npass      fairwitness answer {RUN} pass\n" in watched.stdout
    asked = said(top, "inbox", code=4)
    assert f"{RUN}  autopilot  verdict.1" in asked.stdout
    assert f"fairwitness answer {RUN} pass|fail|issues" in asked.stderr
    assert said(top, "answer", RUN, "pass").stdout == f"{RUN}: pass\n"
    assert types_of(top)[-2:] == ["human_verdict_recorded", "checkpoint_written"]


def test_what_others_wrote_is_harmless_on_the_board(tmp_path: Path) -> None:
    name = HOSTILE.replace("\x1b", "").replace("\x07", "").replace("\x9b", "").replace("\u202e", "").strip()
    top = lay_out(tmp_path / "shop", ROADMAP.replace("Sign in", name))
    begun(top)
    tell(top, started("1"), failed("1"), halted(HOSTILE))
    for arguments in (("autopilot", "status"), ("autopilot", "report"), ("status",), ("status", RUN)):
        said(top, *arguments)
    said(top, "watch", RUN, code=1)


@pytest.mark.req("A1")
def test_a_completed_run_stays_so(top: Path) -> None:
    begun(top)
    tell(top, started("1"), completed("1"), started("2"), completed("2"), over())
    done = said(top, "autopilot", "resume")
    assert "COMPLETED: 2 of 2 phases passed" in done.stdout
    assert done.stderr == f"next:  fairwitness autopilot report {RUN}\n"
    assert "run_resumed" not in types_of(top)
    assert said(top, "autopilot", "report").stderr == "next:  fairwitness autopilot next\n"


@pytest.mark.req("A4")
def test_a_run_whose_breaker_cools_down_leaves_three_with_the_time_left(top: Path) -> None:
    begun(top)
    until = system_clock() + timedelta(minutes=5)
    tell(
        top,
        started("1"),
        event(CircuitBreakerOpened, setting="same_error_threshold", value=5, cooldown_until=until.isoformat()),
    )
    tell(top, paused())
    before = types_of(top)
    for arguments in (("autopilot", "resume"), ("resume", RUN)):
        done = said(top, *arguments, code=3)
        found = re.search(r"is open for another (\d)m (\d+)s", done.stderr)
        assert found is not None, done.stderr
        left = timedelta(minutes=int(found[1]), seconds=int(found[2]))
        assert until - system_clock() - timedelta(seconds=1) <= left < timedelta(minutes=5)
    assert "breaker open" in said(top, "autopilot", "status").stdout
    assert types_of(top) == before


@pytest.mark.req("A2")
def test_a_changed_specification_is_locked_on_purpose(top: Path) -> None:
    (top / ".planning" / "PROJECT.md").write_text("a shop\n")
    commit(top)
    begun(top)
    assert said(top, "autopilot", "lock").stdout == f"no specification of {RUN} changed since it was locked\n"
    (top / ".planning" / "PROJECT.md").write_text("a bigger shop\n")
    done = said(top, "autopilot", "lock")
    assert (done.stdout, done.stderr) == ("changed   .planning/PROJECT.md\n", f"next:  fairwitness resume {RUN}\n")
    assert plain(top, "autopilot", "lock") == {
        "run_id": RUN,
        "changes": [],
        "locked": [".planning/PROJECT.md", ".planning/ROADMAP.md"],
    }


@pytest.mark.req("A9")
def test_reports_and_metrics_tell_what_runs_came_to(top: Path) -> None:
    begun(top)
    tell(top, started("1"), completed("1", 9.1), started("2"), failed("2"), halted())
    done = said(top, "autopilot", "report")
    assert "succeeded 1 of 2 phases that were begun" in done.stdout
    assert "failures  executor_incomplete 1" in done.stdout
    assert done.stderr == f"next:  fairwitness resume {RUN}\n"
    assert plain(top, "autopilot", "report")["metrics"]["success_rate"] == 0.5
    second = begun(top, ("2",), run_id="run-2026-02-27-143000")
    tell(top, started("2"), completed("2"), over(), run_id=second)
    told = said(top, "autopilot", "metrics").stdout.splitlines()
    assert [line.split()[0] for line in told] == [RUN, second, "trend"]
    assert plain(top, "autopilot", "metrics")["trend"]["success_rate_delta"] == 0.5


@NEEDS_SANDBOX
def test_a_run_is_cancelled_and_only_a_word_takes_it_up_again(top: Path) -> None:
    begun(top)
    tell(top, started("1"))
    done = said(top, "cancel", RUN, "--yes")
    assert f"{RUN} is cancelled by Ada" in done.stdout
    assert json.loads((top / ".autopilot" / "state.json").read_text())["_meta"]["status"] == "failed"
    assert plain(top, "cancel", RUN, "--yes")["changed"] is False
    assert types_of(top).count("run_halted") == 1
