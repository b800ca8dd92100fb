"""The body of the feature pipeline: read the facts, decide, act, until the run finishes or halts.

It knows no step by name: rules choose the next step and the runner carries it out. After a crash the run resumes from
the last decision in the ledger.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Protocol

from fairwitness.contracts.graph.orders import GraphEnd, GraphOptions
from fairwitness.dag.executor import execute_graph
from fairwitness.dag.ports import GraphPorts
from fairwitness.engine.base import Body, Flow, Json


class Next(Protocol):
    """The part of a decision that the body reads."""

    @property
    def number(self) -> int:
        """The number of the decision in the run."""
        ...

    @property
    def ends(self) -> bool:
        """Whether the run is over."""
        ...

    @property
    def waits_at(self) -> str | None:
        """The gate whose answer the run waits for."""
        ...


class FeaturePorts(Protocol):
    """What the body of the feature pipeline needs."""

    async def decide(self, after: int) -> Next:
        """Return the decision after the one with this number. A repeated call returns the same decision."""
        ...

    async def act(self, number: int, run_graph: Callable[[int], Awaitable[GraphEnd]]) -> None:
        """Act on the decision with this number."""
        ...

    async def finish(self) -> None:
        """Remove what only a running run needs."""
        ...

    def graph(self, number: int) -> GraphPorts:
        """Return the ports of one of the run's graphs."""
        ...

    async def options(self, number: int) -> GraphOptions:
        """Return the options with which the graph is executed."""
        ...


def feature(runner_of: Callable[[str], FeaturePorts]) -> Body:
    """Return the body of a run; `runner_of` returns the ports of a run by its id."""

    async def body(flow: Flow, _args: Json) -> Json:
        runner = runner_of(flow.run_id)

        async def run_graph(number: int) -> GraphEnd:
            return await execute_graph(flow, runner.graph(number), flow.run_id, await runner.options(number))

        async def decide(after: int) -> Json:
            taken = await runner.decide(after)
            return {"number": taken.number, "ends": taken.ends, "waits_at": taken.waits_at}

        async def act(number: int) -> Json:
            await runner.act(number, run_graph)
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
