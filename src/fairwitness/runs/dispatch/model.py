"""What a dispatch is done with, where in a run it stands, and what comes of it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fairwitness.agents.base import Backend, Endpoint, OnHappening
from fairwitness.agents.toolset.model import CommandEnvironment, GitReader, ToolSource
from fairwitness.contracts.agents.dispatch import Brief, ChangedPath, DispatchLimits, Outcome, Probe, Usage
from fairwitness.contracts.common.budgets import BudgetCaps, OverBudget, Spending
from fairwitness.contracts.common.tools import Tool
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.dispatch.stored_blobs import StoredContents
from fairwitness.sandbox.runner import Runner
from fairwitness.store.artifacts import Store


class Recorder(Protocol):
    """Tells of a dispatch in a workflow's own events, inside the record that the dispatch writes."""

    def started(self, record: Record, brief: Brief, position: "DispatchPosition", *, timestamp: str) -> None:
        """It begins; after a crash it begins again under the same id."""
        ...

    def finished(
        self,
        record: Record,
        brief: Brief,
        position: "DispatchPosition",
        outcome: Outcome,
        spending: Spending,
        *,
        timestamp: str,
    ) -> None:
        """It ended; each denial is told, too."""
        ...

    def over_budget(
        self, record: Record, brief: Brief, position: "DispatchPosition", refused: OverBudget, *, timestamp: str
    ) -> None:
        """It may not begin."""
        ...


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """What one dispatch reaches its model by, while it is open."""

    endpoint: Endpoint | None
    """None only where no model is asked."""
    used: Callable[[], Usage | None]
    """What was counted there, as near to the model as can be; None if nobody counts."""


class Models(Protocol):
    """Where models are reached."""

    def connect(
        self, dispatch_id: str, limits: DispatchLimits, cut: Callable[[str], None]
    ) -> AbstractAsyncContextManager[ModelConnection]:
        """For one try of a dispatch, which may be followed by another; `NotReady` if there is no way, before anything
        is reserved. `cut` is called with the reason, from any thread, when a limit is reached."""
        ...


@dataclass(frozen=True, slots=True)
class DispatchPosition:
    """Where in a run a dispatch stands."""

    step: str
    """As its workflow names it; it stands in the telemetry."""
    task: str | None = None
    phase: str | None = None
    attempt: int | None = None
    dispatch_count: int = 1
    """Which call of this agent in this step it is."""
    retry_count: int = 0


@dataclass(frozen=True, slots=True)
class DispatchContext:
    """What all dispatches of a run share."""

    ledger: Ledger
    store: Store
    """Of the state folder; transcripts are kept in it by their hash."""
    shadow: Shadow
    caps: BudgetCaps
    recorder: Recorder
    clock: Clock
    stored_contents: StoredContents = field(default_factory=StoredContents)


@dataclass(frozen=True, slots=True)
class DispatchDeps:
    """What one dispatch is done with."""

    backend: Backend
    probe: Probe
    """What is known of the backend; stands on record with the dispatch."""
    models: Models
    runner: Runner
    worktree: Path
    """A linked worktree that nobody else writes meanwhile."""
    base_tree: str | None
    """What the worktree was made from."""
    surroundings: CommandEnvironment = field(default_factory=CommandEnvironment)
    sources: Mapping[Tool, ToolSource] = field(default_factory=dict)
    git: GitReader | None = None
    """Answers git's reading commands, where the repository is."""
    watcher: OnHappening | None = None
    """Is told everything as it happens; what is stored is redacted, and this is not."""
    is_fresh: bool = False
    """Whether we made the worktree since any earlier try: then nothing of that one is in it, and none of its marks."""


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What came of a dispatch, as it stands on record."""

    outcome: Outcome
    changed: tuple[ChangedPath, ...] = ()
    byproducts: int = 0
    """How many caches and ignored files were left beside; whoever commits takes what is in `changed`, and no more."""
    start_tree: str | None = None
    """Everything in the worktree when it began; None if it never did."""
    tree: str | None = None
    """Everything in it when it ended; None if it never began, or could not be seen."""
    transcript: str | None = None
    """The hash under which it is stored."""
    adopted: bool = False
    """Whether it had ended before, so that nobody was asked anything."""
