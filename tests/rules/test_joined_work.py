"""A join changes only what was in conflict or declared, and loses no task's work."""

import pytest

from fairwitness.rules.joined_work import FileStep, lost_work, stray_changes


@pytest.mark.req("F4", "X1")
def test_a_join_may_change_conflicts_and_declared_fixes_only() -> None:
    assert stray_changes(["a", "b"], ["a"], ["b"]) == ()
    assert stray_changes([], [], []) == ()
    (said,) = stray_changes([f"f{number}" for number in range(7)], [], [])
    assert said.endswith("f0, f1, f2, f3, f4 and 2 more")


@pytest.mark.req("F4", "X1")
def test_work_is_lost_if_a_file_is_as_before_the_task_and_no_other_task_made_it_so() -> None:
    added = FileStep("task-001", "new", None, "1")
    changed = FileStep("task-002", "old", "1", "2")
    removed = FileStep("task-003", "gone", "1", None)
    steps = (added, changed, removed)
    assert lost_work(steps, {"new": "1", "old": "2"}) == ()
    assert lost_work(steps, {"new": "7", "old": "8", "other": "1"}) == ()  # later work changed them further
    assert lost_work(steps, {"old": "1", "gone": "1"}) == (
        "the work of task-001 is gone from new",
        "the work of task-002 is gone from old",
        "the work of task-003 is gone from gone",
    )


@pytest.mark.req("F4", "X1")
def test_a_task_may_take_back_what_another_did() -> None:
    steps = (FileStep("task-001", "f", "1", "2"), FileStep("task-002", "f", "2", "1"))
    assert lost_work(steps, {"f": "1"}) == ()
    assert lost_work(steps[:1], {"f": "1"}) == ("the work of task-001 is gone from f",)
    assert lost_work((FileStep("task-001", "f", "1", "1"),), {"f": "1"}) == ()  # it changed nothing
