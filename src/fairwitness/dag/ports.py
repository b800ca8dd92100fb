"""The ports through which the executor and its children reach the repository, the ledger and the agents.

Every call can be repeated after a crash: it finds what it left behind and returns the same result.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.graph.orders import (
    AttemptOrder,
    AttemptStart,
    Candidate,
    GraphPlan,
    Landing,
    MergeOrder,
    Proof,
    Stack,
    Worked,
)


class RunLogPort(Protocol):
    """The events of the run."""

    async def plan(self) -> GraphPlan:
        """Return the current graph, with everything that was added to it."""
        ...

    async def events(self, after: int) -> Sequence[Envelope]:
        """Return the run's events after this sequence number."""
        ...

    async def record(self, make: Callable[[str], Iterable[EventData]], *, after: int) -> bool:
        """Write events in one record; `make` gets the timestamp. Return False and write nothing if an event that
        matters to an executor was recorded after `after`."""
        ...

    async def moment_ago(self, seconds: float) -> str:
        """Return the timestamp of so many seconds ago."""
        ...


class AttemptPort(Protocol):
    """Makes attempts."""

    async def prepare(self, order: AttemptOrder) -> AttemptStart:
        """Create a branch and a worktree for the attempt."""
        ...

    async def work(self, order: AttemptOrder, prepared: AttemptStart) -> Worked:
        """Let the agents work in the worktree."""
        ...

    async def commit(self, order: AttemptOrder, prepared: AttemptStart, worked: Worked) -> Candidate | None:
        """Commit what the agents changed; return None if they changed nothing."""
        ...

    async def prove(self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate) -> Proof:
        """Run the checks on the candidate."""
        ...

    async def leave(self, order: AttemptOrder, *, keep: bool) -> None:
        """Remove the worktree, and the branch unless `keep` is set. Nothing that was committed is lost."""
        ...


class MergePort(Protocol):
    """Merges attempts."""

    async def stack(self, order: MergeOrder) -> Stack:
        """Stack the batch on top of the target without moving the target."""
        ...

    async def check(self, order: MergeOrder, stack: Stack, candidate: Candidate) -> Proof:
        """Run the checks on the merged tree."""
        ...

    async def land(self, order: MergeOrder, stack: Stack, candidate: Candidate | None) -> Landing:
        """Move the target to a proven candidate if the target has not moved meanwhile. With None, only report where
        it is."""
        ...

    async def tip(self, target: str) -> str:
        """Return the target's commit; create the branch at the run's base if it does not exist."""
        ...

    async def tidy(self, order: MergeOrder, landed: Sequence[str]) -> None:
        """Remove what is no longer needed of the nodes that landed."""
        ...


class GraphPorts(RunLogPort, AttemptPort, MergePort, Protocol):
    """Everything that the executor of one run needs."""
