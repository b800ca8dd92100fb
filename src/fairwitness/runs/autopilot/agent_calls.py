"""Asking the agents of an autopilot run: each in a folder that nobody else has, and none twice for the same.

What ended before is adopted. A call that failed in a way that may pass is made again under an id of its own, from the
same files. Whoever was refused, or changed something although it may only look, leaves nothing behind.
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
from fairwitness.runs.dispatch import Context, Dispatched, DispatchPosition, dispatch
from fairwitness.runs.dispatch.records import adopt
from fairwitness.runs.dispatch.telemetry import status_of
from fairwitness.runs.dispatch.worktree_snapshot import Seen, restore
from fairwitness.runs.graph.agent_work import DepsFor
from fairwitness.runs.shared.blocking import run_blocking
from fairwitness.runs.shared.call_facts import call_facts
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees

PUT_BACK: Final = "put-back"


def step_dispatch(phase_pass: PhasePass, step: StepName, number: int) -> str:
    """What the dispatch of a step is called, and its instance.

    >>> step_dispatch(PhasePass.model_construct(phase="6.1", number=2), StepName.PLAN_CHECK, 3)
    'plan_check-6.1-2-3'
    """
    return f"{step.value}-{pass_name(phase_pass)}-{number}"


def retried(dispatch_id: str, times: int) -> str:
    """The same for a further try.

    >>> retried("rate-5-1-1", 0), retried("rate-5-1-1", 1)
    ('rate-5-1-1', 'rate-5-1-1-1')
    """
    return f"{dispatch_id}-{times}" if times else dispatch_id


class AgentCaller:
    """Sends out the agents of one run."""

    def __init__(
        self,
        log: AutopilotLog,
        context: Context,
        deps_for: DepsFor,
        worktrees: Worktrees,
        identity: Identity,
        *,
        roles: Mapping[Role, RoleSpec] = ROLES,
    ) -> None:
        """`roles` say how long each has and what it may cost."""
        self._log, self._context, self._deps_for, self._roles = log, context, deps_for, roles
        self._policy = Policy()
        self._readers = ReadOnlyWorktrees(worktrees, log.run_id, identity)

    @property
    def caps(self) -> BudgetCaps:
        """What the run and its phases may use."""
        return self._context.caps

    async def ask(self, phase_pass: PhasePass, step: StepName, number: int, brief: Brief, *, at: str) -> Dispatched:
        """Asks the agent of a step, who only looks, at a commit."""
        name = step_dispatch(phase_pass, step, number)
        if (brief.dispatch_id, brief.instance) != (name, name):
            raise UsageError(f"the brief of {name} says that it is {brief.dispatch_id}", next_step="fix the brief")
        return await self.ask_at(brief, DispatchPosition(step.value, phase=phase_pass.phase, dispatch_count=number), at)

    async def ask_at(self, brief: Brief, position: DispatchPosition, at: str) -> Dispatched:
        """Asks any agent who only looks, at a commit; nobody sees what it may leave in its folder."""

        async def once(brief: Brief, times: int) -> Dispatched:
            async with self._readers.at(at) as lane:
                done = await self._dispatch(brief, position, times, lane.folder, at, is_fresh=True)
                if done.tree is None or done.tree != done.start_tree or done.byproducts:
                    lane.is_spoilt()
                return done

        return await self._persist(brief, once)

    async def ask_in(self, brief: Brief, position: DispatchPosition, folder: Path, base: str) -> Dispatched:
        """Asks an agent in a worktree that stands; `base` is the commit that it is compared with."""

        async def once(this: Brief, times: int) -> Dispatched:
            if times:
                await run_blocking(self._put_back, brief.dispatch_id, folder)
            return await self._dispatch(this, position, times, folder, base)

        done = await self._persist(brief, once)
        await run_blocking(self._undo, brief, done, folder)
        return done

    async def _persist(self, brief: Brief, once: Callable[[Brief, int], Awaitable[Dispatched]]) -> Dispatched:
        """Asks, and again as long as it fails in a way that may pass; how often is for the policy to say."""
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
        """Makes a folder what it was before this dispatch began; the tree of what stood there instead."""
        row = self._log.ledger.observation(self._log.run_id, f"dispatch:{dispatch_id}:try-1")
        if row is None:
            raise LedgerTampered(f"nothing tells how {dispatch_id} began", next_step="fairwitness ledger verify")
        return restore(self._context.shadow, folder, Seen.of(row.detail["seen"]))

    def _undo(self, brief: Brief, done: Dispatched, folder: Path) -> None:
        """Takes back what nobody may build on, once: what others do later in the folder stays.

        Until that is on record nobody else was asked in the folder, so whoever comes again finds it as it was left.
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
        return False  # it never began
    if done.outcome.status is OutcomeStatus.REFUSED:
        return True
    return not POLICIES[role].source and done.tree != done.start_tree
