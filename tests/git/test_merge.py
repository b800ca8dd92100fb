"""Branches come together one at a time without a checkout; a target that moved or a conflict is an answer."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from fairwitness.errors import NotReady, UsageError
from fairwitness.git.identity import FALLBACK
from fairwitness.git.merge import Clean, Conflict, Merged, MergeQueue, TargetMoved, checked_out, merge_test, target_lock
from fairwitness.git.shadow import Shadow
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


def queue_of(person: Person) -> MergeQueue:
    """The queue of a person's repository."""
    repository = person.open()
    state = person.home.parent / "state"
    return MergeQueue(repository, Shadow.open(state / "shadow", repository), state / "locks")


def merge(
    person: Person, branch: str, target: str = "target", expected: str | None = None
) -> Merged | Conflict | TargetMoved:
    """Merges as Fair Witness does."""
    return queue_of(person).merge(branch, target, message=f"Merge {branch}", identity=FALLBACK, expected=expected)


def test_trying_a_merge_touches_nothing(forked: Person) -> None:
    before = picture(forked.folder)
    shadow = forked.shadow()
    target, clean, clash = (forked.git("rev-parse", name) for name in ("target", "clean", "clash"))
    fits = merge_test(shadow, target, clean)
    assert isinstance(fits, Clean)
    assert {path: shadow.read(fits.tree, path) for path in ("a b", "c")} == {"a b": b"2\n", "c": b"2\n"}
    assert merge_test(shadow, target, clash) == Conflict(("a b",))
    assert picture(forked.folder) == before


def test_a_merge_commit_moves_the_target_and_nothing_else(forked: Person) -> None:
    before = {path: seen for path, seen in picture(forked.folder).items() if "/objects/" not in path}
    target, clean = forked.git("rev-parse", "target"), forked.git("rev-parse", "clean")
    merged = merge(forked, "clean", expected=target)
    assert isinstance(merged, Merged)
    assert merged.how == "merge"
    assert forked.git("rev-parse", "target") == merged.commit
    assert forked.git("log", "-1", "--format=%P %s", "target") == f"{target} {clean} Merge clean"
    assert merge(forked, "clean", expected=target) == Merged(merged.commit, merged.tree, "already"), "repeated, adopted"
    after = {path: seen for path, seen in picture(forked.folder).items() if "/objects/" not in path}
    assert {path for path in before if before[path] != after[path]} == {
        str(forked.folder / ".git" / place / "target") for place in ("refs/heads", "logs/refs/heads")
    }
    forked.git("fsck", "--strict")


def test_a_target_that_is_behind_is_moved_forward(forked: Person) -> None:
    forked.git("branch", "behind", "main")
    merged = merge(forked, "clean", "behind")
    assert merged == Merged(forked.git("rev-parse", "clean"), forked.git("rev-parse", "clean^{tree}"), "fast-forward")
    forked.git("branch", "-f", "behind", "main")
    queue = queue_of(forked)
    always = queue.merge("clean", "behind", message="m", identity=FALLBACK, fast_forward=False)
    assert isinstance(always, Merged)
    assert always.how == "merge"


def test_a_conflict_and_a_moved_target_are_answers_and_change_nothing(forked: Person) -> None:
    target, main = forked.git("rev-parse", "target"), forked.git("rev-parse", "main")
    before = picture(forked.folder)
    assert merge(forked, "clash") == Conflict(("a b",))
    assert merge(forked, "clean", expected=main) == TargetMoved(main, target)
    assert picture(forked.folder) == before


def test_histories_with_no_common_commit_are_not_merged_by_themselves(forked: Person) -> None:
    forked.git("checkout", "-q", "--orphan", "alien")
    forked.commit(z="1\n")
    forked.git("checkout", "-q", "main")
    with pytest.raises(UsageError, match="have no common ancestor here"):
        merge(forked, "alien")


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
        merge(forked, "clean")


@pytest.mark.parametrize("target", ["missing", "-x", "a b", "../x"])
def test_a_target_that_is_no_branch_is_refused(forked: Person, target: str) -> None:
    with pytest.raises(UsageError):
        merge(forked, "clean", target)


def test_merges_into_one_target_take_turns(forked: Person) -> None:
    names = [f"branch-{number}" for number in range(6)]
    for name in names:
        forked.git("checkout", "-q", "-b", name, "main")
        forked.commit(name, **{name: "1\n"})
    forked.git("checkout", "-q", "main")
    answers: list[Merged | Conflict | TargetMoved] = []
    workers = [threading.Thread(target=lambda name=name: answers.append(merge(forked, name))) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(isinstance(answer, Merged) for answer in answers)
    assert len(answers) == len(names)
    assert set(forked.git("ls-tree", "--name-only", "target").splitlines()) >= set(names)


def test_whoever_waits_too_long_is_told(forked: Person) -> None:
    queue = queue_of(forked)
    with (
        target_lock(queue.locks, "refs/heads/target", 1),
        pytest.raises(NotReady, match="another process merges into target"),
    ):
        queue.merge("clean", "target", message="m", identity=FALLBACK, patience_s=0.05)


@pytest.mark.parametrize("point", ["git.merge.locked", "git.merge.committed", "git.merge.moved"])
def test_a_merge_killed_anywhere_loses_no_commit(forked: Person, point: str) -> None:
    state = forked.home.parent / "state"
    code = textwrap.dedent(f"""
        from pathlib import Path
        from fairwitness.git.identity import FALLBACK
        from fairwitness.git.merge import MergeQueue
        from fairwitness.git.repository import Repository
        from fairwitness.git.shadow import Shadow
        repository = Repository.open(Path({str(forked.folder)!r}))
        state = Path({str(state)!r})
        queue = MergeQueue(repository, Shadow.open(state / "shadow", repository), state / "locks")
        queue.merge("clean", "target", message="m", identity=FALLBACK)
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FAIRWITNESS_KILL_AT": point}
    target, clean = forked.git("rev-parse", "target"), forked.git("rev-parse", "clean")
    killed = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert forked.git("rev-parse", "clean") == clean
    merged = merge(forked, "clean")
    assert isinstance(merged, Merged)
    assert merged.how == ("already" if point == "git.merge.moved" else "merge")
    assert forked.git("rev-parse", "target^1", "target^2").split() == [target, clean]
    forked.git("fsck", "--strict")
