"""What a run committed is undone on one word, and nothing of it or of anybody else's is lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import UsageError
from fairwitness.git.identity import FALLBACK
from fairwitness.runs.feature.commit import rollback_command
from fairwitness.runs.feature.setup import begin_files, keep_dirty
from git.person import picture
from runs.feature.contexts import RUN
from runs.feature.git_runs import Land, dies, land, points

BRANCH = "feature/gift-vouchers"
KEPT = "refs/fairwitness/rolled-back/2026-02-26T14-30-00Z"


def check_back(run: Land) -> None:
    """The checkout is where the run began, clean; the branch is gone and its commit is not."""
    git = run.person.git
    assert git("status", "--porcelain", "-b") == "## main"
    assert git("rev-parse", "main") == git("rev-parse", "began")
    assert (run.person.folder / "app.py").read_text() == "print(1)\n"
    assert (run.person.folder / "old.txt").read_text() == "old\n"
    assert not (run.person.folder / "new").exists()
    assert git("branch", "--list", "feature/*") == ""
    assert git("rev-parse", f"{KEPT}^{{tree}}") == git("rev-parse", "fairwitness/target^{tree}")
    assert not (run.person.folder / ".git" / "index.lock").exists()


def committed(root: Path) -> Land:
    """A run whose commit is checked out."""
    run = land(root)
    assert run.commit().switched
    return run


@pytest.mark.req("P11")
def test_a_run_is_rolled_back_to_where_it_began(tmp_path: Path) -> None:
    run = committed(tmp_path)
    done = run.rollback()
    assert (done.kept, done.branches, done.was_done, done.reverted_by) == (KEPT, (BRANCH,), False, None)
    assert done.now_on.startswith("main at ")
    check_back(run)
    again = run.rollback()
    assert (again.was_done, again.branches) == (True, ())
    check_back(run)
    with pytest.raises(UsageError, match="was rolled back"):
        run.commit()
    run.person.git("gc", "-q", "--prune=now")
    run.person.git("switch", "-q", "-c", "again", KEPT)


def test_the_command_is_one_line(tmp_path: Path) -> None:
    with land(tmp_path).context() as context:
        assert rollback_command(context.run_id) == f"fairwitness rollback {RUN}"


def test_a_checkout_that_is_elsewhere_stays_there(tmp_path: Path) -> None:
    run = committed(tmp_path)
    run.person.git("switch", "-q", "main")
    run.person.write("same.txt", "mine\n")
    before = {path: seen for path, seen in picture(run.person.folder).items() if "/.git/" not in path}
    run.rollback()
    assert {path: seen for path, seen in picture(run.person.folder).items() if "/.git/" not in path} == before
    assert run.person.git("branch", "--list", "feature/*") == ""


def test_the_branch_it_began_on_may_have_moved_or_gone(tmp_path: Path) -> None:
    moved = committed(tmp_path / "moved")
    moved.person.git("branch", "-f", "main", "fairwitness/target~1")
    moved.rollback()
    assert moved.person.git("status", "--porcelain", "-b") == "## main"
    assert moved.person.git("rev-parse", "HEAD") == moved.person.git("rev-parse", "fairwitness/target~1")
    gone = committed(tmp_path / "gone")
    gone.person.git("branch", "-D", "main")
    gone.rollback()
    assert gone.person.git("rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert gone.person.git("rev-parse", "HEAD") == gone.person.git("rev-parse", "began")
    assert gone.person.git("status", "--porcelain") == ""


@pytest.mark.req("P11")
def test_a_dirty_checkout_is_not_left(tmp_path: Path) -> None:
    run = committed(tmp_path)
    run.person.write("app.py", "print('mine')\n")
    before = picture(run.person.folder)
    with pytest.raises(UsageError, match=r"uncommitted changes: app\.py") as refused:
        run.rollback()
    assert "git stash" in refused.value.next_step
    after = picture(run.person.folder)
    assert {path: after[path] for path in after if "/objects/" not in path} == {
        path: before[path] for path in before if "/objects/" not in path
    }
    run.person.git("stash", "-u", "-q")
    run.rollback()
    check_back(run)


def test_a_branch_that_another_worktree_has_is_left_to_it(tmp_path: Path) -> None:
    run = land(tmp_path, finish={"checkout": False})
    run.commit()
    linked = tmp_path / "linked"
    run.person.git("worktree", "add", "-q", str(linked), BRANCH)
    with pytest.raises(UsageError, match="is checked out in") as refused:
        run.rollback()
    assert str(linked) in refused.value.next_step
    run.person.git("switch", "-q", "--detach", cwd=linked)
    run.rollback()
    assert run.person.git("branch", "--list", "feature/*") == ""


def merged(run: Land) -> None:
    """The person brings the work into main by a merge, and goes on."""
    run.person.git("switch", "-q", "main")
    run.person.git("merge", "-q", "--no-ff", BRANCH)
    run.person.commit("later", **{"later.txt": "later\n"})


def forwarded(run: Land) -> None:
    """The person moves main forward to the work."""
    run.person.git("switch", "-q", "main")
    run.person.git("merge", "-q", "--ff-only", BRANCH)


def built_upon(run: Land) -> None:
    """The person goes on on the feature's branch."""
    run.person.commit("later", **{"later.txt": "later\n"})


@pytest.mark.req("P11")
@pytest.mark.parametrize("how", [merged, forwarded, built_upon])
def test_what_was_merged_or_built_upon_is_taken_back_only_if_asked(tmp_path: Path, how: Callable[[Land], None]) -> None:
    run = committed(tmp_path)
    how(run)
    git = run.person.git
    head, branch = git("rev-parse", "HEAD"), git("symbolic-ref", "HEAD")
    with pytest.raises(UsageError, match="merged or built upon") as refused:
        run.rollback()
    assert refused.value.next_step.endswith(f"fairwitness rollback {RUN} --revert")
    assert git("rev-parse", "HEAD") == head
    done = run.rollback(revert=True)
    assert done.reverted_by == git("rev-parse", "HEAD")
    assert git("symbolic-ref", "HEAD") == branch
    assert git("rev-parse", "HEAD^1") == head
    assert git("status", "--porcelain") == ""
    changed = git("diff", "--name-only", "began", "HEAD").split()
    assert changed == ([] if how is forwarded else ["later.txt"])
    assert git("log", "-1", "--format=%s") == 'Revert "feat: add gift vouchers"'
    for revert in (False, True):
        again = run.rollback(revert=revert)
        assert (again.was_done, again.reverted_by) == (True, done.reverted_by)


def test_what_later_work_changed_too_is_left_to_the_person(tmp_path: Path) -> None:
    run = committed(tmp_path)
    run.person.commit("later", **{"app.py": "print(3)\n"})
    with pytest.raises(UsageError, match=r"later work changed the same places: app\.py") as refused:
        run.rollback(revert=True)
    assert "git revert" in refused.value.next_step
    assert run.person.git("status", "--porcelain") == ""


def test_a_checkout_without_the_work_is_told_where_it_is(tmp_path: Path) -> None:
    run = committed(tmp_path)
    built_upon(run)
    run.person.git("switch", "-q", "main")
    with pytest.raises(UsageError, match="does not hold the commit") as refused:
        run.rollback(revert=True)
    assert refused.value.next_step.startswith(f"git switch {BRANCH}")


def test_a_run_that_committed_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has committed nothing"):
        land(tmp_path).rollback()


@pytest.mark.req("P11")
def test_what_was_not_committed_when_the_run_began_can_be_had_back(tmp_path: Path) -> None:
    run = land(tmp_path)
    run.person.write("same.txt", "mine\n")
    with run.context() as context:
        assert keep_dirty(context.repository, context.shadow, RUN, FALLBACK) is not None
    landed = run.commit()
    assert not landed.switched
    run.person.git("checkout", "-q", "--", ".")
    done = run.rollback()
    check_back(run)
    assert done.restore is not None
    run.person.git(*done.restore.split()[1:])
    assert (run.person.folder / "same.txt").read_text() == "mine\n"


def test_documents_that_were_committed_go_with_the_branch_and_are_kept(tmp_path: Path) -> None:
    run = land(tmp_path, finish={"artifacts": "separate-commit"})
    with run.context() as context:
        begin_files(context)
    assert run.commit().switched
    run.rollback()
    assert run.person.git("status", "--porcelain", "-b") == "## main"
    assert run.person.git("show", f"{KEPT}:docs/feature/gift-vouchers/initial-request.md").startswith("Gift vouchers")


@pytest.mark.req("P16")
def test_a_rollback_that_was_killed_anywhere_is_ended(tmp_path: Path) -> None:
    first = committed(tmp_path / "first")
    for number, point in enumerate(points(first.rollback, tmp_path / "log")):
        run = committed(tmp_path / str(number))
        assert dies(run.rollback, at=point), point
        run.rollback()
        check_back(run)


def test_a_revert_that_was_killed_anywhere_is_made_once(tmp_path: Path) -> None:
    first = committed(tmp_path / "first")
    built_upon(first)
    for number, point in enumerate(points(lambda: first.rollback(revert=True), tmp_path / "log")):
        run = committed(tmp_path / str(number))
        built_upon(run)
        assert dies(lambda run=run: run.rollback(revert=True), at=point), point  # type: ignore[misc]  # binds the loop's value
        done = run.rollback(revert=True)
        assert done.reverted_by == run.person.git("rev-parse", "HEAD")
        assert run.person.git("rev-list", "--count", "began..HEAD") == "3"
        assert not (run.person.folder / ".git" / "index.lock").exists()
        assert run.person.git("status", "--porcelain") == ""
