"""The log of a graph's run: the graph as planned, its overlays, and its events.

The graph and its overlays are observations in the ledger, written in the same record as the events about them.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag, DagOverlay, NodeState, NodeType
from fairwitness.contracts.forge.events import OverlayApplied, OverlayRefused, PlanApproved, PlanProposed, RunCreated
from fairwitness.contracts.forge.status import DagStatus
from fairwitness.contracts.graph.orders import GraphOptions, GraphPlan
from fairwitness.errors import EventsBroken, UsageError
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.dag import dag_problems, effective_dag, grown_dag
from fairwitness.rules.graph_run import MOVING, GraphRun
from fairwitness.runs.shared.log import RunLog

GRAPH, OVERLAY = "graph", "overlay"

_FAILED = (NodeState.FAILED.value, NodeState.STALE.value)


class StoredGraph(NamedTuple):
    """A graph as it was stored when the run began."""

    dag: Dag
    options: GraphOptions
    base_commit: str
    """The commit at which the target begins."""
    documents: Mapping[str, str]
    """The text that each node's agent gets."""
    settings: Mapping[str, Any]
    """What a workflow keeps beside its graph, as it was when the graph began; a forge run with an order keeps nothing,
    since its order has the settings."""


def plain_graph(
    dag: Dag, options: GraphOptions, base_commit: str, documents: Mapping[str, str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a graph as the ledger stores it."""
    return {
        "dag": dag.plain(),
        "options": options.plain(),
        "base_commit": base_commit,
        "documents": dict(documents),
        "settings": dict(settings),
    }


def failures_of(ledger: Ledger, run_id: str, node: str) -> tuple[tuple[int, str], ...]:
    """Return the number of each failed attempt at a node, in any graph of a run, and why it failed."""
    rows = (event.data for event in ledger.events(run_id) if event.type == "node.changed")
    own = [row for row in rows if row["nodeId"] == node and row["newStatus"] in _FAILED and row.get("reason")]
    return tuple({int(row["attemptId"]): str(row["reason"]) for row in own}.items())


class GraphLog(RunLog):
    """The log of one graph."""

    def __init__(
        self,
        ledger: Ledger,
        run_id: str,
        *,
        workflow: Workflow = Workflow.FORGE,
        phase: str | None = None,
        clock: Clock = system_clock,
    ) -> None:
        """`phase` identifies the graph in a run that has several."""
        self.ledger, self.run_id, self.phase, self.clock = ledger, run_id, phase, clock
        self._workflow = workflow
        self._key = GRAPH if phase is None else f"{GRAPH}:{phase}"
        self._begun: StoredGraph | None = None
        self._grown: tuple[int, Dag] | None = None
        """The number of overlays applied, and the resulting graph."""

    def begin(
        self,
        dag: Dag,
        options: GraphOptions,
        *,
        base_commit: str,
        documents: Mapping[str, str],
        settings: Mapping[str, Any],
        request: str,
        repo_url: str,
        model: str,
        actor: str,
    ) -> None:
        """Write the first record of a run with an approved plan. The ledger refuses a run id that exists."""
        problems = dag_problems(dag)
        if problems or dag.runId != self.run_id:
            first = problems[0] if problems else Problem(where=("runId",), expected=self.run_id, found=dag.runId)
            raise UsageError(
                f"the graph is no good: {spell_path(first.where)}: expected {first.expected}; found {first.found}",
                next_step="fairwitness schema check dag.json",
            )
        now = self.now()
        detail = plain_graph(dag, options, base_commit, documents, settings)
        events: tuple[EventData, ...] = (
            RunCreated(repoUrl=repo_url, model=model, request=request),
            PlanProposed(tasks=dag.metadata.totalTasks, refineries=dag.metadata.totalRefineries),
            PlanApproved(actor=actor),
        )

        def write(record: Record) -> None:
            record.observation(self.observation(self._key, GRAPH, self.run_id, detail, now))
            self.put_events(record, events, now)

        self.write_first(write)
        killpoint("graph.begun")

    def begun(self) -> StoredGraph:
        """Return the graph as it was stored when the run began; it never changes."""
        if self._begun is not None:
            return self._begun
        row = self.ledger.observation(self.run_id, self._key)
        if row is None and self.ledger.last_event(self.run_id, "run.created") is not None:
            raise UsageError(
                f"{self.run_id} has no plan that was approved", next_step=f"fairwitness plan show {self.run_id}"
            )
        if row is None:
            raise UsageError(f"{self.run_id} is no run of a graph", next_step="fairwitness status lists the runs")
        detail = row.detail
        self._begun = StoredGraph(
            recorded(Dag, row, "dag"),
            recorded(GraphOptions, row, "options"),
            str(detail["base_commit"]),
            detail["documents"],
            detail["settings"],
        )
        return self._begun

    def document(self, node: str) -> str:
        """Return the text that a node's agent gets; for a node that an overlay added, it is in the node's metadata."""
        documents = self.begun().documents
        if node in documents:
            return documents[node]
        for added in self.effective()[1].nodes:
            said = (added.metadata or {}).get("document")
            if added.id == node and isinstance(said, str):
                return said
        raise UsageError(
            f"nothing says what {node} is about", next_step=f"give the plan of {self.run_id} a document for it"
        )

    def last_tip(self) -> str:
        """Return where the last merge left the target, or the base commit if nothing was merged."""
        last = self.ledger.last_event(self.run_id, "merge.finished")
        return self.begun().base_commit if last is None else str(last.data["tip"])

    def effective(self) -> tuple[Dag, Dag]:
        """Return the graph as planned, and the graph with all overlays."""
        base = self.begun().dag
        rows = self.ledger.observations(self.run_id, OVERLAY)
        if self._grown is None or self._grown[0] != len(rows):
            dag = effective_dag(base, (recorded(DagOverlay, row) for row in rows))
            if isinstance(dag, tuple):
                raise EventsBroken(
                    f"an overlay of {self.run_id} does not fit: {spell_path(dag[0].where)}: expected {dag[0].expected}",
                    next_step="fairwitness ledger verify",
                )
            self._grown = (len(rows), dag)
        return base, self._grown[1]

    def run(self) -> GraphRun:
        """Return the current state of the graph."""
        begun = self.begun()
        run = GraphRun(
            self.run_id,
            begun.dag,
            self._workflow,
            max_attempts=begun.options.max_attempts,
            first_attempt=begun.options.first_attempt,
            phase=self.phase,
        )
        for envelope in self.ledger.events(self.run_id):
            problem = run.apply(envelope)
            if problem is not None:
                raise EventsBroken(
                    f"run {self.run_id}: {spell_path(problem.where)}: expected {problem.expected}",
                    next_step="fairwitness ledger verify",
                )
        return run

    def grow(self, overlay: DagOverlay) -> tuple[Problem, ...]:
        """Apply an overlay completely, or refuse it completely and return the problems. Either is an event; a repeated
        call does nothing.

        If an attempt starts between the check and the write, the overlay is checked again.
        """
        while True:
            if any(row.subject == overlay.crId for row in self.ledger.observations(self.run_id, OVERLAY)):
                return ()
            run, (_, dag) = self.run(), self.effective()
            now = self.now()
            status = DagStatus(runId=self.run_id, updatedAt=now, nodes=run.nodes)
            grown = grown_dag(dag, overlay, status)
            problems = grown if isinstance(grown, tuple) else ()
            if run.is_over:
                problems = (
                    Problem(where=(), expected="a run that is under way", found="one that has ended"),
                    *problems,
                )
            if self._apply(overlay, problems, now, after=run.seq):
                return problems

    def _apply(self, overlay: DagOverlay, problems: tuple[Problem, ...], now: str, *, after: int) -> bool:
        def write(record: Record) -> bool:
            if record.has_event(after=after, types=MOVING):
                return False
            if problems:
                told = tuple(
                    f"{spell_path(each.where)}: expected {each.expected}; found {each.found}" for each in problems
                )
                self.put_events(record, (OverlayRefused(crId=overlay.crId, problems=told),), now)
                return True
            added = tuple(node.id for node in overlay.addedNodes)
            event = OverlayApplied(crId=overlay.crId, addedNodes=added, addedEdges=len(overlay.addedEdges))
            key, detail = f"{OVERLAY}:{overlay.crId}", overlay.plain()
            record.observation(self.observation(key, OVERLAY, overlay.crId, detail, now))
            self.put_events(record, (event,), now)
            return True

        return self.ledger.record(self.run_id, write)

    async def options(self) -> GraphOptions:
        """Return the options with which the graph is executed."""
        return (await asyncio.to_thread(self.begun)).options

    async def plan(self) -> GraphPlan:
        """Return the current graph. A node's metadata may say what it writes and how long it may take.

        A refinery without such metadata writes what its inputs write.
        """
        base, dag = await asyncio.to_thread(self.effective)
        about = {node.id: node.metadata or {} for node in dag.nodes}
        writes = {
            name: frozenset(map(str, said["writes"]))
            for name, said in about.items()
            if isinstance(said.get("writes"), list)
        }
        for node in dag.nodes:
            if node.type is NodeType.REFINERY and node.id not in writes and writes.keys() >= set(node.dependencies):
                writes[node.id] = frozenset().union(*(writes[name] for name in node.dependencies))
        estimates = {name: said["estimate"] for name, said in about.items() if isinstance(said.get("estimate"), int)}
        return GraphPlan(base, dag, estimates or None, writes or None, self._workflow)

    async def events(self, after: int) -> Sequence[Envelope]:
        """Return the run's events after this sequence number."""
        return await asyncio.to_thread(lambda: tuple(self.ledger.events(self.run_id, after=after)))

    async def record(self, make: Callable[[str], Iterable[EventData]], *, after: int) -> bool:
        """Write events in one record, unless an event that matters to an executor was recorded after `after`."""
        return await asyncio.to_thread(self.write, make, after=after)

    def write(self, make: Callable[[str], Iterable[EventData]], *, after: int | None = None) -> bool:
        """Do what `record` does, blocking; without `after` the events are always written."""
        now = self.now()
        events = tuple(make(now))

        def write(record: Record) -> bool:
            if after is not None and record.has_event(after=after, types=MOVING):
                return False
            self.put_events(record, events, now)
            return True

        return self.ledger.record(self.run_id, write)

    async def moment_ago(self, seconds: float) -> str:
        """Return the timestamp of so many seconds ago."""
        return spell(self.clock() - timedelta(seconds=seconds))

    def put_events(self, record: Record, events: Iterable[EventData], now: str) -> None:
        """Add events of this graph to a record."""
        for event in events:
            data = event.plain()
            record.event(
                self._workflow,
                data.pop("type"),
                data,
                timestamp=now,
                phase=self.phase,
                task=data.get("nodeId"),
                attempt=data.get("attemptId"),
            )
