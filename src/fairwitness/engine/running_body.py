"""One body that runs in this process: what it waits for, and how it is stopped."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fairwitness.engine.base import Json


class RunningBody:
    """A running body. It holds everything that the body waits for, so that the body can be ended cleanly."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.ended = asyncio.Event()
        self.is_stopping = False
        self.is_closing = False
        self.gates: dict[str, asyncio.Future[str]] = {}
        self.children: dict[asyncio.Future[frozenset[str]], frozenset[str]] = {}
        """The children that each future waits for; its result is the ones that have ended."""
        self._works: set[asyncio.Task[Json]] = set()

    def go_on(self) -> None:
        """Raise `CancelledError` if the body must end; called before everything that it starts."""
        if self.is_stopping or self.is_closing:
            raise asyncio.CancelledError(f"run {self.run_id} stops here")

    def close(self) -> None:
        """Start nothing more and cancel the waiting; running work may end by itself."""
        self.is_closing = True
        for gate in self.gates.values():
            gate.cancel()
        for news in self.children:
            news.cancel()

    def stop(self) -> None:
        """Also cancel running work, but only once, since a second cancellation would interrupt its cleanup."""
        if not self.is_stopping:
            self.is_stopping = True
            self.close()
            for work in self._works:
                work.cancel()

    async def wait_for(self, gate: str) -> str:
        """Wait until the gate is answered; return the answer."""
        self.go_on()
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.gates[gate] = waiting
        try:
            return await waiting
        finally:
            del self.gates[gate]

    async def wait_for_one(self, children: frozenset[str], timeout_s: float) -> frozenset[str]:
        """Wait until some of these children have ended, and return them; return none when the time is up."""
        self.go_on()
        news: asyncio.Future[frozenset[str]] = asyncio.get_running_loop().create_future()
        self.children[news] = children
        try:
            await asyncio.wait({news}, timeout=timeout_s)
            self.go_on()
            return news.result() if news.done() else frozenset()
        finally:
            del self.children[news]
            news.cancel()

    async def do(self, work: Callable[[], Coroutine[Any, Any, Json]], timeout_s: float | None) -> Json:
        """Run work as a separate task. When this returns or raises, the task has ended."""
        self.go_on()
        task = asyncio.create_task(work())
        self._works.add(task)
        try:
            await asyncio.wait({task}, timeout=timeout_s)
            if not task.done():
                await _end(task)
                raise TimeoutError(f"it was not done after {timeout_s:g} s")
        except asyncio.CancelledError:
            await _end(task)
            raise
        finally:
            self._works.discard(task)
        if task.cancelled() or (self.is_stopping and task.exception() is not None):
            self.go_on()  # what stopped work returns or raises is not a result
            raise OwnCancellation("something inside it was cancelled")
        return task.result()


class OwnCancellation(Exception):
    """The work ended as cancelled although it was not stopped: it failed."""


async def _end(task: "asyncio.Task[Json]") -> None:
    """Cancel a task and wait for its end, even if the caller is cancelled meanwhile."""
    task.cancel()
    again: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            again = error
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not report it as lost
    if again is not None:
        raise again
