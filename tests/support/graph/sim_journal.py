"""What a simulated engine keeps of its flows: their steps, how they ended, and who has them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from fairwitness.engine.base import ExecutionStatus, RunOutcome
from fairwitness.engine.json_values import decode
from support.graph.sim_time import Task

_ENDED = frozenset({ExecutionStatus.DONE, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED})


class Trouble(Exception):
    """What a simulated step raises when it is meant to; its cause, if it has one, is the error that is recorded."""


class Recorded(NamedTuple):
    """One step, as it stands in the journal."""

    key: str
    text: str
    kind: str | None = None
    """Of the error, if it failed."""


@dataclass(slots=True)
class Kept:
    """What the engine keeps of one flow."""

    id: str
    flow: str
    args: str
    parent: str | None
    status: ExecutionStatus = ExecutionStatus.QUEUED
    journal: list[Recorded] = field(default_factory=list)
    value: str = "null"
    error: str = ""
    life: int = 0
    """How often it was begun, taken over or ended; whoever knows another number has lost it."""
    task: Task | None = None
    silent_since: float | None = None

    @property
    def ended(self) -> bool:
        """Whether it has an outcome."""
        return self.status in _ENDED


def outcome_of(kept: Kept) -> RunOutcome:
    """How a flow ended."""
    return RunOutcome(kept.status, decode(kept.value), kept.error)
