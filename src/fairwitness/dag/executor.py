"""The executor of a task graph: one loop that can be killed and started again at any point.

The executor derives its state from the run's events and records each decision before it acts on it. Its children have
fixed ids, so submitting one twice has no effect. At most `cap` attempts run at a time, one batch is merged at a time,
and the loop ends when every node is merged or when no node can make progress.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from fairwitness.contracts.common.budgets import BudgetHalt
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.ids import attempt_branch, run_ref, sub_branch
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.forge.dag import Dag, DagNode, NodeState
from fairwitness.contracts.graph.orders import (
    ATTEMPT,
    DEFAULT_ATTEMPTS,
    HELPER,
    MERGE,
    AttemptOrder,
    AttemptResult,
    GraphEnd,
    GraphOptions,
    MergeOrder,
    MergeResult,
)
from fairwitness.dag.attempt import attempt
from fairwitness.dag.merge import merge
from fairwitness.dag.ports import GraphPorts
from fairwitness.engine.base import Body, ExecutionStatus, Flow, Json, RunOutcome
from fairwitness.errors import EventsBroken
from fairwitness.rules import graph_events
from fairwitness.rules.graph_run import CHILDREN, AttemptStage, GraphRun, verified_before
from fairwitness.rules.schedule import DagOutcome, Frontier, GraphProgress, collected

HELP = "help"


class Child(NamedTuple):
    """A child flow that runs or should run."""

    id: str
    flow: str
    node: str | None = None
    """The node that the child works on; None for a merge."""


class Children:
    """The child flows that a graph needs in a given state. The same state always gives the same children."""

    def __init__(self, options: GraphOptions) -> None:
        self._options = options

    def wanted(self, run: GraphRun) -> dict[str, Child]:
        """Return every child that the graph waits for, by id.

        Helpers count towards the cap, since they are agents too. Nodes that conflicted first get a helper first, and
        nothing new starts while a helper waits for a free place.
        """
        working = run.in_stage((AttemptStage.WORKING,))
        helping = run.in_stage((AttemptStage.HELPING,))[: max(0, self._options.cap - len(working))]
        found = [self._attempt(run, node) for node in (*working, *helping)]
        if run.batch is not None:
            found.append(Child(f"{run.run_id}/m/{run.batch.number}", MERGE))
        return {child.id: child for child in found}

    def args(self, run: GraphRun, dependencies: Mapping[str, tuple[str, ...]], child: Child) -> Json:
        """Return the arguments with which a child is submitted."""
        if child.node is None:
            return self._merge(run).plain()
        work = run.work[child.node]
        order = self.order(run, dependencies, child.node, work.attempt)
        if work.stage is AttemptStage.HELPING:
            branch = sub_branch(order.branch, HELP)
            order = order.model_copy(update={"branch": branch, "conflict": work.collision, "includes": ()})
        return order.plain()

    def order(
        self, run: GraphRun, dependencies: Mapping[str, tuple[str, ...]], node: str, attempt: int
    ) -> AttemptOrder:
        """Return the order for an attempt."""
        return AttemptOrder(
            run_id=run.run_id,
            node=node,
            attempt=attempt,
            branch=attempt_branch(node, attempt, prefix=f"{self._options.prefix}/{run_ref(run.run_id)}"),
            target=self._options.target,
            phase=self._options.phase,
            includes=verified_before(run, dependencies, node),
        )

    def _attempt(self, run: GraphRun, node: str) -> Child:
        """Return the child that works on a node, or that helps it with a conflict."""
        work = run.work[node]
        id_ = f"{run.run_id}/t/{node}/{work.attempt}"
        return Child(f"{id_}/{HELP}", HELPER, node) if work.stage is AttemptStage.HELPING else Child(id_, ATTEMPT, node)

    def _merge(self, run: GraphRun) -> MergeOrder:
        assert run.batch is not None
        return MergeOrder(
            run_id=run.run_id,
            batch=run.batch.number,
            target=self._options.target,
            phase=self._options.phase,
            members=tuple(run.member(node) for node in run.batch.nodes),
        )


STALLED = "nothing is under way and nothing can be started, though the graph has not ended"


async def execute_graph(flow: Flow, runner: GraphPorts, run_id: str, options: GraphOptions) -> GraphEnd:
    """Run a graph to its end from its current state. Call this inside one step of the run."""
    executor = Executor(flow, runner, run_id, options)
    await executor.load()
    while (end := await executor.go_on()) is None:
        pass
    return end


class Executor:
    """The loop of one process; a process that resumes the run makes a new one."""

    def __init__(self, flow: Flow, runner: GraphPorts, run_id: str, options: GraphOptions) -> None:
        self._flow, self._runner, self._options, self._run_id = flow, runner, options, run_id
        self._children = Children(options)
        self._begun: set[str] = set()
        """Children that this process submitted. One of these that fails is not submitted again at once."""
        self._halt: BudgetHalt | None = None
        """Why this process starts nothing more."""
        self._stuck: str | None = None
        """Why this process merges nothing more."""
        self._merges_lost = 0
        """The number of consecutive merges whose workers stopped responding."""
        self._nodes: dict[str, DagNode] = {}
        self._dependencies: Mapping[str, tuple[str, ...]] = {}
        self._collected: frozenset[str] = frozenset()

    async def load(self) -> None:
        """Derive the state of the graph from the run's events."""
        plan = await self._runner.plan()
        self._run = GraphRun(
            self._run_id,
            plan.base,
            plan.workflow,
            max_attempts=self._options.max_attempts,
            first_attempt=self._options.first_attempt,
            phase=self._options.phase,
        )
        for envelope in await self._runner.events(0):
            self._refuse(self._run.apply(envelope))
        plan = await self._runner.plan()  # read again: it must contain every overlay that these events name
        self._frontier = Frontier(plan.dag, self._run.nodes, estimates=plan.estimates, writes=plan.writes)
        self._know(plan.dag)

    async def go_on(self) -> GraphEnd | None:
        """Run one turn: take in results, record what follows, start what may start, or wait. Return the end if it is
        reached."""
        await self._catch_up()
        wanted = self._children.wanted(self._run)
        ended = await self._flow.wait(wanted, timeout_s=0) if wanted else {}
        for child in wanted.values():
            if child.id not in self._begun and child.id not in ended:
                args = self._children.args(self._run, self._dependencies, child)
                await self._flow.submit(child.id, child.flow, args)
                self._begun.add(child.id)
        if ended:
            await self._hear(ended)
        elif not (await self._merge() or await self._start()):
            outcome = self._frontier.outcome()
            if not wanted and (self._is_over(outcome) or self._run.requests):
                return await self._end(outcome)
            if not wanted and not self._run.is_paused:
                raise EventsBroken(f"run {self._run_id}: {STALLED}", next_step=f"fairwitness dag show {self._run_id}")
            await self._flow.wait(wanted, timeout_s=self._options.look_s)
            await self._give_up_lost(wanted)
        return None

    async def _hear(self, ended: Mapping[str, RunOutcome]) -> None:
        """Record how each of these children ended."""
        for id_, outcome in ended.items():
            # looked up each time: another executor of this run may have recorded it already
            child = self._children.wanted(self._run).get(id_)
            if child is None:
                continue
            if child.node is None:
                await self._merge_ended(id_, outcome)
            else:
                await self._attempt_ended(child.node, outcome)

    async def _attempt_ended(self, node: str, outcome: RunOutcome) -> None:
        status = self._run.nodes[node]
        if outcome.status is ExecutionStatus.CANCELLED:  # by `_give_up_lost`, or the whole run would be cancelled
            since = await self._runner.moment_ago(self._options.stale_after_s)
            await self._record(lambda now: graph_events.lost(status, since, now))
            return
        if outcome.status is ExecutionStatus.DONE:
            result = AttemptResult.model_validate(outcome.value)
        else:
            result = AttemptResult(verified=False, reason=outcome.error or "its flow failed")
        self._halt = self._halt or result.halt
        is_collected = node in self._collected
        await self._record(lambda now: graph_events.attempt_ended(status, result, is_collected=is_collected, now=now))

    async def _merge_ended(self, id_: str, outcome: RunOutcome) -> None:
        if outcome.status is ExecutionStatus.DONE:
            result = MergeResult.model_validate(outcome.value)
        else:
            # how far it came is unknown; the next batch finds what it did, and whether merged work is still there
            tip = self._run.tip or await self._runner.tip(self._options.target)
            result = MergeResult(tip=tip, landed=(), clashes=(), checks=0, halt=self._why_no_merge(id_, outcome))
        self._stuck = self._stuck or result.halt
        if await self._record(
            lambda now: graph_events.merge_ended(self._run, self._dependencies, self._options.target, result, now)
        ):
            self._merges_lost = self._merges_lost + 1 if outcome.status is ExecutionStatus.CANCELLED else 0

    def _why_no_merge(self, id_: str, outcome: RunOutcome) -> str | None:
        """Return why nothing more should be merged after this outcome, or None if the next batch may succeed."""
        if outcome.status is ExecutionStatus.CANCELLED:  # by `_give_up_lost`, too
            lost = self._merges_lost + 1
            # in a run with several graphs the attempt numbers do not limit how often a merge is tried
            most = self._options.max_attempts if self._options.phase is None else DEFAULT_ATTEMPTS
            return f"merging was lost {lost} times in a row" if lost >= most else None
        if id_ not in self._begun:
            return None  # it failed in an earlier process; the reason may be gone
        return f"merging failed: {outcome.error or 'no reason is known'}"

    async def _give_up_lost(self, wanted: Mapping[str, Child]) -> None:
        """Cancel children whose workers stopped responding; the next turn records the result."""
        for id_, seconds in (await self._flow.silent(wanted) if wanted else {}).items():
            if seconds > self._options.stale_after_s:
                await self._flow.cancel(id_)

    async def _merge(self) -> bool:
        run = self._run
        if run.batch is not None or not run.queue or self._stuck is not None:
            return False
        members = [run.member(node) for node in islice(run.queue, self._options.batch)]
        await self._record(lambda _now: graph_events.merge_started(run.batches + 1, members))
        return True

    async def _start(self) -> bool:
        run = self._run
        if run.is_paused or run.requests or self._halt is not None or self._stuck is not None:
            return False
        running = run.running()
        resting = len(running) - len(run.in_stage(CHILDREN))
        chosen = self._frontier.starts(running, self._options.cap + resting)
        if not chosen:
            return False
        orders = {
            name: self._children.order(run, self._dependencies, name, run.nodes[name].currentAttempt) for name in chosen
        }
        await self._record(
            lambda now: [
                event
                for name, order in orders.items()
                for event in graph_events.started(run.nodes[name], self._nodes[name], order, now)
            ]
        )
        return True

    def _know(self, dag: Dag) -> None:
        self._nodes = {node.id: node for node in dag.nodes}
        self._dependencies = {node.id: node.dependencies for node in dag.nodes}
        self._collected = collected(dag)

    def _refuse(self, problem: Problem | None) -> None:
        if problem is not None:
            where = spell_path(problem.where)
            raise EventsBroken(
                f"run {self._run_id}: {where}: expected {problem.expected}; found {problem.found}",
                next_step="fairwitness ledger verify",
            )

    def _is_over(self, outcome: DagOutcome) -> bool:
        """Return whether the graph has ended. Only valid while no child runs, so nothing is left to be merged
        either."""
        return outcome.end is not GraphProgress.GOING or self._halt is not None or self._stuck is not None

    async def _end(self, outcome: DagOutcome) -> GraphEnd:
        """Return the end of this run of the loop. While change requests wait for an answer the graph is not
        complete: it may grow."""
        halt = self._halt if self._stuck is None else None
        merged = sum(node.status is NodeState.MERGED for node in self._run.nodes.values())
        return GraphEnd(
            completed=outcome.end is GraphProgress.COMPLETED and not self._run.requests,
            tip=await self._runner.tip(self._options.target),
            merged=merged,
            exhausted=outcome.exhausted,
            stranded=outcome.stranded,
            reason=self._stuck or (None if halt is None else halt.reason),
            halt=halt,
            requests=tuple(self._run.requests),
        )

    async def _record(self, make: Callable[[str], Iterable[EventData]]) -> bool:
        """Record what follows from the current state; if the state changed meanwhile, nothing is written and the
        next turn decides."""
        is_written = await self._runner.record(make, after=self._run.seq)
        await self._catch_up()
        return is_written

    async def _catch_up(self) -> None:
        """Apply every event since the last known one, including those that other processes wrote."""
        for envelope in await self._runner.events(self._run.seq):
            self._refuse(self._run.apply(envelope))
            if not self._run.is_about(envelope):
                continue
            if envelope.type in ("node.changed", "task.reopened"):
                self._frontier.moved(self._run.nodes[envelope.data["nodeId"]])
            elif envelope.type == "overlay.applied":  # it may bring edges only
                await self._grow()

    async def _grow(self) -> None:
        plan = await self._runner.plan()
        self._frontier.grow(plan.dag, self._run.nodes, estimates=plan.estimates, writes=plan.writes)
        self._know(plan.dag)


def graph_flows(runner_of: Callable[[AttemptOrder | MergeOrder], GraphPorts]) -> dict[str, Body]:
    """Return the bodies of a graph's child flows by name; `runner_of` returns the ports for an order."""

    async def attempting(flow: Flow, args: Json) -> Json:
        order = AttemptOrder.model_validate(args)
        return (await attempt(flow, runner_of(order), order)).plain()

    async def merging(flow: Flow, args: Json) -> Json:
        order = MergeOrder.model_validate(args)
        return (await merge(flow, runner_of(order), order)).plain()

    return {ATTEMPT: attempting, HELPER: attempting, MERGE: merging}
