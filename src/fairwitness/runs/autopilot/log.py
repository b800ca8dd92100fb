"""The log of an autopilot run: its order, its events with the facts that the state file needs, and its documents.

The log is the only source of truth about the run. A document is recorded once under its key; later calls with the same
key return the first one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.events_run import AutopilotRunStarted, CheckpointWritten
from fairwitness.contracts.autopilot.facts import AutopilotState, EventFacts
from fairwitness.contracts.autopilot.order import AutopilotOrder
from fairwitness.contracts.autopilot.passes import PassDecision, PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_return import PhaseReturn
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.errors import RowRefused, UsageError
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.fold_autopilot import fold_autopilot
from fairwitness.rules.fold_phase import event_data
from fairwitness.rules.run_flags import run_mode
from fairwitness.runs.shared.log import FoldedState, RunLog
from fairwitness.store.layout.autopilot import STATE

C = TypeVar("C", bound=Contract)
E = TypeVar("E", bound=AutopilotEventBase)

ORDER, PASS, BEGUN, STEP, RETURNED, VERDICT = "order", "pass", "begun", "step", "returned", "verdict"
RESUMED = "resumed"


class LoggedEvent(NamedTuple):
    """An event, and the facts that the state file keeps beside it."""

    event: AutopilotEventBase
    facts: EventFacts | None = None


def new_event(
    kind: type[E], now: str, *, phase: str | None = None, step: StepName | None = None, **details: object
) -> E:
    """Return an event of this kind at this moment; details that are None are left out."""
    said = {name: value for name, value in details.items() if value is not None}
    name = kind.model_fields["event"].annotation.__args__[0]  # type: ignore[union-attr]  # a Literal of one name
    value = {"timestamp": now, "event": name, "phase": phase, "step": step, "details": said}
    return kind.model_validate(value)


class AutopilotLog(RunLog):
    """The log of one run."""

    def __init__(self, ledger: Ledger, run_id: str, *, clock: Clock = system_clock) -> None:
        self.ledger, self.run_id, self.clock = ledger, run_id, clock
        self._order: AutopilotOrder | None = None
        self._folded = FoldedState(self._fold)

    def create(self, order: AutopilotOrder) -> None:
        """Write the first record of a run; the ledger refuses a run id that exists."""
        now = self.now()
        started = new_event(
            AutopilotRunStarted,
            now,
            run_id=self.run_id,
            phases=order.phases,
            flags=tuple(f"--{flag.value}" for flag in order.flags),
            pass_threshold=run_mode(frozenset(order.flags)).threshold_tenths / 10,
            spec_hash=order.specs[0].hash,
        )

        def write(record: Record) -> None:
            record.observation(self.observation(ORDER, ORDER, self.run_id, {"order": order.plain()}, now))
            put_events(record, (LoggedEvent(started),), now)

        self.write_first(write)
        killpoint("autopilot.begun")

    def order(self) -> AutopilotOrder:
        """Return the order that the run was started with."""
        if self._order is None:
            row = self.ledger.observation(self.run_id, ORDER)
            if row is None or "order" not in row.detail or "roadmap" not in row.detail["order"]:
                raise UsageError(f"{self.run_id} is no autopilot run", next_step="fairwitness status lists the runs")
            self._order = recorded(AutopilotOrder, row, "order")
        return self._order

    def budget(self) -> BudgetTable:
        """Return the budget of the run; resuming a run may have raised it."""
        resumed = self.ledger.observations(self.run_id, RESUMED)
        raised = next((row.detail["budget"] for row in reversed(resumed) if "budget" in row.detail), None)
        return self.order().budget if raised is None else BudgetTable.model_validate(raised)

    def state(self) -> AutopilotState:
        """Return the state of the run, folded from its events."""
        return self._folded.now(self)

    def _fold(self, news: tuple[Envelope, ...], state: AutopilotState | None) -> AutopilotState | Problem:
        order = self.order()
        return fold_autopilot(news, order.setup(order.limits.kept_events), onto=state)

    def append(self, *events: LoggedEvent) -> None:
        """Write events in one record."""
        now = self.now()
        self.ledger.record(self.run_id, lambda record: put_events(record, events, now))

    def keep(
        self, key: str, kind: str, subject: str, document: C, make: Callable[[str], Iterable[LoggedEvent]] | None = None
    ) -> C:
        """Record a document and its events under a key, once; return the document recorded first."""
        now = self.now()
        row = self.observation(key, kind, subject, {"document": document.plain()}, now)
        events = tuple(make(now)) if make is not None else ()

        def write(record: Record) -> None:
            record.observation(row)
            put_events(record, events, now)

        known = self.kept(key, type(document))
        if known is not None:
            return known
        try:
            self.ledger.record(self.run_id, write)
        except RowRefused:
            known = self.kept(key, type(document))
            if known is None:
                raise
            return known  # another process was first
        killpoint("autopilot.kept")
        return document

    def kept(self, key: str, shape: type[C]) -> C | None:
        """Return the document under a key, or None."""
        row = self.ledger.observation(self.run_id, key)
        return None if row is None else recorded(shape, row, "document")

    def all_kept(self, kind: str, shape: type[C]) -> tuple[C, ...]:
        """Return all documents of a kind, in order."""
        rows = self.ledger.observations(self.run_id, kind)
        return tuple(recorded(shape, row, "document") for row in rows)

    def passes(self) -> tuple[PhasePass, ...]:
        """Return every pass that was started."""
        return self.all_kept(PASS, PhasePass)

    def results(self, phase_pass: PhasePass) -> tuple[StepResult, ...]:
        """Return the results of the steps of a pass, in order."""
        rows = self.ledger.observations(self.run_id, STEP)
        own = [row for row in rows if row.subject == pass_name(phase_pass)]
        return tuple(recorded(StepResult, row, "document") for row in own)

    def returned(self, phase_pass: PhasePass) -> PhaseReturn | None:
        """Return what a pass returned, or None if it has not returned."""
        return self.kept(f"{RETURNED}:{pass_name(phase_pass)}", PhaseReturn)

    def verdicts(self) -> tuple[PassDecision, ...]:
        """Return the verdicts about returned passes."""
        return self.all_kept(VERDICT, PassDecision)


def pass_name(phase_pass: PhasePass) -> str:
    """Return the name of a pass in keys and dispatch ids.

    >>> pass_name(PhasePass.model_construct(phase="6.1", number=2))
    '6.1-2'
    """
    return f"{phase_pass.phase}-{phase_pass.number}"


def step_dispatch(phase_pass: PhasePass, step: StepName, number: int) -> str:
    """Return the dispatch id of a step, which is also its instance name.

    >>> step_dispatch(PhasePass.model_construct(phase="6.1", number=2), StepName.PLAN_CHECK, 3)
    'plan_check-6.1-2-3'
    """
    return f"{step.value}-{pass_name(phase_pass)}-{number}"


def step_key(phase_pass: PhasePass, step: StepName, number: int) -> str:
    """Return the key of a step's result."""
    return f"{STEP}:{pass_name(phase_pass)}:{step.value}:{number}"


_MID_STEP = frozenset(
    {
        *("run_started", "run_resumed", "flag_mutual_exclusivity_error"),
        *("task_retried", "task_completed", "task_failed", "batch_completion_report"),
        *("self_audit_started", "self_audit_gap_found", "self_audit_gap_fixed", "self_audit_completed"),
    }
)
"""Events after which the state file is not written yet, because a step or a move goes on."""


def put_events(record: Record, events: Sequence[LoggedEvent], now: str) -> None:
    """Put autopilot events into a record, followed by the announcement of the state file that is written next.

    Both are in one record, so that a kill between them changes no count: the file itself can be written again.
    """
    told = list(events)
    if {each.event.event for each in told} - _MID_STEP and not isinstance(told[-1].event, CheckpointWritten):
        told.append(LoggedEvent(new_event(CheckpointWritten, now, path=STATE)))
    for event, facts in told:
        record.event(
            Workflow.AUTOPILOT, event.event, event_data(event, facts), timestamp=now, phase=event.phase, task=None
        )
