"""The promise of every engine: bodies made of named steps, gates and children, which go on where they were killed.

The engine repeats the one step that was in flight; that nothing is paid twice is the duty of the steps. Everything that
crosses it is JSON.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from assay.errors import AssayError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

JOURNAL_VERSION = "1"
"""Of what bodies leave in the journal. A change of their steps that old runs cannot follow needs another."""


class EngineError(AssayError):
    """The journal and the code do not fit, or a call of the engine cannot be meant."""


class RepeatedKey(EngineError):
    """A body used a key twice."""


class ChangedOrder(EngineError):
    """A replayed body asked for another step than it had asked for at this place; nothing was run."""


class StepFailed(EngineError):
    """A step raised; the same in the first run and in every replay."""

    def __init__(self, key: str, kind: str, message: str) -> None:
        super().__init__(f"step {key} failed: {kind}: {message}")
        self.key, self.kind, self.message = key, kind, message


class RunStatus(StrEnum):
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
    status: RunStatus
    version: str
    executor: str | None
    """The process that has it; None while nobody does."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StepInfo:
    """One recorded step of a run, in order."""

    key: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run or a child ended: its value, or why there is none."""

    status: RunStatus
    value: Json = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Stranded:
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
        """Runs the work once and records what it gave; on replay gives what is recorded. `StepFailed` if it raised.

        Cancelled or out of time, the work's task is cancelled and awaited before anything else happens.
        """
        ...

    async def gate(self, key: str, *, timeout_s: float | None = None) -> Json:
        """Waits for an answer, for ever unless a time is given; None when the time is up. An answer that came first
        is kept, also while nothing runs."""
        ...

    async def submit(self, child_id: str, flow: str, args: Json) -> None:
        """Starts a child under an id of the caller's choice; again it changes nothing. It is no step."""
        ...

    async def outcome(self, child_id: str) -> Outcome | None:
        """How a child ended; None while it has not. Looked up each time, never recorded."""
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
        """Answers a gate; only the first answer counts, and False says that it was not this one."""
        ...

    async def cancel(self, run_id: str) -> None:
        """Ends a run and its children at their next step; the step that runs is cancelled."""
        ...

    async def rerun_from(self, run_id: str, key: str) -> None:
        """Forgets the steps of a run from a key on, and goes on from there."""
        ...

    async def outcome(self, run_id: str) -> Outcome | None:
        """How a run ended; None while it has not."""
        ...

    async def runs(self) -> tuple[RunInfo, ...]:
        """Every run, oldest first, children included."""
        ...

    async def steps(self, run_id: str) -> tuple[StepInfo, ...]:
        """The recorded steps of a run."""
        ...

    async def audit(self) -> tuple[Stranded, ...]:
        """Runs of another version, of dead workers that nobody took over, and runs whose steps no longer fit."""
        ...
