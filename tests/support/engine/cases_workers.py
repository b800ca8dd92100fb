"""The contract of workers: they run what is of their version, and leave nothing behind when they close."""

import asyncio
import contextlib
import os
import threading
from collections import Counter
from pathlib import Path

from fairwitness.engine.base import ExecutionStatus, Flow, Json
from support.engine.case import (
    Case,
    Make,
    Trace,
    at_work,
    ended,
    expect,
    info,
    reached,
    steps_then_gate,
    until,
)


async def _another_version_is_named_and_not_run(make: Make) -> None:
    old, new = Trace(), Trace()
    flows = {"body": steps_then_gate(old, "one")}
    async with at_work(make(flows, version="1")) as engine:
        await engine.submit("old", "body", None)
        await reached(engine, "old", "one")
    async with at_work(make({"body": steps_then_gate(new, "one")}, version="2")) as engine:
        await engine.answer("old", "go", None)
        await engine.submit("new", "body", None)
        await reached(engine, "new", "one")
        await asyncio.sleep(0.3)
        expect(len(new.saw) == 1, "only the run of its own version is run")
        (stranded,) = [one for one in await engine.audit() if one.run_id == "old"]
        expect("version 1" in stranded.reason and bool(stranded.next_step), f"the audit says {stranded}")
        expect([one.run_id for one in await engine.audit()] == ["old"], "and names no other")
        expect((await info(engine, "old")).version == "1", "the run is still of its version")
    async with at_work(make(flows, version="1")) as engine:
        expect((await ended(engine, "old")).status is ExecutionStatus.DONE, "a worker of its version ends it")
        expect([one.run_id for one in await engine.audit()] == ["new"], "now the other one is stranded")
    expect(old.ran == Counter(one=1), f"what ran: {dict(old.ran)}")


async def _closing_leaves_nothing_and_loses_nothing(make: Make) -> None:
    happened: list[str] = []

    async def body(flow: Flow, args: Json) -> Json:
        async def work() -> Json:
            happened.append("begin")
            try:
                await asyncio.sleep(60 if args == "long" and happened.count("begin") == 1 else 0.3)
                happened.append("end")
            finally:
                await asyncio.sleep(0.01)
                happened.append("left")
            return "done"

        value = await flow.step("work", work)
        await flow.gate("go")
        return value

    async def once(run: str, args: str, *, grace_s: float) -> list[str]:
        happened.clear()
        engine = make({"body": body})
        await engine.open(worker=True)
        await engine.submit(run, "body", args)
        await until(lambda: "begin" in happened, "the step runs")
        await engine.close(grace_s=grace_s)
        return list(happened)

    tasks = asyncio.all_tasks()
    threads, processes = set(threading.enumerate()), _children_of_this_process()
    found = await once("short", "short", grace_s=5.0)
    expect(found == ["begin", "end", "left"], f"a step that can end in time: {found}")
    found = await once("long", "long", grace_s=0.2)
    expect(found == ["begin", "left"], f"a step that cannot is cancelled and awaited: {found}")

    def left() -> list[str]:  # the loop's own helpers go with the loop
        return [t.name for t in set(threading.enumerate()) - threads if not t.name.startswith("asyncio_")]

    await until(lambda: not left(), f"no threads are left, of {left()}", within_s=2.0)
    expect(asyncio.all_tasks() == tasks, f"tasks are left: {asyncio.all_tasks() - tasks}")
    expect(_children_of_this_process() == processes, "processes are left")
    async with at_work(make({"body": body})) as engine:
        for run in ("short", "long"):
            await engine.answer(run, "go", None)
            outcome = await ended(engine, run)
            expect(
                (outcome.status, outcome.value) == (ExecutionStatus.DONE, "done"), f"{run} went on and ended {outcome}"
            )
    expect(happened.count("begin") == 2, f"the step that had ended ran again: {happened}")


def _children_of_this_process() -> set[str]:
    children: set[str] = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that ended meanwhile
            children |= set((task / "children").read_text().split())
    return children


CASES = (
    Case("another-version-is-named-and-not-run", _another_version_is_named_and_not_run),
    Case("closing-leaves-nothing-and-loses-nothing", _closing_leaves_nothing_and_loses_nothing),
)
