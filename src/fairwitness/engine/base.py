"""The interface of an engine: bodies made of named steps, gates and children, which continue after a crash.

After a crash the engine repeats only the step that was running; the steps themselves must make sure that nothing is
paid for twice. A fault of the machine, such as a lost database or a full disk, interrupts a run and never fails it.
All values that pass through the engine are JSON, also on the first run: a tuple comes back as a list, and a number that
is the key of an object comes back as a string.

A run starts at once, since runs wait for people and for their children. Children are limited: a worker runs at most
`cap` of each generation at a time (children of runs, their children, and so on). Runs are not counted. A child may
therefore wait for children of its own, because the limit of their generation is separate from its own.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from fairwitness.errors import FairWitnessError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

JOURNAL_VERSION = "1"
"""The version of the journal. A change of a body's steps that old runs cannot replay needs a new version."""

DEEPEST_GENERATION = 4
"""The deepest generation of children that may be submitted; a deeper one indicates a bug and is refused."""


class EngineError(FairWitnessError):
    """The journal does not fit the code, or the engine was called in an invalid way."""


class RepeatedKey(EngineError):
    """A body used a key twice. Its run fails, even if the body catches this."""


class ChangedOrder(EngineError):
    """A replayed body called another step than the recorded one, or ended without calling a recorded one.

    Nothing was executed, and the run fails, even if the body catches this.
    """


class StepError(EngineError):
    """A step raised an error; a replay raises the same one."""

    def __init__(self, key: str, kind: str, message: str) -> None:
        super().__init__(f"step {key} failed: {kind}: {message}")
        self.key, self.kind, self.message = key, kind, message


class ExecutionStatus(StrEnum):
    """The status of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as the engine knows it."""

    id: str
    flow: str
    status: ExecutionStatus
    version: str
    executor: str | None
    """The process that runs it; None if there is none."""
    error: str | None = None
    parent: str | None = None
    """The run whose body submitted this one; None if it has no parent."""


@dataclass(frozen=True, slots=True)
class StepInfo:
    """One recorded step of a run."""

    key: str
    failed: bool


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a run or a child: its value, or why there is none."""

    status: ExecutionStatus
    value: Json = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class StrandedRun:
    """A run that cannot continue on its own, the reason, and the command that repairs it."""

    run_id: str
    reason: str
    next_step: str


class Flow(Protocol):
    """The operations of a body; everything that is not computed from its arguments must come through here."""

    @property
    def run_id(self) -> str:
        """Return the id of the run that this body belongs to."""
        ...

    async def step(
        self, key: str, work: Callable[[], Awaitable[Json]], *, timeout_s: float | None = None, attempts: int = 1
    ) -> Json:
        """Run the work once, record its result and return it; on replay return the recorded result.

        Raise `StepError` if the work raised an error. If the machine is at fault (`errors.is_machine_fault`), the error
        is neither recorded nor raised: the body ends without a result, and a worker repeats the step later. If the step
        is cancelled or runs out of time, the task of the work is cancelled and awaited before anything else happens. A
        step inside the work of a step is refused.
        """
        ...

    async def gate(self, key: str, *, timeout_s: float | None = None) -> Json:
        """Wait for an answer, without limit unless a time is given; return None when the time is up.

        An earlier answer is kept, also while no worker runs. The time starts when the gate is first called and
        continues while no worker runs, so that a restart does not extend it.
        """
        ...

    async def submit(self, child_id: str, flow: str, args: Json) -> None:
        """Start a child with an id chosen by the caller; a repeated call changes nothing. It is not a step."""
        ...

    async def outcome(self, child_id: str) -> RunOutcome | None:
        """Return the result of a child, or None if it has not ended. The result is read each time, never recorded."""
        ...

    async def wait(self, child_ids: Collection[str], *, timeout_s: float) -> Mapping[str, RunOutcome]:
        """Wait until at least one of these children has ended or the time is up; return the outcomes of all that ended.

        Without children it waits until the time is up; with a time of 0 it does not wait.

        The outcomes are read, never recorded, so this is meant for use within the work of a step. It is cancelled at
        once when the run is cancelled or its process closes.
        """
        ...

    async def silent(self, child_ids: Collection[str]) -> Mapping[str, float]:
        """Return the seconds since the last heartbeat of each of these children.

        Only children that a worker has taken and that have not ended are included.

        The heartbeat comes every few seconds from the event loop on which the body runs: it is missing if the loop
        hangs or the worker is dead, but not while a body only waits.
        """
        ...

    async def cancel(self, child_id: str) -> None:
        """Cancel a child of this run and all its descendants; a child that has ended is not changed.

        The outcome is available at once, while the work of the child may take a moment to clean up. This is not
        recorded as a step.
        """
        ...

    async def now(self, key: str) -> float:
        """Return the time, recorded like a step."""
        ...


Body: TypeAlias = Callable[[Flow, Json], Awaitable[Json]]


class Engine(Protocol):
    """One engine in one process. Call `open` first; after `close` nothing runs any more."""

    async def open(self, *, worker: bool) -> None:
        """Open the engine.

        A worker takes runs from the queue and recovers those of dead workers; other engines only control.
        """
        ...

    async def close(self, *, grace_s: float = 5.0) -> None:
        """Close the engine; runs that have not ended continue when a worker opens again."""
        ...

    async def submit(self, run_id: str, flow: str, args: Json) -> None:
        """Start a run with an id chosen by the caller; a repeated call changes nothing. An unknown flow is an error."""
        ...

    async def answer(self, run_id: str, gate: str, value: Json) -> bool:
        """Answer a gate; only the first answer counts.

        Return False if there was an earlier answer, or if the gate's time was up before this one.
        """
        ...

    async def cancel(self, run_id: str) -> None:
        """Cancel a run and its children at their next step; running steps are cancelled."""
        ...

    async def rerun_from(self, run_id: str, key: str) -> None:
        """Delete the recorded steps of an ended run from a key on, and continue from there.

        The answers of the deleted gates are deleted too.
        """
        ...

    async def resume(self, run_id: str) -> None:
        """Continue a failed or cancelled run with everything it recorded.

        If its last recorded step failed, that step is repeated; earlier failures are kept. Its children are not
        changed.

        A run that is done, queued or running is not changed, unless the audit says that it has no worker any more.
        """
        ...

    async def outcome(self, run_id: str) -> RunOutcome | None:
        """Return the result of a run, or None if it has not ended."""
        ...

    async def runs(self) -> tuple[RunInfo, ...]:
        """Return all runs, oldest first, including children."""
        ...

    async def steps(self, run_id: str) -> tuple[StepInfo, ...]:
        """Return the recorded steps of a run, in order."""
        ...

    async def audit(self) -> tuple[StrandedRun, ...]:
        """Return runs of another version, of dead workers that were not taken over, or whose steps no longer fit."""
        ...
