"""The promise of every engine: bodies made of named steps, gates and children, which go on where they were killed.

The engine repeats the one step that was in flight; that nothing is paid twice is the duty of the steps. Everything that
crosses it is JSON, also on the first run: a tuple comes back as a list, a number that is the key of an object as text.

A run begins at once, since runs wait for people and for their children. Children have a cap: a worker runs so many of
each generation at a time, so many children of runs, so many children of those, and so on. Runs are not counted. A
child may therefore wait for children of its own: those have room that no other child can take from them.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from fairwitness.errors import FairWitnessError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

JOURNAL_VERSION = "1"
"""Of what bodies leave in the journal. A change of their steps that old runs cannot follow needs another."""

DEEPEST_GENERATION = 4
"""Of children, their children, and so on: a body that submits deeper ones has lost its way, and is refused."""


class EngineError(FairWitnessError):
    """The journal and the code do not fit, or a call of the engine cannot be meant."""


class RepeatedKey(EngineError):
    """A body used a key twice. Its run fails, also if the body caught this."""


class ChangedOrder(EngineError):
    """A replayed body asked for another step than it had asked for at this place, or ended without having asked for
    one that is recorded. Nothing was run, and the run fails, also if the body caught this."""


class StepError(EngineError):
    """A step raised; the same in the first run and in every replay."""

    def __init__(self, key: str, kind: str, message: str) -> None:
        super().__init__(f"step {key} failed: {kind}: {message}")
        self.key, self.kind, self.message = key, kind, message


class ExecutionStatus(StrEnum):
    """How a run of a flow stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run, as the engine knows it."""

    id: str
    flow: str
    status: ExecutionStatus
    version: str
    executor: str | None
    """The process that has it; None while nobody does."""
    error: str | None = None
    parent: str | None = None
    """The run whose body submitted it; None if it is nobody's child."""


@dataclass(frozen=True, slots=True)
class StepInfo:
    """One recorded step of a run, in order."""

    key: str
    failed: bool


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run or a child ended: its value, or why there is none."""

    status: ExecutionStatus
    value: Json = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class StrandedRun:
    """A run that goes on by itself no more, why, and the command that repairs it."""

    run_id: str
    reason: str
    next_step: str


class Flow(Protocol):
    """What a body may do; everything that is not computed from its arguments comes through here."""

    @property
    def run_id(self) -> str:
        """The run this body belongs to."""
        ...

    async def step(
        self, key: str, work: Callable[[], Awaitable[Json]], *, timeout_s: float | None = None, attempts: int = 1
    ) -> Json:
        """Runs the work once and records what it gave; on replay gives what is recorded. `StepError` if it raised.

        Cancelled or out of time, the work's task is cancelled and awaited before anything else happens. A step inside
        the work of a step is refused.
        """
        ...

    async def gate(self, key: str, *, timeout_s: float | None = None) -> Json:
        """Waits for an answer, for ever unless a time is given; None when the time is up. An answer that came first
        is kept, also while nothing runs. The time begins when the gate is asked for the first time and runs on while
        nothing runs: a restart gives it no more."""
        ...

    async def submit(self, child_id: str, flow: str, args: Json) -> None:
        """Starts a child under an id of the caller's choice; again it changes nothing. It is no step."""
        ...

    async def outcome(self, child_id: str) -> RunOutcome | None:
        """How a child ended; None while it has not. Looked up each time, never recorded."""
        ...

    async def wait(self, child_ids: Collection[str], *, timeout_s: float) -> Mapping[str, RunOutcome]:
        """Waits until at least one of these children has ended or the time is up, and gives the outcomes of all that
        have ended by then. Of none at all it waits out the time; without time it only looks.

        Looked up, never recorded, and so meant for the work of a step. It is cancelled at once when the run is
        cancelled or its process closes.
        """
        ...

    async def silent(self, child_ids: Collection[str]) -> Mapping[str, float]:
        """Seconds since the body of each of these children last gave a sign of life. Only those are told of that a
        worker has taken and that have not ended.

        The sign comes every few seconds from the loop on which the body runs: it fails to come when the loop hangs
        or the worker is dead, and not while a body only waits.
        """
        ...

    async def cancel(self, child_id: str) -> None:
        """Ends a child of this run and whatever came of it; one that has ended stays as it is. Its outcome is there
        at once, while what it was doing may take a moment to leave in order. It is no step."""
        ...

    async def now(self, key: str) -> float:
        """The time, recorded like a step."""
        ...


Body: TypeAlias = Callable[[Flow, Json], Awaitable[Json]]


class Engine(Protocol):
    """One engine in one process. `open` before anything else; `close` leaves nothing running."""

    async def open(self, *, worker: bool) -> None:
        """As a worker it takes runs from the queue and recovers those of the dead; otherwise it only controls."""
        ...

    async def close(self, *, grace_s: float = 5.0) -> None:
        """Ends; runs that have not ended go on when a worker opens again."""
        ...

    async def submit(self, run_id: str, flow: str, args: Json) -> None:
        """Starts a run under an id of the caller's choice; again it changes nothing. An unknown flow is an error."""
        ...

    async def answer(self, run_id: str, gate: str, value: Json) -> bool:
        """Answers a gate; only the first answer counts, and False says that it was not this one, or that the gate's
        time was up before it came."""
        ...

    async def cancel(self, run_id: str) -> None:
        """Ends a run and its children at their next step; the step that runs is cancelled."""
        ...

    async def rerun_from(self, run_id: str, key: str) -> None:
        """Forgets the steps of a run from a key on, and goes on from there. Only for a run that has ended. The answers
        that its forgotten gates had are forgotten too."""
        ...

    async def resume(self, run_id: str) -> None:
        """Goes on with a run that failed or was cancelled, with all it recorded. If its last recorded step failed,
        that one is asked again; failures before it stay. Its children stay as they ended.

        A run that is done, queued or running is left alone, unless the audit says that nobody has it any more.
        """
        ...

    async def outcome(self, run_id: str) -> RunOutcome | None:
        """How a run ended; None while it has not."""
        ...

    async def runs(self) -> tuple[RunInfo, ...]:
        """Every run, oldest first, children included."""
        ...

    async def steps(self, run_id: str) -> tuple[StepInfo, ...]:
        """The recorded steps of a run."""
        ...

    async def audit(self) -> tuple[StrandedRun, ...]:
        """Runs of another version, of dead workers that nobody took over, and runs whose steps no longer fit."""
        ...
