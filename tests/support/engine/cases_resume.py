"""The contract of going on: with a run that failed or was cancelled, and with all that it recorded."""

from collections import Counter

from fairwitness.engine.base import EngineError, ExecutionStatus, Flow, Json
from support.engine.case import Case, Make, Trace, at_work, ended, expect, info, reached, refused


async def _resume_asks_for_the_failed_step_again(make: Make) -> None:
    trace = Trace()
    is_full = [True]

    async def body(flow: Flow, _args: Json) -> Json:
        try:
            await flow.step("early", trace.work("early", ValueError("no")))
        except EngineError:
            trace.ran["caught"] += 1
        said = await flow.gate("ok")
        await flow.step("write", trace.work("write", OSError("the disk is full") if is_full[0] else "written"))
        return said

    async with at_work(make({"body": body})) as engine:
        await engine.submit("r", "body", None)
        await reached(engine, "r", "early")
        await engine.resume("r")
        expect(await engine.answer("r", "ok", "yes"), "a running one is left alone")
        expect("the disk is full" in (await ended(engine, "r")).error, "the disk is full")
        await engine.resume("r")
        expect("the disk is full" in (await ended(engine, "r")).error, "and still is")
        is_full[0] = False
        await engine.resume("r")
        outcome = await ended(engine, "r")
        expect(
            (outcome.status, outcome.value) == (ExecutionStatus.DONE, "yes"), f"freed, it went on and ended {outcome}"
        )
        expect(trace.ran == Counter(early=1, write=3, caught=3), f"what ran: {dict(trace.ran)}")
        failed = [(step.key, step.failed) for step in await engine.steps("r")]
        expect(failed == [("early", True), ("ok", False), ("write", False)], f"recorded: {failed}")
        await engine.resume("r")
        expect((await info(engine, "r")).status is ExecutionStatus.DONE, "what is done stays done")
        await refused(engine.resume("nobody"), "going on with nothing")


async def _resume_goes_on_with_what_was_cancelled(make: Make) -> None:
    trace = Trace()

    async def body(flow: Flow, _args: Json) -> Json:
        await flow.step("one", trace.work("one"))
        early = await flow.gate("early")
        return [early, await flow.gate("late")]

    async with at_work(make({"body": body})) as engine:
        await engine.submit("r", "body", None)
        await reached(engine, "r", "one")
        await engine.answer("r", "early", 1)
        await reached(engine, "r", "early")
        await engine.cancel("r")
        expect((await ended(engine, "r")).status is ExecutionStatus.CANCELLED, "it is cancelled")
        expect(await engine.answer("r", "late", 2), "an answer is kept meanwhile")
        await engine.resume("r")
        outcome = await ended(engine, "r")
        expect((outcome.status, outcome.value) == (ExecutionStatus.DONE, [1, 2]), f"it went on and ended {outcome}")
        await engine.submit("new", "body", None)
        await reached(engine, "new", "one")
    expect(trace.ran == Counter(one=2), f"what ran: {dict(trace.ran)}")


CASES = (
    Case("resume-asks-for-the-failed-step-again", _resume_asks_for_the_failed_step_again),
    Case("resume-goes-on-with-what-was-cancelled", _resume_goes_on_with_what_was_cancelled),
)
