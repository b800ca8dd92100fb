"""The executor in simulated worlds: whatever goes wrong, every run ends, and what must never happen never does.

The watch of the simulation looks at every event, child, start and landing; a run that breaks one of its promises is an
error. Here it is said which worlds it watches over.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from fairwitness.dag import executor
from fairwitness.rules import graph_run
from fairwitness.rules.dag import effective_dag
from support.graph.sim import OPTIONS, REQUESTS, GraphWorld
from support.graph.sim_faults import Blow, Climate, Drawn, Fault, Told
from support.graph.sim_graphs import dag_of, node, random_dag, simple_dag
from support.graph.sim_worlds import (
    EVERYTHING,
    STEADY,
    chance,
    expected_merged,
    rough_world,
    steady_pair,
)
from support.ladder import SWEEP

IN_A_GROUP = 10
ROUGH = 2000 if SWEEP else 120
STEADY_PAIRS = 1000 if SWEEP else 60
LARGE = (1, 2, 3, 4) if SWEEP else (1,)
HUGE = 10_000

pytestmark = pytest.mark.timeout(1800 if SWEEP else 240)


@pytest.fixture(autouse=True)
def _unwatched() -> Iterator[None]:
    """Measuring coverage would take longer than the simulation; the tests case by case have it."""
    before = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(before)


def _groups(count: int) -> list[range]:
    return [range(first, min(first + IN_A_GROUP, count)) for first in range(0, count, IN_A_GROUP)]


def _run_and_judge(world: GraphWorld) -> None:
    """Runs it under watch, and holds its end against the plain rules over the whole graph."""
    end = world.run()
    outcome = world.outcome()
    assert end.merged == len(world.merged)
    assert (end.exhausted, end.completed) == (outcome.exhausted, outcome.end == "completed")
    assert end.stranded == outcome.stranded
    assert end.completed or end.reason or end.exhausted
    assert end.tip == world.git.tip or world.climate.people or world.climate.rewinds
    assert all(count <= world.watch.most[name] for name, count in world.watch.started.items())
    assert world.watch.most_at_work <= world.options.cap
    run = world.runner.run
    assert run.is_over
    assert run.batch is None
    assert not run.requests
    assert end.reason or not run.running()
    assert effective_dag(world.runner.base, world.runner.overlays) == world.runner.dag


@pytest.mark.req("F3", "F5", "F6", "F10", "P12", "X7")
@pytest.mark.parametrize("seeds", _groups(ROUGH), ids=str)
def test_every_run_ends_and_keeps_every_promise_whatever_goes_wrong(seeds: range) -> None:
    for seed in seeds:
        _run_and_judge(rough_world(seed))


@pytest.mark.req("F3", "F10", "P12")
@pytest.mark.parametrize("seeds", _groups(STEADY_PAIRS), ids=str)
def test_crashes_pauses_people_and_growth_do_not_change_what_is_merged(seeds: range) -> None:
    for seed in seeds:
        calm, rough, verdicts = steady_pair(seed)
        _run_and_judge(calm)
        _run_and_judge(rough)
        most = calm.options.max_attempts
        assert calm.merged == expected_merged(calm.runner.dag, verdicts, most), seed
        assert rough.merged == expected_merged(rough.runner.dag, verdicts, most), seed
        if rough.runner.dag == calm.runner.dag:
            assert rough.merged == calm.merged, seed


def _small(crashes: dict[int, Blow] | None = None) -> GraphWorld:
    """An attempt that fails, a conflict and its helper, a merge that turns red, and a refinery that takes one in."""
    told = Told({(Fault.AGENT, "t1", 1, False), (Fault.CLASH, "t2", 1), (Fault.RED_MERGED, "r1", 1)})
    dag = simple_dag(t1="", t2="", r1="t1", **({"t3": "r1", "t4": "t2"} if SWEEP else {}))
    patient = OPTIONS.model_copy(update={"look_s": 20.0})
    return GraphWorld(dag, verdicts=told, crashes=crashes, options=patient)


def _awaits() -> int:
    world = _small()
    world.run()
    return world.ground.weather.awaits


@pytest.mark.req("F3", "F10", "P12")
@pytest.mark.parametrize("blow", list(Blow))
def test_at_every_await_the_process_may_die_and_nothing_is_lost_or_paid_twice(blow: Blow) -> None:
    whole = _small()
    whole.run()
    every = 1 if SWEEP or blow is Blow.PROCESS else 3
    for place in range(1, _awaits() + 1, every):
        world = _small({place: blow})
        assert world.run().completed, place
        assert world.ground.weather.crashes == 1, place
        assert world.watch.started == whole.watch.started, place
        again = world.watch.paid - whole.watch.paid
        assert sum(again.values()) <= (world.options.cap if blow is not Blow.WORKER else 1), (place, again)
        assert world.watch.paid.keys() == whole.watch.paid.keys(), place
        assert not world.git.worktrees or blow is Blow.FREEZE, place  # who wakes up too late may leave one


@pytest.mark.req("F3", "F10")
def test_a_second_crash_on_the_way_back_changes_nothing_either() -> None:
    awaits = _awaits()
    rng = chance(7)
    for _ in range(200 if SWEEP else 40):
        places = sorted(rng.sample(range(1, awaits), 3))
        world = _small({place + 20 * nth: rng.choice(list(Blow)) for nth, place in enumerate(places)})
        assert world.run().completed, places


def test_the_same_seed_gives_the_same_run() -> None:
    for seed in (3, 11, 29):
        one, other = rough_world(seed), rough_world(seed)
        one.run()
        other.run()
        assert one.runner.written == other.runner.written
        assert one.ground.weather.awaits == other.ground.weather.awaits


def test_rough_worlds_hold_everything_that_they_are_said_to_hold() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        world = rough_world(seed)
        world.run()
        seen.update({envelope.type for envelope in world.runner.written})
        seen["answered by growth"] += any(overlay.crId >= f"cr-{REQUESTS}" for overlay in world.runner.overlays)
    rare = ("cr.emitted", "cr.rejected", "answered by growth", "task.reopened", "overlay.applied", "overlay.refused")
    assert {kind: seen[kind] for kind in rare if seen[kind] < 3} == {}


@pytest.mark.req("F3", "F5", "F6", "F10", "P12", "X7")
@pytest.mark.parametrize("seed", LARGE)
def test_a_thousand_nodes_end_under_every_fault(seed: int) -> None:
    rng = chance(seed)
    climate = Climate(
        crash=0.0005,
        blows=tuple(Blow),
        jitter=0.05,
        pauses=3,
        people=10,
        rewinds=2,
        overlays=6,
        unfit=3,
        requests=4,
        reopens=6,
        within=300.0,
        resumes=50,
    )
    world = GraphWorld(
        random_dag(rng, 1000, writes=0.5),
        seed=seed,
        verdicts=Drawn(seed, {fault: chance * 0.3 for fault, chance in EVERYTHING.items()}),
        climate=climate,
    )
    _run_and_judge(world)
    assert world.ground.weather.crashes > 10


def _wide() -> GraphWorld:
    """Nothing waits for anything, and everything is collected in the end: as many wait on their branches as can."""
    tasks = [node(f"t{place}") for place in range(HUGE - 1)]
    return GraphWorld(dag_of([*tasks, node("r", [each.id for each in tasks], refinery=True)]), seed=5)


def _deep() -> GraphWorld:
    """A chain: nothing runs beside anything."""
    return GraphWorld(dag_of(node(f"t{at}", [f"t{at - 1}"] if at else []) for at in range(HUGE)), seed=6)


def _mixed() -> GraphWorld:
    """Every restart folds all that happened so far, so that there are only a few."""
    rare = {Fault.MERGE_RAISES: 0.00005, Fault.MERGE_HANGS: 0.0005}
    verdicts = Drawn(8, {fault: chance * 0.3 for fault, chance in STEADY.items()} | rare)
    climate = Climate(crash=0.000006, blows=tuple(Blow), people=5, pauses=2, resumes=1000, within=2000.0)
    return GraphWorld(random_dag(chance(8), HUGE), seed=8, verdicts=verdicts, climate=climate)


@pytest.mark.req("F3", "F6", "F10", "X7")
def test_ten_thousand_nodes_with_faults_and_crashes_end_as_the_verdicts_have_it() -> None:
    world = _mixed()
    _run_and_judge(world)
    assert world.ground.weather.crashes > 1
    assert world.merged == expected_merged(world.runner.dag, world.ground.verdicts, world.options.max_attempts)


@pytest.mark.width("sweep")
@pytest.mark.req("F3", "F6", "F10", "X7")
@pytest.mark.parametrize("shape", ["wide", "deep"])
def test_ten_thousand_nodes_of_any_shape_are_merged(shape: str) -> None:
    world = _wide() if shape == "wide" else _deep()
    assert world.run().completed
    assert len(world.merged) == HUGE


@contextmanager
def _counted_lines() -> Iterator[Counter[str]]:
    """Counts the lines that run in the executor and the rules: a measure of work that no other process disturbs."""
    counts: Counter[str] = Counter()
    ours = (executor.__file__.rpartition("/")[0], graph_run.__file__.rpartition("/")[0])

    def line(_frame: FrameType, _what: str, _value: object) -> object:
        counts["lines"] += 1
        return line

    def call(frame: FrameType, _what: str, _value: object) -> object:
        return line if frame.f_code.co_filename.startswith(ours) else None

    before = sys.gettrace()
    sys.settrace(call)  # type: ignore[arg-type]  # the type of a tracer cannot be spelled out
    try:
        yield counts
    finally:
        sys.settrace(before)


@pytest.mark.req("P12")
def test_a_turn_costs_the_same_however_many_nodes_there_are() -> None:
    """Most nodes wait on their branches for the refinery: what only waits must not be looked at in every turn."""
    costs = []
    for size in (200, 600):
        tasks = [node(f"t{place}") for place in range(size)]
        world = GraphWorld(dag_of([*tasks, node("r", [each.id for each in tasks], refinery=True)]))
        with _counted_lines() as counts:
            assert world.run().completed
        costs.append(counts["lines"] / size)
    assert costs[1] < costs[0] * 1.15
