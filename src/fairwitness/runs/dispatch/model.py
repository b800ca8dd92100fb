"""The inputs of a dispatch, its position in a run, and its result."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from fairwitness.agents.base import (
    AnswerCheck,
    Backend,
    Endpoint,
    OnHappening,
    no_objection,
    no_trouble,
    no_wait,
)
from fairwitness.agents.driver import DispatchCut
from fairwitness.agents.toolset.model import CommandEnvironment, GitReader, Surroundings, ToolSource
from fairwitness.contracts.agents.dispatch import (
    Brief,
    ChangedPath,
    DispatchLimits,
    DispatchOutcome,
    OutcomeStatus,
    Probe,
    Usage,
)
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.budgets import BudgetCaps, OverBudget, Spending
from fairwitness.contracts.common.tools import Tool
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.provider_faults import ModelTrouble
from fairwitness.runs.dispatch.stored_blobs import StoredContents
from fairwitness.sandbox.runner import Runner
from fairwitness.store.artifacts import Store

C = TypeVar("C", bound=Contract)


class Recorder(Protocol):
    """Writes a workflow's own events about a dispatch, inside the record that the dispatch writes."""

    def started(self, record: Record, brief: Brief, position: "DispatchPosition", *, timestamp: str) -> None:
        """Record the start; after a crash the dispatch starts again under the same id."""
        ...

    def finished(
        self,
        record: Record,
        brief: Brief,
        position: "DispatchPosition",
        outcome: DispatchOutcome,
        spending: Spending,
        *,
        timestamp: str,
    ) -> None:
        """Record the end, and each denial."""
        ...

    def over_budget(
        self, record: Record, brief: Brief, position: "DispatchPosition", refused: OverBudget, *, timestamp: str
    ) -> None:
        """Record that the dispatch may not start."""
        ...


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """The open connection of one dispatch to its model."""

    endpoint: Endpoint | None
    """None only if no model is called."""
    used: Callable[[], Usage | None]
    """Returns the usage counted as near to the model as possible; None if nothing counts it."""
    waited: Callable[[], float] = no_wait
    """Returns the seconds that its calls waited for the provider."""
    trouble: Callable[[], ModelTrouble | None] = no_trouble
    """Returns the fault of the last call; None if it was answered."""


class Models(Protocol):
    """Gives access to models."""

    def connect(
        self, dispatch_id: str, limits: DispatchLimits, cut: DispatchCut
    ) -> AbstractAsyncContextManager[ModelConnection]:
        """Connect one try of a dispatch, which another may follow. Raise `NotReady` before anything is reserved if
        there is no connection. `cut` ends the dispatch when a limit is reached or the provider cannot be used."""
        ...


@dataclass(frozen=True, slots=True)
class DispatchPosition:
    """The position of a dispatch in its run."""

    step: str
    """The step as its workflow names it; part of the telemetry."""
    task: str | None = None
    phase: str | None = None
    attempt: int | None = None
    dispatch_count: int = 1
    """The number of this call of the agent in the step."""
    retry_count: int = 0


@dataclass(frozen=True, slots=True)
class DispatchContext:
    """What all dispatches of a run share."""

    ledger: Ledger
    store: Store
    """The store of the state folder; transcripts are stored by their hash."""
    shadow: Shadow
    caps: BudgetCaps
    recorder: Recorder
    clock: Clock
    disk: DiskWatch
    """The disks that an answer waits for when they are full."""
    stored_contents: StoredContents = field(default_factory=StoredContents)


ClaimCheck = Callable[[Contract, tuple[str, ...]], tuple[str, ...]]
"""Returns what is wrong with an answer, given the commands that ran in its dispatch."""


def no_claims(_answer: Contract, _ran: tuple[str, ...]) -> tuple[str, ...]:
    """Object to nothing."""
    return ()


@dataclass(frozen=True, slots=True)
class DispatchDeps:
    """What one dispatch needs."""

    backend: Backend
    probe: Probe
    """What is known of the backend; recorded with the dispatch."""
    models: Models
    runner: Runner
    worktree: Path
    """A linked worktree that no other process writes to meanwhile."""
    base_tree: str | None
    """The tree from which the worktree was made."""
    surroundings: Surroundings = CommandEnvironment
    sources: Mapping[Tool, ToolSource] = field(default_factory=dict)
    git: GitReader | None = None
    """Answers git's reading commands outside the sandbox."""
    watcher: OnHappening | None = None
    """Called with everything that happens, without secrets."""
    is_fresh: bool = False
    """Whether the worktree was made after any earlier try, so that it contains nothing of that try."""
    checks: tuple[str, ...] = ()
    """The names of the project's checks, which the source of `run_check` runs."""
    check: AnswerCheck = no_objection
    """Checks what the contract of the answer cannot; the agent is asked again once if it objects."""
    claims: ClaimCheck = no_claims
    """Checks what an answer says was run, by the commands that ran in the dispatch."""


@dataclass(frozen=True, slots=True)
class Dispatched:
    """The result of a dispatch, as recorded."""

    dispatch_id: str
    outcome: DispatchOutcome
    changed: tuple[ChangedPath, ...] = ()
    byproducts: int = 0
    """The number of caches and ignored files left behind. A commit takes only what is in `changed`."""
    start_tree: str | None = None
    """The tree of the whole worktree at the start; None if the dispatch never started."""
    tree: str | None = None
    """The tree of the whole worktree at the end; None if the dispatch never started or the worktree could not be
    read."""
    transcript: str | None = None
    """The hash under which the transcript is stored."""
    adopted: bool = False
    """Whether the dispatch had ended before, so that no model was called."""

    def answer(self, shape: type[C]) -> C | None:
        """Return the agent's answer, or None if the dispatch did not end with a valid one."""
        outcome = self.outcome
        if outcome.status is not OutcomeStatus.OK or outcome.answer is None:
            return None
        return shape.model_validate(outcome.answer)
