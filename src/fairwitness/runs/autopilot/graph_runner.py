"""Runs one of the run's task graphs, and records the phase's task events together with the graph's events."""

from collections.abc import Callable, Iterable, Iterator

from fairwitness.contracts.autopilot.events_phase import TaskCompleted, TaskFailed
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.events import NodeChanged
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Candidate, Proof, Worked
from fairwitness.kit.clock import spell
from fairwitness.ledger.record import Record
from fairwitness.rules.graph_run import MOVING
from fairwitness.runs.autopilot.log import AutopilotLog, LoggedEvent, new_event, put_events
from fairwitness.runs.autopilot.revert import left_at
from fairwitness.runs.autopilot.task_checks import failure_of
from fairwitness.runs.autopilot.task_graphs import PlannedGraph, TaskNode, attempted, commit_of
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.graph.agent_work import USED_UP
from fairwitness.runs.graph.repo_context import AgentWork, Prove, RepoContext
from fairwitness.runs.graph.runner import ExclusiveTargetGraph

OTHERS = "what was committed is not what was checked"


class AutopilotGraphRunner(ExclusiveTargetGraph):
    """Runs one graph of a run."""

    def __init__(
        self, repo: RepoContext, log: AutopilotLog, graph: PlannedGraph, work: AgentWork, prove: Prove
    ) -> None:
        super().__init__(
            repo,
            log.ledger,
            log.run_id,
            work,
            prove,
            workflow=Workflow.AUTOPILOT,
            phase=str(graph.number),
            clock=log.clock,
        )
        self._run_log, self._graph = log, graph

    def last_tip(self) -> str:
        """Return where the run left its target, by a merge of any of its graphs or by a revert."""
        return left_at(self._run_log, self._repo.repository)

    async def commit(self, order: AttemptOrder, prepared: AttemptStart, worked: Worked) -> Candidate | None:
        """Commit what the agents left.

        A task that needed no change is done as well, if all its commands pass.
        """
        made = await super().commit(order, prepared, worked)
        if made is not None or order.conflict is not None or self._graph.node(order.node).task is None:
            return made
        return await run_blocking(self._as_it_was, order)

    def _as_it_was(self, order: AttemptOrder) -> Candidate | None:
        worktrees = self._repo.worktrees
        tip = worktrees.tip(worktrees.named(order.run_id, order.node, order.attempt))
        return None if tip is None else Candidate(node=order.node, commit=tip, tree=worktrees.repository.tree_of(tip))

    async def prove(self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate) -> Proof:
        """Run the project's own checks on the tree that the task's commands ran on."""
        if order.conflict is not None:
            return await super().prove(order, prepared, candidate)
        done = await run_blocking(attempted, self._run_log, order.node, order.attempt)
        if done is None or not done.done or done.tree != candidate.tree:
            return Proof(holds=False, reasons=(OTHERS,))
        if candidate.tree == await run_blocking(self._repo.repository.tree_of, prepared.base):
            return Proof(holds=True, reasons=())  # nothing had to change, and the target passes
        return await super().prove(order, prepared, candidate)

    def write(self, make: Callable[[str], Iterable[EventData]], *, after: int | None = None) -> bool:
        """Write graph events with the task events they imply, unless the graph moved since."""
        now = spell(self.clock())
        events = tuple(make(now))
        task_events = tuple(self._task_events(events, now))

        def write(record: Record) -> bool:
            if after is not None and record.has_event(after=after, types=MOVING):
                return False
            self.put_events(record, events, now)
            put_events(record, task_events, now)
            return True

        return self.ledger.record(self.run_id, write)

    def put_events(self, record: Record, events: Iterable[EventData], now: str) -> None:
        """Put the events that drive the graph; everything else about a task is in the phase's own events."""
        super().put_events(record, (event for event in events if event.plain()["type"] in MOVING), now)

    def _task_events(self, events: Iterable[EventData], now: str) -> Iterator[LoggedEvent]:
        for event in events:
            if isinstance(event, NodeChanged) and event.attemptId is not None:
                yield from self._of_task(self._graph.node(event.nodeId), event, event.attemptId, now)

    def _of_task(self, node: TaskNode, event: NodeChanged, attempt: int, now: str) -> Iterator[LoggedEvent]:
        """Yield the event for a task that ended; the debug loop reports its own work."""
        phase, step = self._graph.phase, StepName.EXECUTE
        if phase is None or node.role is not Role.EXECUTOR:
            return
        reason = event.reason or ""
        if event.newStatus is NodeState.MERGED:
            commit = commit_of(self._run_log, node.id, attempt)
            yield LoggedEvent(new_event(TaskCompleted, now, phase=phase, step=step, task=node.name, commit=commit))
        elif reason.startswith(USED_UP):
            return  # it has not failed: a resumed run makes the attempt again
        elif event.newStatus in (NodeState.FAILED, NodeState.STALE):
            failed = failure_of(self._run_log, node.id, attempt, reason)
            error, category = failed.first_line, failed.category
            yield LoggedEvent(
                new_event(TaskFailed, now, phase=phase, step=step, task=node.name, error=error, category=category)
            )
