"""The contract of values: JSON goes through every door of the engine alike, and what is none is refused."""

import math
from collections.abc import Callable

from fairwitness.engine.base import EngineError, ExecutionStatus, Flow, Json, RunOutcome, StepError
from support.engine.case import Case, Make, Trace, at_work, ended, expect, reached, spelled


def _cycle() -> object:
    around: list[object] = []
    around.append({"again": around})
    return around


def _nested(depth: int) -> object:
    value: object = None
    for _ in range(depth):
        value = [value]
    return value


TAKEN: dict[str, object] = {
    "a tuple": (1, (2,)),
    "keys that are numbers": {1: "one"},
    "a large number": 10**300,
    "a long text": "x" * 1_000_000,
    "odd signs": "\0 \ud800 \u2028 é",
    "nested lists": _nested(100),
    "brackets that are text": ["[" * 1_000, '\\"' + "{" * 1_000],
}
"""Given and taken by everybody, as JSON has it."""

REFUSED: dict[str, Callable[[], object]] = {
    "not a number": lambda: math.nan,
    "infinity inside": lambda: [{"a": -math.inf}],
    "a number beyond all measure": lambda: 10**5000,
    "bytes": lambda: {"b": b"x"},
    "a set": lambda: {1, 2},
    "a mapping with keys of its own": lambda: {(1, 2): 3},
    "a cycle": _cycle,
    "no end of lists": lambda: _nested(100_000),
    "too many lists": lambda: _nested(1_000),
    "a few lists too many": lambda: {"a": [_nested(200)]},
    "an object": object,
}
"""Refused by everybody."""

_DOORS = 5
"""What steps give, what a body gives, the arguments of runs and of children, answers."""


async def _what_is_json_goes_through_every_door_alike(make: Make) -> None:
    trace = Trace()

    async def body(flow: Flow, args: Json) -> Json:
        trace.begins()
        trace.sees(args)
        for name, value in TAKEN.items():
            trace.sees(await flow.step(name, trace.work(name, value)))
        for name in TAKEN:
            trace.sees(await flow.gate(f"answer: {name}"))
        await flow.gate("go")
        return TAKEN  # type: ignore[return-value]  # nearly JSON, and that is the point

    async with at_work(make({"body": body})) as engine:
        await engine.submit("r", "body", TAKEN)  # type: ignore[arg-type]  # as above
        for name, value in TAKEN.items():
            expect(await engine.answer("r", f"answer: {name}", value), f"{name} is taken")  # type: ignore[arg-type]  # as above
        await reached(engine, "r", f"answer: {name}")
    async with at_work(make({"body": body})) as engine:
        await engine.answer("r", "go", None)
        outcome = await ended(engine, "r")
        expect(outcome.status is ExecutionStatus.DONE, f"the run ended {str(outcome)[:300]}")
    first, second = trace.saw
    expect(first == second, "the first run and the replay saw other values")
    args, *rest = first
    expect(spelled(outcome.value) == args, "what a body is given and what it gives are spelled alike")
    steps, answers = rest[: len(TAKEN)], rest[len(TAKEN) :]
    for name, step, answer in zip(TAKEN, steps, answers, strict=True):
        expect(step == answer, f"{name}: the step gave {step[:80]}, the gate {answer[:80]}")
        expect(step in args, f"{name}: the step gave {step[:80]}, which is not in the arguments")


async def _what_is_no_json_is_refused_at_every_door(make: Make) -> None:
    sentences: dict[str, list[str]] = {name: [] for name in REFUSED}

    async def steps(flow: Flow, _args: Json) -> Json:
        for name, value in REFUSED.items():
            try:
                await flow.step(name, Trace().work(name, value()))
            except StepError as failed:
                sentences[name].append(failed.message)
        return None

    async def gives(_flow: Flow, args: Json) -> Json:
        return REFUSED[str(args)]()  # type: ignore[return-value]  # no JSON, and that is the point

    async def submits(flow: Flow, _args: Json) -> Json:
        for name, value in REFUSED.items():
            try:
                await flow.submit(f"child: {name}", "steps", value())  # type: ignore[arg-type]  # as above
            except EngineError as error:
                sentences[name].append(str(error))
        return None

    async with at_work(make({"steps": steps, "gives": gives, "submits": submits})) as engine:
        for flow in ("steps", "submits"):
            await engine.submit(flow, flow, None)
        for name, value in REFUSED.items():
            for doing in (engine.submit(f"args: {name}", "steps", value()), engine.answer("steps", name, value())):  # type: ignore[arg-type]  # as above
                try:
                    await doing
                except EngineError as error:
                    sentences[name].append(str(error))
                else:
                    expect(False, f"{name} was taken")
            await engine.submit(f"gives: {name}", "gives", name)
        for name in REFUSED:
            outcome: RunOutcome = await ended(engine, f"gives: {name}")
            expect(outcome.status is ExecutionStatus.FAILED, f"a body that gives {name} ended {outcome.status}")
            sentences[name].append(outcome.error)
        for flow in ("steps", "submits"):
            expect((await ended(engine, flow)).status is ExecutionStatus.DONE, f"{flow} ended")
        expect(not [run for run in await engine.runs() if run.id.startswith(("args", "child"))], "nothing was begun")
    for name, said in sentences.items():
        expect(len(said) == _DOORS, f"{name} was refused at {len(said)} of {_DOORS} doors: {said}")
        shortest = min(said, key=len)
        expect(all(shortest in sentence for sentence in said), f"{name} is refused in several ways: {said}")
        expect("JSON" in shortest and "\n" not in shortest and len(shortest) < 200, f"{name}: {shortest[:300]}")


CASES = (
    Case("what-is-json-goes-through-every-door-alike", _what_is_json_goes_through_every_door_alike),
    Case("what-is-no-json-is-refused-at-every-door", _what_is_no_json_is_refused_at_every_door),
)
