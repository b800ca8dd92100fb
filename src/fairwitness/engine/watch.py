"""A worker's look at the database: brings bodies what they wait for, and stops those that may not go on."""

import asyncio
import contextlib
from collections.abc import Mapping

from fairwitness.engine.gates import NO_ANSWER
from fairwitness.engine.leases import HEARTBEAT_S
from fairwitness.engine.office import Office
from fairwitness.engine.place import Place
from fairwitness.errors import FairWitnessError
from fairwitness.kit.killpoints import killpoint

_LOOK_S = 0.1
_ADRIFT_S = 15.0
"""So long the library may take between claiming a run and beginning it."""


class Watch:
    """Over the places of one worker, and over what its library is doing for which run."""

    def __init__(
        self, office: Office, executor: str, places: Mapping[str, Place], tasks: Mapping[asyncio.Task[object], str]
    ) -> None:
        self._office = office
        self._executor = executor
        self._places = places
        self._tasks = tasks
        self._bell = asyncio.Event()
        self._adrift: dict[str, float] = {}
        """Runs that are this worker's, but that nothing is done for; since when."""

    def look(self) -> None:
        """Looks at once."""
        self._bell.set()

    async def go_on(self) -> None:
        """Looks until it is cancelled."""
        loop = asyncio.get_running_loop()
        beaten = loop.time()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):  # wait_for may swallow the cancellation that ends this
                    await self._bell.wait()
            self._bell.clear()
            with contextlib.suppress(FairWitnessError):  # a database that cannot be used; the next look may find it
                if loop.time() - beaten >= HEARTBEAT_S:
                    beaten = loop.time()
                    if self._places:
                        # From this loop and no thread of its own: a body that hangs it shall be missed.
                        await self._office.call(self._office.bodies.beat, self._executor)
                        killpoint("engine.body.beat")
                    await self.tidy(beaten)
                if self._places:
                    await self._look_once()

    async def tidy(self, now: float) -> None:
        """Queues runs again that are this worker's and that nothing is done for: the library could not begin them or
        could not write how they ended, or their bodies were stopped while the server was away."""
        taken = await self._office.call(self._office.bodies.taken, self._executor)
        at_work = {*self._tasks.values(), *self._places}
        self._adrift = {run_id: self._adrift.get(run_id, now) for run_id in taken - at_work}
        for run_id, since in self._adrift.items():
            if now - since >= _ADRIFT_S:
                await self._office.call(self._office.leases.give_back, run_id, self._executor)

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
        await self._look_at_children(places)

    async def _look_at_children(self, places: Mapping[str, Place]) -> None:
        """Wakes bodies of whose children one has ended."""
        awaited = {news: children for place in places.values() for news, children in place.children.items()}
        wanted = frozenset().union(*awaited.values())
        if wanted:
            ended = await self._office.call(self._office.bodies.ended, wanted)
            for news, children in awaited.items():
                if not news.done() and not children.isdisjoint(ended):
                    news.set_result(children & ended)
