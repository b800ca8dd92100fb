"""Which tasks may start, and which of them start first: those with the longest way to the end.

These are the rules as plain statements about a whole graph. A run that asks again after every event asks a `Frontier`,
which remembers what did not change; the tests hold it to the answers given here.

When a dependency is good enough (C1): a refinery takes in what is pushed, so MERGE_READY does for it. A task that
depends on a task begins on a branch into which the dependency's branch was merged, so MERGE_READY does for it too; what
no refinery collects is merged by the engine's own queue. Only a task behind a refinery waits for MERGED: what the
refinery made of its inputs is not there before.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from heapq import heapify, heappop
from typing import NamedTuple

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
"""States of a dependency (first) in which a node that waits for it (second) may start."""


def ready_tasks(
    dependencies: Mapping[str, Sequence[str]], *, finished: frozenset[str], started: frozenset[str]
) -> tuple[str, ...]:
    """Tasks of a plan that have not been started and whose dependencies are all finished, in the plan's order.

    >>> ready_tasks({"a": [], "b": ["a"], "c": ["b"]}, finished=frozenset({"a"}), started=frozenset({"a"}))
    ('b',)
    """
    return tuple(task for task, others in dependencies.items() if task not in started and finished.issuperset(others))


def ready_nodes(dag: Dag, status: DagStatus) -> tuple[str, ...]:
    """Pending nodes whose dependencies are all good enough, in the graph's order. A node without a status is not."""
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
    """For every task the longest way from its start to the end of the graph; a task without an estimate counts 1.

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
    for task in free:  # grows while it is walked: each task follows all that wait for it
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
    """The ready tasks to start now: longest way first, up to the cap, none beside one that writes the same files.

    With declared write sets, a task that declares none may write anything, and so runs alone. Without any (`None`)
    tasks are kept apart by their branches only.

    >>> starts(("a", "b", "c"), {"a": 1, "b": 3, "c": 2}, running=("x",), cap=3)
    ('b', 'c')
    """
    queue = [(-ways[task], place, task) for place, task in enumerate(ready)]
    heapify(queue)
    busy = [claim_of(task, writes) for task in running]
    chosen: list[str] = []
    while queue and len(busy) < cap:
        _, _, task = heappop(queue)
        claim = claim_of(task, writes)
        if not any(collide(claim, other) for other in busy):
            busy.append(claim)
            chosen.append(task)
    return tuple(chosen)


class Claim(NamedTuple):
    """What one task, or several together, will write."""

    paths: frozenset[str]
    within: frozenset[str]
    """The paths, and every folder they are in."""


NOTHING = Claim(frozenset(), frozenset())


def claim_of(task: str, writes: Mapping[str, frozenset[str]] | None) -> Claim | None:
    """The claim of a task: None, which stands for every file, if others declare what they write and it does not.

    >>> sorted(claim_of("a", {"a": frozenset({"src/deep/"})}).within)
    ['src', 'src/deep']
    """
    if writes is None:
        return NOTHING
    declared = writes.get(task)
    if declared is None:
        return None
    paths = frozenset(path.rstrip("/") for path in declared)
    folders = (path[:end] for path in paths for end, sign in enumerate(path) if sign == "/")
    return Claim(paths, paths.union(folders))


def joined(claims: Iterable[Claim | None]) -> Claim | None:
    """All that these claims cover."""
    paths: set[str] = set()
    within: set[str] = set()
    for claim in claims:
        if claim is None:
            return None
        paths |= claim.paths
        within |= claim.within
    return Claim(frozenset(paths), frozenset(within))


def collide(one: Claim | None, other: Claim | None) -> bool:
    """Whether two claims share a file; a folder stands for all that is in it."""
    if one is None or other is None:
        return True
    return not (one.paths.isdisjoint(other.within) and other.paths.isdisjoint(one.within))


def collected(dag: Dag) -> frozenset[str]:
    """The tasks that a refinery takes in: they are merged with it, all others by the engine's own queue."""
    taken = {other for node in dag.nodes if node.type is NodeType.REFINERY for other in node.dependencies}
    return frozenset(node.id for node in dag.nodes if node.type is NodeType.TASK and node.id in taken)


class RunEnd(StrEnum):
    """Whether a graph can still move."""

    GOING = "going"
    COMPLETED = "completed"
    FAILED = "failed"


class DagOutcome(Contract):
    """How a graph stands: which nodes have no attempt left, and which wait for them in vain."""

    end: RunEnd
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
        end = RunEnd.COMPLETED
    elif len(merged) + len(exhausted) + len(waiting) == len(states):
        end = RunEnd.FAILED
    else:
        end = RunEnd.GOING
    return DagOutcome(end=end, exhausted=exhausted, stranded=tuple(waiting) if end is RunEnd.FAILED else ())


class NextTry(Contract):
    """A node that failed goes back to the queue for this attempt."""

    attempt: Positive


class NoTryLeft(Contract):
    """A node that failed has used all its attempts."""

    attempts: Positive


def after_failure(node: NodeStatus) -> NextTry | NoTryLeft:
    """What follows when an attempt failed or lost its worker; `maxAttempts` counts the first one too."""
    if node.currentAttempt >= node.maxAttempts:
        return NoTryLeft(attempts=node.currentAttempt)
    return NextTry(attempt=node.currentAttempt + 1)
