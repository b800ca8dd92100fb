"""The one way to call an agent, for all three workflows.

A call that ended before a restart is adopted, not made again. A call that failed for a transient cause is repeated
under a new dispatch id, from the same files, as often as the run's retry policy allows. Changes of a refused agent, or
of a read-only agent that wrote something, are undone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from fairwitness.agents.base import AnswerCheck
from fairwitness.agents.roles import ROLES
from fairwitness.agents.toolset.plain import one_line
from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus, PromptSection
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.contracts.common.tools import POLICIES, Role
from fairwitness.errors import LedgerTampered
from fairwitness.kit.clock import spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.feature_retry import may_retry
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps, Dispatched, DispatchPosition, dispatch
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.dispatch.records import adopt
from fairwitness.runs.dispatch.telemetry import status_of
from fairwitness.runs.dispatch.worktree_snapshot import WorktreeSnapshot, restore
from fairwitness.runs.shared.call_facts import call_facts
from fairwitness.runs.shared.claimed_commands import claim_check
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees
from fairwitness.runs.shared.sections import text_section

C = TypeVar("C", bound=Contract)

PUT_BACK: Final = "put-back"
_FINAL = frozenset({OutcomeStatus.OVER_BUDGET, OutcomeStatus.CANCELLED})
_TOLD = 20
"""How many problems of a failed try the next one is told."""
_REFUSED = 32_000
"""How many characters of a refused answer the next try is shown."""

DepsFor = Callable[[Role, str, Path, str], DispatchDeps]
"""Returns the dependencies of a dispatch for a role, its instance, its folder and the commit that it is compared
with."""

Equip = Callable[[Brief, DispatchContext, DispatchDeps], tuple[DispatchContext, DispatchDeps]]
"""Adds a workflow's own tools and records to one try of a call."""


def check_of(shape: type[C], check: Callable[[C], tuple[str, ...]]) -> AnswerCheck:
    """Return the check of answers of this shape, the only ones that its role can give."""

    def checked(answer: Contract) -> tuple[str, ...]:
        assert isinstance(answer, shape)
        return check(answer)

    return checked


def with_check(shape: type[C], check: Callable[[C], tuple[str, ...]]) -> Equip:
    """Return what lets a check object to an agent's answer of this shape; the agent is then asked again once."""

    def equip(_brief: Brief, context: DispatchContext, deps: DispatchDeps) -> tuple[DispatchContext, DispatchDeps]:
        return context, replace(deps, check=check_of(shape, check))

    return equip


_Try = Callable[[Brief, DispatchPosition, bool], Awaitable[Dispatched]]
"""One try; the last argument says whether one came before it."""


def numbered(dispatch_id: str, number: int) -> str:
    """Return the dispatch id of a try; the first has the id of the call.

    >>> numbered("rate-5-1-1", 1), numbered("rate-5-1-1", 2)
    ('rate-5-1-1', 'rate-5-1-1-try-2')
    """
    return dispatch_id if number == 1 else f"{dispatch_id}-try-{number}"


class AgentCaller:
    """Calls the agents of one run."""

    def __init__(
        self,
        context: DispatchContext,
        deps_for: DepsFor,
        readers: ReadOnlyWorktrees,
        retry: RetryPolicy,
        *,
        roles: Mapping[Role, RoleSpec] = ROLES,
    ) -> None:
        """Create a caller; `roles` sets the time limit and the budget of each role."""
        self.context, self.deps_for, self._readers = context, deps_for, readers
        self._retry, self._roles = retry, roles

    async def together(self, calls: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Make calls in parallel and raise the first error when all have ended.

        A call that fails, for example because the disk is full, does not end the others: what they have used so far is
        paid, and they would be made again.
        """
        errors: list[Exception] = []

        async def awaited(call: Callable[[], Awaitable[None]]) -> None:
            try:
                await call()
            except Exception as error:  # noqa: BLE001  # raised below
                errors.append(error)

        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(awaited(call))
        if errors:
            raise errors[0]

    async def ask_once(
        self, brief: Brief, position: DispatchPosition, commit: str, *, equip: Equip | None = None
    ) -> Dispatched:
        """Call a read-only agent once in a checkout of a commit; files that it leaves there are discarded."""
        done = await run_blocking(adopt, self.context, brief)
        if done is not None:
            return done
        async with self._readers.at(commit) as worktree:
            done = await self.dispatch(brief, position, worktree.folder, commit, is_fresh=True, equip=equip)
            if done.tree is None or done.tree != done.start_tree or done.byproducts:
                worktree.mark_changed()
            return done

    async def ask_at(
        self, brief: Brief, position: DispatchPosition, commit: str, *, equip: Equip | None = None
    ) -> Dispatched:
        """Do what `ask_once` does, and again while the call fails for a transient cause."""

        async def once(brief: Brief, position: DispatchPosition, _is_retry: bool) -> Dispatched:
            return await self.ask_once(brief, position, commit, equip=equip)

        return await self._persist(brief, position, once, numbered)

    async def ask_in(
        self,
        brief: Brief,
        position: DispatchPosition,
        folder: Path,
        base: str,
        *,
        id_of: Callable[[str, int], str] = numbered,
        equip: Equip | None = None,
        stop: asyncio.Event | None = None,
    ) -> Dispatched:
        """Call an agent in an existing worktree, and again while the call fails for a transient cause.

        Its changes are computed against the commit `base`. `id_of` returns the dispatch id of each try.
        """
        first = id_of(brief.dispatch_id, 1)

        async def once(brief: Brief, position: DispatchPosition, is_retry: bool) -> Dispatched:
            if is_retry:
                await run_blocking(self._put_back, brief.run_id, first, folder)
            return await self.dispatch(brief, position, folder, base, equip=equip, stop=stop)

        done = await self._persist(brief, position, once, id_of)
        await run_blocking(self._undo, brief, first, done, folder)
        return done

    async def dispatch(
        self,
        brief: Brief,
        position: DispatchPosition,
        folder: Path,
        base: str,
        *,
        is_fresh: bool = False,
        equip: Equip | None = None,
        stop: asyncio.Event | None = None,
    ) -> Dispatched:
        """Call one agent once in a folder; `is_fresh` if the folder was made after any earlier try."""
        context = self.context
        deps = replace(self.deps_for(brief.role, brief.instance, folder, base), is_fresh=is_fresh)
        if deps.probe.kind != "acp":  # an external agent runs commands in a terminal of its own
            deps = replace(deps, claims=claim_check(brief))
        if equip is not None:
            context, deps = equip(brief, context, deps)
        return await dispatch(context, self._roles[brief.role], brief, position, deps, stop=stop)

    async def _persist(
        self, brief: Brief, position: DispatchPosition, once: _Try, id_of: Callable[[str, int], str]
    ) -> Dispatched:
        number, inputs = 1, brief.inputs
        while True:
            this = brief.model_copy(update={"dispatch_id": id_of(brief.dispatch_id, number), "inputs": inputs})
            done = await run_blocking(adopt, self.context, this)
            if done is None:
                done = await once(this, replace(position, retry_count=number - 1), number > 1)
            if done.outcome.status in _FINAL:
                return done
            call = call_facts(brief.instance, number, status_of(done.outcome), done.outcome.cause)
            if not may_retry(call, self._retry):
                return done
            number, inputs = number + 1, (*brief.inputs, *failure_sections(done))

    def _put_back(self, run_id: str, dispatch_id: str, folder: Path) -> str:
        """Restore a folder to its state before this dispatch, and return the tree that it replaces."""
        row = self.context.ledger.observation(run_id, f"dispatch:{dispatch_id}:try-1")
        if row is None:
            raise LedgerTampered(
                f"the ledger has no start of dispatch {dispatch_id}", next_step="fairwitness ledger verify"
            )
        return restore(self.context.shadow, folder, WorktreeSnapshot.of(row.detail["seen"]))

    def _undo(self, brief: Brief, first: str, done: Dispatched, folder: Path) -> None:
        """Undo changes that must not be built on, exactly once, so that later changes of other agents survive.

        Until the undo is on record, no other agent works in the folder; after a crash it is still as this agent left
        it.
        """
        if not _must_be_undone(brief.role, done):
            return
        ledger, key = self.context.ledger, f"{PUT_BACK}:{first}"
        if ledger.observation(brief.run_id, key) is not None:
            return
        left = self._put_back(brief.run_id, first, folder)
        row = Observation(
            run_id=brief.run_id,
            task_id=None,
            key=key,
            kind=PUT_BACK,
            subject=first,
            holds=True,
            detail={"left": left},
            tree=None,
            observed_at=spell(self.context.clock()),
        )
        ledger.record(brief.run_id, lambda record: record.observation(row))
        killpoint("agent.put-back")


def failure_sections(done: Dispatched) -> tuple[PromptSection, ...]:
    """Return what an agent is told about the try before: why it failed, and the answer that was refused."""
    outcome = done.outcome
    problems = outcome.problems[:_TOLD] or (outcome.status.value,)
    why = PromptSection(title="Why the call before this one failed", text="\n".join(map(one_line, problems)))
    if outcome.status is not OutcomeStatus.INVALID_ANSWER:
        return (why,)
    return (why, *text_section("The answer that was refused", _shortened(outcome.raw_text)))


def _shortened(text: str) -> str:
    """Return a text, or its beginning and its end if it is too long: an answer comes last."""
    if len(text) <= _REFUSED:
        return text
    half = _REFUSED // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters are left out here]\n{text[-half:]}"


def _must_be_undone(role: Role, done: Dispatched) -> bool:
    if done.start_tree is None:
        return False  # it never started
    if done.outcome.status is OutcomeStatus.REFUSED:
        return True
    return not POLICIES[role].source and done.tree != done.start_tree
