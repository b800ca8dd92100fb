"""The contract of children: waiting for them, missing them, ending them, and room for each generation."""

import asyncio
import math
import time
from collections import Counter

from fairwitness.engine.base import DEEPEST_GENERATION, EngineError, ExecutionStatus, Flow, Json
from support.engine.case import (
    Case,
    Make,
    Trace,
    at_work,
    ended,
    expect,
    info,
    keys,
    refused,
    until,
)

_SOON_S = 3.0
"""How long something that happens at once may take, on a busy machine."""


async def _gated(flow: Flow, args: Json) -> Json:
    """A child that waits until it is told to end."""
    said = await flow.gate("go")
    if said == "fail":
        raise ValueError("as it was told")
    return {"child": args, "said": said}


async def _wait_gives_all_that_have_ended_and_records_nothing(make: Make) -> None:
    told: list[list[str]] = []
    held = asyncio.Event()

    async def parent(flow: Flow, _args: Json) -> Json:
        ids = [f"{flow.run_id}/{number}" for number in range(3)]

        async def graph() -> Json:
            for child_id in ids:
                await flow.submit(child_id, "child", child_id)
            for time_s in (-1, math.nan, math.inf):
                await refused(flow.wait(ids, timeout_s=time_s), f"waiting for {time_s} s")
            began = time.monotonic()
            expect(await flow.wait(ids, timeout_s=0) == {}, "none has ended, and without time it is not waited for")
            expect(await flow.wait(ids, timeout_s=0.2) == {}, "none has ended yet")
            expect(await flow.wait([], timeout_s=0.2) == {}, "of none the time is waited out")
            expect(await flow.wait(["nobody"], timeout_s=0.2) == {}, "nor does one end that there is not")
            expect(time.monotonic() - began >= 0.55, "the time was not waited out")
            told.append([])
            found = await flow.wait(ids, timeout_s=60)
            told.append([f"{child_id} {outcome.status} {outcome.value}" for child_id, outcome in found.items()])
            await held.wait()
            found = await flow.wait(tuple(ids), timeout_s=60)
            told.append(sorted(f"{child_id} {outcome.status}" for child_id, outcome in found.items()))
            found = await flow.wait({ids[1]}, timeout_s=60)
            told.append([f"{child_id} {outcome.error}" for child_id, outcome in found.items()])
            return None

        await flow.step("graph", graph)
        outside = await flow.wait(ids[2:], timeout_s=60)
        return [child_id for child_id, outcome in outside.items() if outcome.status is ExecutionStatus.CANCELLED]

    async with at_work(make({"parent": parent, "child": _gated})) as engine:
        await engine.submit("p", "parent", None)
        await until(_told(engine, told, 1), "the children are waited for")
        expect(await engine.answer("p/1", "go", "fail") and await engine.answer("p/0", "go", 1), "they are told to end")
        expect((await ended(engine, "p/0")).status is ExecutionStatus.DONE, "the first is done")
        expect((await ended(engine, "p/1")).status is ExecutionStatus.FAILED, "the second failed")
        held.set()
        await until(_told(engine, told, 4), "the others are waited for", within_s=_SOON_S)
        await engine.cancel("p/2")
        outcome = await ended(engine, "p")
        expect(outcome.value == ["p/2"], f"outside of a step: {outcome}")
        expect(await keys(engine, "p") == ["graph"], "waiting is no step")
    first = ["p/0 done {'child': 'p/0', 'said': 1}", "p/1 failed None"]
    expect(bool(told[1]) and set(told[1]) <= set(first), f"who ended first: {told[1]}")
    expect(told[2] == ["p/0 done", "p/1 failed"], f"who has ended by then: {told[2]}")
    expect(told[3] == ["p/1 ValueError: as it was told"], f"how it ended: {told[3]}")


def _told(engine, told: list[list[str]], times: int):  # type: ignore[no-untyped-def]  # a condition to wait for
    async def holds() -> bool:
        outcome = await engine.outcome("p")
        expect(outcome is None or len(told) >= times, f"the parent ended {outcome}")
        return len(told) >= times

    return holds


async def _wait_is_cancelled_at_once(make: Make) -> None:
    left: list[str] = []

    async def parent(flow: Flow, args: Json) -> Json:
        await flow.submit(f"{flow.run_id}/child", "child", None)

        async def graph() -> Json:
            left.append("waits")
            try:
                await flow.wait([f"{flow.run_id}/child"], timeout_s=60)
            except asyncio.CancelledError:
                left.append("left")
                raise
            return None

        return await flow.step("graph", graph) if args == "in a step" else await graph()

    flows = {"parent": parent, "child": _gated}
    for number, where in enumerate(("in a step", "in the body")):
        run = f"p{number}"
        left.clear()
        engine = make(flows)
        await engine.open(worker=True)
        await engine.submit(run, "parent", where)
        await until(lambda: left == ["waits"], "the child is waited for")
        began = time.monotonic()
        await engine.close(grace_s=10.0)
        expect(time.monotonic() - began < _SOON_S, f"a close waited for what only waits, {where}")
        expect(left == ["waits", "left"], f"closed {where}: {left}")
        async with at_work(make(flows)) as engine:
            await until(lambda: left[2:] == ["waits"], "the run goes on where it was")
            await engine.cancel(run)
            await until(lambda: left[2:] == ["waits", "left"], f"cancelled {where}: {left}", within_s=_SOON_S)
            expect((await ended(engine, run)).status is ExecutionStatus.CANCELLED, "and so it ends")


async def _only_who_was_taken_and_lives_can_be_silent(make: Make) -> None:
    async def parent(flow: Flow, _args: Json) -> Json:
        ids = [f"{flow.run_id}/{number}" for number in range(3)]
        for child_id in ids:
            await flow.submit(child_id, "child", None)

        async def graph() -> Json:
            await flow.wait(ids[:1], timeout_s=60)
            while not (found := await flow.silent([*ids, "nobody"])):
                await flow.wait((), timeout_s=0.05)
            # which of the two that wait comes first is the queue's own affair: they may be of one millisecond
            expect(len(found) == 1 and set(found) < set(ids[1:]), f"silent are {found}")
            expect(all(0 <= s < _SOON_S for s in found.values()), f"one that has just begun is silent for {found} s")
            expect(await flow.silent([]) == {}, "nobody is not silent")
            return None

        return await flow.step("graph", graph)

    async with at_work(make({"parent": parent, "child": _gated}, cap=1)) as engine:
        await engine.submit("p", "parent", None)
        await until(_is(engine, "p/0", ExecutionStatus.RUNNING), "the first child runs")
        await engine.answer("p/0", "go", None)
        outcome = await ended(engine, "p")
        expect(outcome.status is ExecutionStatus.DONE, f"the parent ended {outcome}")


def _is(engine, run_id: str, status: ExecutionStatus):  # type: ignore[no-untyped-def]  # a condition to wait for
    async def holds() -> bool:
        return any(run.id == run_id and run.status is status for run in await engine.runs())

    return holds


async def _a_body_ends_its_own_children_and_no_others(make: Make) -> None:
    left: list[str] = []

    async def child(flow: Flow, args: Json) -> Json:
        await flow.submit(f"{flow.run_id}/below", "below", None)

        async def work() -> Json:
            try:
                await flow.wait([f"{flow.run_id}/below"], timeout_s=0.2 if args == "short" else 60)
            finally:
                left.append(flow.run_id)
            return "done"

        return await flow.step("work", work)

    async def below(flow: Flow, _args: Json) -> Json:
        return await flow.gate("never")

    async def parent(flow: Flow, _args: Json) -> Json:
        await flow.submit("p/short", "child", "short")
        await flow.submit("p/long", "child", "long")

        async def graph() -> Json:
            await flow.wait(["p/short"], timeout_s=60)
            while not await flow.silent(["p/long/below"]):
                await flow.wait((), timeout_s=0.05)
            for stranger in ("p", "other", "p/long/below", "nobody"):
                await refused(flow.cancel(stranger), f"the end of {stranger}, who is no child")
            for _ in range(2):
                await flow.cancel("p/long")
            await flow.cancel("p/short")
            ends = await flow.wait(["p/short", "p/long", "p/long/below"], timeout_s=0)
            return {child_id: outcome.status.value for child_id, outcome in ends.items()}

        return await flow.step("graph", graph)

    flows = {"parent": parent, "child": child, "below": below}
    async with at_work(make(flows)) as engine:
        await engine.submit("other", "below", None)
        await engine.submit("p", "parent", None)
        outcome = await ended(engine, "p")
        ends = {"p/short": "done", "p/long": "cancelled", "p/long/below": "cancelled"}
        expect(outcome.value == ends, f"how they ended: {outcome}")
        await until(lambda: sorted(left) == ["p/long", "p/short"], "what it was doing is cancelled", within_s=_SOON_S)
        parents = {run.id: run.parent for run in await engine.runs()}
        above = {"p": None, "other": None, "p/short": "p", "p/long": "p"}
        above |= {"p/short/below": "p/short", "p/long/below": "p/long"}
        expect(parents == above, f"who comes of whom: {parents}")
        expect((await info(engine, "other")).status is ExecutionStatus.RUNNING, "a stranger lives")
        expect(await keys(engine, "p") == ["graph"], "cancelling is no step")


async def _no_child_takes_the_room_of_those_it_waits_for(make: Make) -> None:
    trace = Trace()
    open_now: Counter[int] = Counter()

    async def family(flow: Flow, args: Json) -> Json:
        assert isinstance(args, int)
        generation = flow.run_id.count("/")

        async def graph() -> Json:
            open_now[generation] += 1
            trace.ran[f"most of {generation}"] = max(trace.ran[f"most of {generation}"], open_now[generation])
            ids = [f"{flow.run_id}/{number}" for number in range(2)]
            for child_id in ids if args else ():
                await flow.submit(child_id, "family", args - 1)
            left = set(ids if args else ())
            while left:
                left -= (await flow.wait(left, timeout_s=10)).keys()
            open_now[generation] -= 1
            return 1

        return await flow.step("graph", graph)

    async def endless(flow: Flow, args: Json) -> Json:
        child_id = f"{flow.run_id}/x"
        try:
            await flow.submit(child_id, "endless", None)
        except EngineError as error:
            return [flow.run_id.count("/"), str(error)]
        return (await flow.wait([child_id], timeout_s=60))[child_id].value

    async with at_work(make({"family": family, "endless": endless}, cap=1)) as engine:
        for run in ("p", "q"):
            await engine.submit(run, "family", 2)
        for run in ("p", "q"):
            expect((await ended(engine, run)).value == 1, f"{run} ended")
        most = [trace.ran[f"most of {generation}"] for generation in (1, 2)]
        expect(most == [1, 1], f"of each generation there ran {most} at once, and 1 may")
        await engine.submit("e", "endless", None)
        outcome = await ended(engine, "e")
        assert isinstance(outcome.value, list)
        expect(outcome.value[0] == DEEPEST_GENERATION, f"a child too deep: {outcome}")


CASES = (
    Case("wait-gives-all-that-have-ended", _wait_gives_all_that_have_ended_and_records_nothing),
    Case("wait-is-cancelled-at-once", _wait_is_cancelled_at_once),
    Case("only-who-was-taken-and-lives-can-be-silent", _only_who_was_taken_and_lives_can_be_silent),
    Case("a-body-ends-its-own-children-and-no-others", _a_body_ends_its_own_children_and_no_others),
    Case("no-child-takes-the-room-of-those-it-waits-for", _no_child_takes_the_room_of_those_it_waits_for),
)
