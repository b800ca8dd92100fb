"""The contract of gates: they wait, also while nothing runs, and only the first answer counts."""

import asyncio
import time
from collections import Counter

from fairwitness.engine.base import Body, ExecutionStatus, Flow, Json
from support.engine.case import (
    Case,
    Make,
    Trace,
    at_the_terminal,
    at_work,
    ended,
    expect,
    info,
    reached,
    steps_then_gate,
)


async def _only_the_first_answer_counts(make: Make) -> None:
    trace = Trace()
    flows = {"body": steps_then_gate(trace, "one")}
    async with at_work(make(flows)) as engine:
        await engine.submit("early", "body", None)
        await engine.submit("late", "body", None)
        await reached(engine, "early", "one")
        await reached(engine, "late", "one")
    async with at_the_terminal(make(flows)) as engine:  # nothing runs
        expect(await engine.answer("early", "go", {"by": "first"}), "an answer while nothing runs counts")
        expect(not await engine.answer("early", "go", {"by": "second"}), "a second answer does not")
        expect(await engine.outcome("early") is None, "a client runs nothing")
    async with at_work(make(flows)) as engine:
        outcome = await ended(engine, "early")
        expect(outcome.value == ["str:'ONE'", "dict(str:'by': str:'first')"], f"the gate gave {outcome.value}")
        expect(not await engine.answer("early", "go", None), "nor does one after the gate")
        expect(await engine.outcome("late") is None, "another run's gate still waits")
        expect((await info(engine, "late")).status is ExecutionStatus.RUNNING, "and its run is running")
        expect(await engine.answer("late", "go", None), "until it is answered")
        expect((await ended(engine, "late")).value == ["str:'ONE'", "NoneType:None"], "with nothing, if that is said")
    expect(trace.ran == Counter(one=2), f"what ran: {dict(trace.ran)}")


async def _an_answer_may_come_before_its_gate(make: Make) -> None:
    flows = {"body": steps_then_gate(Trace(), "one")}
    async with at_the_terminal(make(flows)) as engine:
        await engine.submit("r", "body", None)
        expect(await engine.answer("r", "go", 1), "the answer counts")
        expect(not await engine.answer("r", "go", 2), "and no other")
    async with at_work(make(flows)) as engine:
        expect((await ended(engine, "r")).value == ["str:'ONE'", "int:1"], "the gate gives it")


def _timed(trace: Trace, timeout_s: float) -> Body:
    async def body(flow: Flow, _args: Json) -> Json:
        trace.begins()
        await flow.step("asked", trace.work("asked"))
        trace.sees(await flow.gate("brief", timeout_s=timeout_s))
        trace.sees(await flow.gate("go"))
        return list(trace.saw[-1])

    return body


async def _a_gate_gives_nothing_when_its_time_is_up(make: Make) -> None:
    trace = Trace()
    flows = {"body": _timed(trace, 0.2)}
    async with at_work(make(flows)) as engine:
        await engine.submit("r", "body", None)
        await reached(engine, "r", "brief")
        expect(not await engine.answer("r", "brief", "too late"), "an answer after the time does not count")
    async with at_work(make(flows)) as engine:
        await engine.answer("r", "go", "on")
        outcome = await ended(engine, "r")
        expect(outcome.value == ["NoneType:None", "str:'on'"], f"the gates gave {outcome}")


async def _a_gates_time_runs_on_while_nothing_runs(make: Make) -> None:
    trace = Trace()
    flows = {"body": _timed(trace, 2.0)}
    async with at_work(make(flows)) as engine:
        await engine.submit("r", "body", None)
        await reached(engine, "r", "asked")
        await asyncio.sleep(0.2)
    await asyncio.sleep(1.8)
    async with at_work(make(flows)) as engine:
        began = time.monotonic()
        await reached(engine, "r", "brief")
        expect(time.monotonic() - began < 1.9, "a restart gave the gate its whole time again")
        await engine.answer("r", "go", "on")
        expect((await ended(engine, "r")).value == ["NoneType:None", "str:'on'"], "and no answer came")


CASES = (
    Case("only-the-first-answer-counts", _only_the_first_answer_counts),
    Case("an-answer-may-come-before-its-gate", _an_answer_may_come_before_its_gate),
    Case("a-gate-gives-nothing-when-its-time-is-up", _a_gate_gives_nothing_when_its_time_is_up),
    Case("a-gates-time-runs-on-while-nothing-runs", _a_gates_time_runs_on_while_nothing_runs),
)
