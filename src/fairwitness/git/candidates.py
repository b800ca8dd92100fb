"""Merge candidates: commits stacked on a target branch that does not move until one of them has passed its checks.

A stack is kept by `refs/fairwitness/candidates/<run>/<batch>`. Its merge commits contain nothing that their parents do
not, so they may be deleted; commits that neither a branch nor quarantine holds are kept before the ref is deleted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairwitness.contracts.common.ids import is_safe_name, run_ref
from fairwitness.errors import UsageError
from fairwitness.git import quarantine
from fairwitness.git.call import GitFailed
from fairwitness.git.commits import commit_tree, delete_ref, move_ref
from fairwitness.git.identity import Identity
from fairwitness.git.merge import PATIENCE_S, TargetMoved, merged_tree, refuse_checked_out, target_lock, target_ref
from fairwitness.git.quarantine import Quarantined
from fairwitness.git.reachability import unheld
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible

PREFIX = "refs/fairwitness/candidates/"


class StackMember(NamedTuple):
    """A commit that waits to be merged, and the name that its owner gave it."""

    name: str
    commit: str


@dataclass(frozen=True, slots=True)
class Stacked:
    """A member merged onto all members before it: the resulting commit and tree."""

    name: str
    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class StackConflict:
    """A member that conflicts with those before it; no paths means that it has no common history."""

    name: str
    paths: tuple[str, ...]


class MarkedMerge(NamedTuple):
    """A merge that may have conflicts; conflicting files contain git's markers."""

    commit: str
    tree: str
    conflicted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LandedCommit:
    """The target was moved to the commit."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class AlreadyLanded:
    """The target already contained the commit: a step repeated after a crash, or a merge by someone else."""

    tip: str


class HeldStack(NamedTuple):
    """A stack that has a ref, and the number of its batch."""

    batch: int
    commit: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of one repository; new commits go into the user's object store."""

    repository: Repository
    shadow: Shadow

    def stack(
        self,
        onto: str,
        members: Sequence[StackMember],
        *,
        run_id: str,
        batch: int,
        message: Callable[[StackMember], str],
        identity: Identity,
        sign: bool = False,
    ) -> tuple[tuple[Stacked, ...], tuple[StackConflict, ...]]:
        """Merge the members one after the other; a member that conflicts is left out, and the next is merged instead.

        A member that descends from the top becomes the new top, and a member that the top already contains adds
        nothing. A repeated call reuses the merge commits that the batch's ref still holds.
        """
        ref = candidate_ref(run_id, batch)
        top = self.repository.commit(onto)
        store = self.shadow.into_store(self.repository)
        before = self._merges(self.repository.ref(ref), top)
        stacked: list[Stacked] = []
        clashes: list[StackConflict] = []
        for member in members:
            commit = self.repository.commit(member.commit)
            base = self.repository.merge_base(top, commit)
            if base is None:
                clashes.append(StackConflict(member.name, ()))
                continue
            if base == top:
                top = commit
            elif base != commit:
                tree, paths = merged_tree(store, top, commit)
                if paths is not None:
                    clashes.append(StackConflict(member.name, paths))
                    continue
                top = before.get((tree, top, commit)) or commit_tree(
                    store, tree, [top, commit], message(member), identity, sign=sign
                )
            stacked.append(Stacked(member.name, top, self.repository.tree_of(top)))
        killpoint("git.candidate.stacked")
        self._hold(run_id, batch, top)
        killpoint("git.candidate.held")
        return tuple(stacked), tuple(clashes)

    def held(self, run_id: str) -> tuple[HeldStack, ...]:
        """Return all stacks of a run that still have a ref, by batch."""
        under = f"{PREFIX}{_run(run_id)}/"
        listed = self.repository.git.run("for-each-ref", "--format=%(refname) %(objectname)", under).decode()
        pairs = (line.split(" ") for line in listed.splitlines())
        return tuple(sorted(HeldStack(int(ref.removeprefix(under)), commit) for ref, commit in pairs))

    def drop(self, run_id: str, batch: int) -> Quarantined | None:
        """Delete a stack; unless it contains only merges of commits held elsewhere, it goes to quarantine first."""
        ref = candidate_ref(run_id, batch)
        top = self.repository.ref(ref)
        if top is None:
            return None
        kept = self._keep(run_id, batch, top)
        if not delete_ref(self.repository, ref, top):
            raise GitFailed(f"{ref} moved while it was dropped", next_step="drop it again")
        return kept

    def marked(self, onto: str, commits: Sequence[str], message: str, identity: Identity) -> MarkedMerge:
        """Merge commits onto another, with conflict markers if necessary, as the input for resolving the conflict.

        If there is nothing to merge, return the commit itself. No ref holds the new commit yet.
        """
        first = self.repository.commit(onto)
        store = self.shadow.into_store(self.repository)
        wanted = [self.repository.commit(commit) for commit in dict.fromkeys(commits)]
        parents = [first, *(commit for commit in wanted if not self.repository.is_ancestor(commit, first))]
        top, conflicted = first, dict[str, None]()
        for number, commit in enumerate(parents[1:], start=2):
            tree, paths = merged_tree(store, top, commit)
            conflicted |= dict.fromkeys(paths or ())
            # Git merges only commits, so each intermediate result is committed until the last one is merged.
            top = commit_tree(store, tree, parents[:number], message, identity)
        return MarkedMerge(top, self.repository.tree_of(top), tuple(conflicted))

    def land(
        self,
        target: str,
        expected: str,
        commit: str,
        locks: Path,
        *,
        ours: Path | None = None,
        patience_s: float = PATIENCE_S,
    ) -> LandedCommit | TargetMoved | AlreadyLanded:
        """Move a branch forward from the commit that was verified, atomically and under the target's lock.

        `ours` is the folder of Fair Witness's worktrees: an agent that checks out the target there does not prevent
        landing.
        """
        ref = target_ref(target)
        start, end = self.repository.commit(expected), self.repository.commit(commit)
        if not self.repository.is_ancestor(start, end):
            raise UsageError(
                f"{visible(commit)} does not hold all of {visible(expected)}", next_step="stack it on the target first"
            )
        with target_lock(locks, ref, patience_s):
            tip = self.repository.ref(ref)
            if tip is not None and self.repository.is_ancestor(end, tip):
                return AlreadyLanded(tip)
            if tip != start:
                return TargetMoved(start, tip)
            refuse_checked_out(self.repository, ref, ours=ours)
            if not move_ref(self.repository, ref, end, start, why="candidate"):
                return TargetMoved(start, self.repository.ref(ref))
            killpoint("git.landed")
        return LandedCommit(end, self.repository.tree_of(end))

    def _merges(self, top: str | None, onto: str) -> dict[tuple[str, str, str], str]:
        """Return the merge commits of an earlier attempt, by their tree and two parents."""
        if top is None:
            return {}
        listed = self.repository.git.run(
            "rev-list", "--merges", "--no-commit-header", "--format=%T %P %H", top, f"^{onto}"
        )
        found = (row.split(" ") for row in listed.decode().splitlines())
        return {(words[0], words[1], words[2]): words[3] for words in found if len(words) == 4}

    def _hold(self, run_id: str, batch: int, top: str) -> None:
        """Set the batch's ref; a previous stack, perhaps of other members, is released as in `drop`."""
        ref = candidate_ref(run_id, batch)
        now = self.repository.ref(ref)
        if now == top:
            return
        if now is not None:
            self._keep(run_id, batch, now)
        if not move_ref(self.repository, ref, top, now, why="candidate"):
            raise GitFailed(f"{ref} moved while it was stacked", next_step="see who else runs this batch, then resume")

    def _keep(self, run_id: str, batch: int, top: str) -> Quarantined | None:
        """Quarantine a stack unless it contains only merges of commits held elsewhere."""
        if all(self._is_plain_merge(*commit) for commit in unheld(self.repository, run_id, top)):
            return None
        return quarantine.keep(self.repository, run_id, f"candidate-{batch}", top)

    def _is_plain_merge(self, commit: str, *parents: str) -> bool:
        """Return whether merging the commit's parents gives the same tree again."""
        if len(parents) != 2:
            return False
        tree, paths = merged_tree(self.shadow, *parents)
        return paths is None and tree == self.repository.tree_of(commit)


def candidate_ref(run_id: str, batch: int) -> str:
    """Return the ref that holds a stack.

    >>> candidate_ref("2026-02-26T14:30:00Z", 3)
    'refs/fairwitness/candidates/2026-02-26T14-30-00Z/3'
    """
    if batch < 0:
        raise UsageError(f"{batch} is not the number of a batch", next_step="count batches from 0 or 1")
    return f"{PREFIX}{_run(run_id)}/{batch}"


def _run(run_id: str) -> str:
    name = run_ref(run_id)
    if not is_safe_name(name):
        raise UsageError(f"{visible(run_id)!r} cannot name a ref", next_step="use letters, digits and '-'")
    return name
