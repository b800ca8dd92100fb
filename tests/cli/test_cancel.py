"""`fairwitness cancel`: a run ends wherever it is carried, its worktrees go, and nothing that was made is lost."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.graph_walk import Walk
from cli.graph_grounds import NEEDS_SANDBOX, SLOW, TARGET, at_work, begun, git, types_of, wait_for
from cli.graph_ledgers import completed, failed, fits, going
from cli.runner import FAIRWITNESS, fairwitness
from cli.terminal import Terminal
from fairwitness.git.reachability import lost
from fairwitness.git.repository import Repository
from fairwitness.store.layout.forge import ForgeLayout
from support.graph.team import RUN, Task

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("made", [completed, failed])
def test_a_run_that_ended_is_left_as_it_is(tmp_path: Path, made: Callable[[Path], Walk]) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    walk = made(tmp_path)
    walk.close()
    before = types_of(tmp_path, walk.run_id)
    done = fairwitness("cancel", walk.run_id, cwd=tmp_path)
    assert done.returncode == 0
    assert "already; nothing was changed" in done.stdout
    shown = json.loads(fairwitness("cancel", walk.run_id, "--yes", "--json", cwd=tmp_path).stdout)
    assert (shown["changed"], shown["run_id"]) == (False, walk.run_id)
    assert types_of(tmp_path, walk.run_id) == before
    assert not (tmp_path / ".fairwitness" / "engine.db").exists()


def test_without_a_person_to_ask_it_wants_yes(tmp_path: Path) -> None:
    going(tmp_path).close()
    done = subprocess.run(
        [FAIRWITNESS, "cancel", "run-going"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "add --yes" in done.stderr


def test_a_person_who_says_no_changes_nothing(tmp_path: Path) -> None:
    walk = going(tmp_path)
    before = walk.run.seq
    walk.close()
    with Terminal("cancel", "run-going", cwd=tmp_path) as terminal:
        terminal.wait_for(lambda lines: any("End run-going?" in line for line in lines))
        terminal.type("n\n")
        assert terminal.ended() == 0
        assert "nothing was changed" in terminal.said
    assert len(types_of(tmp_path, "run-going")) == before


def test_an_unknown_run_gets_the_near_ones(tmp_path: Path) -> None:
    going(tmp_path).close()
    done = fairwitness("cancel", "run-goin", "--yes", cwd=tmp_path)
    assert (done.returncode, "did you mean run-going?" in done.stderr) == (2, True)


@pytest.mark.req("F6")
def test_a_run_that_nobody_took_ends_with_a_reason_and_can_be_resumed(tmp_path: Path) -> None:
    repository = begun(tmp_path, Task("task-01"))
    half = repository / ForgeLayout(RUN).folder / ".dag.json.0123456789abcdef.tmp"  # its writer was killed
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_bytes(b"{")
    shown = json.loads(fairwitness("cancel", RUN, "--yes", "--json", cwd=repository).stdout)
    assert not half.exists()
    assert set(shown) == {"run_id", "changed", "reason", "target", "kept", "left"}
    assert (shown["changed"], shown["target"], shown["kept"]) == (True, None, [])
    assert shown["reason"].startswith("cancelled by ")
    assert types_of(repository)[-1] == "run.failed"
    assert (
        json.loads(fairwitness("status", RUN, "--json", cwd=repository).stdout)["next"] == f"fairwitness resume {RUN}"
    )
    assert fairwitness("watch", RUN, cwd=repository).returncode == 1


@NEEDS_SANDBOX
@pytest.mark.req("F6")
def test_a_run_at_work_elsewhere_is_stopped_and_what_it_made_is_kept(tmp_path: Path) -> None:
    repository = begun(tmp_path, *SLOW, slow_s=100)
    with at_work(repository, "resume") as worker, at_work(repository, "watch", RUN) as viewer:
        wait_for(repository, "task.started")
        wait_until_written(repository)
        done = fairwitness("cancel", RUN, "--yes", cwd=repository)
        assert done.returncode == 0, done.stderr
        assert [worker.wait(timeout=60), viewer.wait(timeout=60)] == [1, 1]
        assert "cancelled by " in (worker.communicate()[0] or "")
        viewer.communicate()
    assert f"merged    {TARGET}" in done.stdout.splitlines()
    ref = f"refs/fairwitness/quarantine/{RUN}/task-01--attempt-1"
    assert f"kept      {ref}" in done.stdout.splitlines()
    assert fits(done.stdout)
    assert git(repository, "show", f"{ref}:slow") == "yes"
    assert git(repository, "worktree", "list").count("\n") == 0
    assert git(repository, "for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [TARGET, "main"]
    assert lost(Repository.open(repository), RUN, [git(repository, "rev-parse", ref)]) == ()
    assert types_of(repository)[-1] == "run.failed"
    shown = json.loads(fairwitness("dag", "show", RUN, "--json", cwd=repository).stdout)
    states = {name: node["status"] for name, node in shown["status"]["nodes"].items()}
    assert "RUNNING" not in states.values(), states  # nobody works on it, and nothing says so
    assert fairwitness("ledger", "verify", cwd=repository).returncode == 0
    assert json.loads(fairwitness("cancel", RUN, "--json", cwd=repository).stdout)["changed"] is False


def wait_until_written(repository: Path) -> None:
    """Until the agent of the slow task has left something in its worktree."""
    until = time.monotonic() + 60
    while not list((repository / ".fairwitness" / "worktrees").glob("*task-01*/slow")):
        assert time.monotonic() < until
        time.sleep(0.02)
