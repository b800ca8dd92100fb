"""The body of forge: a task graph run by a captain, workers and refineries.

For now it begins with a plan that stands; the captain who makes one comes before it.
"""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Protocol

from assay.contracts.graph.orders import GraphEnd, GraphOptions
from assay.dag.desk import Desk
from assay.dag.executor import carry_out
from assay.engine.base import Body, Flow, Json

FLOW = "forge"


class ForgeDesk(Desk, Protocol):
    """What the body asks of the world beyond its graph."""

    async def options(self) -> GraphOptions:
        """How the graph is to be carried out."""
        ...

    async def start(self) -> None:
        """The run executes from here on, for the first time or again."""
        ...

    async def finish(self, end: GraphEnd) -> bool:
        """The run is over; False if its graph has grown since it ended, and it has to go on."""
        ...


def forge(desk_of: Callable[[str], ForgeDesk]) -> Body:
    """The body, in the world that `desk_of` knows by a run's id."""

    async def body(flow: Flow, _args: Json) -> Json:
        desk = desk_of(flow.run_id)

        async def start() -> Json:
            await desk.start()
            return None

        async def execute() -> Json:
            return (await carry_out(flow, desk, flow.run_id, await desk.options())).plain()

        await flow.step("start", start)
        for turn in count(1):
            again = "" if turn == 1 else f"#{turn}"
            end = GraphEnd.model_validate(await flow.step(f"execute{again}", execute))
            if await flow.step(f"finish{again}", partial(_finish, desk, end)):
                return end.plain()
        raise AssertionError("counting ends never")

    return body


async def _finish(desk: ForgeDesk, end: GraphEnd) -> Json:
    return await desk.finish(end)
