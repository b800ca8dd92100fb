"""The kit itself: an engine that breaks a promise is named by what it broke, so that a green kit means something."""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairwitness.engine.base import Body, EngineError, Flow, Json, RunOutcome
from fairwitness.errors import NotReady
from support.engine.case import Make
from support.engine.kit import BY_NAME, CASES, check_engine
from support.engine.raw_engine import RawEngine
from support.engine.raw_flow import RawFlow

Work = Callable[[], Awaitable[Json]]


class Lying:
    """A flow that does as the real one does, but for what a subclass does worse."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.number = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.flow, name)


class Forgetful(Lying):
    """Runs a step again on replay."""

    async def step(self, key: str, work: Work, **how: Any) -> Json:
        await self.flow.step(key, work, **how)
        return await work()


class Raw(Lying):
    """Gives the first run what the work gave, and the replay what was recorded."""

    async def step(self, key: str, work: Work, **how: Any) -> Json:
        given: list[Json] = []

        async def noted() -> Json:
            given.append(await work())
            return given[-1]

        recorded = await self.flow.step(key, noted, **how)
        return given[-1] if given else recorded


class Keyless(Lying):
    """Knows steps by their number alone."""

    async def step(self, _key: str, work: Work, **how: Any) -> Json:
        self.number += 1
        return await self.flow.step(str(self.number), work, **how)


class Hasty(Lying):
    """Tries everything once."""

    async def step(self, key: str, work: Work, **how: Any) -> Json:
        return await self.flow.step(key, work, **{**how, "attempts": 1})


class Blaming(Lying):
    """Takes a fault of the machine for a fault of the work."""

    async def step(self, key: str, work: Work, **how: Any) -> Json:
        async def blamed() -> Json:
            try:
                return await work()
            except NotReady as error:
                raise ValueError(str(error)) from error

        return await self.flow.step(key, blamed, **how)


class Careless(Lying):
    """Leaves a work that is out of time to itself."""

    async def step(self, key: str, work: Work, *, timeout_s: float | None = None, attempts: int = 1) -> Json:
        async def abandoned() -> Json:
            task = asyncio.ensure_future(work())
            done, _ = await asyncio.wait({task}, timeout=timeout_s)
            if not done:
                raise TimeoutError
            return task.result()

        return await self.flow.step(key, abandoned, attempts=attempts)


class Lenient(Lying):
    """Takes any value, as text."""

    async def step(self, key: str, work: Work, **how: Any) -> Json:
        async def spelled() -> Json:
            return type(await work()).__name__

        return await self.flow.step(key, spelled, **how)


class Restarting(Lying):
    """Gives a gate its whole time again at every start."""

    async def gate(self, key: str, *, timeout_s: float | None = None) -> Json:
        self.number += 1
        if timeout_s is None:
            return await self.flow.gate(key)
        await asyncio.sleep(timeout_s)
        return await self.flow.gate(key, timeout_s=0)


class Patient(Lying):
    """Waits for all children where one would do."""

    async def wait(self, child_ids: Collection[str], *, timeout_s: float) -> Mapping[str, RunOutcome]:
        found = await self.flow.wait(child_ids, timeout_s=timeout_s if not 0 < timeout_s < math.inf else 0)
        end = time.monotonic() + min(timeout_s, 5.0)
        while len(found) < max(len(child_ids), 1) and time.monotonic() < end:
            found = await self.flow.wait(child_ids, timeout_s=0)
            await asyncio.sleep(0.02)
        return found


class Impatient(Lying):
    """Does not wait for children at all."""

    async def wait(self, child_ids: Collection[str], *, timeout_s: float) -> Mapping[str, RunOutcome]:
        return await self.flow.wait(child_ids, timeout_s=timeout_s if not 0 < timeout_s < math.inf else 0)


class Deaf(Lying):
    """Goes on waiting for children when it is told to leave."""

    async def wait(self, child_ids: Collection[str], *, timeout_s: float) -> Mapping[str, RunOutcome]:
        await asyncio.sleep(min(timeout_s, 3.5))
        return await self.flow.wait(child_ids, timeout_s=0)


class Alarmed(Lying):
    """Misses also those who have not begun."""

    async def silent(self, child_ids: Collection[str]) -> Mapping[str, float]:
        return {child_id: 0.0 for child_id in child_ids if await self.flow.outcome(child_id) is None}


class Ruthless(Lying):
    """Ends whomever it is told to, if it can, and never complains."""

    async def cancel(self, child_id: str) -> None:
        with contextlib.suppress(EngineError):
            await self.flow.cancel(child_id)


class TrustingFlow(RawFlow):
    """Takes what stands at a place for what was asked for there."""

    def _next(self, key: str) -> int:
        self._asked[key] = len(self._asked)
        return self._asked[key]


class Trusting(RawEngine):
    """Mixes up steps that have changed places."""

    flow_type = TrustingFlow


class FirstAndLast(RawEngine):
    """Says of every answer that it counted."""

    async def answer(self, run_id: str, gate: str, value: Json) -> bool:
        await super().answer(run_id, gate, value)
        return True


class Eager(RawEngine):
    """Works, also where it was only to look."""

    async def open(self, *, worker: bool) -> None:
        await super().open(worker=True)


class Sweeping(RawEngine):
    """Forgets a whole run where it was to forget its end."""

    async def rerun_from(self, run_id: str, key: str) -> None:
        known = [step.key for step in await self.steps(run_id)]
        await super().rerun_from(run_id, known[0] if key in known else key)
        await self.answer(run_id, "ok", "first")


class Resigned(RawEngine):
    """Goes on with a run as it failed."""

    async def resume(self, run_id: str) -> None:
        again = "UPDATE raw_run SET status = 'queued', error = NULL WHERE id = ? AND status IN ('failed', 'cancelled')"
        self._journal.database.write(lambda transaction: transaction.run(again, (run_id,)))


class Littering(RawEngine):
    """Leaves a thread behind."""

    async def close(self, *, grace_s: float = 5.0) -> None:
        await super().close(grace_s=grace_s)
        threading.Thread(target=partial(threading.Event().wait, 5.0), daemon=True).start()


class Blind(RawEngine):
    """Sees neither versions nor caps."""

    def __init__(self, path: Path, flows: Mapping[str, Body], **how: Any) -> None:
        super().__init__(path, flows, executor=how.get("executor"), cap=100)


class Orphaning(RawEngine):
    """Lets a submitted run begin twice, under two ids."""

    async def submit(self, run_id: str, flow: str, args: Json) -> None:
        known = {run.id for run in await self.runs()}
        await super().submit(f"{run_id}-again" if run_id in known else run_id, flow, args)


def with_flow(lying: type[Lying], path: Path) -> Make:
    """A raw engine whose bodies are given a lying flow."""

    def wrapped(body: Body) -> Body:
        async def lied_to(flow: Flow, args: Json) -> Json:
            return await body(lying(flow), args)

        return lied_to

    def make(flows: Mapping[str, Body], **how: Any) -> RawEngine:
        return RawEngine(path, {name: wrapped(body) for name, body in flows.items()}, **how)

    return make


@pytest.mark.parametrize(
    ("liar", "case", "words"),
    [
        (Forgetful, "replay-is-the-first-run", "the works ran"),
        (Raw, "replay-is-the-first-run", "the first run saw"),
        (Trusting, "swapped-keys-run-nothing", "the run ended"),
        (Keyless, "a-repeated-key-raises-at-once", "ended RunOutcome"),
        (Hasty, "attempts-are-counted", "ended without step"),
        (Blaming, "a-fault-of-the-machine-fails-nothing", "the runs have ended"),
        (Careless, "out-of-time-is-cancelled-and-awaited", "what happened"),
        (Lenient, "what-is-no-json-is-refused-at-every-door", "4 of 5 doors"),
        (Restarting, "a-gates-time-runs-on-while-nothing-runs", "its whole time again"),
        (FirstAndLast, "only-the-first-answer-counts", "a second answer does not"),
        (Eager, "a-submitted-run-is-one", "a client took work"),
        (Orphaning, "a-submitted-run-is-one", "there are"),
        (Sweeping, "rerun-forgets-from-a-key-on", "what ran"),
        (Littering, "closing-leaves-nothing-and-loses-nothing", "threads are left"),
        (Blind, "another-version-is-named-and-not-run", "only the run of its own version"),
        (Blind, "children-in-a-step-keep-the-cap", "children ran at once"),
        (Patient, "wait-gives-all-that-have-ended", "the others are waited for"),
        (Impatient, "wait-gives-all-that-have-ended", "the time was not waited out"),
        (Deaf, "wait-is-cancelled-at-once", "a close waited"),
        (Alarmed, "only-who-was-taken-and-lives-can-be-silent", "silent are"),
        (Ruthless, "a-body-ends-its-own-children-and-no-others", "was not refused"),
        (Resigned, "resume-asks-for-the-failed-step-again", "it went on and ended"),
        (Blind, "no-child-takes-the-room-of-those-it-waits-for", "of each generation there ran"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_a_promise_that_is_broken_is_named(liar: Any, case: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.db"
    make: Make = with_flow(liar, path) if issubclass(liar, Lying) else partial(liar, path)
    (verdict,) = asyncio.run(check_engine(lambda _name: make, [BY_NAME[case]]))
    assert verdict.case == case
    assert verdict.problem
    assert words in verdict.problem


def test_every_case_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(CASES)
