"""Call the agents of an autopilot run, each in a worktree of its own.

A call that ended before a restart is adopted, not made again. A call that failed for a transient cause is repeated
under a new dispatch id, from the same files. The changes of a refused agent, or of a read-only agent that wrote
something, are undone.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from fairwitness.agents.roles import ROLES
from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.budgets import BudgetCaps
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.tools import POLICIES, Role
from fairwitness.errors import LedgerTampered, UsageError
from fairwitness.git.identity import Identity
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.feature_retry import may_retry
from fairwitness.runs.autopilot.log import AutopilotLog, pass_name
from fairwitness.runs.dispatch import DispatchContext, Dispatched, DispatchPosition, dispatch
from fairwitness.runs.dispatch.records import adopt
from fairwitness.runs.dispatch.telemetry import status_of
from fairwitness.runs.dispatch.worktree_snapshot import WorktreeSnapshot, restore
from fairwitness.runs.graph.agent_work import DepsFor
from fairwitness.runs.shared.blocking import run_blocking
from fairwitness.runs.shared.call_facts import call_facts
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees

PUT_BACK: Final = "put-back"


def step_dispatch(phase_pass: PhasePass, step: StepName, number: int) -> str:
    """Return the dispatch id of a step, which is also its instance name.

    >>> step_dispatch(PhasePass.model_construct(phase="6.1", number=2), StepName.PLAN_CHECK, 3)
    'plan_check-6.1-2-3'
    """
    return f"{step.value}-{pass_name(phase_pass)}-{number}"


def retried(dispatch_id: str, times: int) -> str:
    """Return the dispatch id of the retry with this number; number 0 is the first call.

    >>> retried("rate-5-1-1", 0), retried("rate-5-1-1", 1)
    ('rate-5-1-1', 'rate-5-1-1-1')
    """
    return f"{dispatch_id}-{times}" if times else dispatch_id


class AgentCaller:
    """Calls the agents of one run."""

    def __init__(
        self,
        log: AutopilotLog,
        context: DispatchContext,
        deps_for: DepsFor,
        worktrees: Worktrees,
        identity: Identity,
        *,
        roles: Mapping[Role, RoleSpec] = ROLES,
    ) -> None:
        """Create a caller; `roles` sets the time limit and the budget of each role."""
        self._log, self._context, self._deps_for, self._roles = log, context, deps_for, roles
        self._policy = Policy()
        self._readers = ReadOnlyWorktrees(worktrees, log.run_id, identity)

    @property
    def caps(self) -> BudgetCaps:
        """The budget of the run and of its phases."""
        return self._context.caps

    async def ask(self, phase_pass: PhasePass, step: StepName, number: int, brief: Brief, *, at: str) -> Dispatched:
        """Call the read-only agent of a step in a checkout of the commit `at`."""
        name = step_dispatch(phase_pass, step, number)
        if (brief.dispatch_id, brief.instance) != (name, name):
            raise UsageError(f"the brief of {name} says that it is {brief.dispatch_id}", next_step="fix the brief")
        return await self.ask_at(brief, DispatchPosition(step.value, phase=phase_pass.phase, dispatch_count=number), at)

    async def ask_at(self, brief: Brief, position: DispatchPosition, at: str) -> Dispatched:
        """Call any read-only agent in a checkout of the commit `at`; files that it leaves there are discarded."""

        async def once(brief: Brief, times: int) -> Dispatched:
            async with self._readers.at(at) as worktree:
                done = await self._dispatch(brief, position, times, worktree.folder, at, is_fresh=True)
                if done.tree is None or done.tree != done.start_tree or done.byproducts:
                    worktree.mark_changed()
                return done

        return await self._persist(brief, once)

    async def ask_in(self, brief: Brief, position: DispatchPosition, folder: Path, base: str) -> Dispatched:
        """Call an agent in an existing worktree; its changes are computed against the commit `base`."""

        async def once(this: Brief, times: int) -> Dispatched:
            if times:
                await run_blocking(self._put_back, brief.dispatch_id, folder)
            return await self._dispatch(this, position, times, folder, base)

        done = await self._persist(brief, once)
        await run_blocking(self._undo, brief, done, folder)
        return done

    async def _persist(self, brief: Brief, once: Callable[[Brief, int], Awaitable[Dispatched]]) -> Dispatched:
        """Call the agent, and repeat the call as long as the retry policy allows it."""
        times = 0
        while True:
            this = brief.model_copy(update={"dispatch_id": retried(brief.dispatch_id, times)})
            done = await run_blocking(adopt, self._context, this)
            if done is None:
                done = await once(this, times)
            if done.outcome.status is OutcomeStatus.OVER_BUDGET:
                return done
            call = call_facts(brief.instance, times + 1, status_of(done.outcome), done.outcome.cause)
            if not may_retry(call, self._policy):
                return done
            times += 1

    async def _dispatch(
        self, brief: Brief, position: DispatchPosition, times: int, folder: Path, base: str, *, is_fresh: bool = False
    ) -> Dispatched:
        deps = replace(self._deps_for(brief.role, brief.instance, folder, base), is_fresh=is_fresh)
        again = replace(position, retry_count=times)
        return await dispatch(self._context, self._roles[brief.role], brief, again, deps)

    def _put_back(self, dispatch_id: str, folder: Path) -> str:
        """Restore a folder to its state before this dispatch, and return the tree that it replaces."""
        row = self._log.ledger.observation(self._log.run_id, f"dispatch:{dispatch_id}:try-1")
        if row is None:
            raise LedgerTampered(
                f"the ledger has no start of dispatch {dispatch_id}", next_step="fairwitness ledger verify"
            )
        return restore(self._context.shadow, folder, WorktreeSnapshot.of(row.detail["seen"]))

    def _undo(self, brief: Brief, done: Dispatched, folder: Path) -> None:
        """Undo changes that must not be built on, exactly once, so that later changes of other agents survive.

        Until the undo is on record, no other agent works in the folder; after a crash it is still as this agent left
        it.
        """
        if not _must_be_undone(brief.role, done):
            return
        log, key = self._log, f"{PUT_BACK}:{brief.dispatch_id}"
        if log.ledger.observation(log.run_id, key) is not None:
            return
        left = self._put_back(brief.dispatch_id, folder)
        row = log.seen(key, PUT_BACK, brief.dispatch_id, {"left": left}, log.now())
        log.ledger.record(log.run_id, lambda record: record.observation(row))
        killpoint("autopilot.put-back")


def _must_be_undone(role: Role, done: Dispatched) -> bool:
    if done.start_tree is None:
        return False  # it never started
    if done.outcome.status is OutcomeStatus.REFUSED:
        return True
    return not POLICIES[role].source and done.tree != done.start_tree
