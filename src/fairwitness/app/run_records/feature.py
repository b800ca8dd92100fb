"""A feature run in the ledger: its order, budget and context, and resuming."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairwitness.app.settings.tables import feature_settings
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.feature.events import FeatureRunResumed
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.order import FeatureOrder
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.feature.context import ORDER, FeatureContext, write_events
from fairwitness.runs.feature.questions import key_of
from fairwitness.store.artifacts import Store

ANSWERED = "answered"
"""The message to the engine that a question was answered; the ledger holds the answer."""
BUDGET = "budget"


def order_of(ledger: Ledger, run_id: str) -> tuple[FeatureOrder, BudgetTable]:
    """Return the order and the current budget of a run; raise `UsageError` if it is not a feature run."""
    row = ledger.observation(run_id, ORDER)
    if row is None:
        raise UsageError(f"{visible(run_id)} is not a feature run", next_step="fairwitness status lists the runs")
    raised = ledger.observations(run_id, BUDGET)
    budget = recorded(BudgetTable, raised[-1]) if raised else recorded(BudgetTable, row, "budget")
    return recorded(FeatureOrder, row, "order"), budget


def feature_context(
    repository: Repository, ledger: Ledger, run_id: str, order: FeatureOrder, *, clock: Clock = system_clock
) -> FeatureContext:
    """Return the context of a run."""
    state = state_of(repository)
    return FeatureContext(
        run_id=run_id,
        order=order,
        repository=repository,
        shadow=Shadow.open(state / "git", repository),
        ledger=ledger,
        files=Store(repository.top or state),
        kept=Store(state, private=True),
        clock=clock,
    )


@contextmanager
def open_feature_run(root: Path, run_id: str) -> Iterator[FeatureContext]:
    """Open a feature run and yield its context; the ledger is closed at the end."""
    repository = Repository.open(root)
    ledger = ledger_in(state_of(repository), repository)
    try:
        order, _ = order_of(ledger, run_id)
        yield feature_context(repository, ledger, run_id, order)
    finally:
        ledger.close()


def resume_feature(repository: Repository, ledger: Ledger, run_id: str) -> None:
    """Record that an ended run is resumed; do nothing if it has not ended."""
    order, _ = order_of(ledger, run_id)
    context = feature_context(repository, ledger, run_id, order)
    state = context.state()
    if state.ending is not None:
        last = ledger.last_event(run_id, "step_started")
        resumed = FeatureRunResumed(from_step=Step.SETUP.value if last is None else str(last.data["step"]))
        # the only setting that is read again: a person may have raised it for a run that used it up
        budget = feature_settings(repository.top).budget
        seen = context.observation(f"{BUDGET}:{state.resumed + 1}", BUDGET, run_id, budget.plain())

        def write(record: Record) -> None:
            record.observation(seen)
            write_events(record, (resumed,), seen.observed_at)

        context.write(write)
        killpoint("feature.resumed")


def answered_keys(root: Path, run_id: str) -> tuple[str, ...]:
    """Return the keys of all answered questions, for an engine that may have missed some."""
    with open_feature_run(root, run_id) as context:
        approvals = context.state().approvals
    return tuple(key_of(gate, asked.visit) for gate, asked in approvals.items() if asked.selected_option is not None)
