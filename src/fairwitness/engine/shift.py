"""A worker at work: takes runs from the queues, gives each body its place, and stops those it may not go on with."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import ParamSpec, TypeVar

from fairwitness.engine.base import Body, EngineError, Json, Outcome
from fairwitness.engine.dbos_library import Worker
from fairwitness.engine.flow import DbosFlow
from fairwitness.engine.json_values import Encoded, RecordedError, encode, tellable
from fairwitness.engine.keeper import Keeper
from fairwitness.engine.office import Office, recovery_lock
from fairwitness.engine.place import Place
from fairwitness.engine.watch import Watch
from fairwitness.errors import FairWitnessError
from fairwitness.kit.killpoints import killpoint

_ENTER_S = 0.1
_LAST_WORDS_S = 1.0
"""For what the library still writes of a body that ended."""

P = ParamSpec("P")
T = TypeVar("T")


class Shift:
    """From the first run that a worker takes to its last."""

    def __init__(self, office: Office, flows: Mapping[str, Body], executor: str, cap: int) -> None:
        self._office = office
        office.cap = cap
        self._flows = dict(flows)
        self._executor = executor
        self._cap = cap
        self._places: dict[str, Place] = {}
        self._children: dict[str, tuple[str, ...]] = {}
        """Those that run here, with the runs they come of."""
        self._tasks: dict[asyncio.Task[object], str] = {}
        """What the library does for each run, to the last word it writes of it."""
        self._entering: set[str] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._loop = asyncio.get_running_loop()
        self._watch = Watch(office, executor, self._places, self._tasks)
        self._keeper = Keeper(office.leases, executor, cap, recovery_lock(office.place), self._lost)
        self._worker: Worker | None = None
        self._watching: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Joins the workers first and takes runs then: nothing is ever run by a process without a lease."""
        largest_cap = await self._office.call(self._keeper.join)
        try:
            self._worker = Worker(self._office.store, self._executor, self._office.version)
            self._worker.launch(self._flows, self._start)
            # Only now: a newer library brings its tables up to date when it is launched.
            await self._office.control.make_queues(largest_cap)
        except BaseException:
            await self._leave(hand_over=True)
            raise
        self._office.is_patient = True
        self._watching = asyncio.create_task(self._watch.go_on())
        self._watching.add_done_callback(lambda _: self._stop_all())  # bodies are never left without it

    async def end(self, grace_s: float) -> None:
        """No further step begins; steps that run may end in time, and what is left is cancelled."""
        self._is_closing = True
        self._office.is_patient = False
        for place in self._places.values():
            place.close()
        await self._ended(grace_s)
        self._stop_all()
        await self._ended(max(grace_s, _LAST_WORDS_S))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_WORDS_S)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        left = sorted(self._places)
        await self._leave(hand_over=not left)
        if self._watching is not None and not self._watching.cancelled():
            self._watching.result()  # what ended it before its time
        if left:
            raise EngineError(
                f"work of {', '.join(left)} does not end", next_step="end this process; its runs go on in another"
            )

    async def _ended(self, patience_s: float) -> None:
        """Until every body ended, or patience did."""
        endings = [asyncio.create_task(place.ended.wait()) for place in self._places.values()]
        if endings:
            _, late = await asyncio.wait(endings, timeout=patience_s)
            for ending in late:
                ending.cancel()

    async def _leave(self, *, hand_over: bool) -> None:
        if self._worker is not None:
            await self._office.call(self._worker.destroy)
        await self._office.call(self._keeper.leave, hand_over=hand_over)

    def _lost(self) -> None:
        """Called by the keeper's thread when others are about to take over."""
        self._loop.call_soon_threadsafe(self._stop_all)

    def _stop_all(self) -> None:
        for place in self._places.values():
            place.stop()

    def look(self) -> None:
        """Looks at once at what bodies were told."""
        self._watch.look()

    async def _start(self, run_id: str, flow: str, args: Json, above: tuple[str, ...]) -> Encoded:
        """One run that was taken from a queue."""
        task = asyncio.current_task()
        assert task is not None
        killpoint("engine.taken")
        self._tasks[task] = run_id
        task.add_done_callback(self._tasks.pop)
        task.add_done_callback(lambda _: killpoint("engine.outcome.written"))
        task.add_done_callback(lambda _: self.look())  # how it ended is written now, and its parent may be here
        generation = len(above)
        if not above:
            return await self._run(run_id, flow, args)
        # The queue knows one cap for all workers, the largest.
        if not self._has_room(generation) and run_id not in self._children:
            await self._call(self._office.leases.give_back, run_id, self._executor)
            self._ring(generation)  # somebody may have ended meanwhile
            raise asyncio.CancelledError(f"there is no room for {run_id}")
        self._children[run_id] = above
        try:
            await self._refuse_orphan(run_id, above)
            return await self._run(run_id, flow, args)
        finally:
            self._children.pop(run_id, None)
            task.add_done_callback(lambda _: self._ring(generation))  # the library counts it until then

    def _ring(self, generation: int) -> None:
        """Does not wait for the library's next look where a child could begin now."""
        if self._worker is not None and not self._is_closing and self._has_room(generation):
            self._worker.ring(generation)

    def _has_room(self, generation: int) -> bool:
        return sum(len(above) == generation for above in self._children.values()) < self._cap

    async def _run(self, run_id: str, flow: str, args: Json) -> Encoded:
        """From its first step or from where it was to its end."""
        await self._enter(run_id)
        place = self._places[run_id] = Place(run_id)
        if self._is_closing:  # while it waited to enter
            place.close()
        try:
            steps = await self._office.control.steps(run_id, whole=False)
            journal = {position: key for position, key, _ in steps}
            return await self._body(DbosFlow(self, place, journal), self._flows[flow], args)
        finally:
            leaving = asyncio.create_task(self._give_back(place))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _give_back(self, place: Place) -> None:
        """The place of a body that has ended, while the library writes how: nobody waits for it but the next body."""
        with contextlib.suppress(FairWitnessError):  # one that cannot be given back goes with this worker
            await self._office.call(self._office.bodies.leave, place.run_id, self._executor)
        killpoint("engine.body.left")
        del self._places[place.run_id]
        place.ended.set()

    async def _enter(self, run_id: str) -> None:
        """Waits until an older body of the same run has ended, here or elsewhere."""
        while True:
            if self._is_closing:
                raise asyncio.CancelledError("the engine is closing")
            older = self._places.get(run_id)
            if older is not None:
                older.stop()
                await older.ended.wait()
            elif run_id not in self._entering and await self._claim(run_id):
                return
            else:
                await asyncio.sleep(_ENTER_S)

    async def _claim(self, run_id: str) -> bool:
        """The place of a run; of two who begin it here at once, the second waits for the first."""
        self._entering.add(run_id)
        try:
            is_ours = await self._call(self._office.bodies.enter, run_id, self._executor)
        finally:
            self._entering.discard(run_id)
        if is_ours:
            killpoint("engine.body.entered")
        return is_ours

    async def _refuse_orphan(self, run_id: str, above: tuple[str, ...]) -> None:
        """A child that was submitted while those it comes of were being cancelled does not begin."""
        cancelled = await self._call(self._office.bodies.cancelled, above)
        if cancelled:
            await self._office.cancel(run_id)
            raise asyncio.CancelledError(f"{', '.join(sorted(cancelled))} was cancelled")

    async def _body(self, flow: DbosFlow, body: Body, args: Json) -> Encoded:
        try:
            value = Encoded(encode(await body(flow, args)))
            flow.finish()
            error: Exception | None = None
        except Exception as raised:  # noqa: BLE001  # whatever a body raises is how its run ended
            value, error = Encoded("null"), raised
        error = flow.misfit or error  # also when the body caught it
        if error is not None:
            raise RecordedError(type(error).__name__, tellable(error)) from error
        return value

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """For a body. It waits for a server that is away; when it can wait no longer, that is no failure of the run."""
        try:
            return await self._office.call(function, *args, **kwargs)
        except FairWitnessError:
            if self._is_closing:
                raise asyncio.CancelledError("the engine is closing") from None
            raise

    async def record(self, key: str, work: Callable[[], Awaitable[Encoded]]) -> object:
        """The work as the next step of the body that calls."""
        assert self._worker is not None
        return await self._worker.record(key, work)

    async def ask(self, run_id: str, gate: str, timeout_s: float | None) -> None:
        """Opens a gate."""
        await self._call(self._office.gates.ask, run_id, gate, timeout_s)
        killpoint("engine.gate.asked")
        self.look()

    async def start_child(self, parent: str, child_id: str, flow: str, args: Json) -> None:
        """Queues a child, once."""
        above = (*self._children.get(parent, ()), parent)
        await self._office.submit(child_id, flow, args, above)
        self._ring(len(above))

    async def cancel_child(self, parent: str, child_id: str) -> None:
        """Ends a child and whatever came of it; nobody else's."""
        child = await self._office.known(child_id)
        if child.parent != parent:
            raise EngineError(f"{child_id} is no child of {parent}", next_step="cancel children of this run only")
        await self._office.cancel(child_id)
        self.look()

    async def ended(self, run_ids: Collection[str]) -> frozenset[str]:
        """Those of some runs that have ended."""
        return await self._call(self._office.bodies.ended, run_ids)

    async def outcomes(self, run_ids: Collection[str]) -> dict[str, Outcome]:
        """How those of some runs ended that have."""
        return await self._office.outcomes(run_ids)

    async def silent(self, run_ids: Collection[str]) -> dict[str, float]:
        """How long those of some runs that somebody has have given no sign of life."""
        return await self._call(self._office.bodies.silent, run_ids)
