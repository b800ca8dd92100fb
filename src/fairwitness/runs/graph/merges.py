"""Merges of attempts: stacked beside the target, checked there, and landed in one move.

The target is a branch of the run. The ledger says where it should be; if it is elsewhere, somebody moved it. If it
moved forward, merging goes on and the checks run again. If merged work is missing from it, nothing more is merged and
the old tip is kept under a ref.
"""

import threading
from collections.abc import Callable, Sequence

from fairwitness.contracts.graph.orders import (
    Candidate,
    Clash,
    Landing,
    MergeOrder,
    Proof,
    Stack,
    TargetMove,
)
from fairwitness.git import quarantine
from fairwitness.git.candidates import AlreadyLanded, LandedCommit, StackMember
from fairwitness.git.commits import move_ref
from fairwitness.git.merge import TargetMoved
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import bounded
from fairwitness.runs.dispatch.blocking import run_blocking, run_blocking_stoppable
from fairwitness.runs.graph.repo_context import Prove, RepoContext

UNRELATED = "(no history in common)"
_SUBJECT = 60
"""The most characters of what a merge's subject says was done."""


class MergeRunner:
    """Merges the attempts of one run; `last_tip` returns where the last merge left the target."""

    def __init__(self, repo: RepoContext, run_id: str, prove: Prove, last_tip: Callable[[], str]) -> None:
        self._repo, self._run_id, self._prove, self._last_tip = repo, run_id, prove, last_tip

    async def tip(self, target: str) -> str:
        """Return the target's commit; create the branch where it should be if it does not exist."""
        return await run_blocking(self.settled_tip, target)

    def settled_tip(self, target: str) -> str:
        """Do what `tip` does, blocking."""
        ref = f"refs/heads/{target}"
        while (tip := self._repo.repository.ref(ref)) is None:
            if move_ref(self._repo.repository, ref, left := self._last_tip(), None, why="target"):
                killpoint("graph.target")
                return left
        return tip

    async def stack(self, order: MergeOrder) -> Stack:
        """Stack the batch on top of the target without moving the target."""
        return await run_blocking(self._stack, order)

    def _stack(self, order: MergeOrder) -> Stack:
        repository = self._repo.repository
        left, found = self._last_tip(), repository.ref(f"refs/heads/{order.target}")
        onto = self.settled_tip(order.target)
        moved = TargetMove(expected=left, found=found) if found != left else None
        if not repository.is_ancestor(left, onto):
            kept = quarantine.keep(repository, self._run_id, f"target-{order.batch}", left)
            halt = (
                f"merged work was removed from {order.target}; it is kept at {kept.ref} "
                f"(git branch -f {order.target} {left[:12]} puts it back)"
            )
            return Stack(
                onto=onto, onto_tree=repository.tree_of(onto), candidates=(), clashes=(), moved=moved, halt=halt
            )
        stacked, clashes = self._repo.candidates.stack(
            onto,
            [StackMember(member.node, member.commit) for member in order.members],
            run_id=self._run_id,
            batch=order.batch,
            message=self._message,
            identity=self._repo.identity,
        )
        return Stack(
            onto=onto,
            onto_tree=repository.tree_of(onto),
            candidates=tuple(Candidate(node=each.name, commit=each.commit, tree=each.tree) for each in stacked),
            clashes=tuple(Clash(node=each.name, paths=each.paths or (UNRELATED,)) for each in clashes),
            moved=moved,
        )

    def _message(self, member: StackMember) -> str:
        """Return the message of a merge: the node, and what its own commit says was done."""
        asked = ("rev-list", "--max-count=1", "--no-commit-header", "--format=%s", member.commit)
        subject = self._repo.repository.git.run(*asked).decode(errors="replace")
        done = subject.strip().removeprefix(f"fairwitness({member.name}): ")
        return f"fairwitness: merge {member.name}: {bounded(done, _SUBJECT)}\n\nRun-Id: {self._run_id}\n"

    async def check(self, order: MergeOrder, stack: Stack, candidate: Candidate) -> Proof:
        """Run the checks on the merged tree, compared with the current target."""
        height = 1 + [each.node for each in stack.candidates].index(candidate.node)
        return await run_blocking_stoppable(lambda stop: self._checked(order, stack, candidate, height, stop))

    def _checked(
        self, order: MergeOrder, stack: Stack, candidate: Candidate, height: int, stop: threading.Event
    ) -> Proof:
        if candidate.tree == stack.onto_tree:
            return Proof(holds=True, reasons=())  # a repeat: everything is in the target, which is green
        return self._prove(
            f"merge-{order.batch}", height, base=stack.onto, head=candidate.commit, declared=None, stop=stop
        )

    async def land(self, order: MergeOrder, stack: Stack, candidate: Candidate | None) -> Landing:
        """Move the target to a proven candidate if the target has not moved meanwhile. With None, only report where
        it is."""
        return await run_blocking(self._land, order, stack, candidate)

    def _land(self, order: MergeOrder, stack: Stack, candidate: Candidate | None) -> Landing:
        if candidate is None:
            return Landing(landed=False, tip=self.settled_tip(order.target))
        answer = self._repo.candidates.land(
            order.target, stack.onto, candidate.commit, self._repo.locks, ours=self._repo.worktrees.root
        )
        match answer:
            case LandedCommit(commit=tip) | AlreadyLanded(tip=tip):
                return Landing(landed=True, tip=tip)
            case TargetMoved(expected=expected, found=found):
                tip = found or self.settled_tip(order.target)
                return Landing(landed=False, tip=tip, moved=TargetMove(expected=expected, found=found))

    async def tidy(self, order: MergeOrder, landed: Sequence[str]) -> None:
        """Remove the stack, and the branches of what landed: the target contains their commits now."""
        await run_blocking(self._tidy, order, frozenset(landed))

    def _tidy(self, order: MergeOrder, landed: frozenset[str]) -> None:
        worktrees = self._repo.worktrees
        tip = self.settled_tip(order.target)
        for member in order.members:
            if member.node in landed:
                for sub in (None, "help"):
                    worktree = worktrees.named(order.run_id, member.node, member.attempt, sub=sub)
                    if worktrees.tip(worktree) is not None:
                        worktrees.remove(worktree, tip, self._repo.identity)
        self._repo.candidates.drop(self._run_id, order.batch)
