"""The contract of keys and names: what does not fit the journal or cannot be meant is refused, and nothing is run."""

from collections import Counter

from fairwitness.engine.base import Body, ChangedOrder, EngineError, ExecutionStatus, Flow, Json, RepeatedKey, StepError
from support.engine.case import (
    Case,
    Make,
    Trace,
    at_the_terminal,
    at_work,
    ended,
    expect,
    keys,
    reached,
    refused,
    steps_then_gate,
)


async def _a_repeated_key_raises_at_once(make: Make) -> None:
    trace = Trace()

    async def bluntly(flow: Flow, _args: Json) -> Json:
        await flow.step("one", trace.work("one"))
        await flow.step("one", trace.work("again"))
        return None

    async def slyly(flow: Flow, _args: Json) -> Json:
        await flow.step("one", trace.work("one"))
        try:
            await flow.gate("one")
        except RepeatedKey:
            trace.ran["caught"] += 1
        try:
            await flow.step("other", trace.work("other"))
        except EngineError:
            trace.ran["caught"] += 1
        return "as if nothing had been"

    async with at_work(make({"bluntly": bluntly, "slyly": slyly})) as engine:
        for flow in ("bluntly", "slyly"):
            await engine.submit(flow, flow, None)
            outcome = await ended(engine, flow)
            expect(outcome.status is ExecutionStatus.FAILED, f"a body that repeats a key {flow} ended {outcome}")
            expect("one" in outcome.error and "\n" not in outcome.error, f"the error is {outcome.error!r}")
    expect(trace.ran == Counter(one=2, caught=2), f"what ran: {dict(trace.ran)}")


def _changed(name: str, *asked: str, fits: bool) -> Case:
    """A run that stands at its gate after `one` and `two`, and then meets code that asks for other steps."""

    async def check(make: Make) -> None:
        old, new = Trace(), Trace()
        async with at_work(make({"body": steps_then_gate(old, "one", "two")})) as engine:
            await engine.submit("r", "body", None)
            await reached(engine, "r", "two")
        async with at_work(make({"body": _asking(new, *asked)})) as engine:
            await engine.answer("r", "go", "yes")
            outcome = await ended(engine, "r")
            stranded = {one.run_id: one for one in await engine.audit()}
        if fits:
            expect(outcome.status is ExecutionStatus.DONE, f"the run ended {outcome}")
            expect(new.ran == Counter(asked[3:]), f"what ran: {dict(new.ran)}")
            return
        expect(outcome.status is ExecutionStatus.FAILED, f"the run ended {outcome}")
        expect(not new.ran, f"nothing was to run, but {dict(new.ran)}")
        expect("r" in stranded and bool(stranded["r"].next_step), f"the audit says {stranded}")
        async with at_work(make({"body": steps_then_gate(old, "one", "two")})) as engine:
            await engine.rerun_from("r", "two")
            await engine.answer("r", "go", "yes")  # given before, kept or not
            outcome = await ended(engine, "r")
            expect(outcome.status is ExecutionStatus.DONE, f"with the old code again it ended {outcome}")
            expect(await engine.audit() == (), "and the audit has nothing to say")
        expect(old.ran == Counter(one=1, two=2), f"what ran: {dict(old.ran)}")

    return Case(name, check)


def _asking(trace: Trace, *asked: str) -> Body:
    async def body(flow: Flow, _args: Json) -> Json:
        try:
            for key in asked:
                await (flow.gate(key) if key == "go" else flow.step(key, trace.work(key)))
        except ChangedOrder:
            await flow.step("on", trace.work("on"))  # who catches it gets no further either
        return None

    return body


async def _what_cannot_be_meant_is_refused(make: Make) -> None:
    trace = Trace()
    names = ("", " ", "a\0b", "a\ud800", "a\nb")

    async def body(flow: Flow, _args: Json) -> Json:
        async def nested() -> Json:
            return await flow.step("inner", trace.work("inner"))

        try:
            await flow.step("outer", nested)
        except StepError as failed:
            expect("inside step outer" in failed.message, f"a step in a step: {failed}")
        for name in names:
            await refused(flow.step(name, trace.work("named")), f"the key {name!r}")
            await refused(flow.gate(name), f"the gate {name!r}")
            await refused(flow.submit(name, "body", None), f"the child {name!r}")
        await refused(flow.submit("child", "nobody's", None), "an unknown flow")
        for time_s in (0, -1, float("nan"), float("inf")):
            await refused(flow.step("timed", trace.work("timed"), timeout_s=time_s), f"a step with {time_s} s")
        await refused(flow.gate("timed", timeout_s=float("nan")), "a gate with no time that can be told")
        await refused(flow.step("none", trace.work("none"), attempts=0), "a step without an attempt")
        return await flow.step("last", trace.work("last", "still here"))

    async with at_work(make({"body": body})) as engine:
        await refused(engine.open(worker=True), "an engine that is open")
        for name in names:
            await refused(engine.submit(name, "body", None), f"the run {name!r}")
        await engine.submit("r", "body", None)
        for name in names:
            await refused(engine.answer("r", name, None), f"an answer to {name!r}")
        outcome = await ended(engine, "r")
        expect((outcome.status, outcome.value) == (ExecutionStatus.DONE, "still here"), f"the run ended {outcome}")
        expect(await keys(engine, "r") == ["outer", "last"], "what was refused is not recorded")
    expect(trace.ran == Counter(last=1), f"what ran: {dict(trace.ran)}")
    await refused(engine.runs(), "an engine that is closed")


async def _looking_at_nothing(make: Make) -> None:
    async with at_the_terminal(make({"body": steps_then_gate(Trace())})) as engine:
        expect(await engine.runs() == (), "there are no runs")
        expect(await engine.audit() == (), "and none is stranded")
        expect(await engine.outcome("r") is None, "a run that is not there has not ended")
        expect(await engine.steps("r") == (), "and has no steps")
        await refused(engine.submit("r", "nobody's", None), "an unknown flow")
        await refused(engine.answer("r", "go", None), "an answer to nobody")
        await refused(engine.cancel("r"), "the end of nothing")
        await refused(engine.rerun_from("r", "one"), "nothing once more")
        expect(await engine.runs() == (), "and there are still no runs")


CASES = (
    Case("a-repeated-key-raises-at-once", _a_repeated_key_raises_at_once),
    _changed("swapped-keys-run-nothing", "two", "one", "go", fits=False),
    _changed("an-inserted-step-runs-nothing", "one", "new", "two", "go", fits=False),
    _changed("a-removed-step-runs-nothing", "two", "go", "after", fits=False),
    _changed("an-appended-step-runs", "one", "two", "go", "after", fits=True),
    _changed("a-step-missing-at-the-end-is-noticed", "one", fits=False),
    Case("what-cannot-be-meant-is-refused", _what_cannot_be_meant_is_refused),
    Case("looking-at-nothing", _looking_at_nothing),
)
