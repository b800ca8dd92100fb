"""`fairwitness status`: every run in one line, one run in detail, and never a library that it does not need."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from app import autopilot_grounds as autopilot
from app import report_ledgers as feature
from app.graph_walk import Walk, dag_of
from cli.graph_ledgers import HOSTILE, completed, failed, fits, going
from cli.runner import fairwitness
from fairwitness.contracts.forge import events as happened
from support.state import own_state

HEAVY = {"dbos", "sqlalchemy", "pydantic_ai", "httpx", "starlette", "psycopg"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three runs: completed, failed, and one in the middle."""
    for made in (completed, failed, going):
        made(tmp_path).close()
    return tmp_path


def modules_after(*arguments: str, cwd: Path) -> set[str]:
    """What a fresh `fairwitness …` has loaded when it leaves."""
    program = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('\\n'.join(['=modules', *sorted(sys.modules)])))\n"
        f"sys.argv = ['fairwitness', *{list(arguments)!r}]\n"
        "from fairwitness.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True, check=False)
    return set(done.stdout.split("=modules\n")[1].split())


@pytest.mark.req("F5")
def test_the_list_has_every_run_with_a_word_its_tasks_its_age_and_what_it_waits_for(repository: Path) -> None:
    done = fairwitness("status", cwd=repository)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    by_run = {line.split()[0]: line.split() for line in lines if line.startswith("run-")}
    assert by_run["run-going"][1:4] == ["forge", "executing", "1/5"]
    assert by_run["run-failed"][1:4] == ["forge", "failed", "0/2"]
    assert by_run["run-completed"][1:4] == ["forge", "completed", "1/1"]
    assert all(line.endswith(" ago") for line in lines if line.startswith("run-"))
    assert "    no process is working on this run: fairwitness resume run-going" in lines
    assert "    because no attempt left for x" in lines
    assert "next:  fairwitness resume run-going\n" in done.stderr
    assert fits(done.stdout)


def test_the_list_as_json(repository: Path) -> None:
    shown = json.loads(fairwitness("status", "--json", cwd=repository).stdout)
    assert shown["root"] == str(repository)
    runs = {run["run_id"]: run for run in shown["runs"]}
    assert set(runs) == {"run-going", "run-failed", "run-completed"}
    keys = ("status", "is_over", "total", "merged", "failed", "running", "waits_for", "reason")
    assert [runs["run-failed"][key] for key in keys] == ["failed", True, 2, 0, 1, 0, "", "no attempt left for x"]
    assert [runs["run-going"][key] for key in keys] == ["executing", False, 5, 1, 0, 2, "2 running", None]
    assert {"events", "last_time", "last_event", "began", "age_s", "workflow"} <= set(runs["run-going"])


def test_only_the_newest_of_many_runs_that_ended_are_listed(tmp_path: Path) -> None:
    for number in range(23):
        Walk(tmp_path, dag_of(f"run-{number:02d}", {"a": ()})).close()
        walk = failed(tmp_path, f"over-{number:02d}") if number < 22 else None
        if walk is not None:
            walk.close()
    done = fairwitness("status", cwd=tmp_path)
    listed = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert sum(line.startswith("over-") for line in listed) == 20
    assert sum(line.startswith("run-") for line in listed) == 23
    assert "and 2 more that ended: fairwitness status --all" in done.stderr
    assert fairwitness("status", "--all", cwd=tmp_path).stdout.count("\nover-") >= 21


@pytest.mark.req("F5")
def test_one_run_in_detail(repository: Path) -> None:
    done = fairwitness("status", "run-going", cwd=repository)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "run-going  forge  EXECUTING"
    assert "tasks     1 of 5 merged, 1 interrupted, 1 to be merged" in lines
    assert "worker    no process is working on this run" in lines
    assert any(line.split()[:4] == ["ledger", "working", "attempt", "2/2"] for line in lines)
    assert any(line.split()[:4] == ["cli", "queued", "attempt", "1/2"] for line in lines)
    proven = "Z  task      cli            proven   its checks passed; to be merged"
    assert any(line.endswith(proven) for line in lines)
    assert done.stderr == "next:  fairwitness resume run-going\n"
    assert fits(done.stdout)
    assert "\\x1b]0;pwned\\x07" in done.stdout


def test_a_task_without_attempts_left_is_shown_with_its_last_error(repository: Path) -> None:
    done = fairwitness("status", "run-failed", cwd=repository)
    assert (done.returncode, done.stderr) == (0, "next:  fairwitness dag show run-failed\n")
    assert done.stdout.startswith("run-failed  forge  FAILED: do it\n")
    assert "failed    x, after 1 attempt: " in done.stdout
    assert "retry     fairwitness retry x\n" in done.stdout
    assert "because   no attempt left for x" in done.stdout
    assert fits(done.stdout)


@pytest.mark.parametrize(
    ("events", "waits", "following"),
    [
        ([], "a worker: fairwitness resume run-1", "fairwitness resume run-1"),
        (
            [happened.ForgeRunStarted(), happened.RunPaused(reason="lunch")],
            "you: fairwitness resume run-1",
            "fairwitness resume run-1",
        ),
        ([happened.RunFailed(reason="cancelled by Ada")], "", "fairwitness resume run-1"),
    ],
)
def test_what_a_run_waits_for_and_what_helps(
    tmp_path: Path, events: list[happened.ForgeEvent], waits: str, following: str
) -> None:
    walk = Walk(tmp_path, dag_of("run-1", {"a": ()}))
    walk.tell(*events)
    walk.close()
    shown = json.loads(fairwitness("status", "run-1", "--json", cwd=tmp_path).stdout)
    assert (shown["waits_for"], shown["next"]) == (waits, following)
    listed = fairwitness("status", cwd=tmp_path).stdout
    assert ("    waits for you: fairwitness resume run-1\n" in listed) == waits.startswith("you")
    assert ("    no process is working on this run: fairwitness resume run-1\n" in listed) == waits.startswith(
        "a worker"
    )


@pytest.mark.parametrize("command", ["status", "watch"])
def test_a_run_during_which_the_clock_was_set_back_took_no_negative_time(tmp_path: Path, command: str) -> None:
    completed(tmp_path, step_s=-60).close()
    done = fairwitness(command, "run-completed", cwd=tmp_path)
    assert done.returncode == 0
    assert "0.0s" in done.stdout
    assert "-" not in done.stdout.replace("run-completed", "")


def test_one_run_as_json_has_a_fixed_shape(repository: Path) -> None:
    shown = json.loads(fairwitness("status", "last", "--json", cwd=repository).stdout)
    assert set(shown) == {
        *("root", "run_id", "workflow", "request", "status", "reason", "is_over", "began", "started", "last_time"),
        *("events", "counts", "max_attempts", "at_work", "to_be_merged", "exhausted", "waits_for", "last_events"),
        *("usage", "worker", "next", "reviews"),
    }
    shown = json.loads(fairwitness("status", "run-going", "--json", cwd=repository).stdout)
    assert shown["request"] == HOSTILE
    assert set(shown["at_work"][0]) == {"node", "stage", "attempt", "agent", "since", "seconds"}
    assert (shown["worker"], len(shown["last_events"])) == (None, 5)


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_every_width_is_kept_to(repository: Path, columns: str) -> None:
    for arguments in (("status",), ("status", "run-going"), ("status", "run-failed")):
        assert fits(fairwitness(*arguments, cwd=repository, COLUMNS=columns).stdout, int(columns))


def test_an_unknown_run_gets_the_near_ones(repository: Path) -> None:
    done = fairwitness("status", "run-goin", cwd=repository)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "fairwitness: there is no run 'run-goin'",
        "next:  did you mean run-going? `fairwitness status` lists all",
    ]


def test_a_run_in_a_folder_without_a_ledger(tmp_path: Path) -> None:
    done = fairwitness("status", "run-1", cwd=tmp_path)
    assert (done.returncode, list(tmp_path.iterdir())) == (3, [])
    assert done.stderr.startswith("fairwitness: there is no ledger in")


def test_a_run_of_another_workflow_has_no_tasks_and_a_word_all_the_same(tmp_path: Path) -> None:
    from fairwitness.contracts.common.vocabulary import Workflow
    from fairwitness.ledger.ledger import Ledger
    from fairwitness.ledger.record import Record

    ledger = Ledger.open_file(own_state(tmp_path) / "evidence.db")
    moment = "2026-02-26T14:30:00Z"
    happenings: dict[str, tuple[str, dict[str, str]]] = {
        "feature-1": ("run_started", {}),
        "feature-2": ("approval_requested", {"gate_id": "gate-post-planning"}),
        "autopilot-1": ("run_halted", {"reason": "over budget: 3"}),
    }
    for run_id, (type_, data) in happenings.items():
        workflow = Workflow(run_id.partition("-")[0])
        write = partial(Record.event, workflow=workflow, type_=type_, data=data, timestamp=moment)
        ledger.record(run_id, write)
    ledger.close()
    runs = {run["run_id"]: run for run in json.loads(fairwitness("status", "--json", cwd=tmp_path).stdout)["runs"]}
    assert {name: run["status"] for name, run in runs.items()} == {
        "feature-1": "executing",
        "feature-2": "waiting",
        "autopilot-1": "failed",
    }
    assert runs["feature-2"]["waits_for"] == "you, to answer its question"
    assert fairwitness("watch", "autopilot-1", cwd=tmp_path).returncode == 5


@pytest.mark.req("F5")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("status",),
        ("status", "run-failed"),
        ("watch", "run-failed"),
        ("dag", "show", "run-failed"),
        ("dag", "show", "run-failed", "--json"),
    ],
)
def test_looking_loads_no_engine(repository: Path, arguments: tuple[str, ...]) -> None:
    loaded = modules_after(*arguments, cwd=repository)
    assert not loaded & HEAVY
    if arguments == ("status",):
        assert not loaded & {"pydantic", "asyncio", "rich", "fairwitness.engine"}
    if arguments[0] in ("status", "watch"):
        assert "pydantic" not in loaded


@pytest.mark.req("F5", "A5", "P12")
@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("workflow", ["feature", "autopilot"])
def test_one_run_of_any_workflow_is_shown_without_contracts(tmp_path: Path, workflow: str, is_over: bool) -> None:
    if workflow == "feature":
        folder = tmp_path
        (feature.finished if is_over else feature.going)(folder).close()
    else:
        folder = autopilot.lay_out(tmp_path / "shop")
        autopilot.begun(folder)
        ended = (autopilot.failed("1"), autopilot.halted()) if is_over else (autopilot.deferred("1"),)
        autopilot.tell(folder, autopilot.started("1"), *ended)
    loaded = modules_after("status", "last", cwd=folder)
    assert {"fairwitness.cli.commands.status", "fairwitness.ledger.run_summary"} <= loaded
    assert not {name for name in loaded if name.startswith(("pydantic", "fairwitness.contracts", "fairwitness.rules"))}
