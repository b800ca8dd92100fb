"""A worker: takes runs from the queues, runs their bodies, and stops those that it may not continue.

`DatabaseWatch` polls the database, delivers to bodies what they wait for, and stops bodies that were cancelled or taken
over.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import ParamSpec, TypeVar

from fairwitness.engine.base import Body, EngineError, Json, RunOutcome
from fairwitness.engine.database import EngineDatabase, recovery_lock
from fairwitness.engine.dbos_flow import DbosFlow
from fairwitness.engine.dbos_library import DbosWorker
from fairwitness.engine.gates import NO_ANSWER
from fairwitness.engine.json_values import Encoded, RecordedError, encode, tellable
from fairwitness.engine.leases import HEARTBEAT_S, Fenced, LeaseKeeper, SilenceWatch
from fairwitness.engine.running_body import RunningBody
from fairwitness.errors import DatabaseAway, FairWitnessError, NotReady, is_machine_fault
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.kit.killpoints import killpoint

_LOOK_S = 0.1
_ADRIFT_S = 15.0
"""How long the library may take between claiming a run and starting it."""


class DatabaseWatch:
    """Watches the database for the bodies of one worker, and for what its library does for which run."""

    def __init__(
        self,
        database: EngineDatabase,
        executor: str,
        bodies: Mapping[str, RunningBody],
        tasks: Mapping[asyncio.Task[object], str],
    ) -> None:
        self._database = database
        self._executor = executor
        self._bodies = bodies
        self._tasks = tasks
        self._wakeup = asyncio.Event()
        self._silence = SilenceWatch()
        self._adrift: dict[str, float] = {}
        """Runs of this worker that nothing works on, and since when."""

    def look(self) -> None:
        """Poll now."""
        self._wakeup.set()

    async def go_on(self) -> None:
        """Poll until cancelled."""
        loop = asyncio.get_running_loop()
        beaten = loop.time()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):  # wait_for may swallow the cancellation that ends this
                    await self._wakeup.wait()
            self._wakeup.clear()
            with contextlib.suppress(FairWitnessError):  # database unusable; the next poll may succeed
                if loop.time() - beaten >= HEARTBEAT_S:
                    beaten = loop.time()
                    if self._bodies:
                        # Sent from this event loop and not from a thread, so that the heartbeat stops if a body blocks
                        # the loop.
                        await self._database.call(self._database.bodies.beat, self._executor)
                        killpoint("engine.body.beat")
                    await self.silent()
                    await self.tidy(beaten)
                if self._bodies:
                    await self._look_once()

    async def silent(self) -> dict[str, float]:
        """Return how long each run that some worker has taken has been without a heartbeat, as observed here."""
        return self._silence.look(await self._database.call(self._database.bodies.marks))

    async def tidy(self, now: float) -> None:
        """Queue runs of this worker again that nothing works on.

        The library could not start them or could not write their result, or their bodies were stopped while the server
        was unreachable.
        """
        taken = await self._database.call(self._database.bodies.taken, self._executor)
        at_work = {*self._tasks.values(), *self._bodies}
        self._adrift = {run_id: self._adrift.get(run_id, now) for run_id in taken - at_work}
        for run_id, since in self._adrift.items():
            if now - since >= _ADRIFT_S:
                await self._database.call(self._database.leases.give_back, run_id, self._executor)

    async def _look_once(self) -> None:
        # A copy: bodies that start during the poll are not in what we read.
        bodies = dict(self._bodies)
        kept = await self._database.call(self._database.bodies.kept, self._executor)
        for run_id, running in bodies.items():
            if run_id not in kept:
                running.stop()
        waiting = [run_id for run_id, running in bodies.items() if running.gates]
        for run_id, gate, answer in await self._database.call(self._database.gates.answered, waiting):
            waited = bodies[run_id].gates.get(gate)
            if waited is None or waited.done():
                continue
            if answer is None:
                await self._database.call(self._database.gates.answer, run_id, gate, NO_ANSWER)
                self.look()  # whichever answer was first, the next poll reads it
            else:
                waited.set_result(answer)
        await self._look_at_children(bodies)

    async def _look_at_children(self, bodies: Mapping[str, RunningBody]) -> None:
        """Wake the bodies that wait for a child that has ended."""
        awaited = {news: children for running in bodies.values() for news, children in running.children.items()}
        wanted = frozenset().union(*awaited.values())
        if wanted:
            ended = await self._database.call(self._database.bodies.ended, wanted)
            for news, children in awaited.items():
                if not news.done() and not children.isdisjoint(ended):
                    news.set_result(children & ended)


_ENTER_S = 0.1
_LAST_WORDS_S = 1.0
"""How long to wait for the library to write the results of ended bodies."""

P = ParamSpec("P")
T = TypeVar("T")


class EngineWorker:
    """The worker of this process, from its first run to its last."""

    def __init__(self, database: EngineDatabase, flows: Mapping[str, Body], executor: str, cap: int) -> None:
        self._database = database
        database.cap = cap
        self._flows = dict(flows)
        self._executor = executor
        self._cap = cap
        self._bodies: dict[str, RunningBody] = {}
        self._children: dict[str, tuple[str, ...]] = {}
        """The children that run here, with their ancestors."""
        self._tasks: dict[asyncio.Task[object], str] = {}
        """The library's task for each run, until it has written the result."""
        self._entering: set[str] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._loop = asyncio.get_running_loop()
        self._watch = DatabaseWatch(database, executor, self._bodies, self._tasks)
        lock = recovery_lock(database.location)
        self._lease_keeper = LeaseKeeper(
            database.leases, executor, cap, lock, lost=self._lost, is_idle=lambda: self.is_idle
        )
        self.interruption: FairWitnessError | None = None
        """The fault of this machine that keeps the worker from going on."""
        self._worker: DbosWorker | None = None
        self._watching: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Join the workers, then take runs: a process without a lease never runs anything."""
        largest_cap = await self._database.call(self._lease_keeper.join)
        self._database.join(self._executor)
        try:
            self._worker = DbosWorker(self._database.store, self._executor, self._database.version)
            self._worker.launch(self._flows, self._start)
            # Only now, because a newer library migrates its tables when it is launched.
            await self._database.control.make_queues(largest_cap)
        except BaseException:
            await self._leave(hand_over=True)
            raise
        self._database.is_patient = True
        self._watching = asyncio.create_task(self._watch.go_on())
        self._watching.add_done_callback(lambda _: self._stop_all())  # no body runs without the watch

    async def end(self, grace_s: float) -> None:
        """Start no further steps, wait for running steps up to the grace period, and cancel the rest."""
        self._is_closing = True
        self._database.is_patient = False
        self._database.outage.end()
        if self._database.disk is not None:
            self._database.disk.end()
        for running in self._bodies.values():
            running.close()
        await self._ended(grace_s)
        self._stop_all()
        await self._ended(max(grace_s, _LAST_WORDS_S))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_WORDS_S)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        left = sorted(self._bodies)
        await self._leave(hand_over=not left)
        if self._watching is not None and not self._watching.cancelled():
            self._watching.result()  # raises what ended it early
        if left:
            raise EngineError(
                f"work of {', '.join(left)} does not end", next_step="end this process; its runs go on in another"
            )

    async def _ended(self, patience_s: float) -> None:
        """Wait until all bodies have ended, or the patience ends."""
        endings = [asyncio.create_task(running.ended.wait()) for running in self._bodies.values()]
        if endings:
            _, late = await asyncio.wait(endings, timeout=patience_s)
            for ending in late:
                ending.cancel()

    async def _leave(self, *, hand_over: bool) -> None:
        if self._worker is not None:
            await self._database.call(self._worker.destroy)
        with contextlib.suppress(DatabaseAway):  # its lease stays; its process is gone in a moment
            await self._database.call(self._lease_keeper.leave, hand_over=hand_over)

    @property
    def is_idle(self) -> bool:
        """Whether no body runs here."""
        return not self._bodies

    def interrupt(self, error: Exception) -> None:
        """Start nothing more because this machine is at fault; running steps end by themselves.

        A worker that was taken over is not at fault: its bodies are stopped, and it joins again.
        """
        if isinstance(error, Fenced):
            return
        if self.interruption is None:
            self.interruption = (
                error
                if isinstance(error, FairWitnessError)
                else NotReady(tellable(error), next_step="mend that, then resume")
            )
        for running in self._bodies.values():
            running.close()

    def go_on(self) -> None:
        """Continue after an interruption."""
        self.interruption = None

    def _lost(self) -> None:
        """Stop all bodies; called in the lease keeper's thread when other workers are about to take over."""
        self._loop.call_soon_threadsafe(self._stop_all)

    def _stop_all(self) -> None:
        for running in self._bodies.values():
            running.stop()

    def look(self) -> None:
        """Poll now for what bodies wait for."""
        self._watch.look()

    async def _start(self, run_id: str, flow: str, args: Json, above: tuple[str, ...]) -> Encoded:
        """Start one run that was taken from a queue."""
        task = asyncio.current_task()
        assert task is not None
        killpoint("engine.taken")
        self._tasks[task] = run_id
        task.add_done_callback(self._tasks.pop)
        task.add_done_callback(lambda _: killpoint("engine.outcome.written"))
        task.add_done_callback(lambda _: self.look())  # its result is written now, and its parent may run here
        generation = len(above)
        if not above:
            return await self._run(run_id, flow, args)
        # The queue has one cap for all workers, the largest.
        if not self._has_room(generation) and run_id not in self._children:
            await self._call(self._database.leases.give_back, run_id, self._executor)
            self._wake(generation)  # another child may have ended meanwhile
            raise asyncio.CancelledError(f"there is no room for {run_id}")
        self._children[run_id] = above
        try:
            await self._refuse_orphan(run_id, above)
            return await self._run(run_id, flow, args)
        finally:
            self._children.pop(run_id, None)
            task.add_done_callback(lambda _: self._wake(generation))  # until then the library counts it

    def _wake(self, generation: int) -> None:
        """Poll the queue now if a child could start, instead of at the library's next poll."""
        if self._worker is not None and not self._is_closing and self._has_room(generation):
            self._worker.wake(generation)

    def _has_room(self, generation: int) -> bool:
        return sum(len(above) == generation for above in self._children.values()) < self._cap

    async def _run(self, run_id: str, flow: str, args: Json) -> Encoded:
        """Run a body from its first step, or from where it stopped, to its end."""
        await self._enter(run_id)
        running = self._bodies[run_id] = RunningBody(run_id)
        if self._is_closing:  # closed while it waited to enter
            running.close()
        try:
            steps = await self._database.control.steps(run_id, whole=False)
            journal = {position: key for position, key, _ in steps}
            return await self._body(DbosFlow(self, running, journal), self._flows[flow], args)
        finally:
            leaving = asyncio.create_task(self._give_back(running))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _give_back(self, running: RunningBody) -> None:
        """Release the row of an ended body while the library writes its result; only the next body waits for this."""
        with contextlib.suppress(FairWitnessError):  # otherwise the row is removed with this worker
            await self._database.call(self._database.bodies.leave, running.run_id, self._executor)
        killpoint("engine.body.left")
        del self._bodies[running.run_id]
        running.ended.set()

    async def _enter(self, run_id: str) -> None:
        """Wait until an older body of the same run has ended, here or elsewhere."""
        while True:
            if self._is_closing:
                raise asyncio.CancelledError("the engine is closing")
            if self.interruption is not None:
                raise asyncio.CancelledError("this machine is at fault")  # tidied up later
            older = self._bodies.get(run_id)
            if older is not None:
                older.stop()
                await older.ended.wait()
            elif run_id not in self._entering and await self._claim(run_id):
                return
            else:
                await asyncio.sleep(_ENTER_S)

    async def _claim(self, run_id: str) -> bool:
        """Claim the row of a run; if it is started twice here, the second waits for the first."""
        self._entering.add(run_id)
        try:
            is_ours = await self._call(self._database.bodies.enter, run_id, self._executor)
        except Fenced:
            return False  # until this worker has joined again
        finally:
            self._entering.discard(run_id)
        if is_ours:
            killpoint("engine.body.entered")
        return is_ours

    async def _refuse_orphan(self, run_id: str, above: tuple[str, ...]) -> None:
        """Refuse a child that was submitted while its ancestors were being cancelled."""
        cancelled = await self._call(self._database.bodies.cancelled, above)
        if cancelled:
            await self._database.cancel(run_id)
            raise asyncio.CancelledError(f"{', '.join(sorted(cancelled))} was cancelled")

    async def _body(self, flow: DbosFlow, body: Body, args: Json) -> Encoded:
        try:
            value = Encoded(encode(await body(flow, args)))
            flow.finish()
            error: Exception | None = None
        except Exception as raised:  # noqa: BLE001  # whatever a body raises is the result of its run
            value, error = Encoded("null"), raised
        error = flow.misfit or error  # even if the body caught it
        if error is not None and is_machine_fault(error):
            self.interrupt(error)
            raise asyncio.CancelledError(f"run {flow.run_id} is interrupted") from error
        if error is not None:
            raise RecordedError(type(error).__name__, tellable(error)) from error
        return value

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a database call for a body; if the server does not answer, the run is interrupted and does not fail."""
        try:
            return await self._database.call(function, *args, **kwargs)
        except FairWitnessError as error:
            if self._is_closing:
                raise asyncio.CancelledError("the engine is closing") from None
            if is_machine_fault(error) and not isinstance(error, Fenced):
                self.interrupt(error)
                raise asyncio.CancelledError("the database does not answer") from error
            raise

    @property
    def disk(self) -> DiskWatch | None:
        """The disks for which steps wait, or None."""
        return self._database.disk

    async def record(self, key: str, work: Callable[[], Awaitable[Encoded]]) -> object:
        """Run the work as the next step of the calling body, or return its recorded result."""
        assert self._worker is not None
        return await self._worker.record(key, work)

    async def ask(self, run_id: str, gate: str, timeout_s: float | None) -> None:
        """Open a gate."""
        await self._call(self._database.gates.ask, run_id, gate, timeout_s)
        killpoint("engine.gate.asked")
        self.look()

    async def start_child(self, parent: str, child_id: str, flow: str, args: Json) -> None:
        """Queue a child, once."""
        above = (*self._children.get(parent, ()), parent)
        await self._database.submit(child_id, flow, args, above)
        self._wake(len(above))

    async def cancel_child(self, parent: str, child_id: str) -> None:
        """Cancel a child of the parent and all its descendants; refuse other runs."""
        child = await self._database.known(child_id)
        if child.parent != parent:
            raise EngineError(f"{child_id} is no child of {parent}", next_step="cancel children of this run only")
        await self._database.cancel(child_id)
        self.look()

    async def ended(self, run_ids: Collection[str]) -> frozenset[str]:
        """Return those of the runs that have ended."""
        return await self._call(self._database.bodies.ended, run_ids)

    async def outcomes(self, run_ids: Collection[str]) -> dict[str, RunOutcome]:
        """Return the results of those of the runs that have ended."""
        return await self._database.outcomes(run_ids)

    async def silent(self, run_ids: Collection[str]) -> dict[str, float]:
        """Return the seconds since the last heartbeat of those of the runs that a worker has."""
        wanted = frozenset(run_ids)
        return {run_id: seconds for run_id, seconds in (await self._watch.silent()).items() if run_id in wanted}
