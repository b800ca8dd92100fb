"""Helpers: agents that an agent starts in its own worktree and waits for.

A helper is a dispatch like any other. Its id consists of the agent that started it, its number, and a digest of its
task and the worktree. After a crash the starting agent begins again and asks for the same helpers: one that had ended
is adopted, and its changes are restored in the worktree.
"""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from fairwitness.agents.toolset.model import ToolSource
from fairwitness.agents.toolset.plain import head_and_tail, one_line
from fairwitness.contracts.agents.dispatch import Brief, DispatchOutcome, OutcomeStatus, PromptSection
from fairwitness.contracts.common.budgets import OverBudget, Spending
from fairwitness.contracts.common.tools import POLICIES, Role, Scope, Tool
from fairwitness.contracts.forge.documents import Subtask, SubtaskStatus, WalkthroughStatus
from fairwitness.contracts.forge.events import HelperStarted
from fairwitness.contracts.forge.returns import WorkerReturn
from fairwitness.contracts.graph.forge_order import ForgeTable
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart
from fairwitness.errors import FairWitnessError, UsageError, is_machine_fault
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.record import Record
from fairwitness.rules.helper_limits import spawn_problem
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps, Dispatched, DispatchPosition
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.dispatch.model import Recorder
from fairwitness.runs.dispatch.worktree_snapshot import WorktreeSnapshot, restore, take_snapshot
from fairwitness.runs.forge.log import ForgeLog, document_of
from fairwitness.runs.forge.subtasks import Subtasks
from fairwitness.runs.forge.walkthroughs import readable
from fairwitness.runs.graph.agent_work import STEP
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout

HELPER = "helper"
_NEXT = "continue without it"
_LINE, _REPORT, _FILES = 200, 16_000, 50
_TASK = "Run the errand that is described below, and nothing beyond it."


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What all agents of an attempt share."""

    caller: AgentCaller
    log: ForgeLog
    order: AttemptOrder
    prepared: AttemptStart
    folder: Path
    base_tree: str | None
    """The tree that the worktree was made from."""
    scope: Scope
    subtasks: Subtasks
    store: Store
    """Holds the run's own files."""
    limits: ForgeTable


class SpawningAgent(NamedTuple):
    """An agent that may start helpers."""

    role: Role
    instance: str
    depth: int
    """How many agents are above it; 0 for the agent of a node."""


def helper_tools(attempt: AttemptContext, spawner: SpawningAgent) -> dict[Tool, ToolSource]:
    """Return the tools for helpers and subtasks that the agent's role has."""
    policy, given = POLICIES[spawner.role], dict[Tool, ToolSource]()
    if policy.spawns:
        given[Tool.AGENT] = Helpers(attempt, spawner).start
    if Tool.WRITE_SUBTASK in policy.tools:
        given[Tool.READ_SUBTASKS] = attempt.subtasks.reader()
        given[Tool.WRITE_SUBTASK] = attempt.subtasks.writer(spawner.role)
    return given


def spec_sections(log: ForgeLog) -> tuple[PromptSection, ...]:
    """Return the specs in force."""
    return tuple(PromptSection(title=f"Spec {name}", text=body) for name, body in log.specs_in_force().items())


class Helpers:
    """The helpers of one try of one agent; one runs at a time."""

    def __init__(self, attempt: AttemptContext, spawner: SpawningAgent) -> None:
        self._attempt, self._spawner = attempt, spawner
        self._started = 0
        self._is_busy = False

    async def start(self, agent: str, task: str) -> str:
        """Start a helper and return a short report; `UsageError` if it may not be started."""
        if self._is_busy:
            raise UsageError("another helper is running; only one may run at a time", next_step="wait for its answer")
        self._is_busy = True
        try:
            return await self._start(agent, task)
        finally:
            self._is_busy = False

    async def _start(self, agent: str, task: str) -> str:
        attempt, spawner = self._attempt, self._spawner
        limits = attempt.limits
        if not task.strip():
            raise UsageError("the helper's task is empty", next_step="describe what the helper should do")
        problem = spawn_problem(
            spawner.role, agent, depth=spawner.depth, started=self._started, most=limits.helpers, deepest=limits.depth
        )
        if problem is not None:
            raise UsageError(problem, next_step=_NEXT)
        part = (await run_blocking(attempt.subtasks.documents)).get(task)
        if part is not None:
            problem = await run_blocking(attempt.subtasks.problem, part, agent)
            if problem is not None:
                raise UsageError(f"{part.id} cannot be assigned: {problem}", next_step=_NEXT)
        self._started += 1
        before = await run_blocking(take_snapshot, attempt.caller.context.shadow, attempt.folder)
        brief = await run_blocking(self._brief, Role(agent), task, part, before)
        if part is not None:
            await run_blocking(attempt.subtasks.change, part.id, SubtaskStatus.RUNNING, brief.dispatch_id)
        result = await self._asked(brief, before, task if part is None else f"{part.id}: {part.title}")
        if part is not None:
            status = SubtaskStatus.COMPLETED if result.is_done else SubtaskStatus.FAILED
            await run_blocking(attempt.subtasks.change, part.id, status, brief.dispatch_id)
        return result.text

    def _brief(self, role: Role, task: str, part: Subtask | None, before: WorktreeSnapshot) -> Brief:
        attempt, instance = self._attempt, f"{self._spawner.instance}-h{self._started}"
        given = json.dumps([role.value, task, self._tree(before)])
        mark = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        if part is None:
            errand = PromptSection(title="Errand", text=task)
        else:
            errand = PromptSection(title=f"Subtask {part.id}", text=document_of(part.plain()))
        return Brief(
            dispatch_id=f"{instance}-{mark}",
            run_id=attempt.order.run_id,
            role=role,
            instance=instance,
            task=_TASK if part is None else f"Carry out {part.id}.",
            parameters={"task_id": instance if part is None else part.id},
            inputs=(errand, self._owner(), *spec_sections(attempt.log)),
            scope=attempt.scope,
            known={
                "walkthrough.task_id": attempt.order.node if part is None else part.id,
                "walkthrough.branch": attempt.order.branch,
                "walkthrough.base_ref": attempt.order.target,
            },
        )

    def _owner(self) -> PromptSection:
        node = self._attempt.order.node
        return PromptSection(title=f"Task {node}, which this is part of", text=self._attempt.log.document(node))

    def _tree(self, before: WorktreeSnapshot) -> str:
        """Return the worktree without caches and other by-products, which differ at every try."""
        attempt = self._attempt
        if attempt.base_tree is None:
            return before.tree
        return attempt.caller.context.shadow.snapshot(attempt.folder, attempt.base_tree)

    async def _asked(self, brief: Brief, before: WorktreeSnapshot, about: str) -> "HelperResult":
        """Run the helper; its errors are reported and end only the helper."""
        try:
            done = await self._dispatched(brief, one_line(about, _LINE))
            await run_blocking(_settle, self._attempt.caller.context, self._attempt.folder, before, done)
            await run_blocking(self._keep, done)
        except (FairWitnessError, OSError) as error:
            if is_machine_fault(error):
                raise
            what = error.what if isinstance(error, FairWitnessError) else str(error)
            return HelperResult(False, f"failed: it could not be asked: {one_line(what)}")
        return result_of(done)

    def _keep(self, done: Dispatched) -> None:
        """Write the helper's walkthrough to a file of its own; the ledger has it as the claim of its dispatch."""
        answer = done.answer(WorkerReturn)
        if answer is not None:
            order = self._attempt.order
            path = ForgeLayout(order.run_id).helper_walkthrough(order.node, order.attempt, done.dispatch_id)
            self._attempt.store.create(path, readable(answer.walkthrough).encode())
            killpoint("forge.helper.kept")

    async def _dispatched(self, brief: Brief, about: str) -> Dispatched:
        """Run the helper to its end even if this task is cancelled, so that no helper outlives its agent."""
        attempt, spawner = self._attempt, self._spawner
        note, stop = self._start_note(brief, about), asyncio.Event()

        def equip(_brief: Brief, context: DispatchContext, deps: DispatchDeps) -> tuple[DispatchContext, DispatchDeps]:
            own = helper_tools(attempt, SpawningAgent(brief.role, brief.instance, spawner.depth + 1))
            noting = replace(context, recorder=NotingRecorder(context.recorder, at_start=note))
            return noting, replace(deps, sources={**deps.sources, **own})

        position = DispatchPosition(
            STEP, task=attempt.order.node, attempt=attempt.order.attempt, dispatch_count=self._started
        )
        working = asyncio.create_task(
            attempt.caller.ask_in(brief, position, attempt.folder, attempt.prepared.base, equip=equip, stop=stop)
        )
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            stop.set()
            while not working.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({working})
            if not working.cancelled():
                working.exception()  # retrieved, so that asyncio does not report it
            raise

    def _start_note(self, brief: Brief, about: str) -> "RecordWriter":
        """Return what records the start of a helper, the first time it starts."""
        log, order = self._attempt.log, self._attempt.order

        def note(record: Record, now: str) -> None:
            if any(row.subject == brief.dispatch_id for row in record.observations(HELPER)):
                return
            detail = {"asked_by": self._spawner.instance, "role": brief.role.value, "task": about}
            key = f"{HELPER}:{brief.dispatch_id}"
            record.observation(log.observation(key, HELPER, brief.dispatch_id, detail, now))
            event = HelperStarted(
                nodeId=order.node,
                attemptId=order.attempt,
                agent=brief.role.value,
                dispatch=brief.dispatch_id,
                task=about,
            )
            log.put_events(record, (event,), now)

        return note


def _settle(context: DispatchContext, folder: Path, before: WorktreeSnapshot, done: Dispatched) -> None:
    """Put the worktree into the state that a helper left which had ended before a restart."""
    if done.adopted and done.tree is not None and done.outcome.status is not OutcomeStatus.REFUSED:
        restore(context.shadow, folder, before._replace(tree=done.tree))
        killpoint("forge.helper.restored")


class HelperResult(NamedTuple):
    """The report to the agent that started the helper."""

    is_done: bool
    text: str


def result_of(done: Dispatched) -> HelperResult:
    """Return a report: how it ended, which files really changed, and its walkthrough or why it failed."""
    outcome = done.outcome
    if outcome.status is OutcomeStatus.REFUSED:
        return HelperResult(False, f"failed: {_problem(outcome)}\nwhat it had changed was put back")
    files = [each.path for each in done.changed]
    more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
    changed = f"files changed: {', '.join(files[:_FILES]) or 'none'}{more}"
    answer = done.answer(WorkerReturn)
    if answer is None:
        return HelperResult(False, f"failed: {_problem(outcome)}\n{changed}")
    said = answer.walkthrough
    is_done = said.status is WalkthroughStatus.COMPLETED
    return HelperResult(is_done, f"{said.status.value}\n{changed}\n\n{head_and_tail(readable(said), _REPORT)}")


def _problem(outcome: DispatchOutcome) -> str:
    return f"{outcome.status.value}: {one_line(outcome.problems[0])}" if outcome.problems else outcome.status.value


RecordWriter = Callable[[Record, str], None]
"""Writes something into a record; the second argument is the time."""


def _nothing(_record: Record, _now: str) -> None:
    """Write nothing."""


@dataclass(frozen=True, slots=True)
class NotingRecorder:
    """A recorder that adds something to the records that start and end a dispatch."""

    recorder: Recorder
    at_start: RecordWriter = _nothing
    at_end: RecordWriter = _nothing

    def started(self, record: Record, brief: Brief, position: DispatchPosition, *, timestamp: str) -> None:
        """See `Recorder`."""
        self.recorder.started(record, brief, position, timestamp=timestamp)
        self.at_start(record, timestamp)

    def finished(
        self,
        record: Record,
        brief: Brief,
        position: DispatchPosition,
        outcome: DispatchOutcome,
        spending: Spending,
        *,
        timestamp: str,
    ) -> None:
        """See `Recorder`."""
        self.recorder.finished(record, brief, position, outcome, spending, timestamp=timestamp)
        self.at_end(record, timestamp)

    def over_budget(
        self, record: Record, brief: Brief, position: DispatchPosition, refused: OverBudget, *, timestamp: str
    ) -> None:
        """See `Recorder`."""
        self.recorder.over_budget(record, brief, position, refused, timestamp=timestamp)
