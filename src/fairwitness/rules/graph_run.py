"""The state of a running graph, updated event by event for its executor.

It holds what the status files do not: the stage of each attempt, the commits waiting for a merge in order, and the
batch being merged. It can be derived again from the events at any time.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Annotated, NamedTuple, TypeAlias, assert_never, get_args

from pydantic import Field, TypeAdapter

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge import events as happened
from fairwitness.contracts.forge.dag import Dag, NodeState
from fairwitness.contracts.forge.status import NodeStatus
from fairwitness.contracts.graph.orders import Collision, MergeMember
from fairwitness.rules.dag import node_after, reopened
from fairwitness.rules.fold import UPCASTERS, Upcasters, at, next_event, order_problem

Moving: TypeAlias = (
    happened.NodeChanged
    | happened.TaskVerified
    | happened.ConflictFound
    | happened.MergeStarted
    | happened.MergeFinished
    | happened.TaskReopened
    | happened.ChangeRequestEmitted
    | happened.ChangeRequestRejected
    | happened.OverlayApplied
    | happened.ForgeRunStarted
    | happened.RunPaused
    | happened.ForgeRunResumed
    | happened.ForgeRunCompleted
    | happened.RunFailed
)

MOVING: frozenset[str] = frozenset(event.model_fields["type"].default for event in get_args(Moving))
"""The event types that change a running graph; all others of its run are ignored."""

_SHAPE: TypeAdapter[Moving] = TypeAdapter(Annotated[Moving, Field(discriminator="type")])


class AttemptStage(StrEnum):
    """The stage of a node's current attempt."""

    WORKING = "working"
    QUEUED = "queued"
    MERGING = "merging"
    HELPING = "helping"
    """A helper resolves its conflict with changes that were merged in the meantime."""
    WAITING = "waiting"
    """Verified and waiting on its own branch until a refinery merges it."""


CHILDREN = (AttemptStage.WORKING, AttemptStage.HELPING)
"""Stages in which a child workflow works on the attempt."""
RUNNING = (AttemptStage.WORKING, AttemptStage.HELPING, AttemptStage.QUEUED, AttemptStage.MERGING)
"""Stages of a node that is RUNNING."""
PROVEN = (AttemptStage.QUEUED, AttemptStage.MERGING)
"""Stages of an attempt that is verified."""


class StartedAttempt(NamedTuple):
    """The current attempt of a started node."""

    stage: AttemptStage
    attempt: int
    commit: str | None = None
    """The commit that was verified last."""
    collision: Collision | None = None
    """The conflict given to a helper; an attempt gets a helper once."""


class Batch(NamedTuple):
    """A merge batch in progress."""

    number: int
    nodes: tuple[str, ...]


class GraphRun:
    """The state of a running graph after the events applied to it."""

    def __init__(
        self,
        run_id: str,
        base: Dag,
        workflow: Workflow = Workflow.FORGE,
        max_attempts: int = 3,
        *,
        first_attempt: int = 1,
        phase: str | None = None,
    ) -> None:
        """Create an empty state. With a `phase`, only the events of that graph are applied; of others only merges are
        counted.
        """
        self.run_id = run_id
        self.seq = 0
        self.nodes: dict[str, NodeStatus] = {}
        self.work: dict[str, StartedAttempt] = {}
        self._at: dict[AttemptStage, dict[str, None]] = {stage: {} for stage in AttemptStage}
        self.queue: dict[str, None] = {}
        """Nodes that wait to be merged, in order of arrival."""
        self.batch: Batch | None = None
        self.batches = 0
        self.tip: str | None = None
        """The target's commit after the last batch; None before the first."""
        self.requests: dict[str, None] = {}
        """Open change requests; while there is one, no new attempt starts."""
        self.is_paused = False
        self.is_over = False
        self._workflow = workflow
        self._upcasters: Upcasters = UPCASTERS[workflow]
        self._max_attempts, self._first_attempt, self._phase = max_attempts, first_attempt, phase
        self._add([node.id for node in base.nodes])

    def apply(self, envelope: Envelope) -> Problem | None:
        """Apply the next event of the run, or return why it cannot be applied; then nothing has changed."""
        if envelope.type not in MOVING or not self.is_about(envelope):
            problem = order_problem(envelope, self._workflow, last_seq=self.seq, run_id=self.run_id)
            if problem is None and envelope.type == "merge.started":
                self.batches = int(envelope.data["batch"])
        else:
            event = next_event(envelope, self._workflow, _SHAPE, self._upcasters, last_seq=self.seq, run_id=self.run_id)
            problem = event if isinstance(event, Problem) else self._take_in(envelope, event)
        if problem is None:
            self.seq = envelope.seq
        return problem

    def is_about(self, envelope: Envelope) -> bool:
        """Return True if an event belongs to this graph and not to another one of the same run."""
        return self._phase is None or envelope.phase == self._phase

    def in_stage(self, stages: Collection[AttemptStage]) -> tuple[str, ...]:
        """Return the nodes whose attempts are at these stages, by stage and then in order of arrival."""
        return tuple(name for stage in stages for name in self._at[stage])

    def running(self) -> tuple[str, ...]:
        """Return the nodes that are RUNNING: working, queued or being merged."""
        return self.in_stage(RUNNING)

    def member(self, node: str) -> MergeMember:
        """Return a verified attempt as a member of a merge."""
        work = self.work[node]
        assert work.commit is not None
        return MergeMember(node=node, attempt=work.attempt, commit=work.commit)

    def _put(self, name: str, work: StartedAttempt | None) -> None:
        """Store or remove a node's attempt."""
        before = self.work.pop(name, None)
        if before is not None:
            del self._at[before.stage][name]
        if work is not None:
            self.work[name] = work
            self._at[work.stage][name] = None

    def _add(self, names: Iterable[str]) -> None:
        for name in names:
            self.nodes[name] = NodeStatus(
                taskId=name,
                status=NodeState.PENDING,
                currentAttempt=self._first_attempt,
                maxAttempts=self._max_attempts,
            )

    def _take_in(self, envelope: Envelope, event: Moving) -> Problem | None:
        match event:
            case happened.NodeChanged():
                return self._moved(envelope, event)
            case happened.TaskVerified() | happened.ConflictFound():
                return self._of_attempt(envelope, event)
            case happened.MergeStarted():
                return self._merging(envelope, event)
            case happened.MergeFinished():
                return self._merged(envelope, event)
            case happened.OverlayApplied():
                taken = [name for name in event.addedNodes if name in self.nodes]
                if taken:
                    return at(envelope, ("data", "addedNodes"), "nodes that are new", ", ".join(taken))
                self._add(event.addedNodes)
                self.requests.pop(event.crId, None)
            case happened.ChangeRequestEmitted():
                self.requests[event.crId] = None
            case happened.ChangeRequestRejected():
                self.requests.pop(event.crId, None)
            case happened.TaskReopened():
                return self._reopened(envelope, event)
            case happened.RunPaused():
                self.is_paused = True
            case happened.ForgeRunStarted() | happened.ForgeRunResumed():
                self.is_paused = self.is_over = False
            case happened.ForgeRunCompleted() | happened.RunFailed():
                self.is_over = True
            case _:
                assert_never(event)
        return None

    def _reopened(self, envelope: Envelope, event: happened.TaskReopened) -> Problem | None:
        before = self.nodes.get(event.nodeId)
        after = reopened(before, event) if before is not None else None
        if after is None or isinstance(after, Problem):
            expected, found = ("a node of the graph", event.nodeId) if after is None else (after.expected, after.found)
            return at(envelope, ("data", "nodeId" if after is None else "maxAttempts"), expected, found)
        self.nodes[event.nodeId] = after
        return None

    def _moved(self, envelope: Envelope, event: happened.NodeChanged) -> Problem | None:
        before = self.nodes.get(event.nodeId)
        if before is None:
            return at(envelope, ("data", "nodeId"), "a node of the graph", event.nodeId)
        after = node_after(before, event)
        if isinstance(after, Problem):
            return at(envelope, ("data", *after.where), after.expected, after.found)
        if after is before:
            return None
        name, work = event.nodeId, self.work.get(event.nodeId)
        if after.status is NodeState.DONE and (work is None or work.stage not in PROVEN):
            return at(envelope, ("data", "newStatus"), "an attempt that was verified", f"{name}, {after.status.value}")
        self.nodes[name] = after
        self.queue.pop(name, None)
        match after.status:
            case NodeState.RUNNING:
                self._put(name, StartedAttempt(AttemptStage.WORKING, after.currentAttempt))
            case NodeState.DONE | NodeState.MERGE_READY:
                self._put(name, self.work[name]._replace(stage=AttemptStage.WAITING))
            case NodeState.MERGED | NodeState.FAILED | NodeState.STALE | NodeState.PENDING:
                self._put(name, None)
            case _:
                assert_never(after.status)
        return None

    def _of_attempt(self, envelope: Envelope, event: happened.TaskVerified | happened.ConflictFound) -> Problem | None:
        work = self.work.get(event.nodeId)
        if work is None or work.attempt != event.attemptId:
            return at(envelope, ("data", "attemptId"), "an attempt that is under way", f"{event.nodeId}, {event.type}")
        if isinstance(event, happened.TaskVerified):
            if work.stage not in CHILDREN:
                return at(envelope, ("data", "nodeId"), "an attempt at work", f"{event.nodeId}, {work.stage}")
            self._put(event.nodeId, work._replace(stage=AttemptStage.QUEUED, commit=event.commit))
            self.queue[event.nodeId] = None
        elif work.stage is not AttemptStage.MERGING or work.commit is None or work.collision is not None:
            return at(envelope, ("data", "nodeId"), "an attempt being merged, for the first time", event.nodeId)
        else:
            collision = Collision(commit=work.commit, onto=event.onto, paths=event.paths)
            self._put(event.nodeId, work._replace(stage=AttemptStage.HELPING, collision=collision))
        return None

    def _merging(self, envelope: Envelope, event: happened.MergeStarted) -> Problem | None:
        names = set(event.nodes)
        waiting = names <= self.queue.keys() and len(names) == len(event.nodes)
        if self.batch is not None or not waiting or event.batch != self.batches + 1:
            expected = f"batch {self.batches + 1} of nodes that wait, and no other under way"
            return at(envelope, ("data", "batch"), expected, f"{event.batch}: {', '.join(event.nodes)}")
        self.batch, self.batches = Batch(event.batch, event.nodes), event.batch
        for name in event.nodes:
            del self.queue[name]
            self._put(name, self.work[name]._replace(stage=AttemptStage.MERGING))
        return None

    def _merged(self, envelope: Envelope, event: happened.MergeFinished) -> Problem | None:
        if self.batch is None or self.batch.number != event.batch:
            return at(envelope, ("data", "batch"), "the batch that is under way", str(event.batch))
        again = {name: None for name in self.batch.nodes if self._is_merging(name)}
        if set(again) != set(event.left):
            return at(envelope, ("data", "left"), f"what is left of the batch, {', '.join(again)}", str(event.left))
        self.batch, self.tip = None, event.tip
        for name in again:
            self._put(name, self.work[name]._replace(stage=AttemptStage.QUEUED))
        self.queue = {**again, **self.queue}
        return None

    def _is_merging(self, name: str) -> bool:
        return name in self.work and self.work[name].stage is AttemptStage.MERGING


def verified_before(run: GraphRun, dependencies: Mapping[str, tuple[str, ...]], node: str) -> tuple[MergeMember, ...]:
    """Attempts that a node begins with because nothing merged them yet: those it depends on, deepest first.

    What a dependency began with is in its own branch, so that only those nearest to the node are named.
    """
    return tuple(
        run.member(name)
        for name in dependencies[node]
        if name in run.work and run.nodes[name].status is NodeState.MERGE_READY
    )


def taken_in(run: GraphRun, dependencies: Mapping[str, tuple[str, ...]], node: str) -> tuple[str, ...]:
    """Return the nodes that are merged together with this one: those waiting on their branches that it was built on."""
    found: dict[str, None] = {}
    waiting = [node]
    while waiting:
        for name in dependencies[waiting.pop()]:
            if name not in found and run.nodes[name].status is NodeState.MERGE_READY:
                found[name] = None
                waiting.append(name)
    return tuple(found)
