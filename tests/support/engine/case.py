"""What a case of the engines' contract is made of: engines on one fresh database, bodies that tell, and patience."""

import asyncio
import inspect
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from fairwitness.engine.base import JOURNAL_VERSION, Body, Engine, EngineError, Flow, Json, RunInfo, RunOutcome

PATIENCE_S = 20.0
"""How long anything that must happen may take, on a busy machine."""

_LOOK_S = 0.005


class Make(Protocol):
    """Makes an engine on the case's own database; at most one of them works at a time."""

    def __call__(
        self,
        flows: Mapping[str, Body],
        *,
        executor: str | None = None,
        version: str = JOURNAL_VERSION,
        cap: int = 4,
    ) -> Engine:
        """An engine that is not open yet."""
        ...


@dataclass(frozen=True, slots=True)
class Case:
    """One claim of the contract."""

    name: str
    check: Callable[[Make], Awaitable[None]]


class Broken(AssertionError):
    """The engine did not keep a promise; the sentence says which."""


def expect(holds: bool, says: str) -> None:
    """Goes on only if a claim holds."""
    if not holds:
        raise Broken(says)


@dataclass(slots=True)
class Trace:
    """What bodies and their steps really did."""

    ran: Counter[str] = field(default_factory=Counter)
    saw: list[list[str]] = field(default_factory=list)
    """Of each pass of a body, what it got to see, with its types."""

    def work(self, key: str, value: object = None) -> Callable[[], Awaitable[Json]]:
        """The work of a step that gives a value, or raises it, and is counted."""

        async def work() -> Json:
            self.ran[key] += 1
            if isinstance(value, BaseException):
                raise value
            return value  # type: ignore[return-value]  # hostile values are no JSON, and meant

        return work

    def sees(self, value: object) -> None:
        """Notes what a body sees in its present pass, where only one body runs."""
        self.saw[-1].append(spelled(value))

    def begins(self) -> list[str]:
        """Another pass of a body, and what it will have seen."""
        self.saw.append([])
        return self.saw[-1]


def spelled(value: object) -> str:
    """A value with the types of all its parts."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{spelled(key)}: {spelled(inner)}" for key, inner in value.items())
        return f"{type(value).__name__}({inside})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(spelled, value))})"
    return f"{type(value).__name__}:{value!r}"


def steps_then_gate(trace: Trace, *keys: str) -> Body:
    """A body that runs steps, waits at the gate `go` and gives what it saw."""

    async def body(flow: Flow, _args: Json) -> Json:
        seen = trace.begins()
        for key in keys:
            seen.append(spelled(await flow.step(key, trace.work(key, key.upper()))))
        seen.append(spelled(await flow.gate("go")))
        return list(seen)

    return body


@asynccontextmanager
async def at_work(engine: Engine) -> AsyncIterator[Engine]:
    """An engine that takes runs until the block ends."""
    await engine.open(worker=True)
    try:
        yield engine
    finally:
        await engine.close(grace_s=1.0)


@asynccontextmanager
async def at_the_terminal(engine: Engine) -> AsyncIterator[Engine]:
    """An engine that only controls."""
    await engine.open(worker=False)
    try:
        yield engine
    finally:
        await engine.close(grace_s=1.0)


async def until(holds: Callable[[], bool | Awaitable[bool]], says: str, *, within_s: float = PATIENCE_S) -> None:
    """Waits until something is so."""
    end = time.monotonic() + within_s
    while True:
        answer = holds()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return
        expect(time.monotonic() < end, f"{says}: not within {within_s:g} s")
        await asyncio.sleep(_LOOK_S)


async def ended(engine: Engine, run_id: str, *, within_s: float = PATIENCE_S) -> RunOutcome:
    """How a run ended, once it has."""
    end = time.monotonic() + within_s
    while (outcome := await engine.outcome(run_id)) is None:
        expect(time.monotonic() < end, f"{run_id} did not end within {within_s:g} s")
        await asyncio.sleep(_LOOK_S)
    return outcome


async def info(engine: Engine, run_id: str) -> RunInfo:
    """How the engine tells of a run."""
    found = [run for run in await engine.runs() if run.id == run_id]
    expect(len(found) == 1, f"{run_id} is told of {len(found)} times")
    return found[0]


async def keys(engine: Engine, run_id: str) -> list[str]:
    """The recorded steps of a run."""
    return [step.key for step in await engine.steps(run_id)]


async def reached(engine: Engine, run_id: str, key: str) -> None:
    """Waits until a step is recorded, while its run has not ended without it."""

    async def stands() -> bool:
        outcome = await engine.outcome(run_id)
        recorded = await keys(engine, run_id)
        expect(key in recorded or outcome is None, f"{run_id} ended without step {key}: {outcome}")
        return key in recorded

    await until(stands, f"step {key} of {run_id} is recorded")


async def refused(doing: Awaitable[object], says: str, kind: type[EngineError] = EngineError) -> EngineError:
    """What was asked must be refused; gives the error."""
    try:
        await doing
    except kind as error:
        return error
    raise Broken(f"{says} was not refused")
