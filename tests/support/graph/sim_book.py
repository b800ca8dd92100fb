"""The book of a simulated run: an append-only list of events in memory, and the graph with what was added to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag, DagOverlay, NodeState
from fairwitness.contracts.forge.events import (
    ChangeRequestEmitted,
    ChangeRequestRejected,
    ForgeRunResumed,
    OverlayApplied,
    OverlayRefused,
    PlanApproved,
    PlanProposed,
    RunCreated,
    RunPaused,
)
from fairwitness.contracts.forge.status import DagStatus, NodeStatus
from fairwitness.contracts.graph.orders import GraphPlan
from fairwitness.rules.dag import grown_dag, is_exhausted, run_counts
from fairwitness.rules.fold_forge import ForgeState, fold_forge
from fairwitness.rules.graph_events import reopened
from fairwitness.rules.graph_run import CHILDREN, MOVING, GraphRun
from support.graph.sim_ground import Ground

_SMALL = 60
"""Graphs of up to so many nodes are compared after every event, larger ones after every few."""


class SimBook:
    """The events of one run; they outlive every crash."""

    def __init__(self, ground: Ground, dag: Dag, *, max_attempts: int) -> None:
        self.ground = ground
        self.run_id = dag.runId
        self.written: list[Envelope] = []
        self.overlays: list[DagOverlay] = []
        self.refused = 0
        self.run = GraphRun(dag.runId, dag, max_attempts=max_attempts)
        """Where the graph stands, for whoever looks from outside."""
        self.state: ForgeState | None = None
        """The same by the fold that writes the status files, up to the last time it was asked."""
        self.base = self.dag = dag
        self._max_attempts = max_attempts
        self._seldom = 1 if len(dag.nodes) <= _SMALL else max(50, len(dag.nodes) // 2)
        self._plan = planned(dag, dag)
        ground.watch.grows(self._plan)
        self.append(
            (
                RunCreated(repoUrl="file:///simulated", model="none", request="simulate"),
                PlanProposed(tasks=dag.metadata.totalTasks, refineries=dag.metadata.totalRefineries),
                PlanApproved(actor="test"),
            )
        )

    @property
    def is_begun(self) -> bool:
        """Whether the run executes, or did."""
        return any(envelope.type == "run.started" for envelope in self.written)

    async def plan(self) -> GraphPlan:
        """The graph as it stands now."""
        await self.ground.weather.breath()
        return self._plan

    async def events(self, after: int) -> Sequence[Envelope]:
        """Everything that happened since."""
        await self.ground.weather.breath()
        return self.written[after:]

    async def record(self, make: Callable[[str], Iterable[EventData]], *, after: int) -> bool:
        """Writes events in one record, unless something that an executor goes by happened since."""
        events = tuple(make(self.ground.moment()))
        await self.ground.weather.breath()
        if any(envelope.type in MOVING for envelope in self.written[after:]):
            return False
        self.append(events)
        await self.ground.weather.breath()
        return True

    async def moment_ago(self, seconds: float) -> str:
        """The moment that was so many seconds ago."""
        await self.ground.weather.breath()
        return self.ground.moment(seconds)

    def pause(self) -> bool:
        """Somebody pauses the run, if it runs."""
        if not self.is_begun or self.run.is_over or self.run.is_paused:
            return False
        self.append((RunPaused(reason="somebody wants to look"),))
        return True

    def resume(self) -> None:
        """Somebody lets a paused run go on."""
        if self.run.is_paused and not self.run.is_over:
            self.append((ForgeRunResumed(),))

    def grow(self, overlay: DagOverlay) -> tuple[Problem, ...]:
        """Applies an overlay whole, or refuses it whole."""
        if self.run.is_over:
            return (Problem(where=(), expected="a run that goes on", found="its end"),)
        status = DagStatus(runId=self.run_id, updatedAt=self.ground.moment(), nodes=self.run.nodes)
        grown = grown_dag(self.dag, overlay, status)
        if isinstance(grown, tuple):
            self.refused += 1
            told = tuple(f"{spell_path(each.where)}: expected {each.expected}; found {each.found}" for each in grown)
            self.append((OverlayRefused(crId=overlay.crId, problems=told),))
            return grown
        self.overlays.append(overlay)
        self.dag = grown
        self._plan = planned(self.base, grown)
        self.ground.watch.grows(self._plan)
        added = tuple(node.id for node in overlay.addedNodes)
        self.append((OverlayApplied(crId=overlay.crId, addedNodes=added, addedEdges=len(overlay.addedEdges)),))
        return ()

    def ask(self, request: str) -> None:
        """Whoever is at work asks for a larger plan; if nobody is, nobody asks."""
        if not self.run.is_over and self.run.in_stage(CHILDREN):
            self.append((ChangeRequestEmitted(crId=request, emittedBy="refinery", affectedTasks=()),))

    def reject(self, request: str) -> None:
        """A request comes to nothing."""
        self.append((ChangeRequestRejected(crId=request, actor="captain", reason="nothing could be made of it"),))

    def reopen(self) -> None:
        """Somebody gives the first node without attempts another one."""
        lost = [node for node in self.run.nodes.values() if is_exhausted(node)]
        if lost and not self.run.is_over:
            self.append(reopened(lost[0], 1, "ada", self.ground.moment()))

    def append(self, events: Iterable[EventData]) -> None:
        """Writes events at once, whatever happened."""
        now = self.ground.moment()
        for event in events:
            data = event.plain()
            kind = data.pop("type")
            seq = len(self.written) + 1
            envelope = Envelope(
                event_id=f"e-{seq}",
                seq=seq,
                timestamp=now,
                workflow=Workflow.FORGE,
                run_id=self.run_id,
                task=data.get("nodeId"),
                attempt=data.get("attemptId"),
                type=kind,
                version=1,
                data=data,
            )
            self.written.append(envelope)
            self._look(envelope)

    def _look(self, envelope: Envelope) -> None:
        """Takes the event in, in both ways there are."""
        watch = self.ground.watch
        watch.event(envelope, self.base)
        problem = self.run.apply(envelope)
        if problem is not None:
            watch.broken.append(f"event {envelope.seq}, {envelope.type}: {problem}")
        if envelope.seq % self._seldom == 0:
            self.compare()

    def compare(self) -> None:
        """Folds what is new for the status files, and compares all that was counted."""
        watch = self.ground.watch
        seen = 0 if self.state is None else self.state.run.lastEventSeq
        state = fold_forge(self.written[seen:], self.base, max_attempts=self._max_attempts, onto=self.state)
        if isinstance(state, Problem):
            watch.broken.append(f"after event {seen}: {state}")
            return
        self.state = state
        told = {name: getattr(state.run, name) for name in watch.counts}
        for counts in (told, run_counts(state.dag)):
            if counts != watch.counts:
                watch.broken.append(f"event {state.run.lastEventSeq}: counted {watch.counts}, told {counts}")
        folds = (state.dag.nodes, self.run.nodes)
        if state.dag.nodes and any((_standing(nodes), _most(nodes)) != (watch.nodes, watch.most) for nodes in folds):
            watch.broken.append(f"event {state.run.lastEventSeq}: the folds disagree")
        if set(state.run.activeCRs) != set(self.run.requests):
            watch.broken.append(f"event {state.run.lastEventSeq}: the folds disagree about requests")


def _standing(nodes: Mapping[str, NodeStatus]) -> dict[str, tuple[NodeState, int]]:
    return {name: (node.status, node.currentAttempt) for name, node in nodes.items()}


def _most(nodes: Mapping[str, NodeStatus]) -> dict[str, int]:
    return {name: node.maxAttempts for name, node in nodes.items()}


def planned(base: Dag, dag: Dag) -> GraphPlan:
    """A plan by what the nodes say about themselves: what they write and how long they may take."""
    said = {node.id: node.metadata or {} for node in dag.nodes}
    writes = {name: frozenset(about["writes"]) for name, about in said.items() if "writes" in about}
    estimates = {name: about["estimate"] for name, about in said.items() if "estimate" in about}
    return GraphPlan(base, dag, estimates or None, writes or None)
