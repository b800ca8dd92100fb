"""The runner of a forge run: what the workflow asks for, and the files that show the run's state."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.events import ForgeRunCompleted, ForgeRunResumed, ForgeRunStarted, RunFailed
from fairwitness.contracts.forge.status import ForgeRunStatus, RunState
from fairwitness.contracts.graph.forge_order import ForgeTable
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Candidate, GraphEnd, MergeOrder, Proof
from fairwitness.git import quarantine
from fairwitness.git.run_cleanup import sweep
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.json_text import render
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.next_forge_move import ForgeMove, ForgeMoveKind, next_move
from fairwitness.runs.dispatch.blocking import run_blocking, run_blocking_stoppable
from fairwitness.runs.forge.criteria import TaskCriteria
from fairwitness.runs.forge.files import ForgeFiles
from fairwitness.runs.forge.joins import Joins, is_join_of
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.plan_files import lock_specs
from fairwitness.runs.forge.walkthroughs import SeenAttempts, dispute, fixes_of, red_checks, walkthrough_of
from fairwitness.runs.graph.repo_context import AgentWork, Prove, RepoContext
from fairwitness.runs.graph.runner import GraphRunner
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout

REFRESH_S = 1.0
"""How far, in seconds, the run's files may be behind while its graph runs."""


class Captain(Protocol):
    """Makes plans and answers change requests."""

    async def plan(self) -> None:
        """Ask for a plan and propose it, or end the run with the reason."""
        ...

    async def seal(self) -> None:
        """Approve the plan as it is in its files, because no person wants to be asked."""
        ...

    async def replan(self, cr_id: str) -> None:
        """Ask what a change request adds, and apply it completely or refuse it."""
        ...


class ForgeRunner(GraphRunner):
    """Runs one forge run."""

    def __init__(
        self,
        repo: RepoContext,
        ledger: Ledger,
        store: Store,
        run_id: str,
        work: AgentWork,
        prove: Prove,
        criteria: TaskCriteria,
        joins: Joins,
        seen: SeenAttempts,
        *,
        captain: Captain | None = None,
        clock: Clock = system_clock,
    ) -> None:
        """Create a runner; without a captain it can only carry out an approved plan."""
        super().__init__(repo, ledger, run_id, work, prove, clock=clock)
        self.log, self._captain = ForgeLog(ledger, run_id, clock=clock), captain
        self._criteria, self._joins, self._seen = criteria, joins, seen
        self._store, self._layout = store, ForgeLayout(run_id)
        self._files = ForgeFiles(self.log, store, self._layout)
        self._refreshed, self._is_behind = 0.0, False

    async def next(self) -> ForgeMove:
        """Return what the run does next."""
        return await asyncio.to_thread(self._next)

    def _next(self) -> ForgeMove:
        self.refresh()  # the run may now wait for days
        order = self.log.order()
        if order is None:  # planned elsewhere
            return next_move(self.log.course(), ApprovalMode.AUTONOMOUS, ForgeTable())
        return next_move(self.log.course(), order.mode, order.limits)

    async def act(self, move: ForgeMove) -> None:
        """Make a move other than waiting or running the graph."""
        if move.kind is ForgeMoveKind.START:
            await run_blocking(self._start)
            return
        assert self._captain is not None, f"run {self.run_id} has no captain for {move.kind.value}"
        if move.kind is ForgeMoveKind.PLAN:
            await self._captain.plan()
        elif move.kind is ForgeMoveKind.SEAL:
            await self._captain.seal()
        else:
            assert move.request is not None
            await self._captain.replan(move.request)
        await run_blocking(self.refresh)

    def _start(self) -> None:
        begun = self.begun()
        self._store.put(self._layout.dag, render(begun.dag.plain()).encode())
        lock_specs(self._store, self._layout, self.log.specs())
        self._write_events(_starting(self.refresh().status))
        self._merges.settled_tip(begun.options.target)

    async def prove(self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate) -> Proof:
        """Verify the candidate, judge its criteria, and compare the walkthrough with what was seen."""
        proof = await super().prove(order, prepared, candidate)
        unmet = await run_blocking_stoppable(lambda stop: self._criteria.judge(order, prepared, candidate, stop))
        lost = await run_blocking(self._join_problems, order, prepared, candidate)
        reasons = (*lost, *proof.reasons, *unmet)
        refuted = await run_blocking(self._dispute, order, prepared, candidate, is_red=bool(proof.reasons))
        # what explains a failure goes first; a claim that is not true is no reason to merge what holds
        return Proof(holds=not reasons and not refuted, reasons=(*reasons, *refuted))

    def _join_problems(self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate) -> tuple[str, ...]:
        if not is_join_of(self.log, order):
            return ()
        fixes = () if order.conflict is not None else fixes_of(self.log, order.node, order.attempt)
        return self._joins.problems(order, prepared, candidate.tree, fixes)

    def _dispute(
        self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate, *, is_red: bool
    ) -> tuple[str, ...]:
        """Return what the harness contradicts; checks that fail as they did before contradict nobody."""
        said = None if order.conflict is not None else walkthrough_of(self.log, order.node, order.attempt)
        if said is None:
            return ()
        red = red_checks(self.ledger, self.run_id, order.node, order.attempt) if is_red else frozenset[str]()
        fixes = fixes_of(self.log, order.node, order.attempt)
        return dispute(self.log, order, self._seen.seen(said, prepared, candidate.tree, fixes=fixes, red=red))

    async def finish(self, end: GraphEnd | None) -> bool:
        """End the run: its last event, and no worktrees or branches left except unmerged work.

        `end` is None if the run never had a graph. Return False, with nothing recorded, if the graph grew since it
        ended.
        """
        return await run_blocking(self._finish, end)

    def _finish(self, end: GraphEnd | None) -> bool:
        if end is None:
            order = self.log.order()
            assert order is not None  # a run that begins with a plan has a graph
            return self._tidied(order.base_commit)
        run = self.run()
        if not run.is_over:
            is_grown = end.completed and any(node.status is not NodeState.MERGED for node in run.nodes.values())
            if is_grown or run.requests:
                return False
            events = tuple(_ending(self.refresh().status, self._checked(end)))
            if not self.write(lambda _now: events, after=run.seq):
                return self._finish(end)
            killpoint("forge.ended")
        return self._tidied(end.tip)

    def _tidied(self, tip: str) -> bool:
        """Remove what the run needed only while it was under way."""
        self.refresh()
        self._store.sweep(self._layout.folder)
        sweep(self._repo.worktrees, self.run_id, tip, self._repo.identity)
        self._repo.worktrees.pool.drain()
        return True

    def _checked(self, end: GraphEnd) -> GraphEnd:
        """Return the real end: if merged work is missing from the target, the run failed and the work is kept."""
        repository, left = self._repo.repository, self.last_tip()
        if not end.completed:
            return end
        if repository.is_ancestor(left, end.tip):
            lost = self._joins.lost_from(left)
            return end.model_copy(update={"completed": False, "reason": "; ".join(lost)}) if lost else end
        kept = quarantine.keep(repository, self.run_id, "target", left)
        reason = f"merged work was removed from the target; it is kept at {kept.ref}"
        return end.model_copy(update={"completed": False, "reason": reason})

    def _write_events(self, events: Iterator[EventData]) -> None:
        written = tuple(events)
        if written:
            self.write(lambda _now: written)
            self.refresh()

    def refresh(self) -> RunState:
        """Bring the run's files up to its events."""
        self._refreshed, self._is_behind = time.monotonic(), False
        return self._files.refresh()

    async def events(self, after: int) -> Sequence[Envelope]:
        """Return new events; the executor polls about every second, which keeps the files up to date."""
        found = await super().events(after)
        self._is_behind = self._is_behind or bool(found)
        if self._is_behind and time.monotonic() - self._refreshed > REFRESH_S:
            await run_blocking(self.refresh)
        return found

    async def tidy(self, order: MergeOrder, landed: Sequence[str]) -> None:
        """Tidy up after a merge, and bring the files up to date."""
        await super().tidy(order, landed)
        await run_blocking(self.refresh)


def _starting(status: ForgeRunStatus) -> Iterator[EventData]:
    if status is ForgeRunStatus.PLAN_REVIEW:
        yield ForgeRunStarted()


def _ending(status: ForgeRunStatus, end: GraphEnd) -> Iterator[EventData]:
    if status not in (ForgeRunStatus.EXECUTING, ForgeRunStatus.PAUSED):
        return  # recorded before
    if not end.completed:
        yield RunFailed(reason=reason_of(end))
    else:
        if status is ForgeRunStatus.PAUSED:  # the paused run had nothing left to do
            yield ForgeRunResumed()
        yield ForgeRunCompleted()


def reason_of(end: GraphEnd) -> str:
    """Return why a graph did not come to its end, in one line."""
    if end.reason is not None:
        return end.reason
    reasons = [f"no attempt left for {', '.join(end.exhausted[:5])}"] if end.exhausted else []
    if end.stranded:
        more = f" and {len(end.stranded) - 5} more" if len(end.stranded) > 5 else ""
        reasons.append(f"waiting in vain: {', '.join(end.stranded[:5])}{more}")
    return "; ".join(reasons) or "nothing can run any more"
