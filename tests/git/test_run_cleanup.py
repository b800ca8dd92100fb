"""At the end of a run everything it had in git goes, nothing of anybody else's, and no commit is lost."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fairwitness.git.candidates import Candidates, StackMember
from fairwitness.git.identity import FALLBACK
from fairwitness.git.reachability import lost
from fairwitness.git.run_cleanup import RunCleanup, sweep
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from git.person import Person

RUN = "run-1"
REFS = "for-each-ref", "--format=%(refname)"


def worktrees_of(person: Person) -> Worktrees:
    """The worktrees of a person's repository, where Fair Witness would have them."""
    repository = person.open()
    state = person.folder / ".fairwitness"
    state.mkdir(exist_ok=True)
    (state / ".gitignore").write_text("*\n")
    return Worktrees(repository, Shadow.open(state / "shadow", repository), state / "worktrees")


def attempt(worktrees: Worktrees, task: str, number: int = 1, run: str = RUN, sub: str | None = None) -> str:
    """An attempt that made a commit, which is returned."""
    worktree = worktrees.create(run, task, number, "main", sub=sub)
    (worktree.folder / f"{task}-{number}-{sub}").write_text("x\n")
    return worktrees.commit_all(worktree, task, FALLBACK).commit


@pytest.fixture
def busy(person: Person) -> Person:
    """A person with a target branch beside their own."""
    person.commit(a="1\n")
    person.git("branch", "target")
    return person


def test_a_run_is_taken_away_and_everything_it_made_is_kept(busy: Person) -> None:
    worktrees = worktrees_of(busy)
    made = [
        attempt(worktrees, "task-01"),
        attempt(worktrees, "task-01", 2),
        attempt(worktrees, "task-02"),
        attempt(worktrees, "task-02", sub="help"),
    ]
    Candidates(worktrees.repository, worktrees.shadow).stack(
        "target",
        [StackMember("a", made[0]), StackMember("b", made[2])],
        run_id=RUN,
        batch=1,
        message=lambda member: member.name,
        identity=FALLBACK,
    )
    busy.git("branch", "-f", "target", made[2])
    left = worktrees.named(RUN, "task-01", 2)
    (left.folder / "uncommitted").write_text("x\n")
    swept = sweep(worktrees, RUN, "target")
    assert len(swept.removed) == 4
    assert {kept.name for kept in swept.quarantined} == {
        *("task-01--attempt-1", "task-01--attempt-2", "task-02--attempt-1--help")
    }
    assert swept.left == ()
    assert lost(worktrees.repository, RUN, made) == ()
    (kept,) = (kept for kept in swept.quarantined if kept.name == "task-01--attempt-2")
    assert busy.git("show", f"{kept.commit}:uncommitted") == "x"
    assert busy.git(*REFS, "refs/heads").splitlines() == ["refs/heads/main", "refs/heads/target"]
    assert busy.git(*REFS, "refs/fairwitness/candidates") == ""
    assert len(busy.git("worktree", "list").splitlines()) == 1
    assert {path.name for path in worktrees.root.iterdir()} <= {"pool", "aside"}
    assert sweep(worktrees, RUN, "target") == RunCleanup((), (), ()), "a repeated step finds nothing to do"


def test_nothing_of_another_run_or_person_is_touched(busy: Person) -> None:
    worktrees = worktrees_of(busy)
    attempt(worktrees, "task-01")
    others = [
        worktrees.named("run-1--task-01", "x", 1),
        worktrees.named("run-10", "task-01", 1),
        worktrees.named("run", "task-01", 1),
    ]
    for other in others:
        worktrees.create(other.run, other.task, other.attempt, "main")
    theirs = [
        f"fairwitness/{RUN}/mine",
        f"fairwitness/{RUN}/notes/attempt-x",
        f"fairwitness/{RUN}/a/b/attempt-1",
        "fairwitness/task/attempt-1",
    ]
    for branch in theirs:
        busy.git("branch", branch)
    aside = worktrees.root / "aside" / "run-10"
    aside.mkdir(parents=True, exist_ok=True)
    swept = sweep(worktrees, RUN, "target")
    assert swept.removed == (f"fairwitness/{RUN}/task-01/attempt-1",)
    assert all(worktrees.is_ready(other) for other in others)
    assert all(worktrees.tip(other) for other in others)
    branches = busy.git(*REFS, "refs/heads").splitlines()
    assert {f"refs/heads/{branch}" for branch in theirs} < set(branches)
    assert aside.exists()


def test_a_branch_that_a_person_looks_at_stays(busy: Person, tmp_path: Path) -> None:
    worktrees = worktrees_of(busy)
    worktree = worktrees.create(RUN, "task-01", 1, "main")
    worktrees.release(worktree, "main", keep_branch=True)
    busy.git("worktree", "add", "-q", str(tmp_path / "look"), worktree.branch)
    swept = sweep(worktrees, RUN, "target")
    assert swept == RunCleanup((), (), (worktree.branch,))
    busy.git("worktree", "remove", str(tmp_path / "look"))
    assert sweep(worktrees, RUN, "target").removed == (worktree.branch,)


def test_the_work_of_an_attempt_whose_branch_vanished_is_kept(busy: Person) -> None:
    worktrees = worktrees_of(busy)
    worktree = worktrees.create(RUN, "task-01", 1, "main")
    (worktree.folder / "work").write_text("precious\n")
    busy.git("update-ref", "-d", worktree.ref)
    (kept,) = sweep(worktrees, RUN, "target").quarantined
    assert busy.git("show", f"{kept.commit}:work") == "precious"
    assert not worktree.folder.exists()


def test_what_a_killed_process_left_goes_too(busy: Person) -> None:
    worktrees = worktrees_of(busy)
    worktrees.release(worktrees.create("earlier", "task", 1, "main"), "main")
    assert _in_a_process(busy, f"worktrees.create({RUN!r}, 'task-01', 1, 'main')", "git.pool.taken") == -signal.SIGKILL
    worktree = worktrees.named(RUN, "task-01", 1)
    assert worktree.aside.exists()
    sweep(worktrees, RUN, "target")
    assert not worktree.aside.exists()


@pytest.mark.parametrize("point", ["git.worktree.quarantined", "git.worktree.forgotten"])
def test_a_sweep_killed_anywhere_is_finished_by_the_next(busy: Person, point: str) -> None:
    worktrees = worktrees_of(busy)
    made = [attempt(worktrees, "task-01"), attempt(worktrees, "task-02")]
    assert _in_a_process(busy, f"sweep(worktrees, {RUN!r}, 'target')", point) == -signal.SIGKILL
    sweep(worktrees, RUN, "target")
    assert lost(worktrees.repository, RUN, made) == ()
    assert busy.git(*REFS, "refs/heads").splitlines() == ["refs/heads/main", "refs/heads/target"]
    assert len(busy.git("worktree", "list").splitlines()) == 1
    busy.git("fsck", "--strict")


def _in_a_process(person: Person, call: str, point: str) -> int:
    code = textwrap.dedent(f"""
        from pathlib import Path
        from fairwitness.git.repository import Repository
        from fairwitness.git.shadow import Shadow
        from fairwitness.git.run_cleanup import sweep
        from fairwitness.git.worktrees import Worktrees
        repository = Repository.open(Path({str(person.folder)!r}))
        state = Path({str(person.folder / ".fairwitness")!r})
        worktrees = Worktrees(repository, Shadow.open(state / "shadow", repository), state / "worktrees")
        {call}
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FAIRWITNESS_KILL_AT": point}
    return subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode
