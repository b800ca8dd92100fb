"""The scheduling of a task graph: which tasks may start, and which start first (those with the longest critical path).

The functions are plain rules about a whole graph. A running graph uses `Frontier`, which keeps unchanged results
between events; tests compare it with these functions.

When a dependency allows a start (C1): a refinery merges pushed branches, so MERGE_READY suffices for it. A task that
depends on a task starts on a branch into which the dependency's branch was merged, so MERGE_READY suffices too; what no
refinery collects is merged by the engine's own queue. Only a task behind a refinery waits for MERGED, because the
refinery's result does not exist before.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from fairwitness.contracts.common.base import Contract, Positive
from fairwitness.contracts.common.ids import NodeId
from fairwitness.contracts.forge.dag import Dag, NodeState, NodeType
from fairwitness.contracts.forge.status import DagStatus, NodeStatus
from fairwitness.rules.dag import is_exhausted

DEFAULT_CAP = 4

_PUSHED = frozenset({NodeState.MERGE_READY, NodeState.MERGED})
_MERGED = frozenset({NodeState.MERGED})

GOOD_ENOUGH: Mapping[tuple[NodeType, NodeType], frozenset[NodeState]] = {
    (NodeType.TASK, NodeType.TASK): _PUSHED,
    (NodeType.TASK, NodeType.REFINERY): _PUSHED,
    (NodeType.REFINERY, NodeType.TASK): _MERGED,
    (NodeType.REFINERY, NodeType.REFINERY): _PUSHED,
}
"""The states of a dependency (first type) in which a dependent node (second type) may start."""


def ready_nodes(dag: Dag, status: DagStatus) -> tuple[str, ...]:
    """Return the pending nodes whose dependencies allow a start, in the graph's order; a node without a status is not
    ready.
    """
    types = {node.id: node.type for node in dag.nodes}
    return tuple(
        node.id
        for node in dag.nodes
        if _state(status, node.id) is NodeState.PENDING
        and all(_state(status, other) in GOOD_ENOUGH[types[other], node.type] for other in node.dependencies)
    )


def _state(status: DagStatus, node_id: str) -> NodeState | None:
    node = status.nodes.get(node_id)
    return None if node is None else node.status


def ways_to_the_end(
    dependencies: Mapping[str, Sequence[str]], estimates: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return the critical path length from each task to the end of the graph; a task without an estimate counts 1.

    >>> ways_to_the_end({"a": [], "b": ["a"], "c": ["b"], "d": ["a"]})
    {'c': 1, 'd': 1, 'b': 2, 'a': 3}
    """
    weights = estimates or {}
    dependents = dict.fromkeys(dependencies, 0)
    for others in dependencies.values():
        for other in others:
            dependents[other] += 1
    longest_after = dict.fromkeys(dependencies, 0)
    free = [task for task, count in dependents.items() if count == 0]
    ways: dict[str, int] = {}
    for task in free:  # grows during the loop: each task follows its dependents
        ways[task] = longest_after[task] + weights.get(task, 1)
        for other in dependencies[task]:
            longest_after[other] = max(longest_after[other], ways[task])
            dependents[other] -= 1
            if dependents[other] == 0:
                free.append(other)
    return ways


def starts(
    ready: Sequence[str],
    ways: Mapping[str, int],
    *,
    running: Sequence[str],
    cap: int = DEFAULT_CAP,
    writes: Mapping[str, frozenset[str]] | None = None,
) -> tuple[str, ...]:
    """Return the ready tasks to start now: longest critical path first, up to the cap, and no two that write the same
    files.

    With declared write sets, a task that declares none may write anything and runs alone. Without any (`None`) only
    branches keep tasks apart.

    >>> starts(("a", "b", "c"), {"a": 1, "b": 3, "c": 2}, running=("x",), cap=3)
    ('b', 'c')
    """
    queue = [(-ways[task], place, task) for place, task in enumerate(ready)]
    heapify(queue)
    busy = [write_set(task, writes) for task in running]
    chosen: list[str] = []
    while queue and len(busy) < cap:
        _, _, task = heappop(queue)
        claim = write_set(task, writes)
        if not any(collide(claim, other) for other in busy):
            busy.append(claim)
            chosen.append(task)
    return tuple(chosen)


class WriteSet(NamedTuple):
    """The paths that one or more tasks will write."""

    paths: frozenset[str]
    within: frozenset[str]
    """The paths and all their parent folders."""


NOTHING = WriteSet(frozenset(), frozenset())


def write_set(task: str, writes: Mapping[str, frozenset[str]] | None) -> WriteSet | None:
    """Return the write set of a task, or None for every file if others declare their writes and this one does not.

    >>> sorted(write_set("a", {"a": frozenset({"src/deep/"})}).within)
    ['src', 'src/deep']
    """
    if writes is None:
        return NOTHING
    declared = writes.get(task)
    if declared is None:
        return None
    paths = frozenset(path.rstrip("/") for path in declared)
    folders = (path[:end] for path in paths for end, sign in enumerate(path) if sign == "/")
    return WriteSet(paths, paths.union(folders))


def joined(claims: Iterable[WriteSet | None]) -> WriteSet | None:
    """Return the union of write sets."""
    paths: set[str] = set()
    within: set[str] = set()
    for claim in claims:
        if claim is None:
            return None
        paths |= claim.paths
        within |= claim.within
    return WriteSet(frozenset(paths), frozenset(within))


def collide(one: WriteSet | None, other: WriteSet | None) -> bool:
    """Return True if two write sets overlap; a folder covers everything in it."""
    if one is None or other is None:
        return True
    return not (one.paths.isdisjoint(other.within) and other.paths.isdisjoint(one.within))


def collected(dag: Dag) -> frozenset[str]:
    """Return the tasks that a refinery merges; all others are merged by the engine's queue."""
    taken = {other for node in dag.nodes if node.type is NodeType.REFINERY for other in node.dependencies}
    return frozenset(node.id for node in dag.nodes if node.type is NodeType.TASK and node.id in taken)


class GraphProgress(StrEnum):
    """Whether a graph can still make progress."""

    GOING = "going"
    COMPLETED = "completed"
    FAILED = "failed"


class DagOutcome(Contract):
    """The outcome of a graph: nodes without attempts left, and nodes that can never start because of them."""

    end: GraphProgress
    exhausted: tuple[NodeId, ...]
    stranded: tuple[NodeId, ...]


def dag_outcome(dag: Dag, status: DagStatus) -> DagOutcome:
    """Completed when every node is merged, failed when nothing can move any more and not every node is.

    What moves: attempts that are under way or may be made, and what waits to be merged. A task that a refinery collects
    moves only with it, and so waits in vain if no refinery and nothing else does.
    """
    states = {node.id: _state(status, node.id) for node in dag.nodes}
    ready = set(ready_nodes(dag, status))
    exhausted = tuple(name for name in states if name in status.nodes and is_exhausted(status.nodes[name]))
    held = collected(dag)
    waiting = [
        name
        for name, state in states.items()
        if state is None
        or (state is NodeState.PENDING and name not in ready)
        or (state is NodeState.MERGE_READY and name in held)
    ]
    merged = [name for name, state in states.items() if state is NodeState.MERGED]
    if len(merged) == len(states):
        end = GraphProgress.COMPLETED
    elif len(merged) + len(exhausted) + len(waiting) == len(states):
        end = GraphProgress.FAILED
    else:
        end = GraphProgress.GOING
    return DagOutcome(end=end, exhausted=exhausted, stranded=tuple(waiting) if end is GraphProgress.FAILED else ())


class NextTry(Contract):
    """A failed node returns to the queue for this attempt."""

    attempt: Positive


class NoTryLeft(Contract):
    """A failed node has no attempts left."""

    attempts: Positive


def after_failure(node: NodeStatus) -> NextTry | NoTryLeft:
    """Return what follows a failed or lost attempt; `maxAttempts` includes the first one."""
    if node.currentAttempt >= node.maxAttempts:
        return NoTryLeft(attempts=node.currentAttempt)
    return NextTry(attempt=node.currentAttempt + 1)


LOOKAHEAD = 200
"""How many lanes of conflicting tasks are skipped in search of one that may start; later lanes wait."""

Key: TypeAlias = tuple[int, int]
"""The critical path length, negated to sort first, and the position in the graph."""


class _Standing(IntEnum):
    """What a node's state means for the outcome of the run."""

    MOVING = 0
    READY = 1
    WAITING = 2
    EXHAUSTED = 3
    MERGED = 4


class Frontier:
    """A graph and where each of its nodes stands, between the moves of a run.

    A node that has no status is not known to the run yet: it is not ready, and nothing may build on it.
    """

    def __init__(
        self,
        dag: Dag,
        nodes: Mapping[str, NodeStatus],
        *,
        estimates: Mapping[str, int] | None = None,
        writes: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._nodes: dict[str, NodeStatus] = {}
        self._estimates: dict[str, int] = {}
        self._writes: dict[str, frozenset[str]] | None = None
        self.grow(dag, nodes, estimates=estimates, writes=writes)

    def grow(
        self,
        dag: Dag,
        nodes: Mapping[str, NodeStatus],
        *,
        estimates: Mapping[str, int] | None = None,
        writes: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """Goes on with a larger graph; all of it is weighed anew, since one new edge can lengthen every way.

        Only what is new about its nodes has to be told. Once anything was said about what tasks write, a task of which
        nothing is said may write anything.
        """
        self._nodes.update(nodes)
        self._estimates.update(estimates or {})
        if writes is not None:
            self._writes = {**(self._writes or {}), **writes}
        self._names = [node.id for node in dag.nodes]
        self._types = [node.type for node in dag.nodes]
        self._places = {name: place for place, name in enumerate(self._names)}
        self._held = collected(dag)
        self._waiters: list[list[int]] = [[] for _ in self._names]
        self._unmet = [0] * len(self._names)
        self._states: list[NodeState | None] = [None] * len(self._names)
        self._standings = [_Standing.WAITING] * len(self._names)
        self._sizes = dict.fromkeys(_Standing, 0) | {_Standing.WAITING: len(self._names)}
        self._exhausted: set[int] = set()
        self._told: DagOutcome | None = None
        ways = ways_to_the_end({node.id: node.dependencies for node in dag.nodes}, self._estimates)
        claims = [write_set(name, self._writes) for name in self._names]
        self._queue = _ReadyQueue([ways[name] for name in self._names], claims)
        for place, node in enumerate(dag.nodes):
            for other in node.dependencies:
                self._waiters[self._places[other]].append(place)
            self._unmet[place] = len(node.dependencies)
        for name in self._names:
            if name in self._nodes:
                self.moved(self._nodes[name])

    def moved(self, node: NodeStatus) -> None:
        """Update the status of a node."""
        place = self._places[node.taskId]
        before, kind = self._states[place], self._types[place]
        self._nodes[node.taskId] = node
        self._states[place] = node.status
        met = {
            waiting: (node.status in GOOD_ENOUGH[kind, waiting]) - (before in GOOD_ENOUGH[kind, waiting])
            for waiting in NodeType
        }
        if any(met.values()):
            for waiter in self._waiters[place]:
                self._unmet[waiter] -= met[self._types[waiter]]
                self._settle(waiter)
        self._settle(place)

    def starts(self, running: Collection[str], cap: int = DEFAULT_CAP) -> tuple[str, ...]:
        """Return the nodes to start next to the running ones: longest critical path first, up to the cap, no shared
        files.

        They stay ready until `moved` reports their new status.
        """
        busy = joined(write_set(name, self._writes) for name in running)
        return tuple(self._names[place] for place in self._queue.first(busy, len(running), cap))

    @property
    def end(self) -> GraphProgress:
        """Return whether anything can still make progress."""
        if self._sizes[_Standing.MERGED] == len(self._names):
            return GraphProgress.COMPLETED
        if self._sizes[_Standing.MOVING] or self._sizes[_Standing.READY]:
            return GraphProgress.GOING
        return GraphProgress.FAILED

    def outcome(self) -> DagOutcome:
        """Return the outcome of the graph, with nodes without attempts left and, at the end, nodes that can never
        start.
        """
        end = self.end
        if self._told is None or self._told.end is not end or end is GraphProgress.FAILED:
            places = enumerate(self._standings) if end is GraphProgress.FAILED else ()
            self._told = DagOutcome(
                end=end,
                exhausted=tuple(self._names[place] for place in sorted(self._exhausted)),
                stranded=tuple(self._names[place] for place, standing in places if standing is _Standing.WAITING),
            )
        return self._told

    def _settle(self, place: int) -> None:
        """Count a node by its current state."""
        before, after = self._standings[place], self._standing(place)
        if after is before:
            return
        self._standings[place] = after
        self._sizes[before] -= 1
        self._sizes[after] += 1
        self._queue.set(place, after is _Standing.READY)
        if _Standing.EXHAUSTED in (before, after):
            self._exhausted ^= {place}
            self._told = None

    def _standing(self, place: int) -> _Standing:
        name, state = self._names[place], self._states[place]
        if (
            state is None
            or (state is NodeState.PENDING and self._unmet[place])
            or (state is NodeState.MERGE_READY and name in self._held)
        ):
            return _Standing.WAITING
        if state is NodeState.PENDING:
            return _Standing.READY
        if state is NodeState.MERGED:
            return _Standing.MERGED
        return _Standing.EXHAUSTED if is_exhausted(self._nodes[name]) else _Standing.MOVING


class _ReadyQueue:
    """Ready nodes, longest way first, in lanes of those that write exactly the same.

    If the first of a lane collides with what runs, so does the whole lane; ten thousand writers of one file are looked
    at as one. A heap holds the first of every lane. Both kinds of heap are cleaned late: a node that is no longer ready
    leaves when it comes first, and of the entries for one lane only the one that names its head counts.
    """

    def __init__(self, ways: Sequence[int], claims: Sequence[WriteSet | None]) -> None:
        numbers: dict[WriteSet | None, int] = {}
        self._lane_of = [numbers.setdefault(claim, len(numbers)) for claim in claims]
        self._claims = list(numbers)
        self._keys: list[Key] = [(-way, place) for place, way in enumerate(ways)]
        self._ready = bytearray(len(ways))
        self._queued = bytearray(len(ways))
        self._lanes: list[list[Key]] = [[] for _ in numbers]
        self._heads: list[Key | None] = [None] * len(numbers)
        self._firsts: list[tuple[Key, int]] = []

    def set(self, place: int, is_ready: bool) -> None:
        """Add or remove a node."""
        self._ready[place] = is_ready
        if is_ready and not self._queued[place]:
            self._queued[place] = True
            lane = self._lane_of[place]
            heappush(self._lanes[lane], self._keys[place])
            self._show(lane)

    def first(self, busy: WriteSet | None, running: int, cap: int) -> list[int]:
        """Return the first nodes that do not conflict with busy files, up to the cap; all stay in the queue."""
        chosen: list[int] = []
        passed: list[int] = []
        while self._firsts and running + len(chosen) < cap and len(passed) <= LOOKAHEAD:
            key, lane = heappop(self._firsts)
            if key != self._heads[lane]:
                continue  # the lane's first node has changed
            self._heads[lane] = None
            place = key[1]
            if self._ready[place]:
                claim = self._claims[lane]
                if (running or chosen) and collide(claim, busy):
                    passed.append(lane)
                    continue
                heappop(self._lanes[lane])
                chosen.append(place)
                busy = joined((busy, claim))
            self._show(lane)
        for place in chosen:
            heappush(self._lanes[self._lane_of[place]], self._keys[place])
        for lane in {*passed, *(self._lane_of[place] for place in chosen)}:
            self._show(lane)
        return chosen

    def _show(self, lane: int) -> None:
        """Enter the first ready node of a lane, unless it is there already."""
        keys = self._lanes[lane]
        while keys and not self._ready[keys[0][1]]:
            self._queued[heappop(keys)[1]] = False
        if keys and keys[0] != self._heads[lane]:
            self._heads[lane] = keys[0]
            heappush(self._firsts, (keys[0], lane))
