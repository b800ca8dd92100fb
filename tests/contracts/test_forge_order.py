"""What a forge run is begun with, what a person may set about it, and the events that only forge tells."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.forge import events as happened
from fairwitness.contracts.forge.documents import SubtaskStatus
from fairwitness.contracts.forge.events import ForgeEvent
from fairwitness.contracts.graph.forge_order import Decider, ForgeOrder, ForgePlan, ForgeSettings, ForgeTable
from fairwitness.contracts.graph.orders import DEFAULT_ATTEMPTS, DEFAULT_CAP, GraphEnd
from support.fixtures import value_of

ORDER: dict[str, Any] = {
    "request": "Fill the catalogue.",
    "slug": "catalogue",
    "mode": "interactive",
    "base_commit": "a" * 40,
    "options": {"target": "fairwitness/2026-02-26T14-30-00Z/target"},
    "verify": {},
    "settings_hash": "sha256:" + "0" * 64,
    "started_by": "Ada <ada@localhost>",
}


@pytest.mark.req("F9")
def test_an_order_is_the_same_when_it_is_read_again() -> None:
    order = ForgeOrder.model_validate(
        ORDER | {"limits": {"change_requests": "person"}, "budget": {"tokens": 9}, "agents": "cassette"}
    )
    assert ForgeOrder.model_validate(json.loads(json.dumps(order.plain()))) == order
    assert (order.mode, order.limits.change_requests) == (ApprovalMode.INTERACTIVE, Decider.PERSON)
    assert (order.agents, order.cassettes, order.limits.cap) == ("cassette", None, DEFAULT_CAP)


@pytest.mark.parametrize("field", [*ORDER])
def test_what_an_order_cannot_do_without_has_no_default(field: str) -> None:
    with pytest.raises(ValidationError):
        ForgeOrder.model_validate({key: value for key, value in ORDER.items() if key != field})


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("slug", "Not A Slug"),
        ("slug", "../up"),
        ("mode", "sometimes"),
        ("base_commit", "HEAD"),
        ("options", {"target": "a..b"}),
        ("settings_hash", "0" * 64),
        ("limits", {"cap": 0}),
        ("surprise", 1),
    ],
)
def test_what_an_order_does_not_know_it_refuses(field: str, bad: Any) -> None:
    with pytest.raises(ValidationError):
        ForgeOrder.model_validate(ORDER | {field: bad})


@pytest.mark.req("P12")
def test_whoever_sets_nothing_has_limits_all_the_same() -> None:
    assert ForgeSettings().forge == ForgeTable(
        cap=DEFAULT_CAP,
        max_attempts=DEFAULT_ATTEMPTS,
        interview_rounds=3,
        plan_rounds=3,
        change_requests=Decider.CAPTAIN,
        helpers=8,
        depth=3,
    )
    assert (DEFAULT_CAP, DEFAULT_ATTEMPTS) == (4, 3)


@pytest.mark.parametrize(
    "bad",
    [
        {"cap": 0},
        {"max_attempts": 0},
        {"max_attempts": 100},
        {"interview_rounds": -1},
        {"plan_rounds": 0},
        {"change_requests": "anybody"},
        {"helpers": -1},
        {"depth": 1.5},
        {"caps": 4},
    ],
)
def test_settings_that_mean_nothing_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ForgeSettings.model_validate({"forge": bad})


@pytest.mark.req("F9")
def test_a_plan_is_the_same_when_it_is_read_again() -> None:
    plan = ForgePlan.model_validate(
        {
            "specs": [{"name": "architecture.md", "body": "# Architecture\n"}],
            "tasks": [value_of("004/task.md")],
            "dag": value_of("004/dag.json"),
            "questions": ["which shop?"],
        }
    )
    assert ForgePlan.model_validate(json.loads(json.dumps(plan.plain()))) == plan
    assert plan.assumptions == ()


@pytest.mark.req("F5")
def test_a_graph_that_is_held_names_the_requests() -> None:
    end = GraphEnd(completed=False, tip="a" * 40, merged=1, exhausted=(), stranded=(), requests=("cr-001",))
    assert GraphEnd.model_validate(json.loads(json.dumps(end.plain()))) == end
    assert GraphEnd(completed=True, tip="a" * 40, merged=1, exhausted=(), stranded=()).requests == ()


EVENTS: tuple[EventData, ...] = (
    happened.TaskReopened(nodeId="task-001", maxAttempts=4, actor="ada"),
    happened.HelperStarted(nodeId="task-001", attemptId=1, agent="worker-1", dispatch="task-001.1.h1", task="look"),
    happened.SubtaskWritten(nodeId="task-001", subtaskId="subtask-001", agentType=2, title="the page"),
    happened.SubtaskChanged(nodeId="task-001", subtaskId="subtask-001", status=SubtaskStatus.RUNNING, agent="worker-2"),
    happened.WalkthroughDisputed(nodeId="task-001", attemptId=1, differences=("a file too many",)),
    happened.CaptainMessage(speaker="captain", text="which shop?", round=1),
    happened.ChangeRequestEmitted(crId="cr-001", emittedBy="r1", affectedTasks=(), title="a page is missing"),
    happened.RunCreated(repoUrl="file:///x", model="m", request="r", mode=ApprovalMode.AUTONOMOUS, decider="person"),
)


@pytest.mark.req("F6")
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_what_forge_tells_is_read_as_it_was_written(event: EventData) -> None:
    shape: TypeAdapter[ForgeEvent] = TypeAdapter(ForgeEvent)
    assert shape.validate_python(json.loads(json.dumps(event.plain()))) == event


@pytest.mark.req("F6")
@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "task.reopened", "nodeId": "task-001", "maxAttempts": 0, "actor": "ada"},
        {"type": "task.reopened", "nodeId": "task-001", "maxAttempts": 2},
        {"type": "helper.started", "nodeId": "t", "attemptId": 1, "agent": "w", "dispatch": "../up", "task": "x"},
        {"type": "subtask.written", "nodeId": "t", "subtaskId": "s", "agentType": 4, "title": "x"},
        {"type": "subtask.written", "nodeId": "t", "subtaskId": "s", "agentType": "refinery", "title": "x"},
        {"type": "subtask.changed", "nodeId": "t", "subtaskId": "s", "status": "merged"},
        {"type": "walkthrough.disputed", "nodeId": "t", "attemptId": 1, "differences": []},
        {"type": "captain.message", "speaker": "captain", "text": "x", "round": 0},
        {"type": "run.created", "repoUrl": "file:///x", "model": "m", "request": "r", "decider": "anybody"},
    ],
    ids=lambda wrong: wrong["type"],
)
def test_an_event_that_says_nothing_or_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    shape: TypeAdapter[ForgeEvent] = TypeAdapter(ForgeEvent)
    with pytest.raises(ValidationError):
        shape.validate_python(wrong)
