"""Candidates stand beside their target until one is green; nothing they hold is lost, whoever is killed when."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fairwitness.errors import NotReady, UsageError
from fairwitness.git import quarantine
from fairwitness.git.candidates import (
    AlreadyLanded,
    Candidates,
    LandedCommit,
    MarkedMerge,
    StackConflict,
    Stacked,
    StackMember,
    candidate_ref,
)
from fairwitness.git.identity import FALLBACK
from fairwitness.git.merge import TargetMoved, target_lock
from fairwitness.git.reachability import lost
from git.person import Person, picture

RUN = "2026-02-26T14:30:00Z"


@pytest.fixture
def forked(person: Person) -> Person:
    """Branches from one commit: `target` and `b`, `c` fit together, `clash` disputes a file with `b`."""
    person.commit(a="1\n", b="1\n", c="1\n")
    for branch, path, content in (("target", "a", "2\n"), ("b", "b", "2\n"), ("clash", "b", "3\n"), ("c", "c", "2\n")):
        person.git("checkout", "-q", "-b", branch, "main")
        person.commit(branch, **{path: content})
    person.git("checkout", "-q", "main")
    return person


def candidates_of(person: Person) -> Candidates:
    """The candidates of a person's repository."""
    return Candidates(person.open(), person.shadow())


def stack(person: Person, *names: str, onto: str = "target") -> tuple[tuple[Stacked, ...], tuple[StackConflict, ...]]:
    """Stacks branches by name as batch 1."""
    members = [StackMember(name, person.git("rev-parse", name)) for name in names]
    return candidates_of(person).stack(
        onto, members, run_id=RUN, batch=1, message=lambda member: f"Merge {member.name}", identity=FALLBACK
    )


def land(
    person: Person, expected: str, commit: str, target: str = "target"
) -> LandedCommit | TargetMoved | AlreadyLanded:
    """Lands as a merge does."""
    state = person.home.parent / "state"
    return candidates_of(person).land(target, expected, commit, state / "locks", ours=state / "worktrees")


def test_members_are_stacked_one_by_one_and_the_target_stays(forked: Person) -> None:
    before = {path: seen for path, seen in picture(forked.folder).items() if "/objects/" not in path}
    target, b, c = (forked.git("rev-parse", name) for name in ("target", "b", "c"))
    (first, second), clashes = stack(forked, "b", "c")
    assert clashes == ()
    assert forked.git("log", "-1", "--format=%P %s", first.commit) == f"{target} {b} Merge b"
    assert forked.git("log", "-1", "--format=%P %s", second.commit) == f"{first.commit} {c} Merge c"
    assert second.tree == forked.git("rev-parse", f"{second.commit}^{{tree}}")
    shadow = forked.shadow()
    assert [shadow.read(second.tree, path) for path in "abc"] == [b"2\n", b"2\n", b"2\n"]
    assert shadow.read(first.tree, "c") == b"1\n"
    ref = candidate_ref(RUN, 1)
    assert forked.git("rev-parse", ref) == second.commit
    after = {path: seen for path, seen in picture(forked.folder).items() if "/objects/" not in path}
    assert {path for path in after if after[path] != before.get(path)} == {str(forked.folder / ".git" / ref)}
    forked.git("gc", "-q", "--prune=now")
    assert forked.git("show", f"{second.commit}:c") == "2", "held against cleaning-up"


def test_a_member_that_clashes_is_set_aside_and_the_next_one_is_tried(forked: Person) -> None:
    stacked, clashes = stack(forked, "b", "clash", "c")
    assert [member.name for member in stacked] == ["b", "c"]
    assert clashes == (StackConflict("clash", ("b",)),)
    assert forked.git("show", f"{stacked[-1].commit}:b") == "2"
    assert forked.git("rev-parse", f"{stacked[1].commit}^1") == stacked[0].commit


def test_a_descendant_is_the_new_top_and_what_is_contained_adds_nothing(forked: Person) -> None:
    forked.git("checkout", "-q", "-b", "later", "target")
    later = forked.commit(d="1\n")
    forked.git("checkout", "-q", "main")
    stacked, clashes = stack(forked, "later", "target", "later")
    assert {member.commit for member in stacked} == {later}
    assert [member.name for member in stacked] == ["later", "target", "later"]
    assert clashes == ()


def test_a_member_of_another_history_is_set_aside_with_no_path(forked: Person) -> None:
    forked.git("checkout", "-q", "--orphan", "alien")
    forked.commit(z="1\n")
    forked.git("checkout", "-q", "main")
    (only,), clashes = stack(forked, "alien", "b")
    assert only.name == "b"
    assert clashes == (StackConflict("alien", ()),)


def test_stacking_again_takes_the_commits_that_are_held(forked: Person) -> None:
    first = stack(forked, "b", "clash", "c")
    assert stack(forked, "b", "clash", "c") == first
    shorter, _ = stack(forked, "b")
    assert shorter == first[0][:1]
    assert forked.git("rev-parse", candidate_ref(RUN, 1)) == shorter[0].commit


def test_a_dropped_stack_leaves_nothing(forked: Person) -> None:
    stack(forked, "b", "c")
    candidates = candidates_of(forked)
    assert [held.batch for held in candidates.held(RUN)] == [1]
    assert candidates.drop(RUN, 1) is None
    assert candidates.drop(RUN, 1) is None, "a repeated step finds nothing to do"
    assert candidates.held(RUN) == ()
    assert forked.git("for-each-ref", "refs/fairwitness") == ""


def test_a_commit_that_only_the_stack_still_holds_goes_to_quarantine(forked: Person) -> None:
    commit = forked.git("rev-parse", "b")
    (_, top), _ = stack(forked, "b", "c")
    forked.git("branch", "-q", "-D", "b")
    assert lost(forked.open(), RUN, [commit]) == (commit,)
    kept = candidates_of(forked).drop(RUN, 1)
    assert kept == ("refs/fairwitness/quarantine/2026-02-26T14-30-00Z/candidate-1", top.commit)
    assert lost(forked.open(), RUN, [commit, top.commit]) == ()


def test_replacing_a_stack_keeps_what_only_the_old_one_held(forked: Person) -> None:
    commit = forked.git("rev-parse", "b")
    stack(forked, "b")
    forked.git("branch", "-q", "-D", "b")
    stack(forked, "c")
    assert lost(forked.open(), RUN, [commit]) == ()
    assert len(quarantine.kept(forked.open(), RUN)) == 1


def test_a_merge_whose_conflicts_somebody_solved_is_not_taken_for_a_plain_one(forked: Person) -> None:
    forked.git("checkout", "-q", "-b", "solved", "b")
    forked.git("merge", "-q", "--no-commit", "clash", check=False)
    solved = forked.commit("solved", b="2 and 3\n")
    forked.git("checkout", "-q", "main")
    stack(forked, "solved", onto="main")
    forked.git("branch", "-q", "-D", "solved")
    kept = candidates_of(forked).drop(RUN, 1)
    assert kept is not None
    assert kept.commit == solved


def test_a_conflict_is_handed_on_with_its_markers(forked: Person) -> None:
    target, b, c, clash = (forked.git("rev-parse", name) for name in ("target", "b", "c", "clash"))
    marked = candidates_of(forked).marked("target", [b, c, clash], "Merge three", FALLBACK)
    assert marked.conflicted == ("b",)
    assert forked.git("log", "-1", "--format=%P %s", marked.commit) == f"{target} {b} {c} {clash} Merge three"
    lines = forked.git("show", f"{marked.commit}:b").splitlines()
    assert [line[:7] for line in lines] == ["<<<<<<<", "2", "=======", "3", ">>>>>>>"]
    assert marked.tree == forked.git("rev-parse", f"{marked.commit}^{{tree}}")
    clean = candidates_of(forked).marked(target, [b, target], "Merge", FALLBACK)
    assert clean.conflicted == ()
    assert forked.git("rev-parse", f"{clean.commit}^@").split() == [target, b]
    assert candidates_of(forked).marked(target, [target], "m", FALLBACK) == MarkedMerge(
        target, forked.git("rev-parse", "target^{tree}"), ()
    )


def test_a_green_candidate_lands_and_landing_again_finds_it(forked: Person) -> None:
    target = forked.git("rev-parse", "target")
    (first, top), _ = stack(forked, "b", "c")
    assert land(forked, target, first.commit) == LandedCommit(first.commit, first.tree)
    assert land(forked, target, first.commit) == AlreadyLanded(first.commit)
    assert land(forked, first.commit, top.commit) == LandedCommit(top.commit, top.tree)
    assert land(forked, target, first.commit) == AlreadyLanded(top.commit)
    assert forked.git("rev-parse", "target") == top.commit


def test_a_target_that_moved_or_went_is_an_answer(forked: Person) -> None:
    target = forked.git("rev-parse", "target")
    (top,), _ = stack(forked, "b")
    forked.git("branch", "-f", "target", "c")
    assert land(forked, target, top.commit) == TargetMoved(target, forked.git("rev-parse", "c"))
    forked.git("branch", "-D", "target")
    assert land(forked, target, top.commit) == TargetMoved(target, None)


def test_a_candidate_that_would_take_commits_away_does_not_land(forked: Person) -> None:
    with pytest.raises(UsageError, match="does not hold all of"):
        land(forked, forked.git("rev-parse", "target"), forked.git("rev-parse", "b"))


@pytest.mark.parametrize("state", ["branch", "rebase"])
def test_a_persons_checkout_keeps_a_candidate_out_but_one_of_ours_does_not(
    forked: Person, tmp_path: Path, state: str
) -> None:
    target = forked.git("rev-parse", "target")
    (top,), _ = stack(forked, "b")
    for place, lands in ((tmp_path / "theirs", False), (tmp_path / "state" / "worktrees" / "ours", True)):
        forked.git("worktree", "add", "-q", str(place), "target")
        if state == "rebase":
            forked.git("branch", "-f", "other", "main")
            forked.git("rebase", "-q", "--exec", "false", "other", cwd=place, check=False)
        if not lands:
            with pytest.raises(UsageError, match=r"target is checked out in .*theirs, so it is not moved"):
                land(forked, target, top.commit)
            forked.git("worktree", "remove", "--force", str(place))
            forked.git("branch", "-f", "target", target)
    assert isinstance(land(forked, target, top.commit), LandedCommit)


def test_landing_waits_for_its_turn(forked: Person) -> None:
    target, locks = forked.git("rev-parse", "target"), forked.home.parent / "state" / "locks"
    (top,), _ = stack(forked, "b")
    with target_lock(locks, "refs/heads/target"), pytest.raises(NotReady, match="another process merges into target"):
        candidates_of(forked).land("target", target, top.commit, locks, patience_s=0.05)


@pytest.mark.parametrize(("run", "batch"), [("../x", 1), ("r", -1), ("a b", 1)])
def test_names_that_could_lead_elsewhere_are_refused(run: str, batch: int) -> None:
    with pytest.raises(UsageError):
        candidate_ref(run, batch)


def test_what_is_lost_is_told(person: Person) -> None:
    base = person.commit(a="1\n")
    gone = "0123456789" * 4
    dropped = person.commit(a="2\n")
    person.git("reset", "-q", "--hard", base)
    repository = person.open()
    assert lost(repository, RUN, [base, dropped, gone, dropped]) == (dropped, gone)
    quarantine.keep(repository, "another-run", "x", dropped)
    assert lost(repository, RUN, [dropped]) == (dropped,), "another run's quarantine is not this one's"
    quarantine.keep(repository, RUN, "x", dropped)
    assert lost(repository, RUN, [base, dropped]) == ()
    assert lost(repository, RUN, []) == ()


@pytest.mark.parametrize("point", ["git.candidate.stacked", "git.candidate.held", "git.landed"])
def test_a_process_killed_anywhere_is_finished_by_the_next(forked: Person, point: str) -> None:
    state = forked.home.parent / "state"
    target = forked.git("rev-parse", "target")
    code = textwrap.dedent(f"""
        from pathlib import Path
        from fairwitness.git.candidates import Candidates, StackMember
        from fairwitness.git.identity import FALLBACK
        from fairwitness.git.repository import Repository
        from fairwitness.git.shadow import Shadow
        repository = Repository.open(Path({str(forked.folder)!r}))
        state = Path({str(state)!r})
        candidates = Candidates(repository, Shadow.open(state / "shadow", repository))
        members = [StackMember(name, repository.commit(name)) for name in ("b", "clash", "c")]
        stacked, clashes = candidates.stack(
            {target!r}, members, run_id={RUN!r}, batch=1, message=lambda member: member.name, identity=FALLBACK
        )
        candidates.land("target", {target!r}, stacked[-1].commit, state / "locks")
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(
        [sys.executable, "-c", code], env={**environment, "FAIRWITNESS_KILL_AT": point}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    held = forked.git("rev-parse", "--verify", "--quiet", candidate_ref(RUN, 1), check=False)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert forked.git("log", "--first-parent", "--format=%s", "target").splitlines()[:3] == ["c", "b", "target"]
    assert forked.git("show", "target:b") == "2"
    assert held in ("", forked.git("rev-parse", "target")), "what was held is what landed"
    forked.git("fsck", "--strict")
