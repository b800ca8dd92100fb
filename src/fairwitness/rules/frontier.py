"""The scheduler's memory: what a running graph could start next, kept up to date move by move.

It answers as the functions of `scheduling` do, but a move costs its own dependents and a start the height of a heap, so
that a whole run stays at n log n. Only `starts` differs, and only among very many writers of the same files: see
`LOOKAHEAD`.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import TypeAlias

from fairwitness.contracts.forge.dag import Dag, NodeState, NodeType
from fairwitness.contracts.forge.status import NodeStatus
from fairwitness.rules.dag import is_exhausted
from fairwitness.rules.scheduling import (
    DEFAULT_CAP,
    GOOD_ENOUGH,
    Claim,
    DagOutcome,
    RunEnd,
    claim_of,
    collected,
    collide,
    joined,
    ways_to_the_end,
)

LOOKAHEAD = 200
"""How many lanes of colliding tasks are passed over for one that may start; what is behind them waits for its turn."""

Key: TypeAlias = tuple[int, int]
"""The longest way to the end, negated so that it sorts first, and the place in the graph."""


class _Standing(IntEnum):
    """What a node's state means for the end of the run."""

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
        claims = [claim_of(name, self._writes) for name in self._names]
        self._queue = _ReadyQueue([ways[name] for name in self._names], claims)
        for place, node in enumerate(dag.nodes):
            for other in node.dependencies:
                self._waiters[self._places[other]].append(place)
            self._unmet[place] = len(node.dependencies)
        for name in self._names:
            if name in self._nodes:
                self.moved(self._nodes[name])

    def moved(self, node: NodeStatus) -> None:
        """Takes in where a node stands now."""
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
        """The nodes to start beside those that run: longest way first, up to the cap, no two writers of one file.

        They stay ready until it is told that they moved.
        """
        busy = joined(claim_of(name, self._writes) for name in running)
        return tuple(self._names[place] for place in self._queue.first(busy, len(running), cap))

    @property
    def end(self) -> RunEnd:
        """Whether anything can still move."""
        if self._sizes[_Standing.MERGED] == len(self._names):
            return RunEnd.COMPLETED
        if self._sizes[_Standing.MOVING] or self._sizes[_Standing.READY]:
            return RunEnd.GOING
        return RunEnd.FAILED

    def outcome(self) -> DagOutcome:
        """How the graph stands, with the nodes that have no attempt left and, at the end, those that wait in vain."""
        end = self.end
        if self._told is None or self._told.end is not end or end is RunEnd.FAILED:
            places = enumerate(self._standings) if end is RunEnd.FAILED else ()
            self._told = DagOutcome(
                end=end,
                exhausted=tuple(self._names[place] for place in sorted(self._exhausted)),
                stranded=tuple(self._names[place] for place, standing in places if standing is _Standing.WAITING),
            )
        return self._told

    def _settle(self, place: int) -> None:
        """Counts a node where it stands now."""
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

    def __init__(self, ways: Sequence[int], claims: Sequence[Claim | None]) -> None:
        numbers: dict[Claim | None, int] = {}
        self._lane_of = [numbers.setdefault(claim, len(numbers)) for claim in claims]
        self._claims = list(numbers)
        self._keys: list[Key] = [(-way, place) for place, way in enumerate(ways)]
        self._ready = bytearray(len(ways))
        self._queued = bytearray(len(ways))
        self._lanes: list[list[Key]] = [[] for _ in numbers]
        self._heads: list[Key | None] = [None] * len(numbers)
        self._firsts: list[tuple[Key, int]] = []

    def set(self, place: int, is_ready: bool) -> None:
        """Puts a node in, or takes it out."""
        self._ready[place] = is_ready
        if is_ready and not self._queued[place]:
            self._queued[place] = True
            lane = self._lane_of[place]
            heappush(self._lanes[lane], self._keys[place])
            self._show(lane)

    def first(self, busy: Claim | None, running: int, cap: int) -> list[int]:
        """The first nodes that fit beside what is busy, as many as the cap leaves room for; all stay in the queue."""
        chosen: list[int] = []
        passed: list[int] = []
        while self._firsts and running + len(chosen) < cap and len(passed) <= LOOKAHEAD:
            key, lane = heappop(self._firsts)
            if key != self._heads[lane]:
                continue  # the lane has another head by now
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
        """Enters the first ready node of a lane, unless it stands there already."""
        keys = self._lanes[lane]
        while keys and not self._ready[keys[0][1]]:
            self._queued[heappop(keys)[1]] = False
        if keys and keys[0] != self._heads[lane]:
            self._heads[lane] = keys[0]
            heappush(self._firsts, (keys[0], lane))
