"""Agents of a forge run that lie, overreach or break off: each is kept in, put on record, and the run goes on or ends.

Whole runs with real git, real checks and a recorded team. Where several faults fit into one run, they share it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.graph_grounds import NEEDS_SANDBOX, at_work
from fairwitness.app.run_records.forge import retry
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import Layer, OutcomeStatus
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.forge_order import Decider
from fairwitness.errors import UsageError
from fairwitness.rules.change_requests import RequestDecision
from fairwitness.runs.forge.change_requests import decide, emit, extend, request_of
from feature.grounds import Turn, call
from forge.grounds import (
    JOIN,
    LAST,
    ONE,
    SPEC,
    TWO,
    Document,
    Grounds,
    Node,
    Run,
    added,
    as_answer,
    part,
    planned,
    refined,
    walked,
    wanted,
    worked,
)

pytestmark = [pytest.mark.timeout(400), NEEDS_SANDBOX]

EDITED_SPEC: list[Document] = [{"name": "parts", "body": "A part is anything.\n"}]
LATER = Node("task-009", ("refinery-001",))


def insisted(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Somebody who is told what is wrong with an answer, and gives it again."""
    return (*turns, turns[-1])


# --- one run in which nearly everybody does something wrong


@pytest.fixture(scope="module")
def strayed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two tasks and a refinery; each fails at first, and the refinery asks for what its captain gets wrong twice."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("strayed"), ONE, TWO, JOIN)
    lie = walked("parts/other", tests={"the part is good": "pass"})
    overreach = call("agent", agent="worker-3", task="Do all of it for me.")
    grounds.does(ONE, insisted(worked(overreach, part("task-001", "no good\n"), said=lie)), sessions=2)
    green = walked("parts/task-001", tests={"the part is good": "pass"})
    grounds.does(ONE, worked(part("task-001", "no good\n"), said=green), attempt=2)
    grounds.does(ONE, attempt=3)
    grounds.does(TWO, (Turn("It is done.", (part("task-002"),)), Turn("No walkthrough."), Turn("None.")), sessions=2)
    short = walked("parts/task-002", body="Done.")
    grounds.does(TWO, insisted(worked(part("task-002"), said=short)), attempt=2, sessions=2)
    grounds.does(TWO, attempt=3)
    grounds.does(JOIN, insisted(refined(requests=[wanted("approved")])), sessions=2)
    grounds.does(JOIN, refined(part("task-002", "no good\n"), fixes=["parts/task-002"]), attempt=2)
    grounds.does(JOIN, refined(requests=[wanted()]), attempt=3)
    late = added(Node("task-009"), edges=[("task-001", "task-009")], specs=EDITED_SPEC)
    circle = added(LATER, Node("task-010", ("task-009",)), edges=[("task-009", "task-010")])
    circle["tasks"][0]["dependencies"].append("task-010")
    for number, answers in enumerate(((late, late), (circle, circle)), 1):
        turns = [Turn("More.", submitted=each) for each in answers]
        grounds.record(Role.CAPTAIN, "captain-cr-001", turns, number)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    return run


@pytest.mark.req("F2")
def test_a_walkthrough_that_names_other_files_comes_back_and_one_with_other_results_is_disputed(strayed: Run) -> None:
    first = strayed.outcomes()["task-001-1"]
    assert first.status is OutcomeStatus.INVALID_ANSWER
    assert first.problems == (
        "the walkthrough names files that did not change: parts/other",
        "files changed that the walkthrough does not name: parts/task-001",
    )
    (disputed,) = strayed.events("walkthrough.disputed")
    assert (disputed["nodeId"], disputed["attemptId"]) == ("task-001", 2)
    said = "the walkthrough says that the part is good pass; tests failed when Fair Witness ran them"
    assert disputed["differences"] == [said]
    assert "the part is good" in strayed.file("task-001/attempt-2/walkthrough.md")  # it stays as it was said
    retried = strayed.events("task.retried", nodeId="task-001")
    assert [event["nextAttempt"] for event in retried] == [2, 3]
    assert said in retried[1]["reason"]
    assert strayed.parts() == {"task-001", "task-002"}


@pytest.mark.req("F2", "F10")
def test_a_missing_and_an_invalid_walkthrough_fail_their_attempts(strayed: Run) -> None:
    first, second = strayed.outcomes()["task-002-1"], strayed.outcomes()["task-002-2"]
    assert {first.status, second.status} == {OutcomeStatus.INVALID_ANSWER}
    assert "Summary" in "".join(second.problems)
    retried = strayed.events("task.retried", nodeId="task-002")
    assert [event["nextAttempt"] for event in retried] == [2, 3]
    assert all("invalid_answer" in event["reason"] for event in retried), retried
    assert [event["attemptId"] for event in strayed.events("walkthrough.written", nodeId="task-002")] == [3]
    assert strayed.states()["task-002"] == "MERGED"


@pytest.mark.req("F8")
def test_a_type_2_that_asks_for_a_type_3_is_refused_and_goes_on(strayed: Run) -> None:
    outcome = strayed.outcomes()["task-001-1"]
    assert [(each.tool, each.layer) for each in outcome.denials] == [("agent", Layer.DECISION)]
    assert "worker-3" in outcome.denials[0].reason
    assert strayed.events("helper.started") == []


@pytest.mark.req("F4", "F9")
def test_a_refinery_cannot_return_a_request_that_is_approved_already(strayed: Run) -> None:
    outcome = strayed.outcomes()["refinery-001-1"]
    assert outcome.status is OutcomeStatus.INVALID_ANSWER
    assert any("pending: whoever asks does not decide" in problem for problem in outcome.problems), outcome.problems
    (emitted,) = strayed.events("cr.emitted")
    assert emitted["crId"] == "cr-001"
    assert strayed.events("cr.approved") == []


@pytest.mark.req("F9", "F10")
def test_a_refinery_that_leaves_the_joined_branch_red_tries_again(strayed: Run) -> None:
    retried = strayed.events("task.retried", nodeId="refinery-001")
    assert [event["nextAttempt"] for event in retried] == [2, 3]
    assert "tests" in retried[1]["reason"]
    merged = [event["nodeId"] for event in strayed.events("node.changed", newStatus="MERGED")]
    assert sorted(merged) == ["refinery-001", "task-001", "task-002"]


@pytest.mark.req("F5", "F7", "F9")
def test_what_a_captain_adds_in_the_wrong_place_is_refused_whole_told_and_the_old_plan_completes(strayed: Run) -> None:
    first, second = (strayed.outcomes()[f"captain-cr-001-1{try_}"] for try_ in ("", "-try-2"))
    assert first.problems == (
        "specs[0].name: expected a new name, since existing specifications are sealed; found parts",
        "addedEdges[0].to: expected a node that is PENDING; found task-001, MERGED",
    )
    assert len(second.problems) == 1
    assert "task-009" in second.problems[0]
    told = strayed.transcript("captain-cr-001-1-try-2")
    assert "The answer that was refused" in told
    assert first.problems[1] in told
    assert strayed.events("overlay.refused") == []
    (rejected,) = strayed.events("cr.rejected")
    assert (rejected["crId"], rejected["actor"]) == ("cr-001", "fairwitness")
    assert rejected["reason"].startswith("the captain gave no answer: invalid_answer: ")
    assert strayed.file("specs/parts.md") == SPEC
    state = strayed.state()
    assert (state["status"], state["totalTasks"], state["activeCRs"]) == ("completed", 3, [])
    assert "status: rejected" in strayed.file("change-requests/cr-001/change-request.md")


# --- a run that waits for a person


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A refinery has asked for more, a task waits behind it, and a person is to decide."""
    settings = '\n[forge]\nchange_requests = "person"\n'
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("waiting"), ONE, TWO, JOIN, LAST, settings=settings)
    grounds.does(JOIN, refined(requests=[wanted()]))
    run = grounds.begin()
    assert run.carry() is WatchEnd.PERSON
    assert run.states()["task-003"] == "PENDING"
    return run


def _double() -> Document:
    twice = added(LATER)
    twice["overlay"]["addedNodes"] *= 2
    return twice


UNFIT: dict[str, tuple[Document, str]] = {
    "an unknown node": (
        added(edges=[("task-003", "task-777")]),
        "addedEdges[0].from: expected a node of the graph or of this overlay; found task-777",
    ),
    "an id that is taken": (
        added(Node("task-002", ("refinery-001",))),
        "addedNodes[0].id: expected an id that is not taken; found task-002",
    ),
    "an id twice": (_double(), "addedNodes[1].id: expected an id that is not taken; found task-009"),
    "a cycle": (
        added(Node("task-009", ("task-003",)), edges=[("task-003", "task-009")]),
        "addedEdges: expected",
    ),
    "an edge into what is merged": (
        added(LATER, edges=[("refinery-001", "task-009")]),
        "addedEdges[0].to: expected a node that is PENDING; found refinery-001, MERGED",
    ),
    "the place of the run's own files": (
        added(Node("dag-status.json", ("refinery-001",))),
        "overlay.addedNodes[0].id: expected an id that the run does not use itself; found dag-status.json",
    ),
    "the name of a captain": (
        added(Node("captain-1", ("refinery-001",))),
        "overlay.addedNodes[0].id: expected an id that the run does not use itself; found captain-1",
    ),
    "a sealed spec": (
        added(LATER, specs=EDITED_SPEC),
        "specs[0].name: expected a new name, since existing specifications are sealed; found parts",
    ),
    "nothing": (added(), "overlay: expected at least one node or edge; found nothing"),
}


@pytest.mark.req("F5", "F7")
@pytest.mark.parametrize("what", UNFIT)
def test_an_overlay_that_does_not_fit_changes_nothing(waiting: Run, what: str) -> None:
    answer, told = UNFIT[what]
    with waiting.context() as context:
        before = context.log.effective()[1]
        problems = extend(context.log, "cr-001", as_answer(answer), "captain")
        assert problems
        assert context.log.effective()[1] == before
        assert request_of(context.log, "cr-001").status.value == "pending"
    assert any(problem.startswith(told) for problem in waiting.events("overlay.refused")[-1]["problems"])


@pytest.mark.req("F4")
@pytest.mark.parametrize("actor", ["refinery-001", " Refinery-001 "])
@pytest.mark.parametrize("verdict", [RequestDecision.APPROVE, RequestDecision.REJECT])
def test_whoever_emitted_a_request_cannot_decide_about_it(waiting: Run, actor: str, verdict: RequestDecision) -> None:
    with waiting.context() as context:
        with pytest.raises(UsageError, match="emitted the request and cannot decide about it"):
            decide(context.log, "cr-001", verdict, actor, "I say so.")
        assert request_of(context.log, "cr-001").decided_by is None


# --- a node that is at work


@pytest.mark.req("F5", "F10")
def test_an_edge_into_a_node_that_is_at_work_is_refused_and_the_old_plan_completes(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, ONE)
    slowly = (
        call("create_file", path="slow", content="yes\n"),
        call("run_in_terminal", command="sh check.sh"),
        call("run_in_terminal", command="rm slow"),
    )
    grounds.does(ONE, worked(*slowly, part("task-001"), said=walked("parts/task-001")))
    grounds.replans(_rejection())
    run = grounds.begin()
    with at_work(run.top, "resume", run.run_id, "--plain") as process:
        run.wait_for("task.started")
        with run.context() as context:
            emit(context.log, "refinery-001", 1, [_request()])
            late = added(Node("task-009"), edges=[("task-001", "task-009")])
            (problem,) = extend(context.log, "cr-001", as_answer(late), "captain")
        assert (problem.expected, problem.found) == ("a node that is PENDING", "task-001, RUNNING")
        told, _ = process.communicate(timeout=200)
    assert process.returncode == 0, told
    assert run.state()["totalTasks"] == 1
    (rejected,) = run.events("cr.rejected")
    assert (rejected["actor"], rejected["reason"]) == ("captain", "It can wait.")


def _rejection() -> Document:
    return {"specs": [], "tasks": [], "rejected": "It can wait.", "assumptions": [], "open_questions": []}


def _request() -> Any:
    from fairwitness.contracts.forge.documents import ChangeRequest

    return ChangeRequest.model_validate(wanted())


@pytest.mark.req("F4", "F9")
@pytest.mark.parametrize(
    ("settings", "is_autonomous", "decider"),
    [
        ("", False, Decider.PERSON),
        ("", True, Decider.CAPTAIN),
        ('\n[forge]\nchange_requests = "captain"\n', False, Decider.CAPTAIN),
        ('\n[forge]\nchange_requests = "person"\n', True, Decider.PERSON),
    ],
)
def test_an_agent_answers_change_requests_only_where_somebody_said_so(
    tmp_path: Path, settings: str, is_autonomous: bool, decider: Decider
) -> None:
    run = Grounds.lay_out(tmp_path, ONE, settings=settings).begin(is_autonomous=is_autonomous)
    with run.context() as context:
        order = context.log.order()
    assert order is not None
    assert order.limits.change_requests is decider


# --- plans that are none


RESERVED = planned(Node("specs"))
CIRCLE = planned(Node("task-001", ("task-002",)), Node("task-002", ("task-001",)))


@pytest.mark.req("F9", "F10")
def test_a_captain_without_a_usable_plan_ends_the_run_which_asks_him_again_when_it_is_resumed(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, ONE)
    for number, bad in enumerate((RESERVED, CIRCLE), 1):  # asked for once more in a new call, as in every workflow
        grounds.record(Role.CAPTAIN, "captain-1", insisted((Turn("A plan.", submitted=bad),)), number)
    grounds.plans(planned(ONE), 3)
    run = grounds.begin(is_autonomous=False)
    assert run.carry() is WatchEnd.FAILED
    assert list(run.outcomes()) == ["captain-1", "captain-1-try-2"]
    told = run.transcript("captain-1-try-2")
    assert "Why the call before this one failed" in told
    assert "expected an id that the run does not use itself; found specs" in told
    (failed,) = run.events("run.failed")
    assert failed["reason"].startswith("the captain brought no plan: ")
    assert run.state()["status"] == "failed"
    assert run.events("plan.proposed") == []
    assert run.carry() is WatchEnd.PERSON  # he is asked again, and now there is something to look at
    assert run.outcomes()["captain-1-2"].status is OutcomeStatus.OK
    assert run.state()["status"] == "plan_review"


# --- helpers


CHIEF = Node("task-001", (), 3)


def _subtask(name: str, type_: int = 1, **differs: Any) -> tuple[str, dict[str, Any]]:
    body = "## Description\n\nA part.\n"
    return call("write_subtask", id=name, title=f"The {name}", type=type_, body=body, **differs)


@pytest.mark.req("F8")
def test_helpers_are_limited_and_subtasks_are_what_happened_and_not_what_is_said(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, CHIEF, settings="\n[forge]\nhelpers = 1\ndepth = 1\n")
    split = (
        _subtask("subtask-001"),
        _subtask("subtask-002", 2, depends_on=["subtask-001"]),
        _subtask("subtask-003", 3),
    )
    tried = (
        call("agent", agent="worker-2", task="subtask-002"),  # what it waits for is not there
        call("agent", agent="worker-2", task="subtask-001"),  # it is for another type
        call("agent", agent="worker-2", task="Fetch a part."),
        call("agent", agent="worker-1", task="subtask-001"),  # one helper is all there is
    )
    lie = walked("parts/task-001", "parts/fetched")
    lie["body"] = lie["body"].replace("Nothing more", "subtask-001 and subtask-002 are completed; nothing more")
    grounds.does(CHIEF, (Turn("Parts.", split), Turn("Now.", tried), *worked(part("task-001"), said=lie)))
    deeper = call("agent", agent="worker-1", task="Do it for me.")
    grounds.record(Role.WORKER, "task-001-1-h1", worked(deeper, part("fetched")))
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    told = run.transcript("task-001-1")
    for refusal in (
        "only a refinery may write subtasks of type 3; use type 1 or 2",
        "subtask-002 cannot be assigned: it waits for subtask-001",
        "subtask-001 cannot be assigned: it is for worker-1",
        "no more helpers: 1 of 1 were started",
    ):
        assert refusal in told
    (helper,) = run.events("helper.started")
    assert (helper["nodeId"], helper["agent"], helper["task"]) == ("task-001", "worker-2", "Fetch a part.")
    assert "helpers may be started 1 deep, and this one would be deeper" in run.transcript(helper["dispatch"])
    assert [event["subtaskId"] for event in run.events("subtask.written")] == ["subtask-001", "subtask-002"]
    assert run.events("subtask.changed") == []
    for name in ("subtask-001", "subtask-002"):
        assert "status: pending" in run.file(f"task-001/subtasks/{name}.md")
    assert run.parts() == {"task-001", "fetched"}


# --- no attempt left


@pytest.mark.req("F10")
def test_an_exhausted_refinery_ends_the_run_and_one_more_attempt_completes_it(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, ONE, TWO, JOIN, LAST, settings="\n[forge]\nmax_attempts = 1\n")
    grounds.does(JOIN, refined(part("task-002", "no good\n"), fixes=["parts/task-002"]))
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    (exhausted,) = run.events("task.exhausted")
    assert (exhausted["nodeId"], exhausted["attempts"]) == ("refinery-001", 1)
    assert run.states() == {
        "task-001": "MERGE_READY",
        "task-002": "MERGE_READY",
        "refinery-001": "FAILED",
        "task-003": "PENDING",
    }
    (failed,) = run.events("run.failed")
    assert failed["reason"].startswith("no attempt left for refinery-001")
    assert run.parts() == set()
    state = run.state()
    assert (state["status"], state["currentPhase"], state["failedTasks"]) == ("failed", "execution", 1)
    grounds.does(JOIN, attempt=2)
    assert retry(run.top, run.run_id, "refinery-001", more=1) == 2
    assert run.carry() is WatchEnd.COMPLETED
    assert set(run.states().values()) == {"MERGED"}
    (reopened,) = run.events("task.reopened")
    assert (reopened["actor"], reopened["maxAttempts"]) == ("Ada <ada@example.org>", 2)
    assert json.loads(run.file("dag-status.json"))["nodes"]["refinery-001"]["currentAttempt"] == 2
