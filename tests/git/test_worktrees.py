"""Each attempt has a worktree and a branch; making them can be repeated, and taking them away loses nothing."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fairwitness.errors import UsageError
from fairwitness.git import quarantine
from fairwitness.git.call import GitFailed
from fairwitness.git.identity import FALLBACK
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktree, Worktrees
from git.person import Person, picture

RUN = "2026-02-26T14:30:00Z"
BRANCH = "fairwitness/2026-02-26T14-30-00Z/task-01/attempt-1"


def worktrees_of(person: Person) -> Worktrees:
    """The worktrees of a person's repository, where Fair Witness would have them."""
    repository = person.open()
    state = person.folder / ".fairwitness"
    state.mkdir(exist_ok=True)
    (state / ".gitignore").write_text("*\n")
    return Worktrees(repository, Shadow.open(state / "shadow", repository), state / "worktrees")


def _everything_but_ours(person: Person) -> dict[str, tuple[int, int, bytes]]:
    ours = (
        "/.fairwitness/",
        "/.git/worktrees/",
        "/.git/objects/",
        "/refs/fairwitness/",
        "/refs/heads/fairwitness/",
        "/logs/refs/heads/fairwitness/",
    )
    return {path: seen for path, seen in picture(person.folder).items() if not any(part in path for part in ours)}


def test_an_attempt_works_on_its_own_branch_and_the_person_notices_nothing(person: Person) -> None:
    base = person.commit(a="1\n", **{"d/run.sh": "x\n"})
    person.write("mine", "untracked\n")
    worktrees = worktrees_of(person)
    before = _everything_but_ours(person)
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    assert worktree.branch == BRANCH
    assert worktree.folder.parent == person.folder / ".fairwitness" / "worktrees"
    assert person.git("status", "--porcelain", cwd=worktree.folder) == "", "an agent's git sees a clean checkout"
    assert person.git("rev-parse", "--abbrev-ref", "HEAD", cwd=worktree.folder) == BRANCH
    (worktree.folder / "a").write_text("2\n")
    (worktree.folder / "new").write_text("3\n")
    (worktree.folder / "d" / "run.sh").unlink()
    done = worktrees.commit_all(worktree, "work\n\nmore\n", FALLBACK)
    assert done.is_new
    assert person.git("log", "-1", "--format=%an <%ae> %cn %B%P", BRANCH) == (
        f"Fair Witness <fairwitness@localhost> Fair Witness work\n\nmore\n{base}"
    )
    assert set(worktrees.shadow.entries(done.tree)) == {"a", "new"}
    assert person.git("status", "--porcelain", cwd=worktree.folder) == ""
    assert worktrees.commit_all(worktree, "nothing", FALLBACK) == (done.commit, done.tree, False, ())
    person.git("fsck", "--strict")
    assert _everything_but_ours(person) == before


def test_a_branch_whose_commit_is_gone_is_named_instead_of_asked_for_again_and_again(person: Person) -> None:
    person.commit(a="1\n")
    worktrees = worktrees_of(person)
    place = person.folder / ".git" / "refs" / "heads" / BRANCH
    place.parent.mkdir(parents=True)
    place.write_text(f"{'1' * 40}\n")
    with pytest.raises(GitFailed, match="finds no commit at it"):
        worktrees.create(RUN, "task-01", 1, "HEAD")


def test_creating_twice_adopts_what_stands(person: Person) -> None:
    person.commit(a="1\n")
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    (worktree.folder / "work").write_text("not to be lost")
    assert worktrees.create(RUN, "task-01", 1, "HEAD") == worktree
    assert (worktree.folder / "work").exists()
    assert worktrees.create(RUN, "task-01", 2, "HEAD") != worktree
    assert len(person.git("worktree", "list").splitlines()) == 3


@pytest.mark.parametrize(
    ("run", "task", "attempt"), [("../x", "t", 1), ("r", "a/b", 1), ("r", "t", 0), ("r", "x.lock", 1)]
)
def test_names_that_could_lead_elsewhere_are_refused(person: Person, run: str, task: str, attempt: int) -> None:
    person.commit(a="1\n")
    with pytest.raises(UsageError, match="cannot name a branch"):
        worktrees_of(person).create(run, task, attempt, "HEAD")


def test_no_two_attempts_share_a_folder(person: Person) -> None:
    person.commit(a="1\n")
    worktrees = worktrees_of(person)
    named = [
        worktrees.named(*names) for names in (("a", "b--c", 1), ("a--b", "c", 1), ("a", "b", 1), ("a", "b" * 120, 1))
    ]
    named.append(worktrees.named("a", "b", 1, sub="c"))
    assert len({worktree.folder for worktree in named}) == len(named)
    assert all(len(worktree.folder.name) < 230 for worktree in named)


def test_what_is_in_the_target_goes_without_a_trace(person: Person) -> None:
    person.commit(a="1\n")
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    (worktree.folder / "a").write_text("2\n")
    done = worktrees.commit_all(worktree, "work", FALLBACK)
    assert worktrees.remove(worktree, done.commit) is None
    _assert_gone(person, worktree)
    assert quarantine.kept(worktrees.repository) == ()
    assert worktrees.remove(worktree, done.commit) is None, "a repeated step finds nothing to do"


def test_commits_that_nobody_has_go_to_quarantine_first(person: Person) -> None:
    base = person.commit(a="1\n")
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, base)
    (worktree.folder / "a").write_text("2\n")
    done = worktrees.commit_all(worktree, "work", FALLBACK)
    kept = worktrees.remove(worktree, base)
    assert kept == ("refs/fairwitness/quarantine/2026-02-26T14-30-00Z/task-01--attempt-1", done.commit)
    assert (kept.run, kept.name) == ("2026-02-26T14-30-00Z", "task-01--attempt-1")
    _assert_gone(person, worktree)


def test_leftovers_go_to_quarantine_also_those_in_nested_repositories(person: Person, tmp_path: Path) -> None:
    base = person.commit(a="1\n", b="1\n", **{".gitignore": "*.log\n"})
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, base)
    (worktree.folder / "a").write_text("changed\n")
    (worktree.folder / "b").unlink()
    (worktree.folder / "new").write_text("untracked\n")
    (worktree.folder / "x.log").write_text("ignored\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (worktree.folder / "way out").symlink_to(outside)
    nested = Person.in_folder(worktree.folder, name="nested")
    nested.write("deep/file", "hidden\n")
    nested.commit()
    (worktree.folder / "closed").mkdir(mode=0o500)
    kept = worktrees.remove(worktree, base)
    assert kept is not None
    assert person.git("rev-parse", f"{kept.commit}^1") == base
    files = worktrees.shadow.entries(worktrees.repository.tree_of(kept.commit))
    assert files.keys() == {".gitignore", "a", "new", "nested/deep/file", "way out"}
    assert (outside / "precious").exists()
    _assert_gone(person, worktree)
    person.git("gc", "-q", "--prune=now")
    assert person.git("show", f"{kept.ref}:nested/deep/file") == "hidden"


def test_a_worktree_whose_branch_vanished_is_left_for_a_person(person: Person) -> None:
    person.commit(a="1\n")
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    person.git("update-ref", "-d", worktree.ref)
    with pytest.raises(GitFailed, match="is gone, so its worktree is not removed"):
        worktrees.remove(worktree, "HEAD")
    assert worktree.folder.exists()


def test_an_agents_work_survives_that_git_has_forgotten_the_worktree(person: Person) -> None:
    base = person.commit(a="1\n")
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, base)
    (worktree.folder / "work").write_text("2\n")
    (worktree.folder / ".git").unlink()
    person.git("worktree", "prune", "--expire=now")
    assert worktrees.create(RUN, "task-01", 1, base) == worktree
    done = worktrees.commit_all(worktree, "work", FALLBACK)
    assert worktrees.shadow.read(done.tree, "work") == b"2\n"
    kept = worktrees.remove(worktree, base)
    assert kept is not None
    assert kept.commit == done.commit


def test_a_folder_reached_through_a_link_is_the_same_folder(person: Person, tmp_path: Path) -> None:
    base = person.commit(a="1\n")
    (tmp_path / "state").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "state")
    repository = person.open()
    worktrees = Worktrees(repository, person.shadow(), tmp_path / "alias" / "worktrees")
    worktree = worktrees.create(RUN, "task-01", 1, base)
    worktrees.remove(worktree, base)
    _assert_gone(person, worktree)


def test_other_worktrees_of_the_person_stay(person: Person, tmp_path: Path) -> None:
    person.commit(a="1\n")
    person.git("worktree", "add", "-q", "-b", "theirs", str(tmp_path / "theirs"))
    (tmp_path / "theirs").rename(tmp_path / "on a disk that is not plugged in")
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    worktrees.remove(worktree, "HEAD")
    assert (person.folder / ".git" / "worktrees" / "theirs" / "HEAD").exists()


def test_a_person_in_a_linked_worktree_can_have_attempts_too(person: Person, tmp_path: Path) -> None:
    person.commit(a="1\n")
    person.git("worktree", "add", "-q", "-b", "theirs", str(tmp_path / "theirs"))
    linked = Person(tmp_path / "theirs", person.home)
    worktrees = worktrees_of(linked)
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    (worktree.folder / "a").write_text("2\n")
    assert worktrees.commit_all(worktree, "work", FALLBACK).is_new
    assert worktrees.remove(worktree, "HEAD") is not None


def test_only_what_is_asked_for_is_committed(person: Person) -> None:
    base = person.commit(a="1\n", b="1\n", c="1\n", **{"d/e": "1\n"})
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, base)
    for path in ("a", "b", "new", "other"):
        (worktree.folder / path).write_text("2\n")
    (worktree.folder / "c").unlink()
    (worktree.folder / "d" / "e").unlink()
    only = frozenset({"a", "new", "c", "never there"})
    done = worktrees.commit_all(worktree, "work", FALLBACK, only=only)
    assert worktrees.shadow.entries(done.tree).keys() == {"a", "b", "new", "d/e"}
    assert [person.git("show", f"{done.commit}:{path}") for path in ("a", "b", "new")] == ["2", "1", "2"]
    assert not worktrees.commit_all(worktree, "work", FALLBACK, only=only).is_new
    assert not worktrees.commit_all(worktree, "work", FALLBACK, only=frozenset()).is_new
    kept = worktrees.remove(worktree, done.commit)
    assert kept is not None
    assert person.git("show", f"{kept.commit}:other") == "2", "the rest is kept"


def test_what_an_agent_shut_away_is_kept_too(person: Person) -> None:
    base = person.commit(a="1\n", **{"d/e": "1\n"})
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, base)
    (worktree.folder / "closed" / "inner").mkdir(parents=True)
    (worktree.folder / "closed" / "inner" / "file").write_text("hidden\n")
    (worktree.folder / "closed" / "inner").chmod(0)
    (worktree.folder / "closed").chmod(0)
    (worktree.folder / "d").chmod(0)
    kept = worktrees.remove(worktree, base)
    assert kept is not None
    assert person.git("show", f"{kept.commit}:closed/inner/file") == "hidden"
    assert person.git("show", f"{kept.commit}:d/e") == "1"
    _assert_gone(person, worktree)


def test_a_helper_works_beside_the_attempt(person: Person) -> None:
    base = person.commit(a="1\n")
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, base)
    helper = worktrees.create(RUN, "task-01", 1, base, sub="help")
    assert helper.branch == f"{BRANCH}--help"
    assert helper.name == "task-01--attempt-1--help"
    assert helper.folder != worktree.folder
    assert worktrees.named(RUN, "task-01", 1, sub="help") == helper
    worktrees.remove(helper, base)
    assert worktrees.is_ready(worktree)
    with pytest.raises(UsageError, match="cannot name a branch"):
        worktrees.named(RUN, "task-01", 1, sub="../x")


POINTS = [
    *("git.worktree.branched", "git.worktree.added", "git.worktree.filled", "git.commit.written"),
    *("git.worktree.quarantined", "git.worktree.forgotten"),
]


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_anywhere_is_finished_by_the_next(person: Person, point: str) -> None:
    base = person.commit(a="1\n")
    worktrees_of(person)
    code = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from fairwitness.git.identity import FALLBACK
        from fairwitness.git.repository import Repository
        from fairwitness.git.shadow import Shadow
        from fairwitness.git.worktrees import Worktrees
        repository = Repository.open(Path({str(person.folder)!r}))
        state = Path({str(person.folder / ".fairwitness")!r})
        worktrees = Worktrees(repository, Shadow.open(state / "shadow", repository), state / "worktrees")
        worktree = worktrees.create({RUN!r}, "task-01", 1, {base!r})
        (worktree.folder / "a").write_text("2\\n")
        worktrees.commit_all(worktree, "work", FALLBACK)
        (worktree.folder / "left").write_text("3\\n")
        print(worktrees.remove(worktree, {base!r}))
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(
        [sys.executable, "-c", code], env={**environment, "FAIRWITNESS_KILL_AT": point}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    if point in ("git.worktree.quarantined", "git.worktree.forgotten"):
        worktrees = worktrees_of(person)
        worktrees.remove(worktrees.named(RUN, "task-01", 1), base)
    else:
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    (kept,) = quarantine.kept(person.open())
    assert person.git("show", f"{kept.commit}:left") == "3"
    assert person.git("show", f"{kept.commit}^:a") == "2"
    assert person.git("rev-parse", f"{kept.commit}~2") == base
    assert person.git("branch", "--list", "fairwitness/*") == ""
    person.git("fsck", "--strict")


def _assert_gone(person: Person, worktree: Worktree) -> None:
    assert not worktree.folder.exists()
    assert not worktree.mark.exists()
    assert person.git("branch", "--list", "fairwitness/*") == ""
    assert len(person.git("worktree", "list").splitlines()) == 1
