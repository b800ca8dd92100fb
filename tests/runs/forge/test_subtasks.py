"""Subtasks: documents that never change, states told by events, and files made from both."""

from typing import Any

import pytest

from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.forge.documents import Subtask, SubtaskStatus
from fairwitness.errors import UnsafePath, UsageError
from fairwitness.kit.documents import Format, read
from fairwitness.runs.forge.subtasks import Subtasks
from runs.forge.workshop import Workshop
from support.fixtures import check_value

NODE = "task-002"


def subtasks(shop: Workshop) -> Subtasks:
    """As one try of the agent sees them."""
    return Subtasks(shop.log, shop.store, shop.layout, NODE)


def write(parts: Subtasks, name: str = "subtask-001", *, role: Role = Role.SUB_EXECUTOR, **more: Any) -> str:
    given: dict[str, Any] = {"title": "A part", "type_": 1, "body": "## Description\n\nDo it.\n", "depends_on": ()}
    return parts.write(role, id_=name, **{**given, **more})


def stored(shop: Workshop, name: str = "subtask-001") -> Subtask:
    value = read(shop.store.get(shop.layout.subtask(NODE, name)), Format.MARKDOWN).value
    assert check_value(value, Format.MARKDOWN, "forge-subtask") == ()
    return Subtask.model_validate(value)


@pytest.mark.req("F8")
def test_a_part_is_a_document_in_the_ledger_and_a_file(shop: Workshop) -> None:
    assert write(subtasks(shop)) == "subtask-001 is written."
    kept = stored(shop)
    assert (kept.id, kept.parent_task, kept.type, kept.status, kept.order) == (
        "subtask-001",
        NODE,
        1,
        SubtaskStatus.PENDING,
        1,
    )
    assert subtasks(shop).documents() == {"subtask-001": kept}
    assert shop.events() == [
        ("subtask.written", {"nodeId": NODE, "subtaskId": "subtask-001", "agentType": 1, "title": "A part"})
    ]


@pytest.mark.req("F8")
def test_the_same_part_again_is_the_same_and_another_one_is_told_the_next_free_id(shop: Workshop) -> None:
    write(subtasks(shop))
    write(subtasks(shop), "subtask-007")
    assert write(subtasks(shop)) == "subtask-001 is written."
    with pytest.raises(UsageError, match="the next free id is subtask-008"):
        write(subtasks(shop), title="Another part")
    assert len(shop.events()) == 2
    assert stored(shop).title == "A part"


def test_a_file_that_a_kill_kept_from_being_written_is_written(shop: Workshop) -> None:
    write(subtasks(shop))
    (shop.store.root / shop.layout.subtask(NODE, "subtask-001")).unlink()
    write(subtasks(shop))
    assert stored(shop).title == "A part"


@pytest.mark.req("F8")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"type_": 3}, "only a refinery may write subtasks of type 3"),
        ({"depends_on": ("subtask-009",)}, "subtask-001 cannot depend on subtask-009"),
        ({"depends_on": ("subtask-001",)}, "subtask-001 cannot depend on subtask-001"),
        ({"body": "Do it."}, "subtask-001 is not a valid subtask: body: the sections Description"),
        ({"title": " "}, "subtask-001 is not a valid subtask: title"),
    ],
)
def test_what_is_no_part_is_refused_in_a_sentence(shop: Workshop, more: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        write(subtasks(shop), **more)
    assert shop.events() == []


def test_an_id_that_is_no_name_of_a_file_is_refused(shop: Workshop) -> None:
    with pytest.raises(UnsafePath, match="is not an id like 'subtask-001'"):
        write(subtasks(shop), "../subtask-001")


@pytest.mark.req("F8")
def test_a_refinery_may_hand_out_parts_of_type_3(shop: Workshop) -> None:
    write(subtasks(shop), role=Role.REFINERY, type_=3)
    assert stored(shop).type == 3


@pytest.mark.req("F8")
def test_a_part_runs_and_ends_and_its_file_says_so(shop: Workshop) -> None:
    parts = subtasks(shop)
    write(parts)
    parts.change("subtask-001", SubtaskStatus.RUNNING, "task-002-1-h1-0")
    assert stored(shop).status is SubtaskStatus.RUNNING
    parts.change("subtask-001", SubtaskStatus.COMPLETED, "task-002-1-h1-0")
    assert (stored(shop).status, stored(shop).assigned_agent) == (SubtaskStatus.COMPLETED, "task-002-1-h1-0")
    assert [data["status"] for _, data in shop.events("subtask.changed")] == ["running", "completed"]


def test_what_is_told_of_an_agent_is_not_told_again(shop: Workshop) -> None:
    for _ in range(2):  # the second one is the try after a kill, which takes over what had ended
        parts = subtasks(shop)
        write(parts)
        assert parts.status("subtask-001") is SubtaskStatus.PENDING
        parts.change("subtask-001", SubtaskStatus.RUNNING, "task-002-1-h1-0")
        parts.change("subtask-001", SubtaskStatus.COMPLETED, "task-002-1-h1-0")
        assert parts.status("subtask-001") is SubtaskStatus.COMPLETED
    assert len(shop.events("subtask.changed")) == 2
    assert stored(shop).status is SubtaskStatus.COMPLETED


@pytest.mark.req("F8")
def test_a_new_attempt_finds_every_part_pending_since_their_work_is_not_in_its_worktree(shop: Workshop) -> None:
    parts = subtasks(shop)
    write(parts)
    parts.change("subtask-001", SubtaskStatus.COMPLETED, "task-002-1-h1-0")
    for _ in range(2):
        subtasks(shop).reopen(2)
    assert stored(shop).status is SubtaskStatus.PENDING
    assert [data["status"] for _, data in shop.events("subtask.changed")] == ["completed", "pending"]
    again = subtasks(shop)
    again.change("subtask-001", SubtaskStatus.COMPLETED, "task-002-2-h1-0")
    again.reopen(2)  # killed and begun again, it is the same attempt
    assert stored(shop).status is SubtaskStatus.COMPLETED


@pytest.mark.req("F8")
def test_a_part_waits_for_those_it_depends_on(shop: Workshop) -> None:
    parts = subtasks(shop)
    write(parts)
    write(parts, "subtask-002", depends_on=("subtask-001",))
    second = parts.documents()["subtask-002"]
    assert parts.problem(second, "worker-1") == "it waits for subtask-001"
    parts.change("subtask-001", SubtaskStatus.COMPLETED, "a")
    assert parts.problem(second, "worker-1") is None
    assert parts.problem(second, "worker-2") == "it is for worker-1"
    assert parts.problem(parts.documents()["subtask-001"], "worker-1") == "it is completed"


def test_an_agent_is_shown_all_parts_with_their_states(shop: Workshop) -> None:
    parts = subtasks(shop)
    assert parts.listed() == "there are no subtasks"
    write(parts)
    write(parts, "subtask-002", depends_on=("subtask-001",), type_=2)
    parts.change("subtask-001", SubtaskStatus.FAILED, "a")
    assert parts.listed() == (
        "subtask-001 (type 1, failed): A part\nDo it.\n\n"
        "subtask-002 (type 2, pending, waits for subtask-001): A part\nDo it."
    )


def test_parts_of_another_node_are_not_seen(shop: Workshop) -> None:
    write(subtasks(shop))
    other = Subtasks(shop.log, shop.store, shop.layout, "refinery-001")
    assert other.documents() == {}
