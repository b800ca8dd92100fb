"""One body at work in this process: what it waits for, and how it is told to stop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fairwitness.engine.base import Json


class RunningBody:
    """Where a body works. Everything it waits for is known here, so that it can be ended in order."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.ended = asyncio.Event()
        self.is_stopping = False
        self.is_closing = False
        self.gates: dict[str, asyncio.Future[str]] = {}
        self.children: dict[asyncio.Future[frozenset[str]], frozenset[str]] = {}
        """Whom to tell which of these have ended."""
        self._works: set[asyncio.Task[Json]] = set()

    def go_on(self) -> None:
        """Before everything a body begins: not when it is to end."""
        if self.is_stopping or self.is_closing:
            raise asyncio.CancelledError(f"run {self.run_id} stops here")

    def close(self) -> None:
        """Begins nothing more and waits for nobody; work that runs may end."""
        self.is_closing = True
        for gate in self.gates.values():
            gate.cancel()
        for news in self.children:
            news.cancel()

    def stop(self) -> None:
        """Ends the work that runs, too; once, since a second time would strike what it does to leave in order."""
        if not self.is_stopping:
            self.is_stopping = True
            self.close()
            for work in self._works:
                work.cancel()

    async def wait_for(self, gate: str) -> str:
        """Until somebody tells the gate something."""
        self.go_on()
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.gates[gate] = waiting
        try:
            return await waiting
        finally:
            del self.gates[gate]

    async def wait_for_one(self, children: frozenset[str], timeout_s: float) -> frozenset[str]:
        """Until somebody tells which of these have ended, or the time is up and none has."""
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
        """Runs work as a task of its own. When this returns or raises, however it does, the task has ended."""
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
            self.go_on()  # what work makes of being stopped is no result
            raise OwnCancellation("something inside it was cancelled")
        return task.result()


class OwnCancellation(Exception):
    """Work that nobody stopped ended as cancelled: it failed."""


async def _end(task: "asyncio.Task[Json]") -> None:
    """Cancels a task and sees it end, even if whoever asks is cancelled meanwhile."""
    task.cancel()
    again: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            again = error
    if not task.cancelled():
        task.exception()  # asked for, so that nobody reports it as lost
    if again is not None:
        raise again
