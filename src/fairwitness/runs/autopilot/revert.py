"""Revert a phase on the run's target with one commit on top, never with a reset.

Reverted work stays reachable twice: in the history of the target, and on a diagnostic branch. Only these two refs are
touched, and commits of others on the target are never reverted.
"""

import itertools
from collections.abc import Iterator

from fairwitness.contracts.common.base import Contract, Maybe, Text
from fairwitness.contracts.common.ids import Commit, GitRef, PhaseId
from fairwitness.errors import InternalError, NotReady
from fairwitness.git.call import text_of
from fairwitness.git.candidates import LandedCommit
from fairwitness.git.commits import commit_tree, move_ref
from fairwitness.git.merge import merged_tree, target_ref
from fairwitness.git.repository import Repository
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.graph.attempts import PREPARED
from fairwitness.runs.graph.repo_context import RepoContext

REVERTED = "reverted"


class Reverted(Contract):
    """A revert: everything between two commits, undone by a third."""

    phase: PhaseId
    from_: Commit
    """The target before the revert."""
    to: Commit
    """The commit whose files the target has again."""
    commit: Commit
    """The target after the revert; unchanged if there was nothing to revert."""
    branch: Maybe[GitRef] = None
    """The branch that keeps the reverted work; None if there was none."""
    why: Text


def tip_of(log: AutopilotLog, repository: Repository) -> str:
    """Return the commit of the run's target; if the branch does not exist (yet), the commit it should be at."""
    return repository.ref(target_ref(log.order().target)) or left_at(log, repository)


def left_at(log: AutopilotLog, repository: Repository) -> str:
    """Return where the run left its target, by a merge or a revert; at first, its base commit."""
    merge = log.ledger.last_event(log.run_id, "merge.finished")
    merged = None if merge is None else str(merge.data["tip"])
    reverts = log.all_kept(REVERTED, Reverted)
    if not reverts:
        return merged or log.order().base_commit
    last = reverts[-1].commit
    # both are on one line of history, so the descendant is the later one
    return last if merged is None or repository.is_ancestor(merged, last) else merged


def take_back(log: AutopilotLog, repo: RepoContext, phase: str, *, to: str, why: str, key: str) -> Reverted:
    """Give the target the files it had at a commit, once per key; a repeated call returns the first result.

    `NotReady`, with nothing changed, if the target is not where the run left it or holds commits of others.
    """
    repository = repo.repository
    begin = repository.commit(to)
    known = log.kept(key, Reverted)
    if known is not None and known.to != begin:
        raise InternalError(f"{key} took the target back to {known.to[:12]}, not to {begin[:12]}")
    if known is not None:
        return known
    now = _checked_tip(log, repository)
    tip, is_done = _before_killed(log, repository, now, begin, key)
    _refuse_others(log, repo, phase, begin, tip)
    branch, commit = None, now
    if repository.tree_of(tip) != repository.tree_of(begin):
        branch = _diagnostic(repository, phase, tip)
        if not is_done:
            commit = _revert(log, repo, tip, begin, _message(log, repository, phase, begin, tip, why, key))
    done = Reverted(phase=phase, from_=tip, to=begin, commit=commit, branch=branch, why=why)
    return log.keep(key, REVERTED, phase, done)


def _checked_tip(log: AutopilotLog, repository: Repository) -> str:
    """Return the target's commit, if it still contains everything that the run put there."""
    target, left, tip = log.order().target, left_at(log, repository), tip_of(log, repository)
    if not repository.is_ancestor(left, tip):
        raise NotReady(
            f"{target} was moved from {left[:12]} to {tip[:12]}, which does not contain it",
            next_step=f"git branch -f {target} {left[:12]}, then: fairwitness resume {log.run_id}",
        )
    return tip


def _before_killed(log: AutopilotLog, repository: Repository, now: str, begin: str, key: str) -> tuple[str, bool]:
    """Return where the target was before a killed call with this key, and whether that call moved it.

    If somebody else made the same commit, that counts as well.
    """
    arguments = ("rev-list", "--no-commit-header", "--format=%P%n%B", "-1", now)
    parents, _, said = text_of(repository.git.run(*arguments)).partition("\n")
    is_ours = said.strip().endswith(f"\n\n{_trailers(log, key)}") and " " not in parents
    if is_ours and repository.tree_of(now) == repository.tree_of(begin):
        return parents, True
    return now, False


def _refuse_others(log: AutopilotLog, repo: RepoContext, phase: str, begin: str, tip: str) -> None:
    target = log.order().target
    if not repo.repository.is_ancestor(begin, tip):
        raise NotReady(
            f"{target} does not contain {begin[:12]}, the commit to revert phase {phase} to",
            next_step=f"git log {target}: put it back to where the run left it, then: fairwitness resume {log.run_id}",
        )
    stranger = next(_others(log, repo, begin, tip), None)
    if stranger is not None:
        raise NotReady(
            f"{target} contains {stranger[:12]}, a commit of somebody else that a revert would undo",
            next_step=f"remove it from {target}, then: fairwitness resume {log.run_id}",
        )


def _others(log: AutopilotLog, repo: RepoContext, begin: str, tip: str) -> Iterator[str]:
    """Yield each commit between two that is neither in the ledger nor a merge that adds nothing to its parents."""
    own = frozenset(_own(log))
    listed = repo.repository.git.run("rev-list", "--parents", "--topo-order", tip, f"^{begin}").decode()
    for commit, *parents in (row.split(" ") for row in listed.splitlines()):
        if commit not in own and not _is_plain_merge(repo, commit, parents):
            yield commit


def _own(log: AutopilotLog) -> Iterator[str]:
    """Yield the commits that the run made: verified candidates, their prepared starts, and reverts.

    The tip after a merge proves nothing, because it may contain a commit of somebody else.
    """
    for event in log.ledger.events(log.run_id):
        if event.type == "task.verified":
            yield str(event.data["commit"])
    for row in log.ledger.observations(log.run_id, PREPARED):
        if row.detail["start"] != row.detail["base"]:
            yield str(row.detail["start"])
    for reverted in log.all_kept(REVERTED, Reverted):
        if reverted.branch is not None:
            yield reverted.commit


def _is_plain_merge(repo: RepoContext, commit: str, parents: list[str]) -> bool:
    """Return whether a commit is a merge without content of its own; a killed merge records only its last commit."""
    if len(parents) != 2:
        return False
    tree, conflicts = merged_tree(repo.candidates.shadow, *parents)
    return conflicts is None and tree == repo.repository.tree_of(commit)


def _diagnostic(repository: Repository, phase: str, tip: str) -> str:
    """Return the branch that keeps a commit of a phase; a branch that exists is left alone."""
    first = f"autopilot-diagnostic-phase-{phase}"
    for number in itertools.count(1):
        name = first + (f"-{number}" if number > 1 else "")
        ref = f"refs/heads/{name}"
        if repository.ref(ref) == tip:
            return name
        is_free = not repository.git.run("for-each-ref", "--count=1", ref)  # neither this ref nor one below it
        if is_free and move_ref(repository, ref, tip, None, why="diagnostic"):
            killpoint("autopilot.diagnostic")
            return name
    raise AssertionError("counting ends never")


def _revert(log: AutopilotLog, repo: RepoContext, tip: str, begin: str, message: str) -> str:
    """Make the commit on top of the target that has the files of the earlier one."""
    repository, target = repo.repository, log.order().target
    store = repo.candidates.shadow.into_store(repository)
    if repository.ref(target_ref(target)) is None:
        move_ref(repository, target_ref(target), tip, None, why="target")
        killpoint("autopilot.target")
    commit = commit_tree(store, repository.tree_of(begin), [tip], message, repo.identity)
    answer = repo.candidates.land(target, tip, commit, repo.locks, ours=repo.worktrees.root)
    if not isinstance(answer, LandedCommit):
        raise NotReady(
            f"{target} was moved during the revert; nothing was changed",
            next_step=f"let only the run move {target}, then: fairwitness resume {log.run_id}",
        )
    killpoint("autopilot.reverted")
    return commit


def _message(log: AutopilotLog, repository: Repository, phase: str, begin: str, tip: str, why: str, key: str) -> str:
    arguments = ("rev-list", "--topo-order", "--no-commit-header", "--format=%H %s", tip, f"^{begin}")
    said = "\n".join(f"- {visible(row)}" for row in text_of(repository.git.run(*arguments)).strip("\n").split("\n"))
    # the trailers are a separate paragraph, so other text is never read as a trailer
    return (
        f"fairwitness: take back phase {phase}\n\n{visible(' '.join(why.split()))}\n\n"
        f"The files are those of {begin} again. These commits are taken back:\n\n{said}\n\n{_trailers(log, key)}\n"
    )


def _trailers(log: AutopilotLog, key: str) -> str:
    return f"Run-Id: {log.run_id}\nTakes-Back: {key}"
