"""Worlds by seed: rough ones in which everything goes wrong, and pairs in which only the verdicts may decide."""

from random import Random
from typing import NamedTuple

from fairwitness.contracts.forge.dag import Dag
from fairwitness.rules.schedule import collected
from support.graph.sim import OPTIONS, GraphWorld
from support.graph.sim_faults import Blow, Climate, Drawn, Fault, Verdicts
from support.graph.sim_graphs import random_dag

STEADY = {
    Fault.AGENT: 0.1,
    Fault.RAISES: 0.02,
    Fault.IDLE: 0.03,
    Fault.RED: 0.1,
    Fault.HANGS: 0.03,
    Fault.CLASH: 0.15,
    Fault.CLASH_AGAIN: 0.3,
    Fault.RED_MERGED: 0.1,
    Fault.MERGE_RAISES: 0.01,
    Fault.MERGE_HANGS: 0.02,
    Fault.LATE: 0.5,
}
"""Faults after which the same nodes are merged, whatever happens when."""
EVERYTHING = {**STEADY, Fault.PAIR_CLASH: 0.2, Fault.PAIR_RED: 0.2}
STEPS = ("prepare", "work", "commit", "prove", "leave")


def chance(seed: int) -> Random:
    """A source of chance that can be repeated."""
    return Random(seed)  # nothing here is a secret


def rough_world(seed: int, *, sizes: tuple[int, ...] = (1, 2, 3, 5, 8, 13, 20, 30, 60)) -> GraphWorld:
    """Every fault there is, each in some of the worlds."""
    rng = chance(seed)
    size = rng.choice(sizes)
    much = rng.choice([0.0, 0.4, 0.8, 1.5])
    climate = Climate(
        crash=rng.choice([0.0, 0.002, 0.01]),
        blows=tuple(Blow),
        jitter=rng.choice([0.0, 0.2]),
        pauses=rng.choice([0, 2]),
        people=rng.choice([0, 3]),
        rewinds=rng.choice([0, 0, 2]),
        overlays=rng.choice([0, 3]),
        unfit=rng.choice([0, 2]),
        requests=rng.choice([0, 2]),
        reopens=rng.choice([0, 12]),
        within=rng.choice([5.0, 30.0]),
        budget=rng.choice([None, None, size]),
        resumes=rng.choice([0, 3, 20]),
    )
    changes = {"cap": rng.choice([1, 2, 4]), "batch": rng.choice([1, 3, 8]), "max_attempts": rng.choice([1, 2, 3])}
    return GraphWorld(
        _drawn_dag(rng, size),
        seed=seed,
        options=OPTIONS.model_copy(update=changes),
        verdicts=Drawn(seed, {fault: min(1.0, chance * much) for fault, chance in EVERYTHING.items()}),
        climate=climate,
        slots=rng.choice([1, 3, 6]),
    )


class Pair(NamedTuple):
    """The same graph and the same verdicts, once without and once with everything that disturbs."""

    calm: GraphWorld
    rough: GraphWorld
    verdicts: Verdicts


def steady_pair(seed: int, *, sizes: tuple[int, ...] = (1, 3, 8, 20, 40)) -> Pair:
    """Two worlds in which the same nodes must be merged."""
    rng = chance(seed)
    dag = _drawn_dag(rng, rng.choice(sizes))
    much = rng.choice([0.5, 1.0, 1.5])
    verdicts = Drawn(seed, {fault: chance * much for fault, chance in STEADY.items()})
    options = OPTIONS.model_copy(update={"cap": rng.choice([1, 2, 4]), "batch": rng.choice([1, 3, 8])})
    overlays = rng.choice([0, 2])
    rough = Climate(
        crash=0.01,
        blows=tuple(Blow),
        jitter=0.2,
        pauses=2,
        people=2,
        rewinds=rng.choice([0, 1]),
        overlays=overlays,
        unfit=overlays,
        requests=overlays,
        refineries=False,
        within=20.0,
        resumes=1000,
    )
    return Pair(
        GraphWorld(dag, seed=seed, options=options, verdicts=verdicts, climate=Climate(resumes=1000)),
        GraphWorld(dag, seed=~seed & 0xFFFF_FFFF, options=options, verdicts=verdicts, climate=rough),
        verdicts,
    )


def expected_merged(dag: Dag, verdicts: Verdicts, most_attempts: int) -> frozenset[str]:
    """The nodes that must be merged in the end, by the verdicts alone: no executor, no time.

    A node is proven if one of its attempts is good and all that it waits for is proven; a task that a refinery collects
    is merged if anything that was built upon it is.
    """
    held = collected(dag)
    waiters: dict[str, list[str]] = {node.id: [] for node in dag.nodes}
    dependencies = {node.id: node.dependencies for node in dag.nodes}
    for name, others in dependencies.items():
        for other in others:
            waiters[other].append(name)
    proven: dict[str, bool] = {}
    order = _in_order(dependencies)
    for name in order:
        is_good = any(
            _succeeds(verdicts, name, attempt, is_collected=name in held) for attempt in range(1, most_attempts + 1)
        )
        proven[name] = is_good and all(proven[other] for other in dependencies[name])
    merged: set[str] = set()
    for name in reversed(order):
        if proven[name] and (name not in held or not merged.isdisjoint(waiters[name])):
            merged.add(name)
    return frozenset(merged)


def _succeeds(verdicts: Verdicts, node: str, attempt: int, *, is_collected: bool) -> bool:
    if not _works(verdicts, node, attempt, is_helper=False):
        return False
    if is_collected:
        return True
    if verdicts.says(Fault.CLASH, node, attempt) and (
        not _works(verdicts, node, attempt, is_helper=True) or verdicts.says(Fault.CLASH_AGAIN, node, attempt)
    ):
        return False
    return not verdicts.says(Fault.RED_MERGED, node, attempt)


def _works(verdicts: Verdicts, node: str, attempt: int, *, is_helper: bool) -> bool:
    about = (node, attempt, is_helper)
    faults = (Fault.AGENT, Fault.IDLE, Fault.RED, Fault.HANGS)
    raises = any(verdicts.says(Fault.RAISES, *about, step) for step in STEPS)
    return not raises and not any(verdicts.says(fault, *about) for fault in faults)


def _in_order(dependencies: dict[str, tuple[str, ...]]) -> list[str]:
    """The nodes, each after all that it waits for."""
    order: dict[str, None] = {}
    for name in dependencies:
        waiting = [name]
        while waiting:
            missing = [other for other in dependencies[waiting[-1]] if other not in order]
            if missing:
                waiting.extend(missing)
            else:
                order.setdefault(waiting.pop())
    return list(order)


def _drawn_dag(rng: Random, size: int) -> Dag:
    return random_dag(
        rng,
        size,
        refineries=rng.choice([0.0, 0.1, 0.3]),
        edges=rng.choice([0.3, 1.0, 2.0]),
        reach=rng.choice([3, 10, 40]),
        writes=0.4,
    )
