"""Group commit for the threads of one process: writers that arrive during a commit share the next one.

The first writer leads, that is, its thread commits. If many jobs queued up during a commit, the first of them leads the
next commit and includes all the others. If only a few did, no leader is chosen for a moment: a writer whose thread is
running anyway may then commit alone, which is faster in most cases, but only a limited number of times before the next
commit includes all that wait. A single writer never waits.

A thread may be interrupted anywhere, but always passes through `_leave`. There a leader passes on the lead and settles
the jobs of its commit, and a writer that only waited removes its job from the queue.
"""

import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

from fairwitness.db.base import Transaction
from fairwitness.errors import DatabaseBusy, UsageError

LARGEST = 64
"""The most jobs in one commit, so that the last of them does not wait too long."""

CROWD = 4
"""The number of waiting jobs from which sharing a commit is faster than committing alone."""

PASSES = 8
"""How often other writers may commit ahead of the waiting jobs before a commit must include them."""

_LONGEST_SLEEP_S = 1.0
"""A waiting writer checks by itself after this time, in case an interrupt came between choosing and waking it."""


class WriteJob:
    """One writer's work and its outcome."""

    __slots__ = ("_woken", "error", "is_settled", "result", "work")

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_settled = False
        """Whether the outcome is known: the work is committed, or none of it is."""
        self._woken = threading.Lock()  # waking a thread with a bare lock costs a third of an Event
        self._woken.acquire()

    def settle(self, error: BaseException | None = None) -> None:
        """Record the outcome of the work; the job's own error takes precedence over one of the whole commit."""
        if not self.is_settled:
            self.error = self.error or error
            self.is_settled = True

    def sleep(self) -> bool:
        """Wait to be woken; return False on a timeout."""
        return self._woken.acquire(timeout=_LONGEST_SLEEP_S)

    def wake(self) -> None:
        """Wake the writer because its job is settled or it must lead."""
        if self._woken.locked():
            self._woken.release()


class GroupCommit:
    """Passes jobs, in the order of their arrival, to a function that commits several of them together.

    The function settles every job it is given; the jobs run in the leader's thread.
    """

    def __init__(self, commit: Callable[[list[WriteJob]], None]) -> None:
        self._commit = commit
        self._guard = threading.Lock()
        self._waiting: deque[WriteJob] = deque()
        self._company: list[WriteJob] = []
        self._leader: WriteJob | None = None
        self._leading_thread: int | None = None
        self._passed = 0

    def refuse_from_within(self, action: str) -> None:
        """Raise if this thread is in the middle of a commit, where waiting for the database would be a deadlock."""
        if self._leading_thread == threading.get_ident():
            raise UsageError(
                f"{action} from within a write of the same database",
                next_step="use the transaction that the work is given",
            )

    def submit(self, job: WriteJob) -> None:
        """Run a job; return when it is settled."""
        self.refuse_from_within("a write")
        try:
            with self._guard:
                if self._leader is None and not self._must_share():
                    self._leader = job
                    self._company = [job]
                    self._passed += bool(self._waiting)
                else:
                    self._waiting.append(job)
            while not self._leads(job) and not job.is_settled:
                job.sleep()
            if self._leader is job:
                self._lead()
        finally:
            try:
                self._leave(job)
            except BaseException:
                self._leave(job)  # interrupted while leaving; every step of it may be repeated
                raise

    def _must_share(self) -> bool:
        return len(self._waiting) >= CROWD or self._passed >= PASSES

    def _leads(self, job: WriteJob) -> bool:
        """Return whether the job leads; without a leader, the first job of the queue becomes it."""
        with self._guard:
            if self._leader is None and self._waiting and self._waiting[0] is job:
                self._leader = job
            return self._leader is job

    def _lead(self) -> None:
        if not self._company:
            with self._guard:
                self._company = list(islice(self._waiting, LARGEST))
                for _ in self._company:
                    self._waiting.popleft()
                self._passed = 0
        self._leading_thread = threading.get_ident()
        self._commit(self._company)

    def _leave(self, job: WriteJob) -> None:
        with self._guard:
            if not job.is_settled and job in self._waiting:  # interrupted before a commit included it
                self._waiting.remove(job)
            if self._leader is job:
                for member in self._company:
                    member.settle(interrupted())
                for member in self._company:
                    member.wake()
                self._company = []
                self._leading_thread = None
                while self._waiting and self._waiting[0].is_settled:
                    self._waiting.popleft()
                self._leader = self._waiting[0] if self._waiting and self._must_share() else None
            if self._waiting and self._leader in (None, self._waiting[0]):
                self._waiting[0].wake()


def interrupted() -> DatabaseBusy:
    """Return the error for the other jobs of a commit whose leader was interrupted."""
    return DatabaseBusy("the commit was interrupted and nothing of it was written", next_step="try again")
