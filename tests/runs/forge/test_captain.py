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
from fairwitness.contracts.forge.documents import ChangeRequestStatus, Walkthrough
from fairwitness.contracts.forge.events import ForgeRunResumed
from fairwitness.contracts.graph.forge_order import ForgeTable
from fairwitness.contracts.graph.orders import AttemptOrder
from fairwitness.errors import UsageError
from fairwitness.rules.captain_answer import writes_of
from fairwitness.rules.next_forge_move import ForgeMoveKind, next_move
from fairwitness.runs.forge.change_requests import request_of, request_state
from fairwitness.runs.forge.helpers import spec_sections
from fairwitness.runs.forge.log import NOBODY
from fairwitness.runs.forge.plan_files import approve, read_plan, write_plan
from fairwitness.runs.forge.walkthroughs import keep_walkthrough
from runs.forge.planroom import ADA, RUN, WAITS, PlanRoom, added, as_plan, node, planned, rejected, task
from support.promises import sections_of

AUTONOMOUS = ApprovalMode.AUTONOMOUS


@pytest.fixture
def context(tmp_path: Path) -> Iterator[PlanRoom]:
    made = PlanRoom.make(tmp_path)
    yield made
    made.ledger.close()


def ring() -> dict[str, Any]:
    """A plan that waits for itself."""
    return planned({"task-001": ("task-002",), "task-002": ("task-001",)})


@pytest.mark.req("F9", "F3")
def test_a_plan_is_proposed_and_stands_in_its_files(context: PlanRoom) -> None:
    context.script("captain-1", planned())
    context.plan()
    assert context.types() == ["plan.proposed"]
    assert context.said("plan.proposed") == {"tasks": 2, "refineries": 1}
    plan = context.log.proposal()
    assert plan is not None
    assert (plan.dag.version, plan.dag.runId, plan.dag.metadata.createdBy) == (1, RUN, "captain")
    assert read_plan(context.store, context.layout, plan) == plan
    assert (
        "# Assumptions\n\n- the till stays as it is\n\n# Open questions\n\nNone."
        in context.path("assumptions.md").read_text()
    )
    assert context.ended() == ["captain-1"]
    prompt = context.prompt("captain-1")
    assert "Open a shop." in prompt
    assert "it is asked, and you are called again" in prompt
    assert "`dag.runId`" not in prompt
    assert "`overlay`:" not in prompt


@pytest.mark.req("F9")
def test_repeated_after_a_kill_nothing_is_asked_or_proposed_twice(context: PlanRoom) -> None:
    context.script("captain-1", planned())
    context.plan()
    (context.path("specs", "api.md")).write_text("# Edited by a person\n")
    head = context.ledger.head(RUN)
    context.plan()
    assert context.ledger.head(RUN) == head
    assert context.path("specs", "api.md").read_text() == "# Edited by a person\n"


@pytest.mark.req("F9")
def test_an_answer_that_was_given_before_a_kill_is_adopted(context: PlanRoom) -> None:
    context.script("captain-1", planned())

    async def killed() -> None:
        captain = context.captain()
        await captain._ask_for_plan(1, 1)

    asyncio.run(killed())
    assert context.types() == []
    for file in (context.root / "cassettes").iterdir():
        file.unlink()
    context.plan()
    assert context.types() == ["plan.proposed"]
    assert context.tries() == ["captain-1"]


@pytest.mark.req("F9")
def test_questions_open_a_round_of_the_interview_and_answers_reach_the_next_plan(context: PlanRoom) -> None:
    context.script("captain-1", planned(questions=["Which currency?", "Which tax?"]))
    context.plan()
    assert context.types() == ["plan.proposed", "captain.message"]
    assert context.said("captain.message")["text"] == "Which currency?\nWhich tax?"
    context.log.give_back(ADA, "Crowns, and none.", answers=1)
    context.script("captain-2", planned(specs={"money": "# Crowns\n"}))
    context.plan()
    assert context.ended() == ["captain-1", "captain-2"]
    prompt = context.prompt("captain-2")
    assert "The captain asked:\nWhich currency?\nWhich tax?\n\nThe person answered:\nCrowns, and none." in prompt
    assert prompt.count("Crowns, and none.") == 1
    assert "Your last plan: spec api" in prompt
    assert "One call." in prompt
    assert not context.path("specs", "api.md").exists()
    context.log.give_back(ADA, "More tests.")
    context.script("captain-3", planned())
    context.plan()
    assert "The person sent the plan back:\nMore tests." in context.prompt("captain-3")


@pytest.mark.req("F9")
@pytest.mark.parametrize(
    ("mode", "rounds"), [(ApprovalMode.AUTONOMOUS, 3), (ApprovalMode.INTERACTIVE, 0)], ids=["autonomous", "no rounds"]
)
def test_where_nobody_can_be_asked_the_questions_stay_in_the_plan(
    tmp_path: Path, mode: ApprovalMode, rounds: int
) -> None:
    context = PlanRoom.make(tmp_path, mode=mode, limits=ForgeTable(interview_rounds=rounds))
    context.script("captain-1", planned(questions=["Which currency?"]))
    context.plan()
    assert context.types() == ["plan.proposed"]
    plan = context.log.proposal()
    assert plan is not None
    assert plan.questions == ("Which currency?",)
    assert "Nobody can be asked any more" in context.prompt("captain-1")
    context.ledger.close()


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
def test_a_plan_that_files_cannot_hold_is_asked_for_once_more(
    context: PlanRoom, bad: dict[str, Any], told: str
) -> None:
    context.script("captain-1", bad, planned())
    context.plan()
    assert context.ended() == ["captain-1"]
    assert told in context.prompts("captain-1")[1]
    assert context.types() == ["plan.proposed"]


@pytest.mark.req("F3", "F9", "X1")
def test_a_plan_with_faults_of_four_kinds_comes_back_once_with_all_of_them(context: PlanRoom) -> None:
    """The second answer in the same conversation is taken."""
    bad = planned()
    bad["tasks"][0]["evidence"] = [{"criterion": "a test is green", "command": "make verify"}]
    bad["tasks"][0]["dependencies"] = bad["dag"]["nodes"][0]["dependencies"] = ["task-777"]
    bad["tasks"][1]["dependencies"] = []
    bad["dag"]["metadata"]["totalTasks"] = 9
    context.script("captain-1", bad, planned())
    context.plan()
    assert context.ended() == ["captain-1"]
    _, again = context.prompts("captain-1")
    for fault in (
        "tasks[0].dependencies[0]: expected a node of this graph, found task-777",
        "tasks[1].dependencies: expected those of its node: task-001, found none",
        "dag.metadata.totalTasks: expected the number of nodes, 2, found 9",
        "tasks[0].evidence[0]: expected a command that begins with `sh check.sh`; found `make verify`",
    ):
        assert fault in again
    assert context.types() == ["plan.proposed"]


@pytest.mark.req("F3", "F9")
def test_a_captain_writes_tasks_and_refineries_and_the_graph_follows(context: PlanRoom) -> None:
    plan = planned(tasks=[task("task-001", writes=["till/**"]), task("task-002", "task-001")])
    plan["dag"] = {"nodes": [{"id": "refinery-001", "dependencies": ["task-001", "task-002"]}]}
    crowded = planned(tasks=[task("task-001", writes=["till/**"]), task("task-002", writes=["till/sum.py"])])
    crowded["dag"] = {"nodes": []}
    context.script("captain-1", crowded, plan)
    context.plan()
    first, again = context.prompts("captain-1")
    for unasked in ("`dag.nodes[].type`", "`dag.nodes[].agentType`", "`dag.nodes[].metadata`", "`dag.metadata`"):
        assert unasked not in first
    assert "other files than task-001, which may run at the same time, or a refinery that joins both" in again
    proposal = context.log.proposal()
    assert proposal is not None
    assert {node.id: node.dependencies for node in proposal.dag.nodes} == WAITS
    assert {node.id: writes_of(node) for node in proposal.dag.nodes}["task-001"] == ("till/**",)
    assert "writes:\n- till/**" in context.path("tasks", "task-001.md").read_text()


@pytest.mark.req("F3", "F9")
def test_a_field_that_is_missing_does_not_hide_the_faults_of_the_graph(context: PlanRoom) -> None:
    bad = ring()
    del bad["tasks"][0]["title"]
    context.script("captain-1", bad, planned())
    context.plan()
    _, again = context.prompts("captain-1")
    assert "tasks[0].title: expected this field" in again
    assert "wait for each other in a ring" in again


@pytest.mark.req("F9", "F3")
def test_a_graph_that_does_not_hold_is_told_and_asked_for_once_more(context: PlanRoom) -> None:
    context.script("captain-1", ring(), ring())
    context.script("captain-1", planned(), number=2)
    context.plan()
    assert context.ended() == ["captain-1", "captain-1-try-2"]
    prompt = context.prompt("captain-1-try-2")
    assert "wait for each other in a ring" in prompt
    assert '"title": "The part task-002"' in prompt.partition("The answer that was refused")[2]
    assert context.types() == ["plan.proposed"]


@pytest.mark.req("F9")
@pytest.mark.parametrize("bad", [rejected("I would rather not"), added("task-009")], ids=["rejected", "overlay"])
def test_an_answer_that_is_no_plan_ends_the_run_after_the_second_time(context: PlanRoom, bad: dict[str, Any]) -> None:
    context.script("captain-1", bad, bad)
    context.script("captain-1", bad, bad, number=2)
    context.plan()
    assert context.ended() == ["captain-1", "captain-1-try-2"]
    assert context.types() == ["run.failed"]
    assert context.said("run.failed")["reason"].startswith("the captain brought no plan: invalid_answer: dag: ")
    head = context.ledger.head(RUN)
    context.plan()
    assert context.ledger.head(RUN) == head
    assert not context.path("dag.json").exists()


@pytest.mark.req("F9", "F10")
def test_a_dispatch_that_fails_ends_the_run_and_is_made_anew_when_it_goes_on(context: PlanRoom) -> None:
    context.plan()  # nothing was recorded
    assert context.types() == ["run.failed"]
    assert "the captain brought no plan: agent_error" in context.said("run.failed")["reason"]
    context.log.write(lambda _now: (ForgeRunResumed(),))
    context.script("captain-1", planned())
    context.plan()
    assert context.ended() == ["captain-1", "captain-1-2"]
    assert context.types() == ["run.failed", "run.resumed", "plan.proposed"]


@pytest.mark.req("F9")
def test_without_a_person_the_plan_is_sealed_as_it_stands_in_its_files(tmp_path: Path) -> None:
    context = PlanRoom.make(tmp_path, mode=AUTONOMOUS)
    context.script("captain-1", planned())
    context.plan()
    context.path("specs", "api.md").write_text("# Edited\n")
    asyncio.run(context.captain().seal())
    asyncio.run(context.captain().seal())
    assert context.types() == ["plan.proposed", "plan.proposed", "plan.approved"]
    assert context.said("plan.approved") == {"actor": NOBODY}
    assert context.log.specs() == {"api": "# Edited\n"}
    context.ledger.close()


@pytest.mark.req("F9")
def test_only_a_plan_that_stands_and_fits_is_approved(context: PlanRoom) -> None:
    with pytest.raises(UsageError, match="has no plan yet"):
        approve(context.log, context.store, context.layout, ADA)
    write_plan(context.store, context.layout, as_plan())
    context.log.propose(as_plan())
    context.path("dag.json").write_text("{}")
    with pytest.raises(UsageError, match=r"dag\.json:1:1: version: expected this field"):
        approve(context.log, context.store, context.layout, ADA)
    assert context.types() == ["plan.proposed"]
    context.log.give_back(ADA, "Again.")
    with pytest.raises(UsageError, match="has no plan yet"):
        approve(context.log, context.store, context.layout, ADA)


@pytest.mark.req("F4", "F5", "F9")
def test_what_the_captain_adds_is_applied_and_he_sees_the_plan_that_stands(context: PlanRoom) -> None:
    context.start()
    assert context.request() == "cr-001"
    context.script("captain-cr-001", added("task-003"))
    context.replan()
    assert context.types()[-3:] == ["cr.emitted", "cr.approved", "overlay.applied"]
    assert context.said("cr.approved")["actor"] == "captain"
    assert request_of(context.log, "cr-001").status is ChangeRequestStatus.APPLIED
    prompt = context.prompt("captain-cr-001-1")
    for part in (
        "it was forgotten",
        '"status": "PENDING"',
        "One call.",
        "The part task-002",
        "`replan`",
        "Open a shop.",
    ):
        assert part in prompt
    assert "`dag`:" not in prompt
    head = context.ledger.head(RUN)
    context.replan()
    assert context.ledger.head(RUN) == head


@pytest.mark.req("F4", "F9")
def test_a_captain_that_replans_gets_what_ended_tasks_say_and_its_new_spec_replaces_the_old(context: PlanRoom) -> None:
    context.start()
    context.request()
    keep_walkthrough(context.log, context.store, context.layout, attempt_of("task-001"), walkthrough(), ["till.py"])
    more = added("task-003") | {"specs": [{"name": "api-2", "body": "# Two calls\n", "replaces": "api"}]}
    context.script("captain-cr-001", more | {"specs": [more["specs"][0] | {"replaces": "nothing"}]}, more)
    context.replan()
    first, again = context.prompts("captain-cr-001-1")
    sections = sections_of(first)
    assert "Counted by hand." in sections["Walkthrough of task-001"]
    assert "One call." in sections["Spec api, which does not change"]
    assert "specs[0].replaces: expected an existing specification" in again
    assert context.log.specs_in_force() == {"api-2": "# Two calls\n"}
    assert [section.title for section in spec_sections(context.log)] == ["Spec api-2"]
    assert context.log.specs().keys() == {"api", "api-2"}  # what was sealed stays in its file


def attempt_of(node: str) -> AttemptOrder:
    """The first attempt at a node."""
    target = "fairwitness/target"
    return AttemptOrder(run_id=RUN, node=node, attempt=1, branch=f"forge/{node}/attempt-1", target=target)


def walkthrough() -> Walkthrough:
    """What a worker says that is done."""
    titles = ("Summary", "Approach", "Issues Encountered", "Testing")
    return Walkthrough.model_validate(
        {
            "task_id": "task-001",
            "branch": "forge/task-001/attempt-1",
            "base_ref": "fairwitness/target",
            "status": "completed",
            "confidence": 0.9,
            "time_spent_minutes": 1,
            "files_changed": [{"path": "till.py", "reason": "it counts"}],
            "body": "".join(f"## {title}\n\nCounted by hand.\n\n" for title in titles),
        }
    )


@pytest.mark.req("F4", "F9")
def test_a_request_that_the_captain_turns_down_is_rejected(context: PlanRoom) -> None:
    context.start()
    context.request()
    context.script("captain-cr-001", rejected("the till can do it"))
    context.replan()
    assert context.said("cr.rejected") == {"crId": "cr-001", "actor": "captain", "reason": "the till can do it"}


@pytest.mark.req("F4", "F5")
def test_what_does_not_fit_is_told_the_captain_and_the_second_time_it_is_the_end(context: PlanRoom) -> None:
    context.start()
    context.request()
    bad = added("task-003", after="task-777")
    context.script("captain-cr-001", bad, bad)
    context.script("captain-cr-001", bad, bad, number=2)
    context.replan()
    told = context.prompt("captain-cr-001-1-try-2")
    assert "task-777" in told.partition("Why the call before this one failed")[2]
    assert "task-777" in told.partition("The answer that was refused")[2]
    assert context.types()[-1] == "cr.rejected"
    assert context.said("cr.rejected")["actor"] == "fairwitness"
    assert "the captain gave no answer: invalid_answer: " in context.said("cr.rejected")["reason"]
    assert context.ended() == ["captain-cr-001-1", "captain-cr-001-1-try-2"]
    assert context.log.course().active() == ()


@pytest.mark.req("F4", "F5")
def test_an_addition_that_does_not_fit_is_mended_in_the_same_conversation(context: PlanRoom) -> None:
    context.start()
    context.request()
    bad = added("task-003", after="task-777")
    bad["tasks"][0]["evidence"] = [{"criterion": "a test is green", "command": "make verify"}]
    context.script("captain-cr-001", bad, added("task-003"))
    context.replan()
    _, again = context.prompts("captain-cr-001-1")
    assert "task-777" in again
    assert "tasks[0].evidence[0]: expected a command" in again
    assert context.types()[-2:] == ["cr.approved", "overlay.applied"]


@pytest.mark.req("F4")
def test_an_answer_that_the_run_has_overtaken_is_asked_for_again(context: PlanRoom) -> None:
    context.start()
    context.request()
    context.log.grow(_overlay_that_does_not_fit())
    order = context.log.order()
    assert order is not None
    assert next_move(context.log.course(), order.mode, order.limits).kind is ForgeMoveKind.REPLAN
    context.script("captain-cr-001", added("task-003"))
    context.replan()
    assert "task-777" in context.prompt("captain-cr-001-2").partition("Why your last answer could not be applied")[2]
    assert context.types()[-1] == "overlay.applied"


@pytest.mark.req("F4")
def test_killed_after_the_second_refusal_nobody_is_asked_a_third_time(context: PlanRoom) -> None:
    context.start()
    context.request()
    for _ in range(2):
        context.log.grow(_overlay_that_does_not_fit())
    assert context.log.course().requests["cr-001"].refused == 2
    context.replan()
    assert context.tries() == []
    assert request_state(context.log, "cr-001").request.status is ChangeRequestStatus.REJECTED
    assert "did not fit, 2 times: " in context.said("cr.rejected")["reason"]


def _overlay_that_does_not_fit() -> DagOverlay:
    plain = {"crId": "cr-001", "appliedAt": RUN, "addedNodes": [node("task-003", "task-777")], "addedEdges": []}
    return DagOverlay.model_validate(plain)


@pytest.mark.req("F4")
def test_a_request_that_gets_no_answer_is_given_up_with_the_reason(context: PlanRoom) -> None:
    context.start()
    context.request()
    context.replan()
    assert context.said("cr.rejected")["actor"] == "fairwitness"
    assert context.said("cr.rejected")["reason"].startswith("the captain gave no answer: ")


@pytest.mark.req("F9", "P16")
@pytest.mark.parametrize(
    "point", ["git.worktree.ready", "dispatch.started", "dispatch.finished", "forge.plan.written#2", "forge.proposed"]
)
def test_killed_anywhere_one_plan_is_proposed_and_paid_once(tmp_path: Path, point: str) -> None:
    context = PlanRoom.make(tmp_path)
    context.script("captain-1", planned())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "runs.forge.planning", str(tmp_path)]
    killed = subprocess.run(command, env={**environment, "FAIRWITNESS_KILL_AT": point}, check=False)
    assert killed.returncode == -signal.SIGKILL
    context.plan()
    assert context.types() == ["plan.proposed"]
    assert context.ended() == ["captain-1"]
    assert len(context.tries()) == (2 if point == "dispatch.started" else 1)
    assert read_plan(context.store, context.layout, as_plan()).specs == as_plan().specs
    context.ledger.close()
