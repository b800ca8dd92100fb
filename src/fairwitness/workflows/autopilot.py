"""The bodies of autopilot: a run over the phases of a roadmap, and a pass over the steps of a phase.

Neither knows a phase or step by name: rules choose the next move from the ledger. Each move has a number in its key, so
after a crash the run resumes after the last completed move.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Protocol

from fairwitness.contracts.autopilot.passes import PassMove, PassMoveKind, PhasePass
from fairwitness.contracts.graph.orders import GraphEnd, GraphOptions
from fairwitness.dag.executor import execute_graph
from fairwitness.dag.ports import GraphPorts
from fairwitness.engine.base import Body, ExecutionStatus, Flow, Json
from fairwitness.errors import NotReady
from fairwitness.rules.next_run_move import RunMove, RunMoveKind

PASS_FLOW = "autopilot.pass"
_LOOK_S = 30.0
"""How long a run waits for its pass before it checks that a worker still runs it."""
_SILENT_S = 60.0

RunGraph = Callable[[int], Awaitable[GraphEnd]]
"""Executes the graph with this number."""


class AutopilotPorts(Protocol):
    """What the bodies of autopilot need."""

    async def next(self) -> RunMove:
        """Return the next move of the run."""
        ...

    async def act(self, move: RunMove, run_graph: RunGraph) -> None:
        """Make a move that is neither a pass nor waiting. A repeated call changes nothing."""
        ...

    async def finish(self) -> None:
        """Remove what only a running run needs."""
        ...

    async def asked(self, phase: str, number: int) -> PhasePass:
        """Return a pass as it was started."""
        ...

    async def next_in(self, asked: PhasePass) -> PassMove:
        """Return the next move of a pass."""
        ...

    async def step(self, asked: PhasePass, move: PassMove, run_graph: RunGraph) -> None:
        """Run a step of a pass. A repeated call changes nothing."""
        ...

    async def give_back(self, asked: PhasePass, move: PassMove) -> None:
        """Record what a pass returns."""
        ...

    def graph(self, number: int) -> GraphPorts:
        """Return the ports of one of the run's graphs."""
        ...

    async def options(self, number: int) -> GraphOptions:
        """Return the options with which the graph is executed."""
        ...


def autopilot(runner_of: Callable[[str], AutopilotPorts]) -> Body:
    """Return the body of a run; `runner_of` returns the ports of a run by its id."""

    async def body(flow: Flow, _args: Json) -> Json:
        runner = runner_of(flow.run_id)
        run_graph = _graph_executor(flow, runner, flow.run_id)

        async def decide() -> Json:
            return (await runner.next()).plain()

        for turn in count(1):
            move = RunMove.model_validate(await flow.step(f"decide#{turn}", decide))
            if move.kind is RunMoveKind.WAIT:
                assert move.gate is not None
                await flow.gate(move.gate)
            elif move.kind is RunMoveKind.PASS:
                await flow.step(f"pass#{turn}", partial(_passed, flow, move, turn))
            elif move.kind is RunMoveKind.END:
                await flow.step(f"finish#{turn}", partial(_finish, runner))
                return None
            else:
                await flow.step(f"act#{turn}", partial(_act, runner, move, run_graph))
        raise AssertionError("counting ends never")

    return body


def autopilot_pass(runner_of: Callable[[str], AutopilotPorts]) -> Body:
    """Return the body of a pass; its arguments name the run, the phase and the pass."""

    async def body(flow: Flow, args: Json) -> Json:
        assert isinstance(args, dict)
        run_id = str(args["run_id"])
        runner = runner_of(run_id)
        asked = await runner.asked(str(args["phase"]), int(args["number"]))
        run_graph = _graph_executor(flow, runner, run_id)

        async def decide() -> Json:
            return (await runner.next_in(asked)).plain()

        for turn in count(1):
            move = PassMove.model_validate(await flow.step(f"decide#{turn}", decide))
            if move.kind is PassMoveKind.RETURN:
                await flow.step(f"return#{turn}", partial(_give_back, runner, asked, move))
                return None
            await flow.step(f"{move.step}#{turn}", partial(_step, runner, asked, move, run_graph))
        raise AssertionError("counting ends never")

    return body


def _graph_executor(flow: Flow, runner: AutopilotPorts, run_id: str) -> RunGraph:
    async def run_graph(number: int) -> GraphEnd:
        return await execute_graph(flow, runner.graph(number), run_id, await runner.options(number))

    return run_graph


async def _passed(flow: Flow, move: RunMove, turn: int) -> Json:
    """Wait for a pass. One that failed, or that a halted run left, is started again under another id."""
    args: Json = {"run_id": flow.run_id, "phase": move.phase, "number": move.number}
    for life in count(1):
        child = f"{flow.run_id}/p/{move.phase}-{move.number}/{turn}.{life}"
        before = await flow.outcome(child)
        if before is not None and before.status is not ExecutionStatus.DONE:
            continue
        await flow.submit(child, PASS_FLOW, args)
        while not (ended := await flow.wait([child], timeout_s=_LOOK_S)):
            if (await flow.silent([child])).get(child, 0.0) > _SILENT_S:
                await flow.cancel(child)
        if ended[child].status is ExecutionStatus.CANCELLED:
            continue  # its worker was lost: the next pass adopts what it left
        if ended[child].status is ExecutionStatus.FAILED:
            raise NotReady(
                f"phase {move.phase} cannot go on: {ended[child].error}",
                next_step=f"mend that, then: fairwitness resume {flow.run_id}",
            )
        return None
    raise AssertionError("counting ends never")


async def _act(runner: AutopilotPorts, move: RunMove, run_graph: RunGraph) -> Json:
    await runner.act(move, run_graph)
    return None


async def _finish(runner: AutopilotPorts) -> Json:
    await runner.finish()
    return None


async def _step(runner: AutopilotPorts, asked: PhasePass, move: PassMove, run_graph: RunGraph) -> Json:
    await runner.step(asked, move, run_graph)
    return None


async def _give_back(runner: AutopilotPorts, asked: PhasePass, move: PassMove) -> Json:
    await runner.give_back(asked, move)
    return None
