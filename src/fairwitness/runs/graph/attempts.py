"""Attempts: each has a branch and a worktree of its own, one commit of the agents' work, and its proof.

Each call finds what a killed one left: the start of the attempt is in the ledger before the worktree exists, the commit
is on the branch, and the proof is in the ledger.
"""

from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Candidate, Proof, Worked
from fairwitness.git.call import GitFailed
from fairwitness.git.worktrees import Worktree
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import bounded
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch.blocking import run_blocking, run_blocking_stoppable
from fairwitness.runs.graph.merges import MergeRunner
from fairwitness.runs.graph.repo_context import AgentWork, Prove, RepoContext

PREPARED = "prepared"
_SUBJECT = 60
"""The most characters of what a commit says was merged."""
HELP = "help"


class AttemptRunner:
    """Makes the attempts of one run."""

    def __init__(
        self,
        repo: RepoContext,
        ledger: Ledger,
        merges: MergeRunner,
        work: AgentWork,
        prove: Prove,
        *,
        clock: Clock = system_clock,
    ) -> None:
        self._repo, self._ledger, self._merges = repo, ledger, merges
        self._work, self._prove, self._clock = work, prove, clock

    async def prepare(self, order: AttemptOrder) -> AttemptStart:
        """Create a branch and a worktree at the target, with the commits that the order includes."""
        return await run_blocking(self._prepare, order)

    def _prepare(self, order: AttemptOrder) -> AttemptStart:
        known = self._ledger.observation(order.run_id, _key(order))
        if known is None:
            prepared = self._begin(order)
            self._ledger.record(order.run_id, lambda record: record.observation(self._observation(order, prepared)))
            killpoint("graph.prepared")
        else:
            prepared = recorded(AttemptStart, known)
        self._repo.worktrees.create(order.run_id, order.node, order.attempt, prepared.start, sub=_sub(order))
        return prepared

    def _begin(self, order: AttemptOrder) -> AttemptStart:
        base = self._merges.settled_tip(order.target)
        taken = [member.commit for member in order.includes]
        if order.conflict is not None:
            taken = [order.conflict.commit]
        start = self._repo.candidates.marked(base, taken, _message(order, _merged(order)), self._repo.identity)
        return AttemptStart(base=base, start=start.commit, conflicts=start.conflicted)

    async def work(self, order: AttemptOrder, prepared: AttemptStart) -> Worked:
        """Let the agents work in the worktree."""
        worktree = self._standing(order)
        return await self._work(order, prepared, worktree.folder)

    async def commit(self, order: AttemptOrder, prepared: AttemptStart, worked: Worked) -> Candidate | None:
        """Commit what the agents changed; return None if the tree equals the target's."""
        return await run_blocking(self._commit, order, prepared, worked)

    def _commit(self, order: AttemptOrder, prepared: AttemptStart, worked: Worked) -> Candidate | None:
        worktree, repository = self._standing(order), self._repo.repository
        message = _message(order, worked.summary or "work")
        tip = self._repo.worktrees.tip(worktree)
        if tip is None or (tip != prepared.start and not self._is_ours(tip, prepared.start, message)):
            raise GitFailed(
                f"{worktree.branch} was moved by another process" if tip else f"{worktree.branch} was removed",
                next_step="leave the branches of a running run alone; its commits are kept",
            )
        if tip == prepared.start:
            only = None if worked.changed is None else frozenset(worked.changed)
            made = self._repo.worktrees.commit_all(worktree, message, self._repo.identity, only=only)
            killpoint("graph.committed")
            tip = made.commit
        tree = repository.tree_of(tip)
        if tree == repository.tree_of(prepared.base):
            return None
        return Candidate(node=order.node, commit=tip, tree=tree)

    def _is_ours(self, tip: str, start: str, message: str) -> bool:
        """Return whether the branch holds the commit that a killed try made."""
        repository = self._repo.repository
        if repository.ref(f"{tip}^1") != start or repository.ref(f"{tip}^2") is not None:
            return False
        # not `git log`, which may run a program that the repository configures to verify signatures
        asked = ("rev-list", "--no-commit-header", "--format=%B", "-1", tip)
        said = repository.git.run(*asked).decode(errors="replace")
        return said.strip() == message.strip()

    async def prove(self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate) -> Proof:
        """Run the checks on the commit, compared with the target commit that it started from."""
        task = order.node if order.conflict is None else f"{order.node}--{HELP}"
        return await run_blocking_stoppable(
            lambda stop: self._prove(
                task,
                order.attempt,
                base=prepared.base,
                head=candidate.commit,
                declared=None,
                stop=stop,
            )
        )

    async def leave(self, order: AttemptOrder, *, keep: bool) -> None:
        """Remove the worktree, and the branch unless `keep` is set. Nothing that was committed is lost."""
        await run_blocking(self._leave, order, keep)

    def _leave(self, order: AttemptOrder, keep: bool) -> None:
        worktrees = self._repo.worktrees
        worktree = worktrees.named(order.run_id, order.node, order.attempt, sub=_sub(order))
        target = self._merges.settled_tip(order.target)
        worktrees.release(worktree, target, self._repo.identity, keep_branch=keep)

    def _standing(self, order: AttemptOrder) -> Worktree:
        worktrees = self._repo.worktrees
        worktree = worktrees.named(order.run_id, order.node, order.attempt, sub=_sub(order))
        if not worktrees.is_ready(worktree):
            raise GitFailed(
                f"the worktree of {order.node}, attempt {order.attempt}, is gone",
                next_step="leave the folders of a running run alone; what was committed is kept",
            )
        return worktree

    def _observation(self, order: AttemptOrder, prepared: AttemptStart) -> Observation:
        return Observation(
            run_id=order.run_id,
            task_id=order.node,
            key=_key(order),
            kind=PREPARED,
            subject=order.branch,
            holds=True,
            detail=prepared.plain(),
            tree=self._repo.repository.tree_of(prepared.start),
            observed_at=spell(self._clock()),
        )


def start_of(ledger: Ledger, run_id: str, node: str, attempt: int) -> AttemptStart | None:
    """Return what an attempt started from, or None if it did not start."""
    row = ledger.observation(run_id, f"{PREPARED}:{node}:{attempt}")
    return None if row is None else recorded(AttemptStart, row)


def _sub(order: AttemptOrder) -> str | None:
    return None if order.conflict is None else HELP


def _key(order: AttemptOrder) -> str:
    return f"{PREPARED}:{order.node}:{order.attempt}{'' if order.conflict is None else ':' + HELP}"


def _merged(order: AttemptOrder) -> str:
    """Return what the first commit of an attempt merges into its branch."""
    return bounded(f"merge {', '.join(member.node for member in order.includes) or order.node}", _SUBJECT)


def _message(order: AttemptOrder, what: str) -> str:
    helped = " (conflict)" if order.conflict is not None else ""
    trailers = f"Run-Id: {order.run_id}\nTask: {order.node}\nAttempt: {order.attempt}\n"
    return f"fairwitness({order.node}): {what}{helped}\n\n{trailers}"
