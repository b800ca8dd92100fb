"""The closing block explains the end of a run to a person who saw nothing before, whatever the end."""

from pathlib import Path
from typing import Any

import pytest

from app.autopilot_grounds import RUN as PILOT
from app.autopilot_grounds import begun, completed, deferred, halted, lay_out, over, paused, started, tell
from app.autopilot_grounds import failed as phase_failed
from app.graph_walk import Walk, dag_of
from app.report_ledgers import HOSTILE, FeatureWalk, finished, going
from cli.graph_ledgers import fits
from fairwitness.app.views.detail import next_command
from fairwitness.app.views.ends import LABEL, end_lines
from fairwitness.app.views.followed_run import follow_run
from fairwitness.contracts.forge import events as happened

ALWAYS = {"asked", "done", "cost", "time", "result"}
GRADED = "nothing is committed: at most Low: without enough evidence: task-04; at most Medium: 2 of 3 reviewers approve"


def told(root: Path, run_id: str) -> tuple[str, list[tuple[str, str]], str]:
    """The first line, the fields below it, and the next command."""
    with follow_run(root, run_id) as run:
        head, *lines = end_lines(run)
        following = next_command(run.view, is_worked_on=False)
    assert all(line.isprintable() for line in (head, *lines))
    return head, [(line[:LABEL].strip(), line[LABEL:]) for line in lines], following


def ended(root: Path, outcome: str, reason: str, confidence: str | None = None) -> str:
    """A feature run that ended in the middle of its implementation."""
    walk = going(root, text="Log in")
    walk.tell("run_finished", outcome=outcome, confidence=confidence, reason=reason)
    walk.close()
    return walk.run_id


@pytest.mark.req("F5")
def test_a_committed_run_says_what_was_proven_and_how_to_undo_it(tmp_path: Path) -> None:
    walk = finished(tmp_path, text="# Log in\n\nPeople want to log in.")
    walk.close()
    head, fields, following = told(tmp_path, walk.run_id)
    assert head == "COMMITTED: login, confidence Medium"
    said = dict(fields)
    assert said.keys() >= ALWAYS | {"proven", "review", "undo", "degraded"}
    assert said["asked"] == "Log in: People want to log in."
    assert said["done"] == "1 of 1 task merged"
    assert said["proven"] == "1 of 2 checks passed in all attempts, run by Fair Witness"
    assert said["review"] == "1 of 2 reviewers approve"
    assert said["cost"] == "6 agent calls, 12,600 tokens, $0.01"
    assert said["time"] == "1m 11s"
    assert said["result"] == "commit bbbbbbbbbbbb"
    assert following == f"fairwitness report {walk.run_id}"


@pytest.mark.req("F5")
@pytest.mark.parametrize(
    ("outcome", "reason", "head", "because", "following"),
    [
        (
            "low_confidence",
            GRADED,
            "NOT COMMITTED: login, confidence Low",
            "without enough evidence: task-04",
            "report",
        ),
        ("out_of_budget", "tokens: 120 of 100", "OUT OF BUDGET: login", "tokens: 120 of 100", "resume"),
        ("abandoned", "cancelled by Ada <a@b>", "CANCELLED: login", "cancelled by Ada <a@b>", "report"),
        ("abandoned", "abort was selected", "ENDED BY YOU: login", "abort was selected", "report"),
        ("halted", "a security blocker", "HALTED: login", "a security blocker", "report"),
        ("error", "no agent answers", "FAILED: login", "no agent answers", "resume"),
    ],
)
def test_a_feature_that_is_not_committed_says_why_and_what_is_left(
    tmp_path: Path, outcome: str, reason: str, head: str, because: str, following: str
) -> None:
    run_id = ended(tmp_path, outcome, reason, "Low" if outcome == "low_confidence" else None)
    first, fields, then = told(tmp_path, run_id)
    assert first == head
    said = dict(reversed(fields))
    assert said.keys() >= ALWAYS | {"because"}
    assert said["because"].startswith(because)
    assert said["result"] == "nothing is committed; your branch is unchanged"
    assert ("first" in said) == (outcome == "out_of_budget")
    assert then == f"fairwitness {following} {run_id}"


@pytest.mark.req("F5")
def test_a_feature_that_waits_says_what_it_asks(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin()
    walk.tell("step_started", step="step-4a")
    walk.tell("approval_requested", gate_id="gate-post-planning", options=["approve", "revise", "abort"])
    walk.close()
    head, fields, following = told(tmp_path, walk.run_id)
    assert head == "WAITING FOR YOU: login"
    assert dict(fields)["question"] == "gate-post-planning: approve, revise, abort"
    assert dict(fields).keys() >= ALWAYS
    assert following == "fairwitness inbox"


def forge(root: Path, *events: Any, merged: bool = False, fails: str | None = None) -> str:
    """A forge run of two tasks."""
    walk = Walk(root, dag_of("run-1", {"x": (), "y": ()}), request="# Units\n\nMore of them.", max_attempts=1)
    walk.tell(happened.ForgeRunStarted())
    if merged:
        walk.finish("x")
    if fails is not None:
        walk.start("y")
        walk.fail("y", fails)
    walk.tell(*events)
    walk.close()
    return "run-1"


@pytest.mark.req("F5")
@pytest.mark.parametrize(
    ("event", "head", "following"),
    [
        (happened.ForgeRunCompleted(), "COMPLETED: Units", "dag show"),
        (happened.RunFailed(reason="no attempt left for y"), "FAILED: Units", "dag show"),
        (happened.RunFailed(reason="over budget: 9 of 8 tokens"), "OUT OF BUDGET: Units", "dag show"),
        (happened.RunFailed(reason="cancelled by Ada"), "CANCELLED: Units", "dag show"),
        (happened.RunPaused(reason="lunch"), "PAUSED: Units", "resume"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_a_forge_run_says_how_it_ended(tmp_path: Path, event: Any, head: str, following: str) -> None:
    is_good = isinstance(event, happened.ForgeRunCompleted)
    run_id = forge(tmp_path, event, merged=True, fails=None if is_good else "tests (regressed)")
    first, fields, then = told(tmp_path, run_id)
    said = dict(fields)
    assert first == head
    assert said.keys() >= ALWAYS | {"merge"}
    assert said["result"] == "branch fairwitness/run-1/target holds what was merged"
    assert said["merge"] == "git merge fairwitness/run-1/target"
    assert then == f"fairwitness {following} run-1"
    assert ("because" in said) == (not is_good)
    if not is_good:
        assert said["failed"] == "y, after 1 attempt: tests (regressed)"
        assert said["retry"] == "fairwitness retry y"


@pytest.mark.req("F5")
def test_an_autopilot_run_says_which_phases_passed_and_why_others_did_not(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop")
    begun(top)
    tell(top, started("1"), completed("1"), started("2"), phase_failed("2"), halted("failed: phase 2"))
    head, fields, following = told(top, PILOT)
    said = dict(fields)
    assert head == "FAILED: 1 of 2 phases passed"
    assert said.keys() >= ALWAYS | {"because", "failed"}
    assert said["done"] == "passed: phase 1; failed: phase 2"
    assert said["failed"].startswith("phase 2: ")
    assert following == f"fairwitness autopilot report {PILOT}"


@pytest.mark.req("F5")
@pytest.mark.parametrize(
    ("events", "head"),
    [
        ((started("1"), completed("1"), started("2"), completed("2"), over()), "COMPLETED: 2 of 2 phases passed"),
        ((started("1"), halted("over budget: 9 of 8 tokens")), "OUT OF BUDGET: 0 of 2 phases passed"),
        ((started("1"), halted("cancelled by Ada")), "CANCELLED: 0 of 2 phases passed"),
        ((started("1"), paused()), "PAUSED: 0 of 2 phases passed"),
        ((started("1"), deferred("1")), "WAITING FOR YOU: 0 of 2 phases passed"),
    ],
    ids=["completed", "budget", "cancelled", "paused", "waiting"],
)
def test_an_autopilot_run_says_how_it_ended(tmp_path: Path, events: tuple[Any, ...], head: str) -> None:
    top = lay_out(tmp_path / "shop")
    begun(top)
    tell(top, *events)
    first, fields, _ = told(top, PILOT)
    assert first == head
    assert dict(fields).keys() >= ALWAYS
    is_waiting = first.startswith("WAITING")
    answers = [text for _, text in fields if text.startswith("fairwitness answer ")]
    assert answers[0] == f"fairwitness answer {PILOT} pass" if is_waiting else answers == [], answers


def test_foreign_text_does_nothing_in_a_closing_block(tmp_path: Path) -> None:
    run_id = forge(tmp_path, happened.RunFailed(reason=HOSTILE[:900]), fails=HOSTILE[:900])
    head, fields, _ = told(tmp_path, run_id)
    assert fits(head)
    assert all(len(text) <= 400 for _, text in fields)
