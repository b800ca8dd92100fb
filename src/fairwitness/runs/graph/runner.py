"""The ports that a graph's executor and its children use, for one run."""

from collections.abc import Sequence

from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.graph.orders import (
    AttemptOrder,
    AttemptStart,
    Candidate,
    Landing,
    MergeOrder,
    Proof,
    Stack,
    Worked,
)
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.graph.attempts import AttemptRunner
from fairwitness.runs.graph.log import GraphLog
from fairwitness.runs.graph.merges import MergeRunner
from fairwitness.runs.graph.repo_context import AgentWork, Prove, RepoContext


class GraphRunner(GraphLog):
    """The log of a graph with the runners of its attempts and merges. Workflows override single operations."""

    def __init__(
        self,
        repo: RepoContext,
        ledger: Ledger,
        run_id: str,
        work: AgentWork,
        prove: Prove,
        *,
        workflow: Workflow = Workflow.FORGE,
        phase: str | None = None,
        clock: Clock = system_clock,
    ) -> None:
        super().__init__(ledger, run_id, workflow=workflow, phase=phase, clock=clock)
        self._repo = repo
        self._merges = MergeRunner(repo, run_id, prove, self.last_tip)
        self._attempts = AttemptRunner(repo, ledger, self._merges, work, prove, clock=clock)

    async def prepare(self, order: AttemptOrder) -> AttemptStart:
        """See `AttemptRunner`."""
        return await self._attempts.prepare(order)

    async def work(self, order: AttemptOrder, prepared: AttemptStart) -> Worked:
        """See `AttemptRunner`."""
        return await self._attempts.work(order, prepared)

    async def commit(self, order: AttemptOrder, prepared: AttemptStart, worked: Worked) -> Candidate | None:
        """See `AttemptRunner`."""
        return await self._attempts.commit(order, prepared, worked)

    async def prove(self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate) -> Proof:
        """See `AttemptRunner`."""
        return await self._attempts.prove(order, prepared, candidate)

    async def leave(self, order: AttemptOrder, *, keep: bool) -> None:
        """See `AttemptRunner`."""
        await self._attempts.leave(order, keep=keep)

    async def tip(self, target: str) -> str:
        """See `MergeRunner`."""
        return await self._merges.tip(target)

    async def stack(self, order: MergeOrder) -> Stack:
        """See `MergeRunner`."""
        return await self._merges.stack(order)

    async def check(self, order: MergeOrder, stack: Stack, candidate: Candidate) -> Proof:
        """See `MergeRunner`."""
        return await self._merges.check(order, stack, candidate)

    async def land(self, order: MergeOrder, stack: Stack, candidate: Candidate | None) -> Landing:
        """See `MergeRunner`."""
        return await self._merges.land(order, stack, candidate)

    async def tidy(self, order: MergeOrder, landed: Sequence[str]) -> None:
        """See `MergeRunner`."""
        await self._merges.tidy(order, landed)


class ExclusiveTargetGraph(GraphRunner):
    """A graph whose target only its run may move; the run's commits carry its id in a trailer."""

    async def stack(self, order: MergeOrder) -> Stack:
        """Stack the batch on top of the target; halt if somebody else moved the target."""
        stack = await super().stack(order)
        if stack.halt is not None or stack.moved is None or stack.moved.found is None:
            return stack
        if await run_blocking(self._is_ours, stack.moved.expected, stack.moved.found):
            return stack  # a merge of this run whose end was not recorded
        told = (
            f"{order.target} was moved from {stack.moved.expected[:12]} to {stack.moved.found[:12]} by another process"
        )
        return stack.model_copy(update={"halt": told, "candidates": (), "clashes": ()})

    def _is_ours(self, left: str, found: str) -> bool:
        form = "--format=%H %(trailers:key=Run-Id,valueonly,separator=%x20)"
        said = self._repo.repository.git.run("rev-list", "--no-commit-header", form, f"{left}..{found}")
        lines = said.decode(errors="replace").splitlines()
        return bool(lines) and all(line.split()[1:] == [self.run_id] for line in lines)
