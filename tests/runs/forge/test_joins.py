"""What joins must keep, and which tasks a person let go without a test."""

from pathlib import Path

import pytest

from fairwitness.contracts.forge.events import ConflictFound, MergeStarted, TaskVerified
from fairwitness.contracts.graph.orders import AttemptStart, Collision
from fairwitness.runs.forge.log import DOCUMENT, NOBODY, document_of
from fairwitness.runs.graph.attempts import PREPARED
from runs.forge.workshop import MOMENT, RUN, Workshop, plan


def verified(shop: Workshop, node: str, start: str, **files: str) -> str:
    """An attempt that began with a commit, and was verified with some files."""
    shop.person.git("checkout", "-q", start)
    commit = shop.person.commit(node, **files)
    detail = AttemptStart(base=start, start=start, conflicts=()).plain()
    row = shop.log.observation(f"{PREPARED}:{node}:1", PREPARED, node, detail, MOMENT)
    shop.ledger.record(RUN, lambda record: record.observation(row))
    shop.begin(node)
    shop.tell(TaskVerified(nodeId=node, attemptId=1, commit=commit, tree=shop.repository.tree_of(commit)))
    return commit


def settled(shop: Workshop, node: str, commit: str, base: str, log: str) -> tuple[str, ...]:
    """What is said of a helper that settles a conflict of a node over the file `log`."""
    shop.person.git("checkout", "-q", commit)
    joined = shop.person.commit("settled", log=log)
    order = shop.order(node, conflict=Collision(commit=commit, onto=base, paths=("log",)))
    prepared = AttemptStart(base=base, start=commit, conflicts=("log",))
    return shop.joins().problems(order, prepared, shop.repository.tree_of(joined), ())


@pytest.mark.req("F4", "X1")
def test_a_helper_keeps_the_work_of_the_task_whose_conflict_it_settles(shop: Workshop) -> None:
    base = shop.person.git("rev-parse", "HEAD")
    commit = verified(shop, "task-001", base, log="one\n")
    assert settled(shop, "task-001", commit, base, "other\none\n") == ()
    assert settled(shop, "task-001", commit, base, "") == ("the work of task-001 is gone from log",)


@pytest.mark.req("F4", "X1")
def test_a_helper_of_a_refinery_keeps_the_work_of_all_that_the_refinery_joined(shop: Workshop) -> None:
    base = shop.person.git("rev-parse", "HEAD")
    one = verified(shop, "task-001", base, log="one\n")
    two = verified(shop, "task-002", one, log="one\ntwo\n")
    both = verified(shop, "refinery-001", two, joined="yes\n")
    assert settled(shop, "refinery-001", both, base, "other\none\ntwo\n") == ()
    assert settled(shop, "refinery-001", both, base, "two\n") == ("the work of task-001 is gone from log",)
    assert settled(shop, "refinery-001", both, base, "one\n") == ("the work of task-002 is gone from log",)


@pytest.mark.req("F4")
def test_the_work_of_an_attempt_is_its_own_and_not_what_a_helper_joined_with_it(shop: Workshop) -> None:
    base = shop.person.git("rev-parse", "HEAD")
    commit = verified(shop, "task-001", base, log="one\n")
    shop.tell(MergeStarted(batch=1, nodes=("task-001",)))
    shop.tell(ConflictFound(nodeId="task-001", attemptId=1, onto=base, paths=("log",)))
    helped = shop.person.commit("helped", log="other\none\n")
    shop.tell(TaskVerified(nodeId="task-001", attemptId=1, commit=helped, tree=shop.repository.tree_of(helped)))
    order = shop.order("task-001", conflict=Collision(commit=commit, onto=base, paths=("log",)))
    prepared = AttemptStart(base=base, start=commit, conflicts=("log",))
    assert [each.commit for each in shop.joins().members(order, prepared)] == [commit]


@pytest.mark.req("F4")
def test_what_was_merged_after_a_join_began_is_not_its_affair(shop: Workshop) -> None:
    base = shop.person.git("rev-parse", "HEAD")
    one = verified(shop, "task-001", base, log="one\n")
    verified(shop, "task-003", base, other="three\n")
    order = shop.order("refinery-001")
    names = {
        at: [each.node for each in shop.joins().members(order, AttemptStart(base=at, start=at, conflicts=()))]
        for at in (base, one)
    }
    assert names == {base: [], one: ["task-001"]}


@pytest.mark.req("F2", "X1")
def test_only_a_person_who_approved_the_plan_lets_a_task_go_without_a_test(tmp_path: Path) -> None:
    task = plan().tasks[0].model_copy(update={"test_waiver": "it is a picture"})
    sealed = plan().model_copy(update={"tasks": (task, *plan().tasks[1:])})
    shop = Workshop.make(tmp_path / "ada", sealed=sealed)
    assert shop.criteria().is_waived(task)
    assert not shop.criteria().is_waived(plan().tasks[1])
    assert not Workshop.make(tmp_path / "nobody", sealed=sealed, by=NOBODY).criteria().is_waived(task)
    later = task.model_copy(update={"id": "task-009"})  # added for a change request, which no person reads first
    row = shop.log.observation(
        f"{DOCUMENT}:task-009", DOCUMENT, "task-009", {"text": document_of(later.plain())}, MOMENT
    )
    shop.ledger.record(RUN, lambda record: record.observation(row))
    assert shop.criteria().task("task-009") == later
    assert not shop.criteria().is_waived(later)
