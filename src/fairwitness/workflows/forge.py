"""The body of forge: make, review and seal a plan, execute its graph, and add what it lacks.

A rule chooses the next move from the run's events. Each move has a number in its key, so after a crash the run resumes
after the last completed move.
"""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Protocol

from fairwitness.contracts.graph.orders import GraphEnd, GraphOptions
from fairwitness.dag.executor import execute_graph
from fairwitness.dag.ports import GraphPorts
from fairwitness.engine.base import Body, Flow, Json
from fairwitness.rules.next_forge_move import ForgeMove, ForgeMoveKind


class ForgePorts(GraphPorts, Protocol):
    """What the body of forge needs besides its graph."""

    async def next(self) -> ForgeMove:
        """Return the next move of the run."""
        ...

    async def act(self, move: ForgeMove) -> None:
        """Make a move that neither waits nor executes the graph. A repeated call changes nothing."""
        ...

    async def options(self) -> GraphOptions:
        """Return the options with which the graph is executed."""
        ...

    async def finish(self, end: GraphEnd | None) -> bool:
        """End the run. Return False if its graph has grown since it ended, so that the run must go on."""
        ...


def forge(runner_of: Callable[[str], ForgePorts]) -> Body:
    """Return the body of a run; `runner_of` returns the ports of a run by its id."""

    async def body(flow: Flow, _args: Json) -> Json:
        runner = runner_of(flow.run_id)

        async def decide() -> Json:
            return dict((await runner.next())._asdict())

        async def execute() -> Json:
            return (await execute_graph(flow, runner, flow.run_id, await runner.options())).plain()

        for turn in count(1):
            move = _move(await flow.step(f"decide#{turn}", decide))
            if move.kind is ForgeMoveKind.WAIT:
                assert move.gate is not None
                await flow.gate(move.gate)
            elif move.kind is ForgeMoveKind.EXECUTE:
                end = GraphEnd.model_validate(await flow.step(f"execute#{turn}", execute))
                if not end.requests and await flow.step(f"finish#{turn}", partial(_finish, runner, end)):
                    return end.plain()
            elif move.kind is ForgeMoveKind.END:
                await flow.step(f"finish#{turn}", partial(_finish, runner, None))
                return None
            else:
                await flow.step(f"act#{turn}", partial(_act, runner, move))
        raise AssertionError("counting ends never")

    return body


def _move(plain: Json) -> ForgeMove:
    assert isinstance(plain, dict)
    return ForgeMove(ForgeMoveKind(plain["kind"]), plain["gate"], plain["request"])


async def _act(runner: ForgePorts, move: ForgeMove) -> Json:
    await runner.act(move)
    return None


async def _finish(runner: ForgePorts, end: GraphEnd | None) -> Json:
    return await runner.finish(end)
