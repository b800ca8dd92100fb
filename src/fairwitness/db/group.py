"""Group commit for the threads of one process: whoever comes while the disk is busy shares the next commit.

The first writer leads. Where many queued up meanwhile, the first of them leads the next commit and takes all along.
Where only a few did, the lead stays open for a moment: a writer that is awake anyway goes ahead alone, which is quicker
for most, but only so often before the next commit takes everybody along. A lone writer waits for nobody.

A thread may be interrupted anywhere. Whoever leaves, however, passes through `_leave`: a leader hands the lead on and
tells its company what became of them, one who only waited takes its work back out of the queue.
"""

import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

from fairwitness.db.base import Transaction
from fairwitness.errors import DatabaseBusy, UsageError

LARGEST = 64
"""How many writers one commit takes along at the most, so that the last of them does not wait for ever."""

CROWD = 4
"""How many must wait so that sharing a commit beats going ahead alone."""

PASSES = 8
"""How often those who wait are passed over before a commit takes them along."""

_LONGEST_SLEEP_S = 1.0
"""After which a waiting writer looks up by itself, in case an interrupt struck between choosing and waking it."""


class WriteJob:
    """One writer's work and what came of it."""

    __slots__ = ("_woken", "error", "is_settled", "result", "work")

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_settled = False
        """Whether it is known that the work stands, or that nothing of it does."""
        self._woken = threading.Lock()  # a bare lock wakes a thread at a third of the price of an Event
        self._woken.acquire()

    def settle(self, error: BaseException | None = None) -> None:
        """Says what became of the work; an error of its own goes before one that it shares."""
        if not self.is_settled:
            self.error = self.error or error
            self.is_settled = True

    def sleep(self) -> bool:
        """Waits to be woken; False if nobody did for a while."""
        return self._woken.acquire(timeout=_LONGEST_SLEEP_S)

    def wake(self) -> None:
        """Wakes the writer: its work is settled, or it is to lead."""
        if self._woken.locked():
            self._woken.release()


class GroupCommit:
    """Hands writers' jobs, in the order they came, to a function that commits some of them together.

    The function settles every job it is given; the jobs run in the thread of whoever leads.
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
        """Raises if this thread is in the middle of a commit, where waiting for the database would never end."""
        if self._leading_thread == threading.get_ident():
            raise UsageError(
                f"{action} from within a write of the same database",
                next_step="use the transaction that the work is given",
            )

    def submit(self, job: WriteJob) -> None:
        """Returns when the job is settled."""
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
                self._leave(job)  # interrupted while leaving; each of its steps may be taken twice
                raise

    def _must_share(self) -> bool:
        return len(self._waiting) >= CROWD or self._passed >= PASSES

    def _leads(self, job: WriteJob) -> bool:
        """Whether the job leads, or may now because nobody does and it is the first in the queue."""
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
            if not job.is_settled and job in self._waiting:  # interrupted before anybody took it along
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
    """What the others are told when the thread that led them was interrupted."""
    return DatabaseBusy("the commit was interrupted and nothing of it was written", next_step="try again")
