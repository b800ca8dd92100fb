"""Decisions: the facts, the decision and its events are written in one record, under a number.

A step that is repeated after a crash finds its decision. Replaying a run takes the facts stored with each decision and
must arrive at the same one.
"""

from typing import Any, NamedTuple

from pydantic import TypeAdapter

from fairwitness.contracts.common.approvals import ApprovalRecord
from fairwitness.contracts.common.decisions import Decision, Finish, Halt
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.feature.events import ApprovalAnswered
from fairwitness.contracts.feature.facts import FeatureFacts, Step
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.kept import recorded, shaped
from fairwitness.ledger.record import Record
from fairwitness.rules.feature_decision import decide
from fairwitness.rules.feature_events import PlannedCall, calls_of, events_of
from fairwitness.runs.feature.context import FeatureContext, write_events
from fairwitness.runs.feature.facts import facts_of, raised_here

DECISION = "decision"
_SHAPE: TypeAdapter[Decision] = TypeAdapter(Decision)


class TakenDecision(NamedTuple):
    """A decision with its number and the calls it makes."""

    number: int
    decision: Decision
    calls: tuple[PlannedCall, ...]


def take_decision(context: FeatureContext, after: int) -> TakenDecision:
    """Return the decision after the one with this number; make and record it if it does not exist."""
    number = after + 1
    while (row := context.ledger.observation(context.run_id, f"{DECISION}:{number}")) is not None:
        known = read(row)
        if not isinstance(known, Halt | Finish) or row.detail["life"] == context.state().resumed:
            return TakenDecision(number, known, _calls(row.detail["calls"]))
        number += 1  # the run was resumed after this decision ended it
    state = context.state()
    facts = facts_of(context)
    decision = decide(facts, context.order.policy)
    events = events_of(state, decision, number, raised=raised_here(context.ledger, context.run_id, state))
    calls = calls_of(state, decision)
    detail: dict[str, Any] = {
        "facts": facts.plain(),
        "decision": decision.plain(),
        "life": state.resumed,
        "calls": [[call.dispatch_id, call.step.value, call.visit, call.instance, call.number] for call in calls],
    }

    def write(record: Record) -> None:
        now = context.now()
        record.observation(context.observation(f"{DECISION}:{number}", DECISION, decision.kind, detail))
        write_events(record, events, now)
        for event in events:
            if isinstance(event, ApprovalAnswered):
                record.approval(answered(context, event, now))

    context.write(write)
    killpoint("feature.decided")
    return TakenDecision(number, decision, calls)


def answered(context: FeatureContext, event: ApprovalAnswered, now: str, *, said: str | None = None) -> ApprovalRecord:
    """Return the row of an answer; `said` is the person's comment."""
    return ApprovalRecord(
        gate_id=event.gate_id,
        run_id=context.run_id,
        timestamp=now,
        mode=context.order.mode,
        selected_option=event.selected_option,
        auto_selected=event.auto_selected,
        actor=event.actor,
        user_response_raw=said,
    )


def read(row: Observation) -> Decision:
    """Return a recorded decision."""
    value = row.detail["decision"]
    return shaped(_SHAPE.validate_python, value, row.run_id, f"observation {row.key}", "decision")


def facts_behind(row: Observation) -> FeatureFacts:
    """Return the facts from which a decision was made."""
    return recorded(FeatureFacts, row, "facts")


def _calls(rows: list[list[Any]]) -> tuple[PlannedCall, ...]:
    return tuple(PlannedCall(str(row[0]), Step(row[1]), int(row[2]), str(row[3]), int(row[4])) for row in rows)
