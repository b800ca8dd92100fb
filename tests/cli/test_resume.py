"""`fairwitness resume`: a run goes on where it was, whatever stopped it; and whoever comes second only shows it."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from app.graph_walk import Walk, dag_of
from cli.graph_grounds import NEEDS_SANDBOX, SLOW, at_work, begun, git, tell, types_of, wait_for
from cli.graph_ledgers import completed, failed, fits
from cli.runner import fairwitness
from fairwitness.app.views.workers import worker_on
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.forge import events as happened
from support.graph.team import RUN, Task
from support.state import own_state

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A repository without a run."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_a_run_that_completed_prints_its_result_and_nothing_is_opened(bare: Path) -> None:
    completed(bare).close()
    done = fairwitness("resume", "run-completed", cwd=bare)
    assert done.returncode == 0
    assert done.stdout.startswith("\nCOMPLETED: do it\n")
    assert "done      1 of 1 task merged\n" in done.stdout
    assert not (bare / ".fairwitness" / "engine.db").exists()


def test_a_run_in_which_nothing_can_move_says_why_and_leaves_one(bare: Path) -> None:
    walk = failed(bare)
    walk.close()
    done = fairwitness("resume", "run-failed", cwd=bare)
    assert done.returncode == 1
    assert "FAILED: do it\nbecause   no attempt left for x\n" in done.stdout
    assert "done      0 of 2 tasks merged; 1 failed\n" in done.stdout
    assert types_of(bare, "run-failed")[-1] == "run.failed"
    assert not (bare / ".fairwitness" / "engine.db").exists()


def test_a_plan_that_waits_for_approval_leaves_four(bare: Path) -> None:
    walk = Walk(bare, dag_of("run-1", {"a": ()}))
    walk.tell(happened.PlanReturned(actor="Ada", feedback="smaller"), happened.PlanProposed(tasks=1, refineries=0))
    walk.close()
    done = fairwitness("resume", "run-1", cwd=bare)
    assert done.returncode == 4
    assert "waits     for you, to approve its plan" in done.stdout


def test_several_unfinished_runs_are_listed_and_leave_two(bare: Path) -> None:
    for name in ("run-a", "run-b"):
        Walk(bare, dag_of(name, {"a": ()})).close()
    done = fairwitness("resume", cwd=bare)
    assert (done.returncode, done.stdout) == (2, "")
    assert "2 runs are unfinished: " in done.stderr
    assert all(name in done.stderr for name in ("run-a", "run-b"))
    done = fairwitness("resume", "run-c", cwd=bare)
    assert (done.returncode, "did you mean" in done.stderr) == (2, True)


def test_a_run_that_says_it_is_autopilots_and_has_no_order_is_not_carried(bare: Path) -> None:
    from fairwitness.contracts.common.vocabulary import Workflow
    from fairwitness.ledger.ledger import Ledger

    ledger = Ledger.open_file(own_state(bare) / "evidence.db")
    moment = "2026-02-26T14:30:00Z"
    ledger.record("other", lambda record: record.event(Workflow.AUTOPILOT, "run_started", {}, timestamp=moment))
    ledger.close()
    done = fairwitness("resume", "other", cwd=bare)
    assert (done.returncode, "other is no autopilot run" in done.stderr) == (2, True)


@NEEDS_SANDBOX
@pytest.mark.req("F6")
@pytest.mark.parametrize(
    ("before", "again"),
    [
        ((), False),
        ((happened.ForgeRunStarted(), happened.RunPaused(reason="lunch")), True),
        ((happened.ForgeRunStarted(), happened.RunFailed(reason="over budget: 9 of 8 tokens")), True),
    ],
    ids=["begun", "paused", "stopped"],
)
def test_a_run_that_stopped_goes_on_to_its_end(tmp_path: Path, before: tuple[EventData, ...], again: bool) -> None:
    repository = begun(tmp_path, Task("task-01"))
    if before:
        tell(repository, *before)
    done = fairwitness("resume", cwd=repository)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("done      1 of 1 task merged") for line in lines)
    assert any(line.endswith("  task      task-01        merged") for line in lines)
    assert done.stderr == f"next:  fairwitness dag show {RUN}\n"
    assert fits(done.stdout, is_plain=True)
    types = types_of(repository)
    assert ("run.resumed" in types) == again
    shown = json.loads(fairwitness("dag", "show", RUN, "--json", cwd=repository).stdout)
    assert (shown["run"]["status"], shown["run"]["completedTasks"]) == ("completed", 1)
    again_done = fairwitness("resume", RUN, "--json", cwd=repository)
    assert (again_done.returncode, json.loads(again_done.stdout)["status"]) == (0, "completed")
    assert types_of(repository) == types


@NEEDS_SANDBOX
@pytest.mark.req("F6")
def test_a_signal_saves_everything_and_the_next_one_goes_on_with_the_same_attempt(tmp_path: Path) -> None:
    repository = begun(tmp_path, *SLOW)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with at_work(repository, "resume") as process:
            wait_for(repository, "task.started")
            wait_for_worker(repository)
            process.send_signal(number)
            said, told = process.communicate(timeout=60)
            assert process.returncode == code
        assert "stopping: what is at work has 5s to end" in said
        assert told.splitlines() == ["stopped; everything so far is saved", f"next:  fairwitness resume {RUN}"]
    assert json.loads(fairwitness("status", RUN, "--json", cwd=repository).stdout)["worker"] is None
    assert (
        f"no process is working on this run: fairwitness resume {RUN}" in fairwitness("status", cwd=repository).stdout
    )
    done = fairwitness("resume", cwd=repository)
    assert done.returncode == 0, done.stderr
    types = types_of(repository)
    assert types.count("task.started") == 2
    assert "task.retried" not in types


def wait_for_worker(repository: Path) -> None:
    """Until somebody carries the run."""
    until = time.monotonic() + 60
    while worker_on(repository, RUN) is None:
        assert time.monotonic() < until
        time.sleep(0.05)


@NEEDS_SANDBOX
@pytest.mark.req("F6")
def test_a_second_process_on_a_running_run_becomes_a_viewer(tmp_path: Path) -> None:
    repository = begun(tmp_path, *SLOW, slow_s=10)
    with at_work(repository, "resume") as first:
        wait_for(repository, "task.started")
        shown = json.loads(fairwitness("status", RUN, "--json", cwd=repository).stdout)
        assert (shown["worker"]["pid"], shown["next"]) == (first.pid, f"fairwitness watch {RUN}")
        assert "no process" not in fairwitness("status", cwd=repository).stdout
        with at_work(repository, "resume", RUN, "--plain") as second:
            said, told = second.communicate(timeout=90)
            assert second.returncode == 0
        assert told.splitlines()[0].endswith("executes this run; showing its progress")
        assert f"process {first.pid} on " in told
        assert "done      2 of 2 tasks merged" in said
        first.communicate(timeout=60)
        assert first.returncode == 0
    assert types_of(repository).count("run.started") == 1
    assert git(repository, "log", "--format=%s", "-1", "fairwitness/" + RUN + "/target") != "a catalogue"


@NEEDS_SANDBOX
def test_a_run_that_cannot_go_on_here_says_so_and_does_not_hang(tmp_path: Path) -> None:
    repository = begun(tmp_path, Task("task-01"))
    (repository / ".fairwitness" / "artifacts").write_text("in the way")
    done = fairwitness("resume", cwd=repository)
    assert done.returncode == 3
    assert f"fairwitness: run {RUN} cannot continue here: " in done.stderr
    assert f"fairwitness resume {RUN}" in done.stderr
    assert "Traceback" not in done.stderr
    (repository / ".fairwitness" / "artifacts").unlink()
    assert fairwitness("resume", cwd=repository).returncode == 0
