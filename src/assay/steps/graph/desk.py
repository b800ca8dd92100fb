"""Everything a graph's executor and its children ask for, for one run; and how a run of a graph begins and ends."""

import threading
from collections.abc import Iterator, Sequence

from assay.contracts.common.events import EventData
from assay.contracts.common.words import Workflow
from assay.contracts.forge.dag import NodeState
from assay.contracts.forge.events import RunCompleted, RunFailed, RunResumed, RunStarted
from assay.contracts.forge.status import RunState, RunStatus
from assay.contracts.graph.orders import (
    AttemptOrder,
    Candidate,
    GraphEnd,
    Landing,
    MergeOrder,
    Prepared,
    Proof,
    Stack,
    Worked,
)
from assay.git import quarantine
from assay.git.sweeping import sweep
from assay.kit.clock import Clock, system_clock
from assay.kit.json_text import render
from assay.ledger.ledger import Ledger
from assay.steps.graph.bench import GraphBench
from assay.steps.graph.book import GraphBook
from assay.steps.graph.press import GraphPress
from assay.steps.graph.world import Prove, Work, World, to_end
from assay.steps.projections import ForgeProjection
from assay.store.artifacts import Store
from assay.store.layout.forge import ForgeLayout


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


class ForgeDesk(GraphDesk):
    """The same for a forge run, with how it begins and ends, and the files that tell of it."""

    def __init__(
        self,
        world: World,
        ledger: Ledger,
        store: Store,
        run_id: str,
        work: Work,
        prove: Prove,
        *,
        clock: Clock = system_clock,
    ) -> None:
        super().__init__(world, ledger, run_id, work, prove, clock=clock)
        self._store, self._layout = store, ForgeLayout(run_id)
        self._projection: ForgeProjection | None = None
        self._refreshing = threading.Lock()

    async def start(self) -> None:
        """The run executes from here on, for the first time or again."""
        await to_end(self._start)

    def _start(self) -> None:
        begun = self.begun()
        self._store.put(self._layout.dag, render(begun.dag.plain()).encode())
        self._tell(_starting(self._refresh().status))
        self._press.settled_tip(begun.options.target)

    async def finish(self, end: GraphEnd) -> bool:
        """The run is over: its last event, and nothing left of its worktrees and branches but what is not merged.

        False, and nothing is told, if its graph has grown since it ended.
        """
        return await to_end(self._finish, end)

    def _finish(self, end: GraphEnd) -> bool:
        run = self.run()
        if not run.is_over:
            if end.completed and any(node.status is not NodeState.MERGED for node in run.nodes.values()):
                return False
            events = tuple(_ending(self._refresh().status, self._checked(end)))
            if not self.write(lambda _now: events, after=run.seq):
                return self._finish(end)
        self._refresh()
        sweep(self._world.worktrees, self.run_id, end.tip, self._world.identity)
        self._world.worktrees.pool.drain()
        return True

    def _checked(self, end: GraphEnd) -> GraphEnd:
        """The end as it really is: if merged work is not in the target any more, it is no good one, and is kept."""
        repository, left = self._world.repository, self.last_tip()
        if not end.completed or repository.is_ancestor(left, end.tip):
            return end
        kept = quarantine.keep(repository, self.run_id, "target", left)
        reason = f"somebody took merged work out of the target; it is kept at {kept.ref}"
        return end.model_copy(update={"completed": False, "reason": reason})

    def _tell(self, events: Iterator[EventData]) -> None:
        told = tuple(events)
        if told:
            self.write(lambda _now: told)
            self._refresh()

    def _refresh(self) -> RunState:
        """Brings the run's files up to its events."""
        with self._refreshing:
            begun = self.begun()
            if self._projection is None:
                attempts = begun.options.max_attempts
                self._projection = ForgeProjection(self.ledger, self._store, self._layout, max_attempts=attempts)
            return self._projection.refresh(begun.dag).run

    async def tidy(self, order: MergeOrder, landed: Sequence[str]) -> None:
        """See `GraphPress`."""
        await super().tidy(order, landed)
        await to_end(self._refresh)


def _starting(status: RunStatus) -> Iterator[EventData]:
    if status is RunStatus.PLAN_REVIEW:
        yield RunStarted()
    elif status is RunStatus.FAILED:
        yield RunResumed()


def _ending(status: RunStatus, end: GraphEnd) -> Iterator[EventData]:
    if status not in (RunStatus.EXECUTING, RunStatus.PAUSED):
        return  # it was told before
    if not end.completed:
        yield RunFailed(reason=reason_of(end))
    else:
        if status is RunStatus.PAUSED:  # what ran was all there was
            yield RunResumed()
        yield RunCompleted()


def reason_of(end: GraphEnd) -> str:
    """Why a graph did not come to its end, in one line."""
    if end.reason is not None:
        return end.reason
    told = [f"no attempt left for {', '.join(end.exhausted[:5])}"] if end.exhausted else []
    if end.stranded:
        more = f" and {len(end.stranded) - 5} more" if len(end.stranded) > 5 else ""
        told.append(f"{', '.join(end.stranded[:5])}{more} wait in vain")
    return "; ".join(told) or "nothing can run any more"
