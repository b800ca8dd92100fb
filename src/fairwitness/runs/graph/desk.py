"""Everything a graph's executor and its children ask for, for one run."""

from collections.abc import Sequence

from fairwitness.contracts.common.words import Workflow
from fairwitness.contracts.graph.orders import (
    AttemptOrder,
    Candidate,
    Landing,
    MergeOrder,
    Prepared,
    Proof,
    Stack,
    Worked,
)
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.graph.bench import GraphBench
from fairwitness.runs.graph.book import GraphBook
from fairwitness.runs.graph.press import GraphPress
from fairwitness.runs.graph.world import Prove, Work, World


class GraphDesk(GraphBook):
    """The book of a graph, with its bench and its press."""

    def __init__(
        self,
        world: World,
        ledger: Ledger,
        run_id: str,
        work: Work,
        prove: Prove,
        *,
        workflow: Workflow = Workflow.FORGE,
        phase: str | None = None,
        clock: Clock = system_clock,
    ) -> None:
        super().__init__(ledger, run_id, workflow=workflow, phase=phase, clock=clock)
        self._world = world
        self._press = GraphPress(world, run_id, prove, self.last_tip)
        self._bench = GraphBench(world, ledger, self._press, work, prove, clock=clock)

    async def prepare(self, order: AttemptOrder) -> Prepared:
        """See `GraphBench`."""
        return await self._bench.prepare(order)

    async def work(self, order: AttemptOrder, prepared: Prepared) -> Worked:
        """See `GraphBench`."""
        return await self._bench.work(order, prepared)

    async def commit(self, order: AttemptOrder, prepared: Prepared, worked: Worked) -> Candidate | None:
        """See `GraphBench`."""
        return await self._bench.commit(order, prepared, worked)

    async def prove(self, order: AttemptOrder, prepared: Prepared, candidate: Candidate) -> Proof:
        """See `GraphBench`."""
        return await self._bench.prove(order, prepared, candidate)

    async def leave(self, order: AttemptOrder, *, keep: bool) -> None:
        """See `GraphBench`."""
        await self._bench.leave(order, keep=keep)

    async def tip(self, target: str) -> str:
        """See `GraphPress`."""
        return await self._press.tip(target)

    async def stack(self, order: MergeOrder) -> Stack:
        """See `GraphPress`."""
        return await self._press.stack(order)

    async def check(self, order: MergeOrder, stack: Stack, candidate: Candidate) -> Proof:
        """See `GraphPress`."""
        return await self._press.check(order, stack, candidate)

    async def land(self, order: MergeOrder, stack: Stack, candidate: Candidate | None) -> Landing:
        """See `GraphPress`."""
        return await self._press.land(order, stack, candidate)

    async def tidy(self, order: MergeOrder, landed: Sequence[str]) -> None:
        """See `GraphPress`."""
        await self._press.tidy(order, landed)
