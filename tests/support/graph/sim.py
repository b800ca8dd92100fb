"""A simulated world in which the real executor carries out a graph: seeded, in virtual time, with every fault there is.

Engine, repository and book are kept in memory and outlive each crash; the executor, the attempts and the merges are the
product's own. Thousands of runs take seconds, and the same seed gives the same run.
"""

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.forge.dag import Dag, DagOverlay, NodeState
from fairwitness.contracts.forge.events import ForgeRunCompleted, ForgeRunResumed, ForgeRunStarted, RunFailed
from fairwitness.contracts.forge.status import DagStatus
from fairwitness.contracts.graph.orders import GraphEnd, GraphOptions
from fairwitness.dag.executor import execute_graph, graph_flows
from fairwitness.engine.base import Flow, Json
from fairwitness.rules.schedule import DagOutcome, GraphProgress, dag_outcome
from support.graph.sim_desk import SimDesk
from support.graph.sim_engine import SimEngine, Takes
from support.graph.sim_faults import Blow, Climate, Fault, Told, Verdicts, Weather
from support.graph.sim_git import SimGit
from support.graph.sim_graphs import random_overlay
from support.graph.sim_ground import Ground, usual_times
from support.graph.sim_time import Timeline, rest
from support.graph.sim_watch import Watch

REQUESTS = 500
"""The first number of a request; what grows unasked has smaller ones."""
OPTIONS = GraphOptions(target="fairwitness/integration", stale_after_s=10.0)
RUNNING = "run"


class GraphWorld:
    """One run of one graph."""

    def __init__(
        self,
        dag: Dag,
        *,
        seed: int = 0,
        options: GraphOptions = OPTIONS,
        verdicts: Verdicts | None = None,
        climate: Climate | None = None,
        crashes: Mapping[int, Blow] | None = None,
        takes: Takes = usual_times,
        slots: int | None = None,
        most_turns: int | None = None,
    ) -> None:
        self.options = options
        self.climate = climate or Climate()
        self.rng = Random(seed)  # chance that can be repeated is what this is about
        self.end: GraphEnd | None = None
        timeline = Timeline(most_turns=most_turns or 20_000 + 2_000 * len(dag.nodes))
        weather = Weather(Random(seed + 1), self.climate, crashes)
        verdicts = verdicts or Told()
        self.git = SimGit()
        self.watch = Watch(options, self.git)
        self.engine = SimEngine(timeline, weather, verdicts, self.rng, slots=slots or options.cap + 1, takes=takes)
        self.ground = Ground(
            timeline, weather, verdicts, self.engine, self.git, self.watch, self.rng, takes, self.climate.budget
        )
        self.runner = SimDesk(self.ground, dag, max_attempts=options.max_attempts)
        self.engine.bodies = {**graph_flows(lambda _run_id: self.runner), RUNNING: self._whole_run}
        self.engine.on_submit = self.watch.submitted
        self._pair(dag)

    def run(self) -> GraphEnd:
        """Carries the graph out to its end; what must never happen is an error."""
        self._outside()
        self.engine.submit(self.runner.run_id, RUNNING, None)
        timeline = self.ground.timeline
        try:
            timeline.run(lambda: self.end is not None or bool(self.watch.broken))
        finally:
            timeline.clear()
        if self.end is not None:
            self.runner.compare()
            self.watch.ends(self.engine.under_way)
        if self.watch.broken:
            raise AssertionError("\n".join(self.watch.broken))
        assert self.end is not None
        return self.end

    def at(self, seconds: float, call: Callable[[], object]) -> None:
        """Something that somebody does from outside at a time."""
        self.ground.timeline.later(seconds, call)

    @property
    def merged(self) -> frozenset[str]:
        """The nodes that are merged."""
        return frozenset(name for name, seen in self.watch.nodes.items() if seen.state is NodeState.MERGED)

    def outcome(self) -> DagOutcome:
        """How the graph stands, by the plain rule over all of it."""
        run = self.runner.run
        status = DagStatus(runId=run.run_id, updatedAt=self.ground.moment(), nodes=run.nodes)
        return dag_outcome(self.runner.dag, status)

    async def _whole_run(self, flow: Flow, _args: Json) -> Json:
        """What a workflow does around the executor."""
        stopped = 0
        number = 0
        while self.end is None:
            number += 1
            end = GraphEnd.model_validate(await flow.step(f"carry-out-{number}", lambda: self._carried_out(flow)))
            if end.requests:
                await flow.step(f"answer-{number}", self._answered)
                continue
            stopped += end.reason is not None
            is_last = end.reason is None or stopped > self.climate.resumes

            async def close(end: GraphEnd = end, is_last: bool = is_last) -> Json:
                return await self._closed(end, is_last)

            if await flow.step(f"close-{number}", close):
                self.end = end
        return None

    async def _carried_out(self, flow: Flow) -> Json:
        if not self.runner.is_begun:
            self.runner.append((ForgeRunStarted(),))
        return (await execute_graph(flow, self.runner, self.runner.run_id, self.options)).plain()

    async def _answered(self) -> Json:
        """The captain answers every request: what he adds fits, or nothing comes of it."""
        await self.ground.weather.breath()
        for request in tuple(self.runner.run.requests):
            await rest(0.5)  # overlays are added in the order of their times
            if request in self.runner.run.requests:  # or somebody who was taken for dead has answered it
                overlay = self._drawn(int(request.removeprefix("cr-")), is_unfit=self.rng.random() < 0.3)
                if self.runner.grow(overlay):
                    self.runner.reject(request)
            await self.ground.weather.breath()
        return None

    async def _closed(self, end: GraphEnd, is_last: bool) -> bool:
        """Writes the end down; False if it is none, since the graph has grown meanwhile or the run is resumed."""
        await self.ground.weather.breath()
        run = self.runner.run
        if not run.is_over:
            events: list[EventData] = [ForgeRunResumed()] if run.is_paused and end.completed else []
            if end.reason is not None:
                events += [RunFailed(reason=end.reason), *(() if is_last else (ForgeRunResumed(),))]
            elif self.outcome().end is GraphProgress.GOING:
                return False  # an overlay came after the executor had looked for the last time
            else:
                events.append(ForgeRunCompleted() if end.completed else RunFailed(reason="some nodes cannot be merged"))
            self.runner.append(events)
            if not is_last:
                await rest(5.0)  # until somebody has looked at it
            if self.ground.budget is not None:
                self.ground.budget = (self.climate.budget or 0) + 2
        await self.ground.weather.breath()
        return is_last

    def _pair(self, dag: Dag) -> None:
        """Draws the nodes that do not go together."""
        names = [node.id for node in dag.nodes]
        for fault, pairs in (
            (Fault.PAIR_CLASH, self.git.clashing),
            (Fault.PAIR_RED, self.git.reddening),
        ):
            for place, name in enumerate(names):
                if self.ground.verdicts.says(fault, name):
                    pairs.add(name, self.rng.choice(names[max(0, place - 20) : place + 20]))

    def _outside(self) -> None:
        """Draws what people will do, and when."""
        rng, climate = self.rng, self.climate
        for _ in range(climate.pauses):
            begin = rng.uniform(0, climate.within)
            self.at(begin, self.runner.pause)
            self.at(begin + rng.uniform(0, 10), self.runner.resume)
        for number in range(climate.people):
            self.at(rng.uniform(0, climate.within), partial(self._push, number))
        for _ in range(climate.rewinds):
            begin = rng.uniform(0, climate.within)
            self.at(begin, partial(self.git.rewind, rng.randint(1, 3)))
            self.at(begin + rng.uniform(0, 10), self.git.restore)
        for number in range(climate.overlays + climate.unfit):
            is_unfit = number >= climate.overlays
            self.at(rng.uniform(0, climate.within), partial(self._grow, number + 1, is_unfit=is_unfit))
        for number in range(climate.requests):
            self.at(rng.uniform(0, climate.within), partial(self.runner.ask, f"cr-{REQUESTS + number}"))
        for _ in range(climate.reopens):
            self.at(rng.uniform(0, climate.within), self.runner.reopen)

    def _push(self, number: int) -> None:
        if self.git.back:
            return
        person = f"person-{number}"
        names = list(self.watch.nodes)
        if self.ground.verdicts.says(Fault.PAIR_CLASH, person):
            self.git.clashing.add(person, self.rng.choice(names))
        if self.ground.verdicts.says(Fault.PAIR_RED, person):
            self.git.reddening.add(person, self.rng.choice(names))
        self.git.push(person)

    def _grow(self, number: int, *, is_unfit: bool) -> None:
        overlay = self._drawn(number, is_unfit=is_unfit)
        problems = self.runner.grow(overlay)
        if is_unfit and not problems:
            self.watch.broken.append(f"{overlay.crId} was applied though it does not fit")

    def _drawn(self, number: int, *, is_unfit: bool) -> DagOverlay:
        return random_overlay(
            self.rng,
            self.runner.dag,
            number,
            self.ground.moment(),
            refineries=self.climate.refineries,
            unfit=is_unfit,
        )
