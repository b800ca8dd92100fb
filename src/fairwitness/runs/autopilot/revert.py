"""Taking back what a phase left on the run's target: by one commit on top of it, never by a reset.

What is taken back stays reachable twice: in the history of the target, and on a diagnostic branch a person can look
at. Nothing but these two refs is touched, and nothing that somebody else put on the target is taken back.
"""

import itertools
from collections.abc import Iterator

from fairwitness.contracts.common.base import Contract, Maybe, Text
from fairwitness.contracts.common.ids import Commit, GitRef, PhaseId
from fairwitness.errors import NotReady, UsageError
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
    """What was taken back: everything between two commits, by a third."""

    phase: PhaseId
    from_: Commit
    """Where the target stood."""
    to: Commit
    """Whose files it has again."""
    commit: Commit
    """Where it stands now; if nothing had to be taken back, where it stood."""
    branch: Maybe[GitRef] = None
    """The branch that keeps what was taken back; None if nothing was."""
    why: Text


def tip_of(log: AutopilotLog, repository: Repository) -> str:
    """The commit of the run's target; where there is no such branch (yet), the one it should be at."""
    return repository.ref(target_ref(log.order().target)) or left_at(log, repository)


def left_at(log: AutopilotLog, repository: Repository) -> str:
    """Where the run itself left its target last, by a merge or by taking something back; at first, where it began."""
    merge = log.ledger.last_event(log.run_id, "merge.finished")
    merged = None if merge is None else str(merge.data["tip"])
    reverts = log.all_kept(REVERTED, Reverted)
    if not reverts:
        return merged or log.order().base_commit
    last = reverts[-1].commit
    # both stand on one line of commits, so whichever holds the other is the later one
    return last if merged is None or repository.is_ancestor(merged, last) else merged


def take_back(log: AutopilotLog, repo: RepoContext, phase: str, *, to: str, why: str, key: str) -> Reverted:
    """Gives the target the files it had at a commit, once per key; what was done first is given to whoever asks again.

    `NotReady` if the target is not where the run left it, or holds what is not the run's: nothing is changed then.
    """
    repository = repo.repository
    begin = repository.commit(to)
    known = log.kept(key, Reverted)
    if known is not None and known.to != begin:
        raise UsageError(f"{key} took the target back to {known.to[:12]}, not to {begin[:12]}", next_step="report this")
    if known is not None:
        return known
    now = _standing(log, repository)
    tip, is_done = _before_killed(log, repository, now, begin, key)
    _refuse_others(log, repo, phase, begin, tip)
    branch, commit = None, now
    if repository.tree_of(tip) != repository.tree_of(begin):
        branch = _diagnostic(repository, phase, tip)
        if not is_done:
            commit = _revert(log, repo, tip, begin, _message(log, repository, phase, begin, tip, why, key))
    done = Reverted(phase=phase, from_=tip, to=begin, commit=commit, branch=branch, why=why)
    return log.keep(key, REVERTED, phase, done)


def _standing(log: AutopilotLog, repository: Repository) -> str:
    """The target's commit, if it still holds all that the run put there."""
    target, left, tip = log.order().target, left_at(log, repository), tip_of(log, repository)
    if not repository.is_ancestor(left, tip):
        raise NotReady(
            f"somebody moved {target} from {left[:12]} to {tip[:12]}, which does not hold it",
            next_step=f"git branch -f {target} {left[:12]}, then: fairwitness resume {log.run_id}",
        )
    return tip


def _before_killed(log: AutopilotLog, repository: Repository, now: str, begin: str, key: str) -> tuple[str, bool]:
    """Where the target stood before a call with this key that was killed, and whether that call had moved it.

    Whoever else made such a commit has done just what was to be done.
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
            f"{target} does not hold {begin[:12]}, which phase {phase} is to go back to",
            next_step=f"git log {target}: put it back to where the run left it, then: fairwitness resume {log.run_id}",
        )
    stranger = next(_others(log, repo, begin, tip), None)
    if stranger is not None:
        raise NotReady(
            f"{target} holds the commit {stranger[:12]}, which is not the run's and is not taken back with its work",
            next_step=f"take it out of {target}, then: fairwitness resume {log.run_id}",
        )


def _others(log: AutopilotLog, repo: RepoContext, begin: str, tip: str) -> Iterator[str]:
    """Every commit between two that is neither told of in the ledger nor a merge which adds nothing to its parents."""
    own = frozenset(_own(log))
    listed = repo.repository.git.run("rev-list", "--parents", "--topo-order", tip, f"^{begin}").decode()
    for commit, *parents in (row.split(" ") for row in listed.splitlines()):
        if commit not in own and not _is_plain_merge(repo, commit, parents):
            yield commit


def _own(log: AutopilotLog) -> Iterator[str]:
    """The commits that the run made: what was verified, what it stood on if it was made for that, what took it back.

    Where a merge left the target is no proof: somebody else's commit may have been merged onto.
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
    """A killed merge that is found done tells of its last commit only; those before it are known by what they hold."""
    if len(parents) != 2:
        return False
    tree, conflicts = merged_tree(repo.candidates.shadow, *parents)
    return conflicts is None and tree == repo.repository.tree_of(commit)


def _diagnostic(repository: Repository, phase: str, tip: str) -> str:
    """The branch that keeps a commit of a phase; one that a person or an earlier failure has is left alone."""
    first = f"autopilot-diagnostic-phase-{phase}"
    for number in itertools.count(1):
        name = first + (f"-{number}" if number > 1 else "")
        ref = f"refs/heads/{name}"
        if repository.ref(ref) == tip:
            return name
        is_free = not repository.git.run("for-each-ref", "--count=1", ref)  # neither it nor something beneath it
        if is_free and move_ref(repository, ref, tip, None, why="diagnostic"):
            killpoint("autopilot.diagnostic")
            return name
    raise AssertionError("counting ends never")


def _revert(log: AutopilotLog, repo: RepoContext, tip: str, begin: str, message: str) -> str:
    """The commit on top of the target that has the files of the earlier one."""
    repository, target = repo.repository, log.order().target
    store = repo.candidates.shadow.into_store(repository)
    if repository.ref(target_ref(target)) is None:
        move_ref(repository, target_ref(target), tip, None, why="target")
        killpoint("autopilot.target")
    commit = commit_tree(store, repository.tree_of(begin), [tip], message, repo.identity)
    answer = repo.candidates.land(target, tip, commit, repo.locks, ours=repo.worktrees.root)
    if not isinstance(answer, LandedCommit):
        raise NotReady(
            f"somebody moved {target} while it was taken back; nothing of it was changed",
            next_step=f"leave {target} to the run, then: fairwitness resume {log.run_id}",
        )
    killpoint("autopilot.reverted")
    return commit


def _message(log: AutopilotLog, repository: Repository, phase: str, begin: str, tip: str, why: str, key: str) -> str:
    arguments = ("rev-list", "--topo-order", "--no-commit-header", "--format=%H %s", tip, f"^{begin}")
    said = "\n".join(f"- {visible(row)}" for row in text_of(repository.git.run(*arguments)).strip("\n").split("\n"))
    # the trailers are a paragraph of their own, so what somebody else wrote is never taken for one
    return (
        f"fairwitness: take back phase {phase}\n\n{visible(' '.join(why.split()))}\n\n"
        f"The files are those of {begin} again. These commits are taken back:\n\n{said}\n\n{_trailers(log, key)}\n"
    )


def _trailers(log: AutopilotLog, key: str) -> str:
    return f"Run-Id: {log.run_id}\nTakes-Back: {key}"
