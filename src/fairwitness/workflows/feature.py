"""The body of the feature pipeline: look at the facts, decide, do it; until the run finishes or halts.

It knows no step by name: where a run goes next is for the rules to say, and what is done there for the steps. Whoever
kills it finds the same decisions in the ledger and goes on after the last one.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Protocol

from fairwitness.contracts.graph.orders import GraphEnd, GraphOptions
from fairwitness.dag.executor import carry_out
from fairwitness.dag.ports import GraphPorts
from fairwitness.engine.base import Body, Flow, Json

FLOW = "feature"


class Next(Protocol):
    """A decision, as far as the body has to know it."""

    @property
    def number(self) -> int:
        """Its number in the run."""
        ...

    @property
    def ends(self) -> bool:
        """Whether the run is over."""
        ...

    @property
    def waits_at(self) -> str | None:
        """The question whose answer it waits for."""
        ...


class FeaturePorts(Protocol):
    """What the body asks of the world."""

    async def decide(self, after: int) -> Next:
        """The decision after the one of this number; the same when it is asked again."""
        ...

    async def act(self, number: int, carry: Callable[[int], Awaitable[GraphEnd]]) -> None:
        """Does what the decision of this number says."""
        ...

    async def finish(self) -> None:
        """Leaves nothing behind that only a run at work needs."""
        ...

    def graph(self, number: int) -> GraphPorts:
        """The desk of one of the run's graphs."""
        ...

    async def options(self, number: int) -> GraphOptions:
        """How it is to be carried out."""
        ...


def feature(runner_of: Callable[[str], FeaturePorts]) -> Body:
    """The body, in the world that `desk_of` knows by a run's id."""

    async def body(flow: Flow, _args: Json) -> Json:
        runner = runner_of(flow.run_id)

        async def carry(number: int) -> GraphEnd:
            return await carry_out(flow, runner.graph(number), flow.run_id, await runner.options(number))

        async def decide(after: int) -> Json:
            taken = await runner.decide(after)
            return {"number": taken.number, "ends": taken.ends, "waits_at": taken.waits_at}

        async def act(number: int) -> Json:
            await runner.act(number, carry)
            return None

        async def finish() -> Json:
            await runner.finish()
            return None

        number = 0
        for turn in count(1):
            taken = await flow.step(f"decide#{turn}", partial(decide, number))
            assert isinstance(taken, dict)
            number = int(taken["number"])
            if taken["ends"]:
                await flow.step(f"finish#{turn}", finish)
                return number
            if taken["waits_at"] is not None:
                await flow.gate(str(taken["waits_at"]))
            else:
                await flow.step(f"act#{turn}", partial(act, number))
        raise AssertionError("counting ends never")

    return body
