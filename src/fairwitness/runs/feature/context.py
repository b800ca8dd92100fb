"""The context of a feature run: its order, folders, ledger, repository and documents.

A document is stored under its hash and under its path, and one event names both. It is read again by its hash, so
changes to the files of the feature folder do not affect the run.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.events import ArtifactWritten, FeatureRunStarted
from fairwitness.contracts.feature.order import FeatureOrder
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit import yaml_text
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.feature_paths import BEGINS_ON
from fairwitness.rules.fold_feature import fold_feature
from fairwitness.runs.dispatch.transcript import keep
from fairwitness.runs.shared.log import FoldedState, RunLog
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.feature import FeatureLayout

C = TypeVar("C", bound=Contract)

ORDER = "order"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureContext(RunLog):
    """The context of one run."""

    run_id: str
    order: FeatureOrder
    repository: Repository
    shadow: Shadow
    ledger: Ledger
    files: Store
    """The person's checkout, which contains the feature folder."""
    kept: Store
    """The state folder, where contents are stored by hash."""
    clock: Clock = system_clock
    folded: FoldedState[FeatureState] = field(default_factory=lambda: FoldedState(_fold))

    @property
    def layout(self) -> FeatureLayout:
        """Return the paths of the feature's files."""
        return FeatureLayout(self.order.slug)

    def state(self) -> FeatureState:
        """Return the state of the run, folded from its events."""
        return self.folded.now(self)

    def write_event(self, *events: EventData, task: str | None = None, attempt: int | None = None) -> None:
        """Write events in one record."""
        now = self.now()
        self.ledger.record(self.run_id, lambda record: write_events(record, events, now, task=task, attempt=attempt))

    def write(self, work: Callable[[Record], object]) -> None:
        """Write a record."""
        self.ledger.record(self.run_id, work)

    def put(self, path: str, content: bytes | str) -> str:
        """Store a file of the feature folder and return its hash. A repeated call does nothing."""
        data = content.encode() if isinstance(content, str) else content
        digest = keep(self.kept, data)
        self.files.put(path, data)
        killpoint("feature.stored")
        if self.state().artifacts.get(path) != digest:
            self.write_event(ArtifactWritten(path=path, sha256=digest))
        return digest

    def put_document(self, path: str, document: Contract) -> str:
        """Store a typed document as YAML and return its hash."""
        return self.put(path, yaml_text.render(document.plain()))

    def kept_bytes(self, sha256: str) -> bytes:
        """Return the content stored under a hash."""
        return self.kept.get(f"outputs/{sha256.removeprefix('sha256:')}", sha256=sha256)

    def get(self, path: str) -> bytes | None:
        """Return a file of the run as it was last stored, or None."""
        digest = self.state().artifacts.get(path)
        return None if digest is None else self.kept_bytes(digest)

    def document(self, path: str, contract: type[C]) -> C:
        """Return a typed document of the run; raise `UsageError` if it was never stored."""
        data = self.get(path)
        if data is None:
            raise UsageError(f"run {self.run_id} has no {path}", next_step=f"fairwitness status {self.run_id}")
        return contract.model_validate(yaml_text.parse(data.decode()))


def _fold(news: tuple[Envelope, ...], state: FeatureState | None) -> FeatureState | Problem:
    return fold_feature(news, onto=state)


def write_beginning(context: FeatureContext, budget: BudgetTable) -> None:
    """Write the first record of a run: its order with its budget, and the event of its start."""
    order = context.order
    started = FeatureRunStarted(
        slug=order.slug,
        mode=order.mode,
        base_commit=order.base_commit,
        baseline_tag=order.baseline_tag,
        settings_hash=order.settings_hash,
        path=BEGINS_ON[order.policy.path],
    )
    seen = context.observation(ORDER, ORDER, context.run_id, {"order": order.plain(), "budget": budget.plain()})

    def write(record: Record) -> None:
        record.observation(seen)
        write_events(record, (started,), seen.observed_at)

    context.write(write)
    killpoint("feature.begun")


def write_events(
    record: Record, events: Iterable[EventData], now: str, *, task: str | None = None, attempt: int | None = None
) -> None:
    """Add events of a feature run to a record."""
    for event in events:
        data = event.plain()
        record.event(Workflow.FEATURE, data.pop("type"), data, timestamp=now, task=task, attempt=attempt)
