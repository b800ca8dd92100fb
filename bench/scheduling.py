"""What it costs to schedule a task as graphs grow, and how near a run comes to the shortest time possible."""

import math
import statistics
import time
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from fairwitness.contracts.forge.dag import Dag, DagMetadata, DagNode, NodeState, NodeType
from fairwitness.contracts.forge.status import DagStatus, NodeStatus
from fairwitness.rules.schedule import Frontier, GraphProgress, ready_nodes, starts, ways_to_the_end

RUN, AT = "run-7f2", "2026-02-26T14:30:00Z"
WORKERS = 4

SIZES = {100: 60, 1_000: 6, 10_000: 2, 100_000: 1}
"""Tasks of a graph, and how many runs make one measurement."""
ROUNDS = 3
RESCANNED = (100, 1_000)
GROWTH_GOAL = 2.0
"""The most that a task's cost over log n may differ from that at a thousand tasks."""

GRAPHS = {20: 100, 200: 20, 1_000: 5}
"""Tasks of a graph, and how many graphs of each shape are run."""
MAKESPAN_GOALS = {20: 1.05, 200: 1.03, 1_000: 1.03}
SPREAD = 1.0
"""Sigma of the durations' logarithm: one task in six takes more than e times the median."""
MISJUDGED = 0.7
"""Sigma of the logarithm of estimate over duration."""

Graph = dict[str, tuple[str, ...]]


def run() -> bool:
    """Prints the cost per task and the ratios of makespans."""
    return all([_cost(), _makespans()])


def _cost() -> bool:
    graphs = {size: _random_edges(Random(size), size) for size in SIZES}
    runs = {size: _Runs(graph) for size, graph in graphs.items()}
    taken: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for size, times in SIZES.items():
            taken.setdefault(("frontier", size), []).append(_cpu(runs[size].frontier, times) / times / size)
        for size in RESCANNED:
            taken.setdefault(("rescan", size), []).append(_cpu(runs[size].rescan, 1) / size)
    cost = {key: statistics.median(measured) * 1e6 for key, measured in taken.items()}
    known = cost["frontier", 1_000] / math.log(1_000)
    print(f"\nscheduling one task, CPU  ({WORKERS} workers, random graphs, {ROUNDS} rounds)")
    met = True
    for size in SIZES:
        growth = cost["frontier", size] / math.log(size) / known
        is_met = growth <= GROWTH_GOAL
        met = met and is_met
        beside = f"rescan {cost['rescan', size]:8.0f} us" if size in RESCANNED else ""
        print(
            f"  {cost['frontier', size]:6.1f} us  of {size:>7,} tasks, {growth:4.2f}x per log n   {beside:<20}"
            f"goal <= {GROWTH_GOAL:.2f}x: {'met' if is_met else 'MISSED'}"
        )
    return met


def _cpu(work: Callable[[], None], times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        work()
    return time.process_time() - began


class _Runs:
    """One graph as both candidates run it, with everything made before the clock starts."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._dag = _dag(graph)
        self._at = {state: {name: _status(name, state) for name in graph} for state in _TOLD}

    def frontier(self) -> None:
        """A whole run by what the frontier says."""
        frontier = Frontier(self._dag, self._at[NodeState.PENDING])
        running: list[str] = []
        while frontier.outcome().end is GraphProgress.GOING:
            for name in frontier.starts(running, WORKERS):
                running.append(name)
                frontier.moved(self._at[NodeState.RUNNING][name])
            frontier.moved(self._at[NodeState.MERGED][running.pop(0)])

    def rescan(self) -> None:
        """The same run by looking at every node each time."""
        status = DagStatus(runId=RUN, updatedAt=AT, nodes=self._at[NodeState.PENDING])
        nodes = status.nodes
        ways = ways_to_the_end(self._graph)
        running: list[str] = []
        merged = 0
        while merged < len(nodes):
            for name in starts(ready_nodes(self._dag, status), ways, running=running, cap=WORKERS):
                running.append(name)
                nodes[name] = self._at[NodeState.RUNNING][name]
            name = running.pop(0)
            nodes[name] = self._at[NodeState.MERGED][name]
            merged += 1


_TOLD = (NodeState.PENDING, NodeState.RUNNING, NodeState.MERGED)


def _status(name: str, state: NodeState) -> NodeStatus:
    return NodeStatus(taskId=name, status=state, currentAttempt=1, maxAttempts=3)


def _dag(graph: Graph) -> Dag:
    nodes = tuple(
        DagNode(id=name, type=NodeType.TASK, agentType=2, dependencies=others, status=NodeState.PENDING)
        for name, others in graph.items()
    )
    metadata = DagMetadata(createdAt=AT, createdBy="captain", totalTasks=len(nodes), totalRefineries=0)
    return Dag(version=1, runId=RUN, nodes=nodes, metadata=metadata)


def _makespans() -> bool:
    print(f"\nmakespan over max(critical path, work / {WORKERS})  (means; the bound itself is not always within reach)")
    met = True
    for size, count in GRAPHS.items():
        shapes = {shape: _ratios(shape, size, count) for shape in SHAPES}
        every = _Ratios(*(statistics.mean(ratios) for ratios in zip(*shapes.values(), strict=True)))
        is_met = every.judged <= MAKESPAN_GOALS[size]
        met = met and is_met
        for shape, ratios in {"all four shapes": every, **shapes}.items():
            goal = f"   goal <= {MAKESPAN_GOALS[size]:.2f}: {'met' if is_met else 'MISSED'}" if ratios is every else ""
            print(
                f"  {ratios.judged:6.3f}x  {size:>5,} tasks, {shape:<15} "
                f"exact estimates {ratios.exact:.3f}x, waves of {WORKERS} {ratios.waves:.2f}x{goal}"
            )
    return met


class _Ratios(NamedTuple):
    """Mean makespans of one shape and size, over the bound."""

    judged: float
    """By estimates that are off."""
    exact: float
    """By estimates that come true."""
    waves: float


def _ratios(shape: str, size: int, count: int) -> _Ratios:
    found = []
    for seed in range(count):
        chance = Random(f"{shape} {size} {seed}")
        graph = SHAPES[shape](chance, size)
        durations = {name: chance.lognormvariate(0, SPREAD) for name in graph}
        estimates = {name: took * chance.lognormvariate(0, MISJUDGED) for name, took in durations.items()}
        bound = max(_critical_path(graph, durations), sum(durations.values()) / WORKERS)
        makespans = (
            _makespan(graph, durations, estimates),
            _makespan(graph, durations, durations),
            _in_waves(graph, durations),
        )
        found.append([makespan / bound for makespan in makespans])
    return _Ratios(*(statistics.mean(ratios) for ratios in zip(*found, strict=True)))


def _makespan(graph: Graph, durations: Mapping[str, float], estimates: Mapping[str, float]) -> float:
    """How long a run takes whose order is the frontier's."""
    pending = {name: _status(name, NodeState.PENDING) for name in graph}
    whole = {name: max(1, round(1_000 * estimate)) for name, estimate in estimates.items()}
    frontier = Frontier(_dag(graph), pending, estimates=whole)
    now = 0.0
    running: dict[str, float] = {}
    ends: list[tuple[float, str]] = []
    while frontier.end is GraphProgress.GOING:
        for name in frontier.starts(running, WORKERS):
            running[name] = now + durations[name]
            heappush(ends, (running[name], name))
            frontier.moved(_status(name, NodeState.RUNNING))
        now, name = heappop(ends)
        del running[name]
        frontier.moved(_status(name, NodeState.MERGED))
    return now


def _critical_path(graph: Graph, durations: Mapping[str, float]) -> float:
    ends: dict[str, float] = {}
    for name, others in graph.items():  # every shape names a task after those it waits for
        ends[name] = durations[name] + max((ends[other] for other in others), default=0.0)
    return max(ends.values())


def _in_waves(graph: Graph, durations: Mapping[str, float]) -> float:
    """The same in waves of as many tasks as there are workers, none before the last of the wave before has ended."""
    levels: dict[str, int] = {}
    for name, others in graph.items():
        levels[name] = 1 + max((levels[other] for other in others), default=-1)
    ranks: dict[int, list[float]] = {}
    for name, level in levels.items():
        ranks.setdefault(level, []).append(durations[name])
    return sum(max(rank[first : first + WORKERS]) for rank in ranks.values() for first in range(0, len(rank), WORKERS))


def _random_edges(chance: Random, size: int) -> Graph:
    """Each task waits for up to three earlier ones, whichever."""
    return {
        f"t{number}": tuple(f"t{other}" for other in chance.sample(range(number), min(number, chance.randint(0, 3))))
        for number in range(size)
    }


def _layered(chance: Random, size: int) -> Graph:
    """Layers of two to eight; each task waits for one to three of the layer before."""
    graph: Graph = {}
    before: list[str] = []
    while len(graph) < size:
        layer = [f"t{len(graph) + number}" for number in range(min(size - len(graph), chance.randint(2, 8)))]
        for name in layer:
            graph[name] = tuple(chance.sample(before, min(len(before), chance.randint(1, 3))))
        before = layer
    return graph


def _fork_join(chance: Random, size: int) -> Graph:
    """One task, two to twelve beside each other, one that waits for them all, and so on."""
    graph: Graph = {"t0": ()}
    joint = "t0"
    while len(graph) < size:
        fork = [f"t{len(graph) + number}" for number in range(min(size - len(graph), chance.randint(2, 12)))]
        graph |= dict.fromkeys(fork, (joint,))
        if len(graph) < size:
            joint = f"t{len(graph)}"
            graph[joint] = tuple(fork)
    return graph


def _chains(chance: Random, size: int) -> Graph:
    """Chains of up to a sixth of all tasks each, which know nothing of each other."""
    graph: Graph = {}
    while len(graph) < size:
        before: tuple[str, ...] = ()
        for _ in range(min(size - len(graph), chance.randint(1, max(2, size // 6)))):
            name = f"t{len(graph)}"
            graph[name] = before
            before = (name,)
    return graph


SHAPES: Mapping[str, Callable[[Random, int], Graph]] = {
    "layered": _layered,
    "random edges": _random_edges,
    "fork-join": _fork_join,
    "chains": _chains,
}
