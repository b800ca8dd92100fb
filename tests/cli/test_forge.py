"""`fairwitness forge` and what belongs to it, as a person types it: reviews, pauses, change requests, and wrong arguments."""  # noqa: E501

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.graph_grounds import NEEDS_SANDBOX, at_work, git
from cli.graph_ledgers import fits
from cli.runner import fairwitness
from cli.terminal import Terminal
from fairwitness.contracts.common.tools import Role
from feature.grounds import Turn, call
from forge.grounds import (
    JOIN,
    ONE,
    REQUEST,
    TWO,
    Grounds,
    Node,
    Run,
    added,
    part,
    planned,
    refined,
    walked,
    wanted,
    worked,
)

pytestmark = [pytest.mark.timeout(600), NEEDS_SANDBOX]

BEGIN = ("forge", REQUEST, "--cassette", "../cassettes")
THEN = Node("task-002", ("task-001",))
LOOP = Node("task-001", ("task-001",))
LATER = Node("task-004", ("refinery-001",))
ADA = "Ada <ada@example.org>"


def said(top: Path, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """What a command prints where nobody sits at a terminal; it leaves as it should, and its lines fit."""
    done = fairwitness(*arguments, cwd=top, COLUMNS="80")
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    told = done.stdout.replace(str(top), ".")  # where it stands may be as long as one likes
    assert "--json" in arguments or "--dot" in arguments or fits(told, is_plain=True), told
    return done


def plain(top: Path, *arguments: str, code: int = 0) -> Any:
    """The same as one JSON object."""
    return json.loads(said(top, *arguments, "--json", code=code).stdout)


def last_run(top: Path) -> Run:
    """The run that was begun last."""
    return Run(top, plain(top, "status")["runs"][0]["run_id"])


def hint(done: subprocess.CompletedProcess[str]) -> str:
    """What it says to do next."""
    return done.stderr.splitlines()[-1].removeprefix("next:  ")


# --- from the request to the branch


@pytest.mark.req("F9", "F3", "F7")
def test_a_plan_waits_for_its_review_is_edited_approved_and_carried_out(tmp_path: Path) -> None:
    top = Grounds.lay_out(tmp_path, ONE, THEN).top
    begun = said(top, *BEGIN, code=4)
    run = last_run(top)
    assert f"\napprove   fairwitness answer {run.run_id} approve\n" in begun.stdout
    assert f'\nreturn    fairwitness answer {run.run_id} return --text "…"\n' in begun.stdout
    assert "The plan is ready. Carry it out?" in begun.stdout
    assert hint(begun) == f"fairwitness plan show {run.run_id}"
    (waiting,) = plain(top, "inbox", code=4)["waiting"]
    assert (waiting["run_id"], waiting["gate_id"]) == (run.run_id, "plan-review.1")
    assert "waits for you, to approve its plan" in said(top, "status").stdout
    shown = said(top, "plan", "show")
    assert "    after task-001" in shown.stdout.splitlines()
    assert hint(shown) == f"fairwitness plan approve {run.run_id}"

    graph = json.loads(run.file("dag.json"))
    graph["nodes"][1]["id"] = "task-001"
    (tmp_path / "twice.json").write_text(json.dumps(graph))
    broken = said(top, "plan", "edit", "last", "dag.json", "--with", tmp_path / "twice.json", code=2)
    assert "dag.json:1:" in broken.stderr
    assert "task-001" in broken.stderr
    assert "task-001" in said(top, "plan", "approve", code=2).stderr
    assert said(top, "resume", code=4).stdout  # it still waits
    graph["nodes"][1]["id"] = "task-002"
    (tmp_path / "good.json").write_text(json.dumps(graph))
    mended = said(top, "plan", "edit", "last", "dag.json", "--with", tmp_path / "good.json")
    assert hint(mended) == f"fairwitness plan approve {run.run_id}"
    (tmp_path / "task.md").write_text(run.file("tasks/task-002.md").replace("Be quick.", "Take your time."))
    assert plain(top, "plan", "edit", "last", "tasks/task-002.md", "--with", str(tmp_path / "task.md"))["fits"]

    assert hint(said(top, "plan", "approve")) == f"fairwitness resume {run.run_id}"
    sealed = said(top, "plan", "edit", "last", "dag.json", "--with", tmp_path / "good.json", code=2)
    assert sealed.stderr.startswith("fairwitness: specs and graph are sealed; file a change request\n")
    assert said(top, "inbox").returncode == 0
    done = said(top, "resume")
    assert "done      2 of 2 tasks merged" in done.stdout
    assert "Take your time." in run.transcript("task-002-1")
    assert [event["actor"] for event in run.events("plan.approved")] == [ADA]
    assert run.parts() == {"task-001", "task-002"}


@pytest.mark.req("F9", "F10")
def test_a_plan_is_returned_cancelled_taken_up_again_and_abandoned(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, ONE, THEN)
    grounds.plans(planned(ONE), plan=2)
    top = grounds.top
    assert "WAITING FOR YOU: " in said(top, *BEGIN, "--plan-only").stdout
    assert said(top, "answer", "return", code=2).stderr.startswith("fairwitness: return needs a text\n")
    said(top, "answer", "return", "--text", "One is enough.")
    assert "done      0 of 1 task merged" in said(top, "resume", code=4).stdout
    run = last_run(top)
    assert "One is enough." in run.transcript("captain-2")
    assert [task["id"] for task in plain(top, "plan", "show")["plan"]["tasks"]] == ["task-001"]

    cancelled = said(top, "cancel", "last", "--yes")
    assert cancelled.stdout == f"{run.run_id} is cancelled by {ADA}\n"
    assert run.state()["status"] == "failed"
    assert (git(top, "branch", "--format=%(refname:short)"), git(top, "status", "--porcelain")) == ("main", "")
    assert len(git(top, "worktree", "list").splitlines()) == 1
    assert said(top, "inbox").stdout.startswith("No approvals pending.")
    assert said(top, "plan", "approve", "last", code=2).stderr.startswith(f"fairwitness: {run.run_id} has ended\n")
    assert said(top, "cancel", "last", "--yes").stdout.endswith("already; nothing was changed\n")

    assert "WAITING FOR YOU: " in said(top, "resume", "last", code=4).stdout  # it goes on after all, and asks the same
    said(top, "answer", "abandon")
    assert f"because abandoned by {ADA}" in said(top, "status").stdout
    assert run.events("run.failed")[-1]["reason"] == f"abandoned by {ADA}"
    assert run.events("run.started") == []


@pytest.mark.req("F10")
def test_a_run_that_nobody_has_carried_yet_is_cancelled_too(tmp_path: Path) -> None:
    run = Grounds.lay_out(tmp_path, ONE).begin(is_autonomous=False)
    assert said(run.top, "cancel", "last", "--yes").stdout == f"{run.run_id} is cancelled by {ADA}\n"
    assert (run.state()["status"], run.state()["currentPhase"]) == ("failed", "captain_interview")
    for arguments in (("plan", "show"), ("plan", "approve"), ("pause",), ("task", "show", "task-001")):
        assert said(run.top, *arguments, run.run_id, code=2).stdout == ""


@pytest.mark.req("F9")
def test_somebody_at_a_terminal_reviews_the_plan_there(tmp_path: Path) -> None:
    top = Grounds.lay_out(tmp_path, ONE).top
    with Terminal(*BEGIN, cwd=top) as terminal:
        terminal.wait_for(lambda lines: any("Your answer" in line for line in lines), seconds=200)
        assert "The plan is ready. Carry it out?" in terminal.said
        terminal.type("abandon\n")
        assert terminal.ended() == 1
    assert "abandoned by Ada" in terminal.said


# --- while it works


def slowly(grounds: Grounds, node: Node) -> None:
    """Lets a worker take two seconds."""
    waits = (
        call("create_file", path="slow", content="yes\n"),
        call("run_in_terminal", command="sh check.sh"),
        call("run_in_terminal", command="rm slow"),
    )
    grounds.does(node, worked(*waits, part(node.id), said=walked(f"parts/{node.id}")))


@pytest.mark.req("F10")
def test_a_run_is_paused_from_another_process_and_goes_on(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, ONE, THEN)
    slowly(grounds, ONE)
    run = grounds.begin()
    with at_work(run.top, "resume", "--plain") as process:
        run.wait_for("task.started")
        paused = said(run.top, "pause", "--reason", "lunch")
        assert paused.stdout == f"{run.run_id} is paused; running tasks may finish\n"
        assert run.state()["status"] == "paused"
        told, _ = process.communicate(timeout=200)
    assert process.returncode == 4
    assert f"run       paused: {ADA}: lunch" in told
    assert [event["nodeId"] for event in run.events("task.started")] == ["task-001"]
    assert run.states() == {"task-001": "MERGED", "task-002": "PENDING"}
    status = said(run.top, "status").stdout
    assert "paused" in status
    assert f"waits for you: fairwitness resume {run.run_id}" in status
    assert plain(run.top, "pause") == {"run_id": run.run_id, "status": "paused", "changed": False}
    assert "done      2 of 2 tasks merged" in said(run.top, "resume").stdout
    assert run.types().count("run.paused") == run.types().count("run.resumed") == 1


@pytest.mark.req("F9", "F10")
def test_a_run_that_fails_says_why_and_goes_on_when_it_is_given_another_chance(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, ONE, THEN, settings="\n[forge]\nmax_attempts = 1\n")
    for number, bad in enumerate((Node("tasks"), LOOP), start=1):  # each is asked once more in its session
        grounds.record(Role.CAPTAIN, "captain-1", [Turn("A plan.", submitted=planned(bad))] * 2, number)
    grounds.plans(planned(ONE, THEN), 3)
    grounds.does(ONE, worked(part("task-001", "no good\n")))
    top = grounds.top
    planless = said(top, *BEGIN, "--approve", code=1)
    assert "FAILED: " in planless.stdout
    assert "the captain brought no plan" in planless.stdout
    failed = said(top, "resume", "last", code=1)
    run = last_run(top)
    assert "no attempt left for task-001" in failed.stdout
    assert "fairwitness retry task-001" in " ".join(failed.stdout.split())
    assert run.states() == {"task-001": "FAILED", "task-002": "PENDING"}
    assert said(top, "retry", "task-002", code=2).stderr.startswith(
        "fairwitness: task-002 is PENDING, attempt 1 of 1\n"
    )
    grounds.does(ONE, attempt=2)
    retried = said(top, "retry", "task-001")
    assert retried.stdout == f"task-001 of {run.run_id} waits for attempt 2\n"
    assert hint(retried) == f"fairwitness resume {run.run_id}"
    assert "done      2 of 2 tasks merged" in said(top, "resume", "last").stdout
    attempts = plain(top, "task", "show", "task-001")["attempts"]
    assert [(each["number"], each["state"], each["says"]) for each in attempts] == [
        (1, "FAILED", "completed"),
        (2, "MERGED", "completed"),
    ]
    shown = said(top, "task", "show", "task-001").stdout
    assert "because: " in shown
    assert "attempt 2 MERGED says completed, confidence 0.9" in shown


# --- a plan that grows


@pytest.fixture
def asking(tmp_path: Path) -> Run:
    """A run that waits for a person to decide about what its refinery asks for."""
    settings = '\n[forge]\nchange_requests = "person"\n'
    grounds = Grounds.lay_out(tmp_path, ONE, TWO, JOIN, settings=settings)
    grounds.does(JOIN, refined(requests=[wanted()]))
    grounds.replans(added(LATER))
    grounds.does(LATER)
    asked = said(grounds.top, *BEGIN, "--approve", code=4)
    assert "WAITING FOR YOU: " in asked.stdout
    assert "cr-001" in asked.stdout
    return last_run(grounds.top)


@pytest.mark.req("F4")
def test_a_request_that_a_person_rejects_leaves_the_plan_as_it_was(asking: Run) -> None:
    top = asking.top
    (waiting,) = plain(top, "inbox", code=4)["waiting"]
    assert waiting["gate_id"] == "cr-001"
    assert "cr-001 of refinery-001: A part is missing" in said(top, "inbox", code=4).stdout
    listed = said(top, "cr", "list")
    assert listed.stdout.startswith("cr-001  pending   refinery-001")
    shown = said(top, "cr", "show", "cr-001")
    assert "because   Two parts do not meet." in shown.stdout
    assert hint(shown) == f"fairwitness cr approve cr-001 {asking.run_id}"
    assert said(top, "resume", code=4).stdout  # it still waits
    assert said(top, "cr", "reject", "cr-001", code=2).stdout == ""
    rejected = said(top, "cr", "reject", "cr-001", "--reason", "Later.")
    assert rejected.stdout == f"{asking.run_id}: cr-001 is rejected\n"
    assert "done      3 of 3 tasks merged" in said(top, "resume").stdout
    assert "reason    Later." in said(top, "cr", "show", "cr-001", "last").stdout.splitlines()
    assert [event["actor"] for event in asking.events("cr.rejected")] == [ADA]
    assert "status: rejected" in asking.file("change-requests/cr-001/change-request.md")


@pytest.mark.req("F4", "F5")
def test_a_request_that_a_person_approves_makes_the_plan_larger(asking: Run) -> None:
    top = asking.top
    assert said(top, "cr", "approve", "cr-001").stdout == f"{asking.run_id}: cr-001 is approved\n"
    assert "status: approved" in asking.file("change-requests/cr-001/change-request.md")
    assert "done      4 of 4 tasks merged" in said(top, "resume").stdout
    assert [event["actor"] for event in asking.events("cr.approved")] == [ADA]
    shown = said(top, "cr", "show", "cr-001", "last").stdout.splitlines()
    assert shown[0] == "cr-001  applied  A part is missing"
    assert "added     task-004" in shown
    assert said(top, "cr", "approve", "cr-001", "last", code=2).stderr.startswith("fairwitness: cr-001: ")
    assert "cr-001 added task-004" in said(top, "plan", "show", "last").stdout
    assert len(plain(top, "dag", "show", "last")["dag"]["nodes"]) == 4
    assert plain(top, "task", "show", "task-004")["state"] == "MERGED"


# --- looking at a run, and asking for what there is not


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that came to its end without anybody being asked."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("done"), ONE, TWO, JOIN)
    ended = said(grounds.top, *BEGIN, "--approve", "--plain")
    assert "done      3 of 3 tasks merged" in ended.stdout
    assert "task      task-001       proven   its checks passed; to be merged" in ended.stdout
    return last_run(grounds.top)


@pytest.mark.req("F3")
def test_the_graph_is_shown_as_a_table_for_graphviz_and_as_json(done: Run) -> None:
    table = said(done.top, "dag", "show", "last").stdout
    assert "  refinery-001  refinery  MERGED       1/3" in table.splitlines()
    assert "completed: 3 of 3 merged" in table
    dot = said(done.top, "dag", "show", "last", "--dot").stdout
    assert '"task-001" -> "refinery-001";' in dot
    assert plain(done.top, "dag", "show", "last")["run"]["status"] == "completed"


@pytest.mark.req("F2", "F3")
def test_a_task_is_shown_with_its_attempts_and_its_document(done: Run) -> None:
    shown = said(done.top, "task", "show", "refinery-001").stdout.splitlines()
    assert shown[0] == "refinery-001  refinery  MERGED  attempt 1 of 3"
    assert shown[1] == "after task-001, task-002"
    task = plain(done.top, "task", "show", "task-001", "last")
    assert (task["state"], task["type"], task["attempt"]) == ("MERGED", "type 2", 1)
    assert task["attempts"][0]["walkthrough"].endswith("task-001/attempt-1/walkthrough.md")
    assert "parts/task-001 is good" in task["document"]


WRONG: tuple[tuple[tuple[str, ...], str], ...] = (
    (("plan", "show", "nobody"), "there is no run 'nobody'"),
    (("plan", "approve", "last"), "is approved"),
    (("plan", "edit", "last", "run-state.json", "--with", "fairwitness.toml"), "sealed"),
    (("cr", "show", "cr-001", "last"), "no change request 'cr-001'"),
    (("cr", "approve", "cr-7", "last"), "no change request 'cr-7'"),
    (("task", "show", "task-777"), "no task 'task-777'"),
    (("retry", "task-777"), "no node task-777"),
    (("retry", "task-001"), "task-001 is MERGED"),
    (("pause", "last"), "has ended, so there is nothing to pause"),
    (("dag", "show", "last", "--dot", "--json"), "choose one"),
    (("forge", "x", "--plan-only", "--approve"), "remove --approve"),
    (("forge", "x", "--cassette", "nowhere"), "nowhere"),
    (("forge", "x", "--agents", "nobody"), "there is no agent 'nobody'"),
    (("answer", "last", "approve"), "has no open question"),
)


def test_wrong_arguments_are_told_in_a_sentence_and_change_nothing(done: Run) -> None:
    before = done.types()
    for arguments, told in WRONG:
        refused = said(done.top, *arguments, code=2)
        first, *rest = refused.stderr.splitlines()
        assert first.startswith("fairwitness: "), refused.stderr
        assert told in first, refused.stderr
        assert [line.partition(" ")[0] for line in rest] == ["next:"], refused.stderr
        assert refused.stdout == ""
        assert fits(first), first
    assert done.types() == before
    assert len(plain(done.top, "status")["runs"]) == 1


def test_help_fits_and_names_every_command(done: Run) -> None:
    listed = said(done.top, "--help").stdout
    for command in ("forge", "plan", "cr", "task", "retry", "pause"):
        assert command in listed
        assert said(done.top, command, "--help").stdout.startswith(f"Usage: fairwitness {command}")
