"""Trees are merged without a checkout, a target has one lock, and a branch that is checked out is not moved."""

import threading
import time
from pathlib import Path

import pytest

from fairwitness.errors import NotReady, UsageError
from fairwitness.git.merge import (
    Clean,
    Conflict,
    checked_out,
    merge_test,
    refuse_checked_out,
    target_lock,
    target_ref,
)
from git.person import Person, picture


@pytest.fixture
def forked(person: Person) -> Person:
    """Branches `target`, `clean` and `clash` from one commit; `main` is checked out."""
    person.commit(**{"a b": "1\n", "c": "1\n"})
    for branch, path, content in (("target", "a b", "2\n"), ("clean", "c", "2\n"), ("clash", "a b", "3\n")):
        person.git("checkout", "-q", "-b", branch, "main")
        person.commit(branch, **{path: content})
    person.git("checkout", "-q", "main")
    return person


def test_trying_a_merge_touches_nothing(forked: Person) -> None:
    before = picture(forked.folder)
    shadow = forked.shadow()
    target, clean, clash = (forked.git("rev-parse", name) for name in ("target", "clean", "clash"))
    fits = merge_test(shadow, target, clean)
    assert isinstance(fits, Clean)
    assert {path: shadow.read(fits.tree, path) for path in ("a b", "c")} == {"a b": b"2\n", "c": b"2\n"}
    assert merge_test(shadow, target, clash) == Conflict(("a b",))
    assert picture(forked.folder) == before


def test_histories_with_no_common_commit_are_not_merged_by_themselves(forked: Person) -> None:
    forked.git("checkout", "-q", "--orphan", "alien")
    forked.commit(z="1\n")
    forked.git("checkout", "-q", "main")
    with pytest.raises(UsageError, match="have no common ancestor here"):
        merge_test(forked.shadow(), forked.git("rev-parse", "target"), forked.git("rev-parse", "alien"))


@pytest.mark.parametrize("where", ["main checkout", "linked worktree", "rebase", "bisect"])
def test_a_branch_that_somebody_has_checked_out_is_not_moved(forked: Person, tmp_path: Path, where: str) -> None:
    if where == "main checkout":
        forked.git("checkout", "-q", "target")
    elif where == "linked worktree":
        forked.git("worktree", "add", "-q", str(tmp_path / "linked"), "target")
    elif where == "rebase":
        forked.git("checkout", "-q", "target")
        forked.git("rebase", "clash", check=False)
    else:
        forked.git("checkout", "-q", "target")
        forked.git("bisect", "start", "target", "main")
    assert "refs/heads/target" in {branch for branch, _ in checked_out(forked.open())}
    with pytest.raises(UsageError, match=r"target is checked out in .*, so it is not moved"):
        refuse_checked_out(forked.open(), "refs/heads/target")
    refuse_checked_out(forked.open(), "refs/heads/clean")


@pytest.mark.parametrize("target", ["", "-x", "a b", "../x"])
def test_a_target_that_is_no_branch_is_refused(target: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a branch"):
        target_ref(target)


def test_holders_of_the_lock_of_one_target_take_turns(tmp_path: Path) -> None:
    holders: list[int] = []
    most: list[int] = []

    def hold(number: int) -> None:
        with target_lock(tmp_path, "refs/heads/target"):
            holders.append(number)
            time.sleep(0.01)
            most.append(len(holders))
            holders.remove(number)

    workers = [threading.Thread(target=hold, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most == [1] * len(workers)


def test_a_lock_that_stays_taken_is_given_up_and_those_of_other_targets_are_free(tmp_path: Path) -> None:
    with target_lock(tmp_path, "refs/heads/target"):
        with target_lock(tmp_path, "refs/heads/other", 0.05):
            pass
        with (
            pytest.raises(NotReady, match="another process merges into target"),
            target_lock(tmp_path, "refs/heads/target", 0.05),
        ):
            pass
    with target_lock(tmp_path, "refs/heads/target", 0.05):
        pass
