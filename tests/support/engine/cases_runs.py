"""The contract of runs: children under a cap, cancelling, running again."""

import asyncio
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
    keys,
    reached,
    refused,
    steps_then_gate,
    until,
)


async def _a_submitted_run_is_one(make: Make) -> None:
    trace = Trace()
    flows = {"body": steps_then_gate(trace, "one"), "other": steps_then_gate(trace, "two")}
    async with at_the_terminal(make(flows)) as engine:
        for _ in range(2):
            await engine.submit("a", "body", None)
        await engine.submit("b", "body", None)
        await engine.submit("a", "body", {"quite": "different"})
        await refused(engine.submit("a", "other", None), "another flow under the id of a run")
        told = [(run.id, run.flow, run.status, run.executor) for run in await engine.runs()]
        queued = ExecutionStatus.QUEUED
        expect(told == [("a", "body", queued, None), ("b", "body", queued, None)], f"there are {told}")
        await asyncio.sleep(0.3)
        expect(not trace.ran, "a client took work from the queue")
    async with at_work(make(flows)) as engine:
        await reached(engine, "a", "one")
        running = await info(engine, "a")
        expect(running.status is ExecutionStatus.RUNNING and running.executor is not None, f"it is {running}")
        for run in ("a", "b"):
            await engine.answer(run, "go", None)
            expect((await ended(engine, run)).status is ExecutionStatus.DONE, f"{run} is done")
            await engine.submit(run, "body", None)
        expect((await info(engine, "a")).status is ExecutionStatus.DONE, "submitted once more, a run stays done")
    expect(trace.ran == Counter(one=2), f"what ran: {dict(trace.ran)}")


_PATIENCE = 500


def _family(trace: Trace, children: int, cap: int, *, in_a_step: bool) -> dict[str, Body]:
    """A parent that submits children, each twice, and waits for all; the second child fails.

    The first ones stay until as many run as may, so that a slow machine does not look like a narrow door.
    """
    open_now: set[str] = set()

    async def child(flow: Flow, args: Json) -> Json:
        async def work() -> Json:
            trace.ran[flow.run_id] += 1
            open_now.add(flow.run_id)
            trace.ran["most at once"] = max(trace.ran["most at once"], len(open_now))
            for _ in range(_PATIENCE):
                if trace.ran["most at once"] >= min(cap, children):
                    break
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.05)
            open_now.discard(flow.run_id)
            if args == 1:
                raise ValueError("the second")
            return {"child": args}

        return await flow.step("work", work)

    async def parent(flow: Flow, _args: Json) -> Json:
        async def graph() -> Json:
            trace.ran["graph"] += 1
            ids = [f"{flow.run_id}/t/{number}" for number in range(children)]
            for number, child_id in [*enumerate(ids), *enumerate(ids)]:
                await flow.submit(child_id, "child", number)
            found: dict[str, Json] = {}
            while len(found) < children:
                for child_id in ids:
                    outcome = await flow.outcome(child_id)
                    if outcome is not None:
                        found[child_id] = [outcome.status.value, outcome.value, outcome.error]
                await asyncio.sleep(0.01)
            return [found[child_id] for child_id in ids]

        return await flow.step("graph", graph) if in_a_step else await graph()

    return {"parent": parent, "child": child}


def _children(name: str, children: int, cap: int, *, in_a_step: bool) -> Case:
    async def check(make: Make) -> None:
        trace = Trace()
        async with at_work(make(_family(trace, children, cap, in_a_step=in_a_step), cap=cap)) as engine:
            await engine.submit("p", "parent", None)
            outcome = await ended(engine, "p")
            told = [run.id for run in await engine.runs()]
            expect(await keys(engine, "p") == (["graph"] if in_a_step else []), "children are no steps")
        expect(outcome.status is ExecutionStatus.DONE, f"the parent ended {outcome}")
        assert isinstance(outcome.value, list)
        for number, (status, value, error) in enumerate(outcome.value):
            if number == 1:
                expect(status == "failed" and value is None and "the second" in error, f"child 1: {status} {error}")
            else:
                expect((status, value) == ("done", {"child": number}), f"child {number}: {status} {value}")
        ids = [f"p/t/{number}" for number in range(children)]
        expect(sorted(told) == sorted(["p", *ids]), f"the runs are {told}")
        most = trace.ran.pop("most at once")
        expect(most <= cap, f"{most} children ran at once, and {cap} may")
        expect(most == min(cap, children), f"only {most} children ever ran at once, and {cap} may")
        expect(trace.ran == Counter(["graph", *ids]), f"what ran: {dict(trace.ran)}")

    return Case(name, check)


async def _cancel_reaches_the_children_and_the_running_step(make: Make) -> None:
    happened: list[str] = []

    async def child(flow: Flow, args: Json) -> Json:
        async def work() -> Json:
            happened.append(f"begin {args}")
            try:
                await asyncio.sleep(0 if args == 0 else 60)
            finally:
                await asyncio.sleep(0.01)
                happened.append(f"left {args}")
            return None

        await flow.step("work", work)
        await flow.step("after", _never(happened) if args else work)
        return args

    async def parent(flow: Flow, _args: Json) -> Json:
        for number in range(4):
            await flow.submit(f"p/{number}", "child", number)
        await flow.gate("go")
        return None

    async with at_work(make({"parent": parent, "child": child}, cap=2)) as engine:
        await engine.submit("p", "parent", None)
        await until(lambda: {"begin 1", "begin 2"} <= set(happened), "two children run")
        expect((await ended(engine, "p/0")).status is ExecutionStatus.DONE, "the first child is done")
        async with at_the_terminal(make({"parent": parent, "child": child})) as client:
            await client.cancel("p")
        await until(lambda: {"left 1", "left 2"} <= set(happened), "the steps that ran are cancelled and awaited")
        for run, status in {
            "p": "cancelled",
            "p/0": "done",
            **dict.fromkeys(("p/1", "p/2", "p/3"), "cancelled"),
        }.items():
            found = (await ended(engine, run)).status
            expect(found.value == status, f"{run} is {found}")
        await engine.cancel("p")
        await engine.cancel("p/0")
        expect((await ended(engine, "p/0")).status is ExecutionStatus.DONE, "what is done stays done")
        await asyncio.sleep(0.2)
        expect(await keys(engine, "p/1") == [], "a cancelled step is not recorded")
    expect(sum(line in ("begin 3", "never") for line in happened) == 0, f"what happened: {happened}")


async def _what_is_cancelled_while_nothing_runs_stays_so(make: Make) -> None:
    trace = Trace()
    flows = {"body": steps_then_gate(trace, "one")}
    async with at_work(make(flows)) as engine:
        await engine.submit("begun", "body", None)
        await reached(engine, "begun", "one")
    async with at_the_terminal(make(flows)) as engine:
        await engine.submit("new", "body", None)
        for run in ("begun", "new"):
            await engine.cancel(run)
            await engine.answer(run, "go", None)
            expect((await ended(engine, run)).status is ExecutionStatus.CANCELLED, f"{run} is cancelled at once")
    async with at_work(make(flows)) as engine:
        await engine.submit("last", "body", None)
        await reached(engine, "last", "one")
        await asyncio.sleep(0.2)
        for run in ("begun", "new"):
            expect((await info(engine, run)).status is ExecutionStatus.CANCELLED, f"{run} stays cancelled")
        await engine.rerun_from("begun", "one")
        await engine.answer("begun", "go", None)
        expect((await ended(engine, "begun")).status is ExecutionStatus.DONE, "until somebody wants it again")
    expect(trace.ran == Counter(one=3), f"what ran: {dict(trace.ran)}")


def _never(happened: list[str]):  # type: ignore[no-untyped-def]  # the work of a step
    async def work() -> Json:
        happened.append("never")
        return None

    return work


async def _rerun_forgets_from_a_key_on(make: Make) -> None:
    trace = Trace()
    fails = [True]

    async def body(flow: Flow, _args: Json) -> Json:
        await flow.step("one", trace.work("one"))
        said = await flow.gate("ok")
        await flow.step("two", trace.work("two", ValueError("no") if fails[0] else 2))
        return said

    async with at_work(make({"body": body})) as engine:
        await engine.submit("r", "body", None)
        await refused(engine.rerun_from("r", "one"), "a rerun of what has not ended")
        await engine.answer("r", "ok", "first")
        expect((await ended(engine, "r")).status is ExecutionStatus.FAILED, "the second step fails the run")
        await refused(engine.rerun_from("r", "three"), "a rerun from a step that is none")
        expect((await ended(engine, "r")).status is ExecutionStatus.FAILED, "and that changes nothing")
        fails[0] = False
        await engine.rerun_from("r", "two")
        outcome = await ended(engine, "r")
        expect(
            (outcome.status, outcome.value) == (ExecutionStatus.DONE, "first"), f"from the failed step on: {outcome}"
        )
        expect(trace.ran == Counter(one=1, two=2), f"what ran: {dict(trace.ran)}")
        await engine.rerun_from("r", "ok")
        await until(_is(engine, "r", ExecutionStatus.RUNNING), "the run goes on")
        expect(await engine.outcome("r") is None, "the gate asks again")
        expect(await engine.answer("r", "ok", "second"), "and takes an answer")
        expect((await ended(engine, "r")).value == "second", "which counts")
        expect(await keys(engine, "r") == ["one", "ok", "two"], "the journal is whole")
        await engine.rerun_from("r", "one")
        await engine.cancel("r")
        expect((await ended(engine, "r")).status is ExecutionStatus.CANCELLED, "it can be cancelled too")
    expect(trace.ran["two"] == 3, f"what ran: {dict(trace.ran)}")


def _is(engine, run_id: str, status: ExecutionStatus):  # type: ignore[no-untyped-def]  # a condition to wait for
    async def holds() -> bool:
        return (await info(engine, run_id)).status is status

    return holds


CASES = (
    Case("a-submitted-run-is-one", _a_submitted_run_is_one),
    _children("children-in-a-step-keep-the-cap", 6, 3, in_a_step=True),
    _children("children-of-a-body-under-a-cap-of-one", 3, 1, in_a_step=False),
    Case("cancel-reaches-children-and-the-running-step", _cancel_reaches_the_children_and_the_running_step),
    Case("cancelled-while-nothing-runs-stays-so", _what_is_cancelled_while_nothing_runs_stays_so),
    Case("rerun-forgets-from-a-key-on", _rerun_forgets_from_a_key_on),
)
