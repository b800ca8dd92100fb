"""Virtual time for coroutines: one thread, no waiting, and an order of events that follows from the seed alone."""

import math
import types
from collections.abc import Callable, Coroutine, Generator
from heapq import heappop, heappush
from typing import Any

NEVER = math.inf
_GONE = -1


class Gone(BaseException):
    """The process that a coroutine ran in is no more, or has lost what it worked for."""


class Endless(Exception):
    """What should have come to its end goes on and on, or waits for nothing."""


@types.coroutine
def rest(seconds: float) -> Generator[float, None, None]:
    """Lets so much virtual time pass, `NEVER` until somebody wakes the task."""
    yield seconds


class Task:
    """A coroutine with its next moment."""

    __slots__ = ("coro", "owner", "ticket")

    def __init__(self, coro: Coroutine[float, None, None], owner: str) -> None:
        self.coro, self.owner, self.ticket = coro, owner, 0


class Timeline:
    """Everything that will happen, soonest first."""

    def __init__(self, *, most_turns: int) -> None:
        self.now = 0.0
        self.turns = 0
        self.current: Task | None = None
        self.on_gone: Callable[[Task, Gone], None] = _ignore
        """Told of every task that ended by being gone."""
        self._most_turns = most_turns
        self._order = 0
        self._due: list[tuple[float, int, Task | None, Any]] = []

    def start(self, coro: Coroutine[float, None, None], owner: str, *, delay: float = 0.0) -> Task:
        """A new task, which begins after the delay."""
        task = Task(coro, owner)
        self.wake(task, delay=delay)
        return task

    def wake(self, task: Task, *, delay: float = 0.0) -> None:
        """Makes a task go on then, whatever it rests for; one that is gone stays gone."""
        if task.ticket != _GONE:
            task.ticket += 1
            self._push(delay, task, task.ticket)

    def kill(self, task: Task) -> None:
        """Throws a task away as it stands."""
        task.ticket = _GONE
        if task is not self.current:
            task.coro.close()

    def later(self, delay: float, call: Callable[[], object]) -> None:
        """Something outside of every process: it happens whatever crashes."""
        self._push(delay, None, call)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Lets time pass until it is over."""
        while not is_over():
            if not self._due:
                raise Endless(f"at {self.now:.1f} s nobody has anything to wait for")
            when, _, task, ticket = heappop(self._due)
            if task is None:
                self.now = when
                ticket()
            elif ticket == task.ticket:
                self.now = when
                self._go_on(task)

    def clear(self) -> None:
        """Throws away everything that would still happen."""
        for _, _, task, ticket in self._due:
            if task is not None and ticket == task.ticket:
                self.kill(task)
        self._due = []

    def _go_on(self, task: Task) -> None:
        self.turns += 1
        if self.turns > self._most_turns:
            raise Endless(f"at {self.now:.1f} s it has not come to its end in {self.turns} turns")
        self.current = task
        try:
            seconds = task.coro.send(None)
        except StopIteration:
            task.ticket = _GONE
        except Gone as gone:
            task.ticket = _GONE
            self.current = None
            self.on_gone(task, gone)
        else:
            if task.ticket != _GONE and seconds < NEVER:
                task.ticket += 1
                self._push(seconds, task, task.ticket)
            elif task.ticket == _GONE:
                task.coro.close()  # it was thrown away by what it did itself
        finally:
            self.current = None

    def _push(self, delay: float, task: Task | None, what: object) -> None:
        self._order += 1
        heappush(self._due, (self.now + delay, self._order, task, what))


def _ignore(_task: Task, _gone: Gone) -> None:
    return
