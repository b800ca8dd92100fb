"""`fairwitness worker`: takes what there is, says what it takes, mends what a dead one left, and stops in order."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from cli.graph_grounds import NEEDS_SANDBOX, SLOW, at_work, begun, types_of, wait_for
from cli.graph_ledgers import fits
from cli.runner import fairwitness
from fairwitness.app.runs.worker import run_label
from support.graph.team import RUN, Task

pytestmark = pytest.mark.timeout(240)


def test_a_folder_that_is_no_repository_is_told_so(tmp_path: Path) -> None:
    done = fairwitness("worker", "--once", cwd=tmp_path)
    assert done.returncode in (2, 3)
    assert len(done.stderr.splitlines()) == 2
    assert list(tmp_path.iterdir()) == []


def test_children_are_called_by_what_they_are() -> None:
    ids = ("run-7", "run-7/t/task-01/2", "run-7/t/task-01/2/help", "run-7/m/3", "what/ever")
    assert [run_label(id_) for id_ in ids] == [
        "run-7",
        "run-7: task-01, attempt 2",
        "run-7: task-01, attempt 2, helper",
        "run-7: merge 3",
        "what/ever",
    ]


@NEEDS_SANDBOX
@pytest.mark.req("F6")
def test_a_run_that_was_never_given_to_a_worker_is_named_with_what_mends_it(tmp_path: Path) -> None:
    repository = begun(tmp_path, Task("task-01"))
    done = fairwitness("worker", "--once", cwd=repository)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"stranded: {RUN}: it was recorded but never started",
        f"  mend:  fairwitness resume {RUN}",
    ]
    assert done.stderr.splitlines()[-2:] == ["no work is left", "next:  fairwitness status"]
    lines = [json.loads(line) for line in fairwitness("worker", "--once", "--json", cwd=repository).stdout.splitlines()]
    assert [line["what"] for line in lines] == ["stranded"]
    assert lines[0]["next"] == f"fairwitness resume {RUN}"


@NEEDS_SANDBOX
@pytest.mark.req("F6")
def test_what_a_killed_process_had_is_named_taken_over_and_brought_to_its_end(tmp_path: Path) -> None:
    repository = begun(tmp_path, *SLOW)
    with at_work(repository, "resume") as process:
        wait_for(repository, "task.started")
        process.kill()
        process.communicate()
    done = fairwitness("worker", "--once", cwd=repository)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"stranded: {RUN}: its worker ")
    told = [line.split("  ", 1)[1] for line in lines if line[:1].isdigit()]
    assert {f"took {RUN}", f"took {RUN}: task-01, attempt 1"} <= set(told)
    assert f"finished {RUN}: task-02, attempt 1" in told
    assert told[-1] == f"finished {RUN}"
    assert types_of(repository)[-1] == "run.completed"
    assert fits(done.stdout)


@NEEDS_SANDBOX
def test_a_worker_waits_for_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    repository = begun(tmp_path, *SLOW)
    with at_work(repository, "worker") as worker:
        assert worker.stderr is not None
        assert worker.stderr.readline() == "working\n"
        with at_work(repository, "resume", RUN, "--json") as resumed:
            wait_for(repository, "task.started")
            worker.send_signal(signal.SIGTERM)
            _, told = worker.communicate(timeout=60)
            assert worker.returncode == 143
            assert told.splitlines()[-1] == "next:  fairwitness worker"
            said, _ = resumed.communicate(timeout=90)
            assert resumed.returncode == 0
            assert json.loads(said)["status"] == "completed"


@NEEDS_SANDBOX
@pytest.mark.req("X4")
def test_workers_may_share_a_database_on_a_server(tmp_path: Path, postgres_url: str) -> None:
    shared = {"FAIRWITNESS_DATABASE_URL": database_of_its_own(postgres_url)}
    repository = begun_elsewhere(tmp_path, "task-01", "task-02", **shared)
    done = fairwitness("resume", cwd=repository, **shared)
    assert done.returncode == 0, done.stderr
    assert not (repository / ".fairwitness" / "engine.db").exists()
    assert not (repository / ".fairwitness" / "evidence.db").exists()
    views = (("status", RUN), ("watch", RUN), ("dag", "show", RUN), ("worker", "--once"), ("ledger", "verify"))
    for command in views:
        assert fairwitness(*command, cwd=repository, **shared).returncode == 0, command


def database_of_its_own(url: str) -> str:
    """A database on the server that no other test writes to."""
    name = "workers"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url.replace("/postgres?", f"/{name}?")


def begun_elsewhere(root: Path, *tasks: str, **environment: str) -> Path:
    """A run that a process with this environment began."""
    listed = ", ".join(f"Task({task!r})" for task in tasks)
    program = f"from cli.graph_grounds import Path, Task, begun; begun(Path({str(root)!r}), {listed})"
    path = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", program], env=os.environ | environment | {"PYTHONPATH": path}, check=True)
    return root / "repo"
