"""What a body of the raw engine may do: look its step up in the journal, or run it and record it in one commit."""

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from fairwitness.engine.base import ChangedOrder, EngineError, ExecutionStatus, Json, RepeatedKey, RunOutcome, StepError
from fairwitness.engine.json_values import decode, encode, tellable
from fairwitness.errors import is_machine_fault
from fairwitness.kit.clock import system_clock
from support.engine.raw_gates import Gates
from support.engine.raw_journal import Journal, NotOurs, Recorded

_INSIDE: ContextVar[str] = ContextVar("inside")
"""The step whose work runs here."""


@dataclass(slots=True)
class Desk:
    """What the bodies of one worker share."""

    journal: Journal
    flows: frozenset[str]
    executor: str
    version: str
    poll_s: float
    closing: asyncio.Event


@dataclass(slots=True)
class RawFlow:
    """One body's place in its journal."""

    runner: Desk
    run_id: str
    _recorded: dict[int, Recorded]
    _asked: dict[str, int] = field(default_factory=dict)
    misfit: EngineError | None = None
    """Why the code does not fit the journal; once it does not, nothing of this body counts."""
    is_interrupted: bool = False
    """Whether the machine was at fault; the run goes on in the next worker."""

    async def step(
        self, key: str, work: Callable[[], Awaitable[Json]], *, timeout_s: float | None = None, attempts: int = 1
    ) -> Json:
        """Runs the work once and records what it gave; on replay gives what is recorded."""
        if attempts < 1:
            raise EngineError(f"step {key} of {self.run_id} has {attempts} attempts", next_step="give it one or more")
        _check_time(f"step {key} of {self.run_id}", timeout_s)
        position = self._next(key)
        if position not in self._recorded:
            await self._run(position, key, work, timeout_s, attempts)
        return self._result(position)

    async def gate(self, key: str, *, timeout_s: float | None = None) -> Json:
        """Waits for an answer; until when is recorded, so that a restart does not give it more time."""
        if timeout_s != 0:  # without any time: what was answered so far
            _check_time(f"gate {key} of {self.run_id}", timeout_s)
        position = self._next(key)
        if position in self._recorded:
            return self._result(position)
        gates, executor = Gates(self.runner.journal.database), self.runner.executor
        until = None if timeout_s is None else _now() + timeout_s
        with _leaving():
            until = gates.ask(self.run_id, executor, key, until)
            while True:
                shut = encode(None) if until is not None and _now() >= until else None
                passed = gates.pass_gate(self.run_id, executor, position, key, shut=shut)
                if passed is not None:
                    break
                await self._pause()
        self._recorded[position] = Recorded(key, failed=False, result=passed)
        return self._result(position)

    async def submit(self, child_id: str, flow: str, args: Json) -> None:
        """Starts a child, once."""
        self._go_on()
        check_name(child_id)
        if flow not in self.runner.flows:
            raise unknown_flow(flow)
        with _leaving():
            self.runner.journal.submit(
                child_id, flow, encode(args), self.runner.version, parent=(self.run_id, self.runner.executor)
            )

    async def outcome(self, child_id: str) -> RunOutcome | None:
        """How a child ended."""
        self._go_on()
        return outcomes_of(self.runner.journal, [child_id]).get(child_id)

    async def wait(self, child_ids: Collection[str], *, timeout_s: float) -> Mapping[str, RunOutcome]:
        """Until one of these children has ended or the time is up."""
        if timeout_s != 0:  # without any time: what is known now
            _check_time(f"waiting of {self.run_id}", timeout_s)
        self._go_on()
        children = frozenset(child_ids)
        until = time.monotonic() + timeout_s
        while not (ended := outcomes_of(self.runner.journal, children)) and time.monotonic() < until:
            await self._pause(until - time.monotonic())
        return ended

    async def silent(self, child_ids: Collection[str]) -> Mapping[str, float]:
        """How long children have given no sign of life."""
        self._go_on()
        return self.runner.journal.silent(child_ids)

    async def cancel(self, child_id: str) -> None:
        """Ends a child and whatever came of it."""
        self._go_on()
        with _leaving():
            self.runner.journal.cancel(child_id, parent=(self.run_id, self.runner.executor))

    async def now(self, key: str) -> float:
        """The time, recorded."""

        async def look() -> Json:
            return _now()

        moment = await self.step(key, look)
        assert isinstance(moment, float)
        return moment

    def _next(self, key: str) -> int:
        """The place of the next step; it must be the one that stands there, and no other if none does."""
        self._go_on()
        check_name(key)
        inside = _INSIDE.get("")
        if inside:
            raise EngineError(
                f"run {self.run_id} asks for step {key} inside step {inside}", next_step="take steps in the body only"
            )
        position = len(self._asked)
        if key in self._asked:
            self._misfits(
                RepeatedKey(
                    f"run {self.run_id} asks for step {key} twice", next_step="give every step a key of its own"
                )
            )
        self._asked[key] = position
        there = self._recorded.get(position)
        elsewhere = next((at for at, step in self._recorded.items() if step.key == key and at != position), None)
        if (there is not None and there.key != key) or elsewhere is not None:
            stands = f"{there.key} stands there" if there is not None else f"it stands at {elsewhere}"
            self._misfits(
                ChangedOrder(
                    f"run {self.run_id} asks for step {key} at {position}, but in its journal {stands}",
                    next_step="put the steps back as they were, or rerun from one that still fits",
                )
            )
        return position

    def finish(self) -> None:
        """At the end of a body: every step that stands in the journal must have been asked for."""
        for position, step in self._recorded.items():
            if self.misfit is None and step.key not in self._asked:
                self._misfits(
                    ChangedOrder(
                        f"run {self.run_id} ended without step {step.key}, which is at {position} in its journal",
                        next_step="put the steps back as they were, or rerun from one that still fits",
                    )
                )

    def _misfits(self, error: EngineError) -> None:
        self.misfit = error
        raise error

    def _go_on(self) -> None:
        """Before every call: not when the code does not fit, nor when the engine closes."""
        if self.misfit is not None:
            raise self.misfit
        if self.runner.closing.is_set():
            raise asyncio.CancelledError("the engine is closing")

    async def _pause(self, longest_s: float = math.inf) -> None:
        with contextlib.suppress(TimeoutError):  # not wait_for, which on 3.11 can lose a cancellation
            async with asyncio.timeout(min(self.runner.poll_s, longest_s)):
                await self.runner.closing.wait()
        self._go_on()

    async def _run(
        self, position: int, key: str, work: Callable[[], Awaitable[Json]], timeout_s: float | None, attempts: int
    ) -> None:
        step = Recorded(key, failed=True, result="")
        for _ in range(attempts):
            step = await self._attempt(key, work, timeout_s)
            if not step.failed:
                break
        with _leaving():
            self.runner.journal.record(self.run_id, self.runner.executor, position, step)
        self._recorded[position] = step

    async def _attempt(self, key: str, work: Callable[[], Awaitable[Json]], timeout_s: float | None) -> Recorded:
        task = asyncio.current_task()
        assert task is not None
        token = _INSIDE.set(key)
        try:
            async with asyncio.timeout(timeout_s):
                value = await work()
            return Recorded(key, failed=False, result=encode(value))
        except asyncio.CancelledError as error:
            # ours to pass on if this run is to stop; otherwise something inside the work was cancelled, and it failed
            if task.cancelling() or self.runner.closing.is_set():
                raise
            return _failure(key, error)
        except Exception as error:  # whatever a step raises is recorded, except a fault of the machine
            if is_machine_fault(error):
                self.is_interrupted = True
                raise asyncio.CancelledError(f"run {self.run_id} is interrupted") from error
            return _failure(key, error)
        finally:
            _INSIDE.reset(token)

    def _result(self, position: int) -> Json:
        step = self._recorded[position]
        value = decode(step.result)
        if step.failed:
            assert isinstance(value, list)
            raise StepError(step.key, str(value[0]), str(value[1]))
        return value


class _leaving:  # noqa: N801  # read as a word: with leaving
    """Turns `NotOurs` into the cancellation that it means for a body."""

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, NotOurs):
            raise asyncio.CancelledError(f"run {error} is no longer this worker's") from None


def _failure(key: str, error: BaseException) -> Recorded:
    return Recorded(key, failed=True, result=encode([type(error).__name__, tellable(error)]))


def outcomes_of(journal: Journal, runs: Collection[str]) -> dict[str, RunOutcome]:
    """How those of some runs ended that have."""
    return {
        run: RunOutcome(ExecutionStatus(status), None if value is None else decode(value), error or "")
        for run, status, value, error in journal.ended(runs)
    }


def check_name(name: str) -> None:
    """Of a run or a step: something every database can hold."""
    if not name.strip() or not name.isprintable():
        raise EngineError(f"{name!r} cannot be the name of a run or a step", next_step="give it letters and digits")


def _check_time(what: str, timeout_s: float | None) -> None:
    if timeout_s is not None and not 0 < timeout_s < math.inf:
        raise EngineError(f"{what} has {timeout_s} s of time", next_step="give it some, or None")


def unknown_flow(flow: str) -> EngineError:
    """For a name that no body stands behind."""
    return EngineError(f"there is no flow {flow}", next_step="submit one of the flows this engine was made with")


def _now() -> float:
    return system_clock().timestamp()
