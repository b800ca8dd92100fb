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
    assert lost_work(steps[::-1], {"f": "1"}) == ("the work of task-001 is gone from f",)  # it began with the other
    assert lost_work(steps[:1], {"f": "1"}) == ("the work of task-001 is gone from f",)
    assert lost_work((FileStep("task-001", "f", "1", "1"),), {"f": "1"}) == ()  # it changed nothing


def lines(**contents: str) -> dict[str, frozenset[str]]:
    return {name: frozenset(text.split()) for name, text in contents.items()}


@pytest.mark.req("F4", "X1")
@pytest.mark.parametrize(
    ("now", "lost"),
    [
        ("title one two", ()),
        ("title one", ("task-002",)),
        ("title two", ("task-001",)),
        ("one", ("task-002",)),  # the other side, and a line less
        ("title one-and-two", ()),  # a line that nobody wrote settles it
        ("title one more", ()),
    ],
)
def test_a_file_that_could_have_been_made_without_a_task_has_lost_its_work(now: str, lost: tuple[str, ...]) -> None:
    steps = (FileStep("task-001", "f", "base", "left"), FileStep("task-002", "f", "base", "right"))
    known = lines(base="title", left="title one", right="title two", now=now)
    found = lost_work(steps, {"f": "now"}, known)
    assert found == tuple(f"the work of {task} is gone from f" for task in lost)


@pytest.mark.req("F4", "X1")
def test_whoever_takes_one_side_of_a_rewritten_line_loses_the_other() -> None:
    steps = (FileStep("task-001", "f", "base", "left"), FileStep("task-002", "f", "base", "right"))
    known = lines(base="x=1", left="x=2", right="x=3")
    assert lost_work(steps, {"f": "left"}, known) == ("the work of task-002 is gone from f",)
    assert lost_work(steps, {"f": "now"}, {**known, **lines(now="x=5")}) == ()


@pytest.mark.req("F4", "X1")
def test_of_two_pictures_one_is_lost_unless_it_was_made_from_the_other() -> None:
    steps = (FileStep("task-001", "f", "base", "left"), FileStep("task-002", "f", "base", "right"))
    assert lost_work(steps, {"f": "left"}) == ("the work of task-002 is gone from f",)
    assert lost_work(steps, {"f": "now"}) == ()
    later = (*steps[:1], FileStep("task-002", "f", "left", "two"), FileStep("task-003", "f", "two", "three"))
    assert lost_work(later, {"f": "three"}) == ()


@pytest.mark.req("F4")
def test_what_a_later_task_rewrote_or_wrote_again_is_not_lost() -> None:
    known = lines(base="a", first="a one", second="a uno", both="a one two")
    later = (FileStep("task-001", "f", "base", "first"), FileStep("task-002", "f", "first", "second"))
    assert lost_work(later, {"f": "second"}, known) == ()
    again = (FileStep("task-001", "f", "base", "first"), FileStep("task-002", "f", "base", "both"))
    assert lost_work(again, {"f": "both"}, known) == ()


@pytest.mark.req("F4", "X1")
def test_lines_that_a_task_took_away_and_files_that_it_changed_stay_so() -> None:
    known = lines(base="a b", less="a", more="a b c")
    steps = (FileStep("task-001", "f", "base", "less"), FileStep("task-002", "f", "base", "more"))
    assert lost_work(steps, {"f": "more"}, known) == ("the work of task-001 is gone from f",)
    assert lost_work(steps, {"f": "now"}, {**known, **lines(now="a c")}) == ()
    assert lost_work(steps, {}, known) == (
        "the work of task-001 is gone from f",
        "the work of task-002 is gone from f",
    )
    gone = (FileStep("task-001", "f", "base", None), FileStep("task-002", "f", "base", "more"))
    assert lost_work(gone, {}, known) == ()  # only one of the two can be
    assert lost_work(gone, {"f": "more"}, known) == ()


@pytest.mark.req("F4", "X1")
def test_what_a_task_added_to_the_work_of_another_is_its_own() -> None:
    steps = (FileStep("task-001", "f", None, "1"), FileStep("task-002", "f", "1", "2"))
    assert lost_work(steps, {"f": "1"}) == ("the work of task-002 is gone from f",)
    again = (FileStep("task-001", "f", "1", None), FileStep("task-002", "f", None, "2"))
    assert lost_work(again, {}) == ("the work of task-002 is gone from f",)
