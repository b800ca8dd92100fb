"""Calls of a paper run: no agent is asked, and the ledger holds what it would hold if one had been."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from fairwitness.agents.roles import ROLES
from fairwitness.contracts.agents.dispatch import Brief, DispatchOutcome, OutcomeStatus, Usage, UsageSource
from fairwitness.contracts.common.budgets import BudgetLevel, OverBudget, Reservation, Resource
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.facts import CanStart, Step
from fairwitness.git.identity import Identity
from fairwitness.git.objects import TreeEntry
from fairwitness.git.worktrees import Worktrees
from fairwitness.ledger.record import Record
from fairwitness.rules.feature_events import visit_of
from fairwitness.runs.dispatch.budget_account import STARTED, DispatchHistory
from fairwitness.runs.dispatch.model import DispatchContext, DispatchDeps, Dispatched, DispatchPosition
from fairwitness.runs.dispatch.records import StartedDispatch, adopt, write_end
from fairwitness.runs.dispatch.worktree_snapshot import WorktreeSnapshot
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.facts import facts_of
from fairwitness.runs.shared.agent_calls import AgentCaller, Equip
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees
from fairwitness.sandbox.dotgit import DotGit
from support.paper.script import Ending, How, Script
from support.paper.team import answer_of, files_of

AGENT = "paper"
NOTHING = "0" * 40
_SEEN = WorktreeSnapshot(NOTHING, {}, DotGit(("missing",), {}, complete=True))
_FAILED = {How.ERROR: OutcomeStatus.AGENT_ERROR, How.TIMEOUT: OutcomeStatus.TIMED_OUT}


class PaperCaller(AgentCaller):
    """Ends every call as the script says; whoever calls tries again by the product's own rule."""

    def __init__(
        self, context: FeatureContext, shared: DispatchContext, script: Script, worktrees: Worktrees, identity: Identity
    ) -> None:
        """The worktrees are never made."""
        readers = ReadOnlyWorktrees(worktrees, context.run_id, identity)
        super().__init__(shared, _no_means, readers, context.order.policy.retry)
        self._run, self._script = context, script

    async def together(self, calls: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """One after the other, so that the same script leaves the same ledger."""
        for call in calls:
            await call()

    async def ask_once(
        self, brief: Brief, position: DispatchPosition, commit: str, *, equip: Equip | None = None
    ) -> Dispatched:
        """Without a worktree."""
        return adopt(self.context, brief) or await self.dispatch(brief, position, Path(), commit)

    def _put_back(self, run_id: str, dispatch_id: str, folder: Path) -> str:
        """There are no files."""
        return NOTHING

    def _undo(self, brief: Brief, first: str, done: Dispatched, folder: Path) -> None:
        """There are no files."""

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
        """The two records of a dispatch, with nothing between them."""
        ending = self._script.ending(brief.dispatch_id)
        is_spent = ending.how is How.OVER_BUDGET and self._run.state().resumed == 0
        if is_spent or self._is_spent():
            return self._over_budget(brief, position)
        begun = self._begin(brief, position)
        step = Step(position.step)
        visit = visit_of(self._run.state()) if position.task is None else 1
        outcome = self._outcome(brief, step, visit, ending)
        tree = self._written(brief, ending) if outcome.status is OutcomeStatus.OK else None
        done = Dispatched(brief.dispatch_id, outcome=outcome, start_tree=NOTHING, tree=tree)
        write_end(self.context, brief, position, begun, done, agent=AGENT)
        return done

    def _written(self, brief: Brief, ending: Ending) -> str | None:
        """The tree of what the agent wrote; None if it wrote nothing."""
        shadow, files = self._run.shadow, files_of(self._run, brief, ending)
        entries = {path: TreeEntry("100644", shadow.add_blob(content)) for path, content in files.items()}
        return shadow.compose(shadow.empty_tree(), entries) if entries else None

    def _is_spent(self) -> bool:
        """A budget that is used up stays so until somebody resumes the run; asked only where one can be."""
        may_run_out = any(ending.how is How.OVER_BUDGET for ending in self._script.calls.values())
        return may_run_out and facts_of(self._run).can_start is CanStart.NEVER

    def _outcome(self, brief: Brief, step: Step, visit: int, ending: Ending) -> DispatchOutcome:
        usage = Usage(source=UsageSource.CASSETTE, tokens_in=900, tokens_out=100)
        if ending.how in _FAILED:
            cause = ErrorCause.TIMEOUT if ending.how is How.TIMEOUT else ending.cause
            return DispatchOutcome(
                status=_FAILED[ending.how],
                raw_text="",
                problems=(f"the script says {ending.how.value}",),
                asked=1,
                usage=usage,
                cause=cause,
                duration_ms=1,
            )
        answer = answer_of(self._run, brief, step.value, visit, ending)
        return DispatchOutcome(
            status=OutcomeStatus.OK,
            answer=answer,
            raw_text="",
            asked=1,
            usage=usage,
            opened=0 if self._script.is_unseen else 1,
            model="model" if self._script.is_one_model else f"model-of-{brief.instance}",
            duration_ms=1,
        )

    def _begin(self, brief: Brief, position: DispatchPosition) -> StartedDispatch:
        now = self._run.now()
        reservation = Reservation(id=brief.dispatch_id, phase=position.phase, asked=ROLES[brief.role].budget)
        row = Observation(
            run_id=brief.run_id,
            task_id=position.task,
            key=f"dispatch:{brief.dispatch_id}:try-1",
            kind=STARTED,
            subject=brief.dispatch_id,
            holds=True,
            detail={
                "role": brief.role.value,
                "instance": brief.instance,
                "reservation": reservation.plain(),
                "seen": _SEEN.plain(),
            },
            tree=NOTHING,
            observed_at=now,
        )

        def write(record: Record) -> None:
            record.observation(row)
            self.context.recorder.started(record, brief, position, timestamp=now)

        self.context.ledger.record(brief.run_id, write)
        return StartedDispatch(DispatchHistory(started=(row,)), reservation, _SEEN, now)

    def _over_budget(self, brief: Brief, position: DispatchPosition) -> Dispatched:
        refused = OverBudget(level=BudgetLevel.RUN, what=Resource.TOKENS, cap=1000, used=1000, asked=1)
        now = self._run.now()
        self.context.ledger.record(
            brief.run_id,
            lambda record: self.context.recorder.over_budget(record, brief, position, refused, timestamp=now),
        )
        return Dispatched(
            brief.dispatch_id,
            outcome=DispatchOutcome(
                status=OutcomeStatus.OVER_BUDGET,
                raw_text="",
                problems=("the script says that nothing is left",),
                asked=0,
                usage=Usage(),
                duration_ms=0,
            ),
        )


def _no_means(role: Role, instance: str, folder: Path, base: str) -> DispatchDeps:
    raise AssertionError("nobody is asked on paper")
