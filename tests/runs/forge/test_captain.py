"""The captain at work: a plan comes of it or a reason, nobody is asked twice, and requests get an answer or an end."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.forge.dag import DagOverlay
from fairwitness.contracts.forge.documents import ChangeRequestStatus
from fairwitness.contracts.forge.events import RunResumed
from fairwitness.contracts.graph.forge import ForgeTable
from fairwitness.errors import UsageError
from fairwitness.rules.forge_course import MoveKind, next_move
from fairwitness.runs.forge.captain import NOBODY, approve
from fairwitness.runs.forge.plan_files import read_plan, write_plan
from fairwitness.runs.forge.standings import request_of, standing_of
from runs.forge.planroom import ADA, RUN, PlanRoom, added, as_plan, node, planned, rejected

AUTONOMOUS = ApprovalMode.AUTONOMOUS


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PlanRoom]:
    made = PlanRoom.make(tmp_path)
    yield made
    made.ledger.close()


def ring() -> dict[str, Any]:
    """A plan that waits for itself."""
    return planned({"task-001": ("task-002",), "task-002": ("task-001",)})


@pytest.mark.req("F9", "F3")
def test_a_plan_is_proposed_and_stands_in_its_files(room: PlanRoom) -> None:
    room.script("captain-1", planned())
    room.plan()
    assert room.types() == ["plan.proposed"]
    assert room.said("plan.proposed") == {"tasks": 2, "refineries": 1}
    plan = room.book.proposal()
    assert plan is not None
    assert (plan.dag.version, plan.dag.runId, plan.dag.metadata.createdBy) == (1, RUN, "captain")
    assert read_plan(room.store, room.layout, plan) == plan
    assert room.ended() == ["captain-1"]
    prompt = room.prompt("captain-1")
    assert "Open a shop." in prompt
    assert "it is asked, and you are called again" in prompt
    assert "`dag.runId`" not in prompt
    assert "`overlay`:" not in prompt
    assert room.repository.git.run("for-each-ref", "refs/heads/fairwitness") == b""


@pytest.mark.req("F9")
def test_repeated_after_a_kill_nothing_is_asked_or_proposed_twice(room: PlanRoom) -> None:
    room.script("captain-1", planned())
    room.plan()
    (room.path("specs", "api.md")).write_text("# Edited by a person\n")
    head = room.ledger.head(RUN)
    room.plan()
    assert room.ledger.head(RUN) == head
    assert room.path("specs", "api.md").read_text() == "# Edited by a person\n"


@pytest.mark.req("F9")
def test_an_answer_that_was_given_before_a_kill_is_adopted(room: PlanRoom) -> None:
    room.script("captain-1", planned())

    async def killed() -> None:
        captain = room.captain()
        await captain._try(1, 1, ())

    asyncio.run(killed())
    assert room.types() == []
    for file in (room.root / "cassettes").iterdir():
        file.unlink()
    room.plan()
    assert room.types() == ["plan.proposed"]
    assert room.tries() == ["captain-1"]


@pytest.mark.req("F9")
def test_questions_open_a_round_of_the_interview_and_answers_reach_the_next_plan(room: PlanRoom) -> None:
    room.script("captain-1", planned(questions=["Which currency?", "Which tax?"]))
    room.plan()
    assert room.types() == ["plan.proposed", "captain.message"]
    assert room.said("captain.message")["text"] == "Which currency?\nWhich tax?"
    room.book.give_back(ADA, "Crowns, and none.", answers=1)
    room.script("captain-2", planned(specs={"money": "# Crowns\n"}))
    room.plan()
    assert room.ended() == ["captain-1", "captain-2"]
    prompt = room.prompt("captain-2")
    assert "The captain asked:\nWhich currency?\nWhich tax?\n\nThe person answered:\nCrowns, and none." in prompt
    assert prompt.count("Crowns, and none.") == 1
    assert "Your last plan: spec api" in prompt
    assert "One call." in prompt
    assert not room.path("specs", "api.md").exists()
    room.book.give_back(ADA, "More tests.")
    room.script("captain-3", planned())
    room.plan()
    assert "The person sent the plan back:\nMore tests." in room.prompt("captain-3")


@pytest.mark.req("F9")
@pytest.mark.parametrize(
    ("mode", "rounds"), [(ApprovalMode.AUTONOMOUS, 3), (ApprovalMode.INTERACTIVE, 0)], ids=["autonomous", "no rounds"]
)
def test_where_nobody_can_be_asked_the_questions_stay_in_the_plan(
    tmp_path: Path, mode: ApprovalMode, rounds: int
) -> None:
    room = PlanRoom.make(tmp_path, mode=mode, limits=ForgeTable(interview_rounds=rounds))
    room.script("captain-1", planned(questions=["Which currency?"]))
    room.plan()
    assert room.types() == ["plan.proposed"]
    plan = room.book.proposal()
    assert plan is not None
    assert plan.questions == ("Which currency?",)
    assert "Nobody can be asked any more" in room.prompt("captain-1")
    room.ledger.close()


@pytest.mark.req("F9", "F3")
@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (planned(specs={"API": "# One\n", "api": "# Two\n"}), "specs[1].name: expected a name that no other has"),
        (planned({}), "dag.nodes: expected at least one task; found none"),
        (planned({"change-requests": ()}), "expected an id that the run does not use itself"),
    ],
    ids=["two specs, one file", "no node", "a taken name"],
)
def test_a_plan_that_files_cannot_hold_is_asked_for_once_more(room: PlanRoom, bad: dict[str, Any], told: str) -> None:
    room.script("captain-1", bad)
    room.script("captain-1", planned(), number=2)
    room.plan()
    assert room.ended() == ["captain-1", "captain-1-2"]
    assert told in room.prompt("captain-1-2")
    assert room.types() == ["plan.proposed"]


@pytest.mark.req("F9", "F3")
def test_a_graph_that_does_not_hold_is_told_and_asked_for_once_more(room: PlanRoom) -> None:
    room.script("captain-1", ring(), ring())
    room.script("captain-1", planned(), number=2)
    room.plan()
    assert room.ended() == ["captain-1", "captain-1-2"]
    assert "wait for each other in a ring" in room.prompt("captain-1-2")
    assert room.types() == ["plan.proposed"]


@pytest.mark.req("F9")
@pytest.mark.parametrize("bad", [rejected("I would rather not"), added("task-009")], ids=["rejected", "overlay"])
def test_an_answer_that_is_no_plan_ends_the_run_after_the_second_time(room: PlanRoom, bad: dict[str, Any]) -> None:
    room.script("captain-1", bad, bad)
    room.script("captain-1", bad, bad, number=2)
    room.plan()
    assert room.ended() == ["captain-1", "captain-1-2"]
    assert room.types() == ["run.failed"]
    assert room.said("run.failed")["reason"].startswith("the captain brought no plan: invalid_answer: dag.nodes")
    head = room.ledger.head(RUN)
    room.plan()
    assert room.ledger.head(RUN) == head
    assert not room.path("dag.json").exists()


@pytest.mark.req("F9", "F10")
def test_a_dispatch_that_fails_ends_the_run_and_is_made_anew_when_it_goes_on(room: PlanRoom) -> None:
    room.plan()  # nothing was recorded
    assert room.types() == ["run.failed"]
    assert "the captain brought no plan: agent_error" in room.said("run.failed")["reason"]
    room.book.write(lambda _now: (RunResumed(),))
    room.script("captain-1", planned())
    room.plan()
    assert room.ended() == ["captain-1", "captain-1-2"]
    assert room.types() == ["run.failed", "run.resumed", "plan.proposed"]


@pytest.mark.req("F9")
def test_without_a_person_the_plan_is_sealed_as_it_stands_in_its_files(tmp_path: Path) -> None:
    room = PlanRoom.make(tmp_path, mode=AUTONOMOUS)
    room.script("captain-1", planned())
    room.plan()
    room.path("specs", "api.md").write_text("# Edited\n")
    asyncio.run(room.captain().seal())
    asyncio.run(room.captain().seal())
    assert room.types() == ["plan.proposed", "plan.proposed", "plan.approved"]
    assert room.said("plan.approved") == {"actor": NOBODY}
    assert room.book.specs() == {"api": "# Edited\n"}
    room.ledger.close()


@pytest.mark.req("F9")
def test_only_a_plan_that_stands_and_fits_is_approved(room: PlanRoom) -> None:
    with pytest.raises(UsageError, match="has no plan yet"):
        approve(room.book, room.store, room.layout, ADA)
    write_plan(room.store, room.layout, as_plan())
    room.book.propose(as_plan())
    room.path("dag.json").write_text("{}")
    with pytest.raises(UsageError, match=r"dag\.json:1:1: version: expected this field"):
        approve(room.book, room.store, room.layout, ADA)
    assert room.types() == ["plan.proposed"]
    room.book.give_back(ADA, "Again.")
    with pytest.raises(UsageError, match="has no plan yet"):
        approve(room.book, room.store, room.layout, ADA)


@pytest.mark.req("F4", "F5", "F9")
def test_what_the_captain_adds_is_applied_and_he_sees_the_plan_that_stands(room: PlanRoom) -> None:
    room.start()
    assert room.request() == "cr-001"
    room.script("captain-cr-001", added("task-003"))
    room.replan()
    assert room.types()[-3:] == ["cr.emitted", "cr.approved", "overlay.applied"]
    assert room.said("cr.approved")["actor"] == "captain"
    assert request_of(room.book, "cr-001").status is ChangeRequestStatus.APPLIED
    prompt = room.prompt("captain-cr-001-1")
    for part in ("it was forgotten", '"status": "PENDING"', "One call.", "The part task-002", "`replan`"):
        assert part in prompt
    assert "`dag`:" not in prompt
    head = room.ledger.head(RUN)
    room.replan()
    assert room.ledger.head(RUN) == head


@pytest.mark.req("F4", "F9")
def test_a_request_that_the_captain_turns_down_is_rejected(room: PlanRoom) -> None:
    room.start()
    room.request()
    room.script("captain-cr-001", rejected("the till can do it"))
    room.replan()
    assert room.said("cr.rejected") == {"crId": "cr-001", "actor": "captain", "reason": "the till can do it"}


@pytest.mark.req("F4", "F5")
def test_what_does_not_fit_is_told_the_captain_and_the_second_time_it_is_the_end(room: PlanRoom) -> None:
    room.start()
    room.request()
    bad = added("task-003", after="task-777")
    room.script("captain-cr-001", bad)
    room.script("captain-cr-001", bad, number=2)
    room.replan()
    assert room.types()[-1] == "overlay.refused"
    order = room.book.order()
    assert order is not None
    assert next_move(room.book.course(), order.mode, order.limits).kind is MoveKind.REPLAN
    room.replan()
    assert "task-777" in room.prompt("captain-cr-001-2").partition("Why your last answer could not be applied")[2]
    assert room.types()[-2:] == ["overlay.refused", "cr.rejected"]
    assert room.said("cr.rejected")["actor"] == "fairwitness"
    assert "did not fit, 2 times" in room.said("cr.rejected")["reason"]
    assert room.ended() == ["captain-cr-001-1", "captain-cr-001-2"]
    assert room.book.course().active() == ()


@pytest.mark.req("F4")
def test_killed_after_the_second_refusal_nobody_is_asked_a_third_time(room: PlanRoom) -> None:
    room.start()
    room.request()
    for _ in range(2):
        room.book.grow(_overlay_that_does_not_fit())
    assert room.book.course().requests["cr-001"].refused == 2
    room.replan()
    assert room.tries() == []
    assert standing_of(room.book, "cr-001").request.status is ChangeRequestStatus.REJECTED


def _overlay_that_does_not_fit() -> DagOverlay:
    plain = {"crId": "cr-001", "appliedAt": RUN, "addedNodes": [node("task-003", "task-777")], "addedEdges": []}
    return DagOverlay.model_validate(plain)


@pytest.mark.req("F4")
def test_a_request_that_gets_no_answer_is_given_up_with_the_reason(room: PlanRoom) -> None:
    room.start()
    room.request()
    room.replan()
    assert room.said("cr.rejected")["actor"] == "fairwitness"
    assert room.said("cr.rejected")["reason"].startswith("the captain gave no answer: ")


@pytest.mark.req("F9", "P16")
@pytest.mark.parametrize(
    "point", ["git.worktree.ready", "dispatch.started", "dispatch.finished", "forge.plan.written#2", "forge.proposed"]
)
def test_killed_anywhere_one_plan_is_proposed_and_paid_once(tmp_path: Path, point: str) -> None:
    room = PlanRoom.make(tmp_path)
    room.script("captain-1", planned())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "runs.forge.planning", str(tmp_path)]
    killed = subprocess.run(command, env={**environment, "FAIRWITNESS_KILL_AT": point}, check=False)
    assert killed.returncode == -signal.SIGKILL
    room.plan()
    assert room.types() == ["plan.proposed"]
    assert room.ended() == ["captain-1"]
    assert len(room.tries()) == (2 if point == "dispatch.started" else 1)
    assert read_plan(room.store, room.layout, as_plan()).specs == as_plan().specs
    room.ledger.close()
