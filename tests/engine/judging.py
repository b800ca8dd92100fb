"""What came of runs whose workers were killed: asked of the engine by a client, and read from the log."""

import asyncio

from engine.flows import Scene, chain_value, flows
from engine.grounds import Ground
from fairwitness.engine.base import ExecutionStatus, RunOutcome


def outcome(ground: Ground, run: str) -> RunOutcome:
    """How a run ended, asked by a client."""

    async def ask() -> RunOutcome | None:
        engine = ground.make(flows(Scene(ground.log, "")))
        await engine.open(worker=False)
        try:
            return await engine.outcome(run)
        finally:
            await engine.close()

    found = asyncio.run(ask())
    assert found is not None
    return found


def assert_family_is_whole(ground: Ground, children: int, *, repeats: int) -> None:
    """Every child done with its value, and no more repeats than steps that were in flight."""
    value = chain_value(2)
    assert outcome(ground, "p") == RunOutcome(ExecutionStatus.DONE, [value] * children)
    steps = {(f"p/{number}", key) for number in range(children) for key in ("s0", "s1")}
    assert ground.count("end").keys() == {*steps, ("p", "plan"), ("p", "report")}
    begun = ground.count("begin")
    assert sum(begun.values()) - len(begun) <= repeats
    assert begun["p", "plan"] == begun["p", "report"] == 1
