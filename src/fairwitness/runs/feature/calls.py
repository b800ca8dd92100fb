"""The calls of a decision: agents run in parallel, each in a worktree of its own.

Calls that ended before are adopted, so after a crash only the others are made again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairwitness.agents.roles import ROLES
from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.tools import Role
from fairwitness.git.identity import Identity
from fairwitness.git.worktrees import Worktrees
from fairwitness.rules.feature_events import PlannedCall, instance_of
from fairwitness.rules.feature_retry import may_retry
from fairwitness.runs.dispatch import DispatchContext, Dispatched, DispatchPosition, dispatch
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.dispatch.telemetry import status_of
from fairwitness.runs.dispatch.worktree_snapshot import WorktreeSnapshot, restore
from fairwitness.runs.feature.answers import store
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.graph.agent_work import DepsFor
from fairwitness.runs.shared.blocking import run_blocking
from fairwitness.runs.shared.call_facts import call_facts
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One call: its brief, and the commit of its worktree."""

    call: PlannedCall
    brief: Brief
    at: str


class Caller:
    """Calls the agents of a run."""

    def __init__(
        self,
        context: FeatureContext,
        shared: DispatchContext,
        deps_for: DepsFor,
        worktrees: Worktrees,
        identity: Identity,
        *,
        roles: Mapping[Role, RoleSpec] = ROLES,
    ) -> None:
        """`roles` gives each role's time limit and budget."""
        self._context, self._shared, self._deps_for, self._roles = context, shared, deps_for, roles
        self._readers = ReadOnlyWorktrees(worktrees, context.run_id, identity)

    async def call_all(self, asks: Sequence[AgentCall]) -> None:
        """Make calls in parallel and store each answer as it arrives."""
        try:
            async with asyncio.TaskGroup() as group:
                for ask in asks:
                    group.create_task(self._ask(ask))
        except ExceptionGroup as several:
            raise several.exceptions[0] from None

    async def _ask(self, ask: AgentCall) -> None:
        context, call = self._context, ask.call
        done = await run_blocking(ended, context.ledger, context.run_id, call.dispatch_id)
        if done is None:
            position = DispatchPosition(call.step.value, dispatch_count=max(1, call.visit), retry_count=call.number - 1)
            async with self._readers.at(ask.at) as worktree:
                done = await self.dispatch(ask.brief, position, worktree.folder, ask.at, is_fresh=True)
                if done.tree is None or done.tree != done.start_tree or done.byproducts:
                    worktree.mark_changed()
        if done.outcome.status is OutcomeStatus.OVER_BUDGET:
            return
        instance = instance_of(call.step, call.instance)
        await run_blocking(store, context, ask.brief.role, call.dispatch_id, instance, done)

    async def call_with_retries(
        self,
        instance: str,
        id_of: Callable[[int], str],
        asked: Callable[[str, int], tuple[Brief, DispatchPosition]],
        folder: Path,
        base: str,
    ) -> tuple[str, Dispatched]:
        """Call one agent, and again while it fails for a transient reason; each try starts with the same files.

        The policy limits the number of tries. Return the id of the last try and its result.
        """
        context = self._context
        number = 1
        while True:
            dispatch_id = id_of(number)
            done = await run_blocking(ended, context.ledger, context.run_id, dispatch_id)
            if done is None:
                if number > 1:
                    await run_blocking(self._put_back, id_of(1), folder)
                brief, position = await run_blocking(asked, dispatch_id, number)
                done = await self.dispatch(brief, position, folder, base)
            if done.outcome.status is OutcomeStatus.OVER_BUDGET:
                return dispatch_id, done
            call = call_facts(instance, number, status_of(done.outcome), done.outcome.cause)
            if not may_retry(call, context.order.policy):
                return dispatch_id, done
            number += 1

    def _put_back(self, first: str, folder: Path) -> None:
        """Restore a folder to its state before the first try."""
        row = self._context.ledger.observation(self._context.run_id, f"dispatch:{first}:try-1")
        if row is not None:
            restore(self._context.shadow, folder, WorktreeSnapshot.of(row.detail["seen"]))

    async def dispatch(
        self, brief: Brief, position: DispatchPosition, folder: Path, base: str, *, is_fresh: bool = False
    ) -> Dispatched:
        """Call one agent in a folder; `is_fresh` if the folder was made after any earlier try."""
        deps = replace(self._deps_for(brief.role, brief.instance, folder, base), is_fresh=is_fresh)
        return await dispatch(self._shared, self._roles[brief.role], brief, position, deps)
