"""The body of forge: a plan is made, reviewed and sealed; its graph is carried out; what it lacks is added.

Where a run goes next is for a rule to say, from the run's events. Each move has a number in its key, so that whoever
kills it finds what was done and goes on after it.
"""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Protocol

from fairwitness.contracts.graph.orders import GraphEnd, GraphOptions
from fairwitness.dag.executor import carry_out
from fairwitness.dag.ports import GraphPorts
from fairwitness.engine.base import Body, Flow, Json
from fairwitness.rules.next_forge_move import Move, MoveKind

FLOW = "forge"


class ForgePorts(GraphPorts, Protocol):
    """What the body asks of the world beyond its graph."""

    async def next(self) -> Move:
        """What the run does next."""
        ...

    async def act(self, move: Move) -> None:
        """Makes a move that is neither waiting nor carrying out the graph; made again it changes nothing."""
        ...

    async def options(self) -> GraphOptions:
        """How the graph is to be carried out."""
        ...

    async def finish(self, end: GraphEnd | None) -> bool:
        """The run is over; False if its graph has grown since it ended, and it has to go on."""
        ...


def forge(runner_of: Callable[[str], ForgePorts]) -> Body:
    """The body, in the world that `desk_of` knows by a run's id."""

    async def body(flow: Flow, _args: Json) -> Json:
        runner = runner_of(flow.run_id)

        async def decide() -> Json:
            return dict((await runner.next())._asdict())

        async def execute() -> Json:
            return (await carry_out(flow, runner, flow.run_id, await runner.options())).plain()

        for turn in count(1):
            move = _move(await flow.step(f"decide#{turn}", decide))
            if move.kind is MoveKind.WAIT:
                assert move.gate is not None
                await flow.gate(move.gate)
            elif move.kind is MoveKind.EXECUTE:
                end = GraphEnd.model_validate(await flow.step(f"execute#{turn}", execute))
                if not end.requests and await flow.step(f"finish#{turn}", partial(_finish, runner, end)):
                    return end.plain()
            elif move.kind is MoveKind.END:
                await flow.step(f"finish#{turn}", partial(_finish, runner, None))
                return None
            else:
                await flow.step(f"act#{turn}", partial(_act, runner, move))
        raise AssertionError("counting ends never")

    return body


def _move(plain: Json) -> Move:
    assert isinstance(plain, dict)
    return Move(MoveKind(plain["kind"]), plain["gate"], plain["request"])


async def _act(runner: ForgePorts, move: Move) -> Json:
    await runner.act(move)
    return None


async def _finish(runner: ForgePorts, end: GraphEnd | None) -> Json:
    return await runner.finish(end)
