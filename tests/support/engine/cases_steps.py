"""The contract of steps: once, in time, as often as allowed, and the same on replay as on the first run."""

import asyncio
from collections import Counter

from fairwitness.engine.base import ExecutionStatus, Flow, Json, StepError
from fairwitness.errors import DatabaseBusy, NotReady
from support.engine.case import (
    Case,
    Make,
    Trace,
    at_work,
    ended,
    expect,
    info,
    keys,
    reached,
)

_VALUES: dict[str, object] = {
    "tuple": (1, (2, 3)),
    "mapping": {"b": 1, "a": {"deep": [None, True, 1.5]}},
    "text": "ä\u2028 \"' \\ 🟢",
    "empty": {"": []},
    "whole": 2**53 + 1,
    "small": 5e-324,
    "nothing": None,
}


async def _replay_is_the_first_run(make: Make) -> None:
    trace = Trace()

    async def body(flow: Flow, args: Json) -> Json:
        trace.begins()
        trace.sees(args)
        for key, value in _VALUES.items():
            got = await flow.step(key, trace.work(key, value))
            trace.sees(got)
            if isinstance(got, list):
                got.append("spoiled by the body")  # what is recorded is not what the body holds
        trace.sees(await flow.now("moment"))
        trace.sees(flow.run_id)
        trace.sees(await flow.gate("go"))
        return ("end", (1,))  # a tuple is no JSON, but near enough

    async with at_work(make({"body": body})) as engine:
        await engine.submit("r", "body", {"given": (1, 2)})
        await reached(engine, "r", "moment")
    async with at_work(make({"body": body})) as engine:
        expect(await engine.answer("r", "go", (1, 2)), "the first answer counts")
        outcome = await ended(engine, "r")
        expect(outcome.status is ExecutionStatus.DONE, f"the run ended {outcome}")
        expect(outcome.value == ["end", [1]], f"its value is {outcome.value!r}")
        expect(await keys(engine, "r") == [*_VALUES, "moment", "go"], "the steps are recorded in order")
    expect(len(trace.saw) == 2, f"the body was gone through {len(trace.saw)} times")
    first, second = trace.saw
    expect(second[: len(first)] == first, f"the first run saw {first}, the replay {second}")
    expect(second[0] == "dict(str:'given': list(int:1, int:2))", f"the body was given {second[0]}")
    expect(second[-1] == "list(int:1, int:2)", f"the gate gave {second[-1]}")
    expect(trace.ran == Counter(_VALUES.keys()), f"the works ran {dict(trace.ran)}")


async def _a_failed_step_fails_the_same(make: Make) -> None:
    trace = Trace()
    errors = {
        "plain": ValueError("no"),
        "odd": KeyError("a\0b\ud800\n" + "x" * 100_000),
        "cut": asyncio.CancelledError(),
    }

    async def body(flow: Flow, _args: Json) -> Json:
        trace.begins()
        for key, error in errors.items():
            try:
                await flow.step(key, trace.work(key, error))
            except StepError as failed:
                trace.sees([failed.key, failed.kind, failed.message, str(failed)])
        await flow.gate("go")
        await flow.step("last", trace.work("last", OSError("for good")))
        return None

    async with at_work(make({"body": body})) as engine:
        await engine.submit("r", "body", None)
        await reached(engine, "r", "cut")
    async with at_work(make({"body": body})) as engine:
        await engine.answer("r", "go", None)
        outcome = await ended(engine, "r")
        expect(outcome.status is ExecutionStatus.FAILED, f"the run ended {outcome.status}")
        expect("step last failed: OSError: for good" in outcome.error, f"its error is {outcome.error!r}")
        expect((await info(engine, "r")).error == outcome.error, "runs and outcome tell the same error")
        failed = [step.key for step in await engine.steps("r") if step.failed]
        expect(failed == [*errors, "last"], f"recorded as failed: {failed}")
    first, second = trace.saw
    expect(len(first) == len(errors) and first == second, f"the first run saw {first}, the replay {second}"[:500])
    kinds = [line.split(", ")[1] for line in first]
    named = ["str:'ValueError'", "str:'KeyError'", "str:'CancelledError'"]
    expect(kinds == named, f"the kinds are {kinds}")
    expect(set(trace.ran.values()) == {1}, f"the works ran {dict(trace.ran)}")


async def _a_fault_of_the_machine_fails_nothing(make: Make) -> None:
    trace = Trace()
    is_well: list[bool] = []

    async def work() -> Json:
        trace.ran["work"] += 1
        if not is_well:
            raise NotReady("git is missing")
        return "well"

    async def body(flow: Flow, _args: Json) -> Json:
        trace.begins()
        await flow.step("before", trace.work("before", 1))
        try:
            return await flow.step("work", work, attempts=3)
        except StepError as failed:
            return f"the body was told: {failed}"

    async def bare(_flow: Flow, _args: Json) -> Json:
        if not is_well:
            raise DatabaseBusy("another process holds it")
        return "well"

    async with at_work(make({"body": body, "bare": bare})) as engine:
        await engine.submit("r", "body", None)
        await reached(engine, "r", "before")
        while not trace.ran["work"]:  # noqa: ASYNC110 -- the test's own list
            await asyncio.sleep(0.01)
        await engine.submit("bare", "bare", None)
        await asyncio.sleep(0.3)
        told = [await engine.outcome(run) for run in ("r", "bare")]
        expect(told == [None, None], f"the runs have ended: {told}")
        expect(await keys(engine, "r") == ["before"], f"recorded is {await keys(engine, 'r')}")
    is_well.append(True)
    async with at_work(make({"body": body, "bare": bare})) as engine:
        values = [(await ended(engine, run)).value for run in ("r", "bare")]
    expect(values == ["well", "well"], f"after the repair they ended with {values}")
    expect(trace.ran == Counter(before=1, work=2), f"the works ran {dict(trace.ran)}")


async def _attempts_are_counted(make: Make) -> None:
    trace = Trace()

    async def third_time() -> Json:
        trace.ran["lucky"] += 1
        if trace.ran["lucky"] < 3:
            raise OSError("not yet")
        return "at last"

    async def body(flow: Flow, _args: Json) -> Json:
        trace.begins()
        trace.sees(await flow.step("lucky", third_time, attempts=5))
        try:
            await flow.step("never", trace.work("never", OSError("no")), attempts=3)
        except StepError as failed:
            trace.sees(str(failed))
        await flow.gate("go")
        return None

    async with at_work(make({"body": body})) as engine:
        await engine.submit("r", "body", None)
        await reached(engine, "r", "never")
    async with at_work(make({"body": body})) as engine:
        await engine.answer("r", "go", None)
        outcome = await ended(engine, "r")
    expect(trace.saw[0] == ["str:'at last'", "str:'step never failed: OSError: no'"], f"the body saw {trace.saw[0]}")
    expect(trace.saw[0] == trace.saw[1], f"on replay it saw {trace.saw[1]}")
    expect(trace.ran == Counter(lucky=3, never=3), f"the works ran {dict(trace.ran)}")
    expect(outcome.status is ExecutionStatus.DONE, f"the run ended {outcome}")


async def _a_step_out_of_time_is_cancelled_and_awaited(make: Make) -> None:
    trace = Trace()
    happened: list[str] = []

    async def slow() -> Json:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)  # the work may take a moment to leave in order
            happened.append("cleaned")
        return None

    async def body(flow: Flow, _args: Json) -> Json:
        trace.begins()
        try:
            await flow.step("slow", slow, timeout_s=0.05, attempts=2)
        except StepError as failed:
            happened.append(failed.kind)
        trace.sees(await flow.step("quick", trace.work("quick", 1), timeout_s=60))
        return happened

    async with at_work(make({"body": body})) as engine:
        await engine.submit("r", "body", None)
        outcome = await ended(engine, "r")
    expect(outcome.value == ["cleaned", "cleaned", "TimeoutError"], f"what happened: {outcome}")


async def _steps_side_by_side_keep_their_places(make: Make) -> None:
    trace = Trace()
    hangs = [True]

    async def slow() -> Json:
        trace.ran["slow"] += 1
        await asyncio.sleep(60 if hangs[0] else 0)
        return "slow"

    async def body(flow: Flow, _args: Json) -> Json:
        values = await asyncio.gather(flow.step("slow", slow), flow.step("quick", trace.work("quick", "quick")))
        return [*values, await flow.step("last", trace.work("last", "last"))]

    engine = make({"body": body})
    await engine.open(worker=True)
    await engine.submit("r", "body", None)
    await reached(engine, "r", "quick")
    await engine.close(grace_s=0.1)
    hangs[0] = False
    async with at_work(make({"body": body})) as engine:
        outcome = await ended(engine, "r")
        expect(outcome.value == ["slow", "quick", "last"], f"the run ended {outcome}")
        expect(await keys(engine, "r") == ["slow", "quick", "last"], "the steps stand where they were asked for")
    expect(trace.ran == Counter(slow=2, quick=1, last=1), f"what ran: {dict(trace.ran)}")


CASES = (
    Case("replay-is-the-first-run", _replay_is_the_first_run),
    Case("a-failed-step-fails-the-same", _a_failed_step_fails_the_same),
    Case("a-fault-of-the-machine-fails-nothing", _a_fault_of_the_machine_fails_nothing),
    Case("attempts-are-counted", _attempts_are_counted),
    Case("out-of-time-is-cancelled-and-awaited", _a_step_out_of_time_is_cancelled_and_awaited),
    Case("steps-side-by-side-keep-their-places", _steps_side_by_side_keep_their_places),
)
