"""A worker at work: takes runs from the queues, gives each body its place, and stops those it may not go on with."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from assay.engine.base import Body, EngineError, Json, Outcome, RunStatus
from assay.engine.dbos_library import Worker
from assay.engine.flow import DbosFlow
from assay.engine.gates import NO_ANSWER
from assay.engine.json_values import Encoded, RecordedError, encode, tellable
from assay.engine.keeper import Keeper
from assay.engine.office import Office, recovery_lock
from assay.engine.place import Place
from assay.errors import AssayError

_LOOK_S = 0.1
_LAST_WORDS_S = 1.0
"""For what the library still writes of a body that ended."""


class Shift:
    """From the first run that a worker takes to its last."""

    def __init__(self, office: Office, flows: Mapping[str, Body], executor: str, cap: int) -> None:
        self._office = office
        self._flows = dict(flows)
        self._executor = executor
        self._cap = cap
        self._places: dict[str, Place] = {}
        self._children: set[str] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_closing = False
        self._loop = asyncio.get_running_loop()
        self._look = asyncio.Event()
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
        self._watching = asyncio.create_task(self._watch())
        self._watching.add_done_callback(lambda _: self._stop_all())  # bodies are never left without it

    async def end(self, grace_s: float) -> None:
        """No further step begins; steps that run may end in time, and what is left is cancelled."""
        self._is_closing = True
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
        self._look.set()

    async def _watch(self) -> None:
        """Brings gates their answers, and stops bodies whose place is no longer theirs."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):  # wait_for may swallow the cancellation that ends this
                    await self._look.wait()
            self._look.clear()
            if self._places:
                with contextlib.suppress(AssayError):  # a database that is busy or away; the next look may find it
                    await self._look_once()

    async def _look_once(self) -> None:
        # Those that begin while we look are not in what we read.
        places = dict(self._places)
        kept = await self._office.call(self._office.bodies.kept, self._executor)
        for run_id, place in places.items():
            if run_id not in kept:
                place.stop()
        waiting = [run_id for run_id, place in places.items() if place.gates]
        for run_id, gate, answer in await self._office.call(self._office.gates.told, waiting):
            waited = places[run_id].gates.get(gate)
            if waited is None or waited.done():
                continue
            if answer is None:
                await self._office.call(self._office.gates.answer, run_id, gate, NO_ANSWER)
                self.look()  # whoever was first, the next look finds what the gate was told
            else:
                waited.set_result(answer)

    async def _start(self, run_id: str, flow: str, args: Json, parent: str | None) -> Encoded:
        """One run that was taken from a queue."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if parent is None:
            return await self._run(run_id, flow, args)
        # The queue knows one cap for all workers, the largest.
        if len(self._children) >= self._cap and run_id not in self._children:
            await self._office.call(self._office.leases.give_back, run_id, self._executor)
            raise asyncio.CancelledError(f"there is no room for {run_id}")
        self._children.add(run_id)
        try:
            await self._refuse_orphan(run_id, parent)
            return await self._run(run_id, flow, args)
        finally:
            self._children.discard(run_id)

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
            del self._places[run_id]
            await asyncio.shield(self._office.call(self._office.bodies.leave, run_id, self._executor))
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
            elif await self._office.call(self._office.bodies.enter, run_id, self._executor):
                return
            else:
                await asyncio.sleep(_LOOK_S)

    async def _refuse_orphan(self, run_id: str, parent: str) -> None:
        """A child that was submitted while those it comes of were being cancelled does not begin."""
        above: str | None = parent
        while above is not None and (found := await self._office.control.find(above, whole=False)) is not None:
            if found.status is RunStatus.CANCELLED:
                await self._office.cancel(run_id)
                raise asyncio.CancelledError(f"run {above} was cancelled")
            above = found.parent

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

    async def record(self, key: str, work: Callable[[], Awaitable[Encoded]]) -> object:
        """The work as the next step of the body that calls."""
        assert self._worker is not None
        return await self._worker.record(key, work)

    async def ask(self, run_id: str, gate: str, timeout_s: float | None) -> None:
        """Opens a gate."""
        await self._office.call(self._office.gates.ask, run_id, gate, timeout_s)
        self.look()

    async def start_child(self, parent: str, child_id: str, flow: str, args: Json) -> None:
        """Queues a child, once."""
        await self._office.submit(child_id, flow, args, parent)

    async def outcome(self, run_id: str) -> Outcome | None:
        """How a run ended."""
        return await self._office.outcome(run_id)
