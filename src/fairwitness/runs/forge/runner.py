"""Everything the body of a forge run asks for: where it stands, what it does next, and the files that tell of it."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.events import RunCompleted, RunFailed, RunResumed, RunStarted
from fairwitness.contracts.forge.status import RunState, RunStatus
from fairwitness.contracts.graph.forge_order import ForgeTable
from fairwitness.contracts.graph.orders import AttemptOrder, Candidate, GraphEnd, MergeOrder, Prepared, Proof
from fairwitness.git import quarantine
from fairwitness.git.run_cleanup import sweep
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.json_text import render
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.next_forge_move import Move, MoveKind, next_move
from fairwitness.runs.forge.files import ForgeFiles
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.plan_files import lock_specs
from fairwitness.runs.forge.walkthroughs import changed_files, dispute, red_checks
from fairwitness.runs.graph.repo_context import Prove, RepoContext, Work
from fairwitness.runs.graph.runner import GraphRunner
from fairwitness.runs.shared.blocking import run_blocking
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout

REFRESH_S = 1.0
"""How far the run's files may be behind while its graph is carried out."""


class Captain(Protocol):
    """Plans, and answers change requests."""

    async def plan(self) -> None:
        """Asks for a plan and proposes it, or ends the run with the reason."""
        ...

    async def seal(self) -> None:
        """Approves the plan as it stands in its files, since nobody wants to be asked."""
        ...

    async def replan(self, cr_id: str) -> None:
        """Asks what a change request adds, and applies it whole or refuses it whole."""
        ...


class ForgeRunner(GraphRunner):
    """The desk of one forge run."""

    def __init__(
        self,
        repo: RepoContext,
        ledger: Ledger,
        store: Store,
        run_id: str,
        work: Work,
        prove: Prove,
        *,
        captain: Captain | None = None,
        clock: Clock = system_clock,
    ) -> None:
        """Without a captain it can only carry out a plan that stands."""
        super().__init__(repo, ledger, run_id, work, prove, clock=clock)
        self.log, self._captain = ForgeLog(ledger, run_id, clock=clock), captain
        self._store, self._layout = store, ForgeLayout(run_id)
        self._files = ForgeFiles(self.log, store, self._layout)
        self._refreshed, self._is_behind = 0.0, False

    async def next(self) -> Move:
        """What the run does next."""
        return await asyncio.to_thread(self._next)

    def _next(self) -> Move:
        self.refresh()  # who waits now may wait for days
        order = self.log.order()
        if order is None:  # somebody else planned it
            return next_move(self.log.course(), ApprovalMode.AUTONOMOUS, ForgeTable())
        return next_move(self.log.course(), order.mode, order.limits)

    async def act(self, move: Move) -> None:
        """Makes a move that is neither waiting nor carrying out the graph."""
        if move.kind is MoveKind.START:
            await run_blocking(self._start)
            return
        assert self._captain is not None, f"run {self.run_id} has no captain for {move.kind.value}"
        if move.kind is MoveKind.PLAN:
            await self._captain.plan()
        elif move.kind is MoveKind.SEAL:
            await self._captain.seal()
        else:
            assert move.request is not None
            await self._captain.replan(move.request)
        await run_blocking(self.refresh)

    def _start(self) -> None:
        begun = self.begun()
        self._store.put(self._layout.dag, render(begun.dag.plain()).encode())
        lock_specs(self._store, self._layout, self.log.specs())
        self._tell(_starting(self.refresh().status))
        self._merges.settled_tip(begun.options.target)

    async def prove(self, order: AttemptOrder, prepared: Prepared, candidate: Candidate) -> Proof:
        """See `GraphBench`; then what the worker told is held against what was seen."""
        proof = await super().prove(order, prepared, candidate)
        if order.conflict is None:
            await run_blocking(self._dispute, order)
        return proof

    def _dispute(self, order: AttemptOrder) -> None:
        changed = changed_files(self.log, order.node, order.attempt)
        dispute(self.log, order, changed, red_checks(self.ledger, self.run_id, order.node, order.attempt))

    async def finish(self, end: GraphEnd | None) -> bool:
        """The run is over: its last event, and nothing left of its worktrees and branches but what is not merged.

        False, and nothing is told, if its graph has grown since it ended. None if it never came to a graph.
        """
        return await run_blocking(self._finish, end)

    def _finish(self, end: GraphEnd | None) -> bool:
        if end is None:
            self.refresh()
            self._store.sweep(self._layout.folder)
            return True
        run = self.run()
        if not run.is_over:
            is_grown = end.completed and any(node.status is not NodeState.MERGED for node in run.nodes.values())
            if is_grown or run.requests:
                return False
            events = tuple(_ending(self.refresh().status, self._checked(end)))
            if not self.write(lambda _now: events, after=run.seq):
                return self._finish(end)
            killpoint("forge.ended")
        self.refresh()
        self._store.sweep(self._layout.folder)
        sweep(self._repo.worktrees, self.run_id, end.tip, self._repo.identity)
        self._repo.worktrees.pool.drain()
        return True

    def _checked(self, end: GraphEnd) -> GraphEnd:
        """The end as it really is: if merged work is not in the target any more, it is no good one, and is kept."""
        repository, left = self._repo.repository, self.last_tip()
        if not end.completed or repository.is_ancestor(left, end.tip):
            return end
        kept = quarantine.keep(repository, self.run_id, "target", left)
        reason = f"somebody took merged work out of the target; it is kept at {kept.ref}"
        return end.model_copy(update={"completed": False, "reason": reason})

    def _tell(self, events: Iterator[EventData]) -> None:
        told = tuple(events)
        if told:
            self.write(lambda _now: told)
            self.refresh()

    def refresh(self) -> RunState:
        """Brings the run's files up to its events."""
        self._refreshed, self._is_behind = time.monotonic(), False
        return self._files.refresh()

    async def events(self, after: int) -> Sequence[Envelope]:
        """See `GraphBook`. The executor asks every second or so: then the files are brought up to what it hears."""
        found = await super().events(after)
        self._is_behind = self._is_behind or bool(found)
        if self._is_behind and time.monotonic() - self._refreshed > REFRESH_S:
            await run_blocking(self.refresh)
        return found

    async def tidy(self, order: MergeOrder, landed: Sequence[str]) -> None:
        """See `GraphPress`."""
        await super().tidy(order, landed)
        await run_blocking(self.refresh)


def _starting(status: RunStatus) -> Iterator[EventData]:
    if status is RunStatus.PLAN_REVIEW:
        yield RunStarted()


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
        told.append(f"in vain wait {', '.join(end.stranded[:5])}{more}")
    return "; ".join(told) or "nothing can run any more"
