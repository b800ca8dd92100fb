"""The events of dispatches: those of a feature run, and none for dispatches outside a workflow."""

from fairwitness.contracts.agents.dispatch import Brief, DispatchOutcome
from fairwitness.contracts.common.budgets import OverBudget, Spending
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.events import BudgetExhausted, CallRefused, DispatchFinished, DispatchStarted
from fairwitness.ledger.record import Record
from fairwitness.rules.budgets import spelled_refusal
from fairwitness.runs.dispatch.model import DispatchPosition
from fairwitness.runs.dispatch.telemetry import status_of

REASON = 1000


class FeatureEvents:
    """The recorder of the feature workflow."""

    def started(self, record: Record, brief: Brief, position: DispatchPosition, *, timestamp: str) -> None:
        """See `Recorder`."""
        event = DispatchStarted(
            dispatch_id=brief.dispatch_id, step=position.step, agent=brief.role, instance=brief.instance
        )
        _write(record, event, position, timestamp)

    def finished(
        self,
        record: Record,
        brief: Brief,
        position: DispatchPosition,
        outcome: DispatchOutcome,
        spending: Spending,
        *,
        timestamp: str,
    ) -> None:
        """See `Recorder`. Denials are written before the end, while the dispatch still runs."""
        for denial in outcome.denials:
            refused = CallRefused(
                dispatch_id=brief.dispatch_id, tool=denial.tool, target=denial.target, reason=denial.reason
            )
            _write(record, refused, position, timestamp)
        event = DispatchFinished(
            dispatch_id=brief.dispatch_id,
            status=status_of(outcome),
            duration_ms=outcome.duration_ms,
            tokens=spending.used.tokens,
            reason=outcome.problems[0][:REASON] if outcome.problems else None,
            cause=outcome.cause,
        )
        _write(record, event, position, timestamp)

    def over_budget(
        self, record: Record, brief: Brief, position: DispatchPosition, refused: OverBudget, *, timestamp: str
    ) -> None:
        """See `Recorder`."""
        what = spelled_refusal(refused, brief.role.value)
        event = BudgetExhausted(what=what, cap=refused.cap, used=refused.used)
        _write(record, event, position, timestamp)


def _write(record: Record, event: EventData, position: DispatchPosition, timestamp: str) -> None:
    data = event.plain()
    record.event(
        Workflow.FEATURE,
        data.pop("type"),
        data,
        timestamp=timestamp,
        phase=position.phase,
        task=position.task,
        attempt=position.attempt,
    )


class NoEvents:
    """The recorder of a dispatch outside any workflow: its rows are in the ledger, without events."""

    def started(self, record: Record, brief: Brief, position: DispatchPosition, *, timestamp: str) -> None:
        """See `Recorder`."""

    def finished(
        self,
        record: Record,
        brief: Brief,
        position: DispatchPosition,
        outcome: DispatchOutcome,
        spending: Spending,
        *,
        timestamp: str,
    ) -> None:
        """See `Recorder`."""

    def over_budget(
        self, record: Record, brief: Brief, position: DispatchPosition, refused: OverBudget, *, timestamp: str
    ) -> None:
        """See `Recorder`."""
