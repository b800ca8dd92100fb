"""Group commit for the threads of one process: whoever comes while the disk is busy shares the next commit.

The first writer leads. When its commit is done it wakes one of those who queued up meanwhile to lead the next, which
takes all of them along. A lone writer leads itself and waits for nobody; nobody leads twice while others wait.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from assay.db.base import Transaction

LARGEST = 64
"""How many writers one commit takes along at the most, so that the last of them does not wait for ever."""


class Job:
    """One writer's work and what came of it."""

    __slots__ = ("_woken", "error", "is_done", "result", "work")

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self._woken = threading.Lock()  # a bare lock wakes a thread at a third of the price of an Event
        self._woken.acquire()

    def wait(self) -> None:
        """Sleeps until woken."""
        self._woken.acquire()

    def wake(self) -> None:
        """Wakes the writer: its work is done, or it is to lead."""
        self._woken.release()


class GroupCommit:
    """Hands writers' jobs, in the order they came, to a function that commits some of them together."""

    def __init__(self, commit: Callable[[list[Job]], None]) -> None:
        self._commit = commit
        self._guard = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._is_busy = False

    def submit(self, job: Job) -> None:
        """Returns when the job is committed or has failed."""
        with self._guard:
            leads = not self._is_busy
            self._is_busy = True
            if not leads:
                self._waiting.append(job)
        if leads:
            self._lead([job])
            return
        job.wait()
        if not job.is_done:
            self._lead(self._take())

    def _take(self) -> list[Job]:
        with self._guard:
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), LARGEST))]

    def _lead(self, jobs: list[Job]) -> None:
        try:
            self._commit(jobs)
        finally:
            for job in jobs:
                job.is_done = True
            with self._guard:
                successor = self._waiting[0] if self._waiting else None
                self._is_busy = successor is not None
            if successor is not None:
                successor.wake()
            for job in jobs[1:]:
                job.wake()
