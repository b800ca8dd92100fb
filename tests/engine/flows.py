"""Bodies for processes that are killed: whatever their steps do is in a log, and they die where they are told to."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from engine.grounds import held_until
from fairwitness.engine.base import Body, Flow, Json

MODULUS = 1_000_003


class Scene:
    """The log and the place to die at, as `<when> <run> <key>`."""

    def __init__(self, log: Path, kill: str) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._kill = kill
        self._release = held_until(log)

    def tells(self, what: str, run: str, key: str) -> None:
        """One line, whole even when many write; and death, if it is the time."""
        os.write(self._log, f"{what} {run} {key} {os.getpid()}\n".encode())
        if f"{what} {run} {key}" == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)

    def work(self, flow: Flow, key: str, value: Json, pause_s: float) -> Callable[[], Awaitable[Json]]:
        """The work of a step: it begins, takes its time (if that is negative: until it is released), and ends."""

        async def work() -> Json:
            self.tells("begin", flow.run_id, key)
            try:
                while pause_s < 0 and not self._release.exists():  # noqa: ASYNC110 -- another process releases it
                    await asyncio.sleep(0.01)
                await asyncio.sleep(max(pause_s, 0))
            except asyncio.CancelledError:
                self.tells("left", flow.run_id, key)
                raise
            self.tells("end", flow.run_id, key)
            return value

        return work


def chain_value(steps: int) -> int:
    """What a chain must give: every step counts, and so does their order."""
    total = 1
    for number in range(steps):
        total = (total * 31 + number) % MODULUS
    return total


def flows(scene: Scene) -> dict[str, Body]:
    """Every body by its name."""

    async def chain(flow: Flow, args: Any) -> Json:
        total: Any = 1
        for number in range(args["steps"]):
            key = f"s{number}"
            value = (total * 31 + number) % MODULUS
            total = await flow.step(key, scene.work(flow, key, value, args["pause_s"]))
            scene.tells("after", flow.run_id, key)
        return total  # type: ignore[no-any-return]  # a number

    async def gated(flow: Flow, args: Any) -> Json:
        await flow.step("before", scene.work(flow, "before", None, 0))
        scene.tells("asks", flow.run_id, "go")
        said = await flow.gate("go")
        return await flow.step("last", scene.work(flow, "last", said, 0))

    async def parent(flow: Flow, args: Any) -> Json:
        ids = [f"{flow.run_id}/{number}" for number in range(args["children"])]

        async def graph() -> Json:
            for child_id in ids:
                await flow.submit(child_id, "chain", args["child"])
            values = []
            for child_id in ids:
                while (outcome := await flow.outcome(child_id)) is None:  # noqa: ASYNC110 -- it is looked up
                    await asyncio.sleep(0.02)
                values.append(outcome.value)
            return values

        await flow.step("plan", scene.work(flow, "plan", None, 0))
        values = await flow.step("graph", graph)
        return await flow.step("report", scene.work(flow, "report", values, 0))

    async def hangs(flow: Flow, args: Any) -> Json:
        async def work() -> Json:
            scene.tells("begin", flow.run_id, "hang")
            time.sleep(args)  # noqa: ASYNC251 -- that is the point: nothing else happens on this loop
            return None

        return await flow.step("hang", work)

    async def watches(flow: Flow, args: Any) -> Json:
        """Submits a child that hangs once the room here is taken; gives how long both were silent once it is missed."""

        async def graph() -> Json:
            await flow.submit(f"{flow.run_id}/well", "chain", {"steps": 1, "pause_s": -1})
            while not await flow.silent([f"{flow.run_id}/well"]):
                await flow.wait((), timeout_s=0.05)
            await flow.submit(f"{flow.run_id}/hung", "hangs", 60)
            while True:
                silent = await flow.silent([f"{flow.run_id}/well", f"{flow.run_id}/hung"])
                if silent.get(f"{flow.run_id}/hung", 0) > args["missed_s"]:
                    return dict(silent)
                await flow.wait((), timeout_s=0.1)

        return await flow.step("graph", graph)

    async def patient(flow: Flow, args: Any) -> Json:
        """Waits for a child as the executor of a graph does; gives how often the child was taken for lost."""
        child = f"{flow.run_id}/child"

        async def graph() -> Json:
            lost = 0
            await flow.submit(child, "chain", {"steps": 1, "pause_s": -1})
            while not (ended := await flow.wait([child], timeout_s=0.2)):
                lost += (await flow.silent([child])).get(child, 0.0) > args["stale_s"]
            return {"lost": lost, "value": ended[child].value}

        return await flow.step("graph", graph)

    return {"patient": patient, "chain": chain, "gated": gated, "parent": parent, "hangs": hangs, "watches": watches}
