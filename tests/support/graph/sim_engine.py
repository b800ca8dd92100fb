"""A simulated engine: flows with fixed ids and a journal of their steps, which outlive every process.

The step that was in flight is run again, what is recorded is not. A flow that was taken over goes on in its old process
until it asks the engine for anything: what its last step did to the world stands.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from random import Random

from fairwitness.engine.base import Body, ChangedOrder, EngineError, ExecutionStatus, Json, RunOutcome, StepError
from fairwitness.engine.json_values import decode, encode
from support.graph.sim_faults import Blow, Crash, Fault, Verdicts, Weather
from support.graph.sim_journal import Kept, Recorded, Trouble, outcome_of
from support.graph.sim_time import NEVER, Gone, Task, Timeline, rest

Takes = Callable[[str, Random], float]
"""How many seconds a step takes, by its name; `begin` is what passes before a flow is taken."""


class SimEngine:
    """The flows of one world."""

    def __init__(
        self, timeline: Timeline, weather: Weather, verdicts: Verdicts, rng: Random, *, slots: int, takes: Takes
    ) -> None:
        self.timeline, self.weather = timeline, weather
        self.flows: dict[str, Kept] = {}
        self.bodies: dict[str, Body] = {}
        self.on_submit: Callable[[Kept], None] = _nobody
        self._verdicts, self._rng, self._slots, self._takes = verdicts, rng, slots, takes
        self._queue: deque[Kept] = deque()
        self._open: dict[str, Kept] = {}
        self._taken: dict[str, Kept] = {}
        self._waiting: dict[Task, Collection[str]] = {}
        self._is_down = False
        timeline.on_gone = self._gone
        weather.freeze = self._freeze

    @property
    def under_way(self) -> tuple[Kept, ...]:
        """Everything that has been submitted and has not ended."""
        return tuple(self._open.values())

    def submit(self, id_: str, flow: str, args: Json, parent: str | None = None) -> None:
        """Starts a flow, once."""
        if id_ in self.flows:
            return
        if flow not in self.bodies:
            raise EngineError(f"there is no flow {flow}")
        kept = self.flows[id_] = self._open[id_] = Kept(id_, flow, encode(args), parent)
        self._queue.append(kept)
        self.on_submit(kept)
        self._take()

    def ended(self, ids: Collection[str]) -> dict[str, RunOutcome]:
        """How those of some flows ended that have."""
        found = ((id_, self.flows.get(id_)) for id_ in ids)
        return {id_: outcome_of(kept) for id_, kept in found if kept is not None and kept.ended}

    def silent(self, ids: Collection[str]) -> dict[str, float]:
        """How long the flows that somebody has taken have given no sign of life."""
        taken = (self._taken.get(id_) for id_ in ids)
        now = self.timeline.now
        return {
            kept.id: 0.0 if kept.silent_since is None else now - kept.silent_since for kept in taken if kept is not None
        }

    def cancel(self, id_: str) -> None:
        """Ends a flow; what it was doing may wake up later."""
        kept = self.flows.get(id_)
        if kept is None or kept.ended:
            return
        task = kept.task
        if kept in self._queue:
            self._queue.remove(kept)
        self._end(kept, ExecutionStatus.CANCELLED)
        if task is not None and self._verdicts.says(Fault.LATE, id_):
            self.timeline.wake(task, delay=self._rng.uniform(0.0, 20.0))
        elif task is not None:
            self.timeline.kill(task)

    async def hang(self) -> None:
        """The flow that asks gives no sign of life any more; if it ever wakes up again, it goes on from here."""
        assert self.timeline.current is not None
        kept = self.flows[self.timeline.current.owner]
        kept.silent_since = self.timeline.now
        await rest(NEVER)

    async def wait(self, ids: Collection[str], timeout_s: float) -> None:
        """Until one of these ends, or the time is up."""
        task = self.timeline.current
        assert task is not None
        self._waiting[task] = ids
        try:
            await rest(timeout_s)
        finally:
            del self._waiting[task]

    def _take(self) -> None:
        """Begins what waits, as far as there is room; runs themselves are not counted."""
        if self._is_down:
            return
        kept_waiting: list[Kept] = []
        busy = sum(kept.parent is not None for kept in self._taken.values())
        while self._queue:
            kept = self._queue.popleft()
            if kept.parent is not None and busy >= self._slots:
                kept_waiting.append(kept)
                continue
            busy += kept.parent is not None
            kept.life += 1
            kept.status, kept.silent_since = ExecutionStatus.RUNNING, None
            self._taken[kept.id] = kept
            delay = self._takes("begin", self._rng)
            kept.task = self.timeline.start(self._carry(kept, SimFlow(self, kept)), kept.id, delay=delay)
        self._queue.extend(kept_waiting)

    async def _carry(self, kept: Kept, flow: "SimFlow") -> None:
        status, value, error = ExecutionStatus.DONE, "null", ""
        try:
            value = encode(await self.bodies[kept.flow](flow, decode(kept.args)))
        except StepError as failure:
            status, error = ExecutionStatus.FAILED, f"{type(failure).__name__}: {failure}"
        if flow.is_ours():
            kept.value, kept.error = value, error
            self._end(kept, status)

    def _end(self, kept: Kept, status: ExecutionStatus) -> None:
        del self._open[kept.id]
        self._taken.pop(kept.id, None)
        kept.status, kept.task = status, None
        kept.life += 1
        for task, ids in self._waiting.items():
            if kept.id in ids:
                self.timeline.wake(task)
        self._take()

    def _gone(self, task: Task, gone: Gone) -> None:
        """A process died. What it had is begun anew, by itself or by another."""
        if not isinstance(gone, Crash) or not self._has(task):
            return
        if gone.blow is Blow.PROCESS:
            lost = list(self._taken.values())
        else:
            lost = [kept for kept in self._taken.values() if kept.task is task]
        for kept in lost:
            assert kept.task is not None
            self.timeline.kill(kept.task)
        self._take_over(lost, everything=gone.blow is Blow.PROCESS, delay=self._rng.uniform(0.1, 3.0))

    def _has(self, task: Task) -> bool:
        """Whether a task is the one that has its flow; another one dies alone."""
        return self.flows[task.owner].task is task

    def _freeze(self, delay: float) -> None:
        if self.timeline.current is None or not self._has(self.timeline.current):
            return
        lost = list(self._taken.values())
        for kept in lost:
            assert kept.task is not None
            if kept.task is not self.timeline.current and kept.silent_since is None:
                self.timeline.wake(kept.task, delay=delay)
        self._take_over(lost, everything=True, delay=self._rng.uniform(0.0, delay))

    def _take_over(self, lost: list[Kept], *, everything: bool, delay: float) -> None:
        for kept in lost:
            del self._taken[kept.id]
            kept.status, kept.task = ExecutionStatus.QUEUED, None
            kept.life += 1
        self._is_down = self._is_down or everything

        def again() -> None:
            self._is_down = self._is_down and not everything
            self._queue.extendleft(kept for kept in reversed(lost) if kept.status is ExecutionStatus.QUEUED)
            self._take()

        self.timeline.later(delay, again)


@dataclass(slots=True)
class SimFlow:
    """One body's place in its journal."""

    engine: SimEngine
    kept: Kept
    life: int = field(init=False)
    _asked: int = 0

    def __post_init__(self) -> None:
        self.life = self.kept.life

    @property
    def run_id(self) -> str:
        """The flow's own id."""
        return self.kept.id

    def is_ours(self) -> bool:
        """Whether nobody took it over, and it has not ended."""
        return self.life == self.kept.life

    async def step(
        self, key: str, work: Callable[[], Awaitable[Json]], *, timeout_s: float | None = None, attempts: int = 1
    ) -> Json:
        """Runs the work once and records what it gave. What it raises without being meant to ends the simulation."""
        await self._breath()
        place, self._asked = self._asked, self._asked + 1
        journal = self.kept.journal
        if place == len(journal):
            try:
                done = Recorded(key, encode(await work()))
            except Trouble as trouble:
                cause = trouble.__cause__ or trouble
                done = Recorded(key, str(cause), type(cause).__name__)
            await self._breath()
            journal.append(done)
            await self._breath()
        step = journal[place]
        if step.key != key:
            raise ChangedOrder(f"run {self.kept.id} asks for step {key} where {step.key} stands")
        if step.kind is not None:
            raise StepError(key, step.kind, step.text)
        return decode(step.text)

    async def gate(self, key: str, *, timeout_s: float | None = None) -> Json:
        """Nobody answers in this world."""
        raise NotImplementedError(key)

    async def submit(self, child_id: str, flow: str, args: Json) -> None:
        """Starts a child, once."""
        await self._breath()
        self.engine.submit(child_id, flow, args, self.kept.id)
        await self._breath()

    async def outcome(self, child_id: str) -> RunOutcome | None:
        """How a child ended."""
        return (await self.wait([child_id], timeout_s=0)).get(child_id)

    async def wait(self, child_ids: Collection[str], *, timeout_s: float) -> Mapping[str, RunOutcome]:
        """Until one of these children has ended or the time is up."""
        await self._breath()
        ended = self.engine.ended(child_ids)
        if not ended and timeout_s > 0:
            await self.engine.wait(child_ids, timeout_s)
            await self._breath()
            ended = self.engine.ended(child_ids)
        return ended

    async def silent(self, child_ids: Collection[str]) -> Mapping[str, float]:
        """How long children have given no sign of life."""
        await self._breath()
        return self.engine.silent(child_ids)

    async def cancel(self, child_id: str) -> None:
        """Ends a child."""
        await self._breath()
        self.engine.cancel(child_id)
        await self._breath()

    async def now(self, key: str) -> float:
        """The virtual time, recorded."""

        async def look() -> Json:
            return self.engine.timeline.now

        moment = await self.step(key, look)
        assert isinstance(moment, float)
        return moment

    async def _breath(self) -> None:
        """Before and after everything that is written: the process may die, or find that it lost the flow."""
        await self.engine.weather.breath()
        if not self.is_ours():
            raise Gone(self.kept.id)


def _nobody(_kept: Kept) -> None:
    return
