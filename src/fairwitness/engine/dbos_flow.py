"""The operations of a body: steps with keys that are checked against the journal, gates, children and the time."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from fairwitness.engine.base import ChangedOrder, EngineError, Json, RepeatedKey, RunOutcome, StepError
from fairwitness.engine.json_values import Encoded, check_name, decode, encode, place_of, tellable
from fairwitness.engine.running_body import OwnCancellation, RunningBody
from fairwitness.errors import is_machine_fault
from fairwitness.kit.clock import system_clock
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.kit.killpoints import killpoint

_INSIDE: ContextVar[str] = ContextVar("inside")
"""The step whose work runs in this context."""


class FlowEngine(Protocol):
    """The operations that bodies need from the engine that runs them."""

    @property
    def disk(self) -> DiskWatch | None:
        """The disks for which steps wait, or None."""
        ...

    async def record(self, key: str, work: Callable[[], Awaitable[Encoded]]) -> object:
        """Run the work as the next step of the calling body, or return its recorded result."""
        ...

    def interrupt(self, error: Exception) -> None:
        """Start nothing more because this machine is at fault."""
        ...

    async def ask(self, run_id: str, gate: str, timeout_s: float | None) -> None:
        """Open a gate."""
        ...

    async def start_child(self, parent: str, child_id: str, flow: str, args: Json) -> None:
        """Queue a child, once."""
        ...

    async def cancel_child(self, parent: str, child_id: str) -> None:
        """Cancel a child and all its descendants."""
        ...

    async def ended(self, run_ids: Collection[str]) -> frozenset[str]:
        """Return those of the runs that have ended; this is a cheap query."""
        ...

    async def outcomes(self, run_ids: Collection[str]) -> dict[str, RunOutcome]:
        """Return the results of those of the runs that have ended."""
        ...

    async def silent(self, run_ids: Collection[str]) -> dict[str, float]:
        """Return the seconds since the last heartbeat of those of the runs that a worker has."""
        ...


class DbosFlow:
    """The operations of one body, checked against its journal."""

    def __init__(self, runner: FlowEngine, running: RunningBody, recorded: Mapping[int, str]) -> None:
        self._runner = runner
        self._running = running
        self._recorded = dict(recorded)
        self._positions = {key: position for position, key in recorded.items()}
        self._asked: set[str] = set()
        self.misfit: EngineError | None = None
        """Why the code does not fit the journal; once set, the run fails even if the body catches the error."""

    @property
    def run_id(self) -> str:
        """Return the id of the run that this body belongs to."""
        return self._running.run_id

    async def step(
        self, key: str, work: Callable[[], Awaitable[Json]], *, timeout_s: float | None = None, attempts: int = 1
    ) -> Json:
        """Run the work once, record its result and return it; on replay return the recorded result.

        While a disk is full or read-only no work starts, and work that failed for this reason is repeated and not
        recorded.
        """
        if attempts < 1:
            raise EngineError(f"step {key} of {self.run_id} has {attempts} attempts", next_step="give it one or more")
        self._check_time(key, timeout_s)
        self._next(key)

        async def attempt() -> Encoded:
            failed = Encoded("")
            for _ in range(attempts):
                try:
                    return _good(encode(await self._outlast_disk(_marked(key, work), timeout_s)))
                except OwnCancellation as error:
                    failed = _bad("CancelledError", error)
                except Exception as error:  # whatever a step raises is recorded, except a fault of the machine
                    if is_machine_fault(error):
                        raise self._interrupted(error) from error
                    failed = _bad(type(error).__name__, error)
            return failed

        return await self._recorded_result(key, attempt)

    async def _outlast_disk(self, work: Callable[[], Coroutine[Any, Any, Json]], timeout_s: float | None) -> Json:
        disk, unexplained = self._runner.disk, 0
        while disk is not None:
            await disk.wait(self._running.go_on)
            try:
                return await self._running.do(work, timeout_s)
            except Exception as error:
                if not disk.excuses(error, unexplained):
                    raise
                unexplained += disk.trouble() is None
        return await self._running.do(work, timeout_s)

    async def gate(self, key: str, *, timeout_s: float | None = None) -> Json:
        """Wait for an answer; return None when the time is up."""
        self._check_time(key, timeout_s)
        self._next(key)

        async def wait() -> Encoded:
            await self._runner.ask(self.run_id, key, timeout_s)
            return _good(await self._running.wait_for(key))

        return await self._recorded_result(key, wait)

    async def submit(self, child_id: str, flow: str, args: Json) -> None:
        """Start a child, once."""
        self._go_on()
        await self._runner.start_child(self.run_id, child_id, flow, args)

    async def outcome(self, child_id: str) -> RunOutcome | None:
        """Return the result of a child, or None if it has not ended."""
        self._go_on()
        return (await self._runner.outcomes(await self._runner.ended([child_id]))).get(child_id)

    async def wait(self, child_ids: Collection[str], *, timeout_s: float) -> Mapping[str, RunOutcome]:
        """Wait until one of these children has ended or the time is up; return the outcomes of all that ended."""
        if timeout_s != 0:  # a time of 0 returns the current outcomes
            self._check_time("waiting for children", timeout_s)
        self._go_on()
        children = frozenset(child_ids)
        ended = await self._runner.ended(children)
        if not ended and timeout_s > 0:
            ended = await self._running.wait_for_one(children, timeout_s)
        return await self._runner.outcomes(ended)

    async def silent(self, child_ids: Collection[str]) -> Mapping[str, float]:
        """Return the seconds since the last heartbeat of each child that a worker has."""
        self._go_on()
        return await self._runner.silent(child_ids)

    async def cancel(self, child_id: str) -> None:
        """Cancel a child and all its descendants."""
        self._go_on()
        await self._runner.cancel_child(self.run_id, child_id)

    async def now(self, key: str) -> float:
        """Return the time, recorded like a step."""

        async def look() -> Json:
            return system_clock().timestamp()

        moment = await self.step(key, look)
        assert isinstance(moment, float)
        return moment

    def finish(self) -> None:
        """Check at the end of a body that it called every step in the journal."""
        if self.misfit is None:
            for position, key in sorted(self._recorded.items()):
                if key not in self._asked:
                    self._misfits(
                        ChangedOrder(
                            f"run {self.run_id} ended without step {key}, which is at {position} in its journal",
                            next_step="put the steps back as they were, or rerun from one that still fits",
                        )
                    )

    def _check_time(self, key: str, timeout_s: float | None) -> None:
        if timeout_s is not None and not 0 < timeout_s < math.inf:
            raise EngineError(f"{key} of {self.run_id} has {timeout_s} s of time", next_step="give it some, or None")

    def _go_on(self) -> None:
        if self.misfit is not None:
            raise self.misfit
        self._running.go_on()

    def _interrupted(self, error: Exception) -> BaseException:
        """Return what ends the body without a result: a fault of the machine is neither recorded nor told to it."""
        self._runner.interrupt(error)
        return asyncio.CancelledError(f"run {self.run_id} is interrupted")

    def _next(self, key: str) -> None:
        """Check that the next position of the journal has this key, and that no other position has it."""
        self._go_on()
        check_name(key)
        inside = _INSIDE.get(None)
        if inside is not None:
            raise EngineError(
                f"run {self.run_id} asks for step {key} inside step {inside}", next_step="take steps in the body only"
            )
        position = len(self._asked) + 1
        if key in self._asked:
            self._misfits(
                RepeatedKey(
                    f"run {self.run_id} asks for step {key} twice", next_step="give every step a key of its own"
                )
            )
        self._asked.add(key)
        there, stands = self._recorded.get(position, key), self._positions.get(key, position)
        if there != key or stands != position:
            found = f"{there} is there" if there != key else f"it is at {stands}"
            self._misfits(
                ChangedOrder(
                    f"run {self.run_id} asks for step {key} at {position}, but in its journal {found}",
                    next_step="put the steps back as they were, or rerun from one that still fits",
                )
            )

    def _misfits(self, error: EngineError) -> None:
        self.misfit = error
        raise error

    async def _recorded_result(self, key: str, work: Callable[[], Awaitable[Encoded]]) -> Json:
        try:
            result = await self._runner.record(key, work)
            killpoint("engine.step.recorded")
        except ChangedOrder as error:
            self._misfits(error)
            raise
        found = decode(result.text) if isinstance(result, Encoded) else result
        assert isinstance(found, dict)
        if not found["ok"]:
            raise StepError(key, str(found["kind"]), str(found["message"]))
        value: Json = found["value"]
        return value


def _marked(key: str, work: Callable[[], Awaitable[Json]]) -> Callable[[], Coroutine[Any, Any, Json]]:
    async def marked() -> Json:
        _INSIDE.set(key)
        return await work()

    return marked


def _good(text: str) -> Encoded:
    return Encoded(f'{{"ok":true,"value":{text}}}')


def _bad(kind: str, error: BaseException) -> Encoded:
    told: dict[str, Json] = {"ok": False, "kind": kind, "message": f"{tellable(error)}{place_of(error)}"}
    return Encoded(encode(told))
