"""What the executor and its children ask of the world; the steps answer for real, the simulation answers as told.

Every call can be made again after a crash: it finds what it left behind, and gives the same answer.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.graph.orders import (
    AttemptOrder,
    Candidate,
    Landing,
    MergeOrder,
    Plan,
    Prepared,
    Proof,
    Stack,
    Worked,
)


class RunLogPort(Protocol):
    """The events of the run."""

    async def plan(self) -> Plan:
        """The graph as it stands now."""
        ...

    async def events(self, after: int) -> Sequence[Envelope]:
        """Everything that happened in the run since."""
        ...

    async def record(self, make: Callable[[str], Iterable[EventData]], *, after: int) -> bool:
        """Writes events in one record, made for the moment they are given; False, and nothing is written, if since
        `after` something happened that an executor goes by."""
        ...

    async def moment_ago(self, seconds: float) -> str:
        """The moment that was so many seconds ago."""
        ...


class AttemptPort(Protocol):
    """Where attempts are made."""

    async def prepare(self, order: AttemptOrder) -> Prepared:
        """A branch and a worktree of its own."""
        ...

    async def work(self, order: AttemptOrder, prepared: Prepared) -> Worked:
        """Lets the agents work in it."""
        ...

    async def commit(self, order: AttemptOrder, prepared: Prepared, worked: Worked) -> Candidate | None:
        """What they left, as one commit; None if they changed nothing."""
        ...

    async def prove(self, order: AttemptOrder, prepared: Prepared, candidate: Candidate) -> Proof:
        """Runs the checks on it."""
        ...

    async def leave(self, order: AttemptOrder, *, keep: bool) -> None:
        """Takes the worktree away, and the branch too unless it is kept; nothing that was committed is lost."""
        ...


class MergePort(Protocol):
    """Where attempts are merged."""

    async def stack(self, order: MergeOrder) -> Stack:
        """The batch on top of the target, which does not move."""
        ...

    async def check(self, order: MergeOrder, stack: Stack, candidate: Candidate) -> Proof:
        """Runs the checks on the merged tree."""
        ...

    async def land(self, order: MergeOrder, stack: Stack, candidate: Candidate | None) -> Landing:
        """Moves the target to a candidate that was proven, if it is still where it was; None only looks."""
        ...

    async def tip(self, target: str) -> str:
        """The target's commit; the branch is made at the run's base if it is not there yet."""
        ...

    async def tidy(self, order: MergeOrder, landed: Sequence[str]) -> None:
        """Takes away what is not needed any more of those that landed."""
        ...


class GraphPorts(RunLogPort, AttemptPort, MergePort, Protocol):
    """All of it, for one run."""
