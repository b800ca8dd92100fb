"""What a dispatch leaves in the ledger when it ends, and how what it left is taken over again."""

from typing import Any

from fairwitness.contracts.agents.dispatch import Brief, ChangedPath, Outcome, OutcomeStatus
from fairwitness.contracts.common.evidence import Claim, Observation
from fairwitness.errors import LedgerTampered, UsageError
from fairwitness.kit.clock import spell
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.dispatch.account import CANCELLED, ENDED, spending_of, used_by
from fairwitness.runs.dispatch.beginning import Begun
from fairwitness.runs.dispatch.model import Context, Dispatched, DispatchPosition
from fairwitness.runs.dispatch.telemetry import telemetry

_SAID = ("answer", "raw_text")
"""What an agent said: a claim, and no observation of ours."""


def adopt(context: Context, brief: Brief) -> Dispatched | None:
    """What came of a dispatch that ended before, as it was then; None if it did not."""
    row = context.ledger.observation(brief.run_id, _key(brief.dispatch_id, "ended"))
    if row is None:
        return None
    detail = row.detail
    if (detail["role"], detail["instance"]) != (brief.role.value, brief.instance):
        raise UsageError(
            f"{brief.dispatch_id} was a dispatch of {detail['role']} {detail['instance']}",
            next_step="give each dispatch an id of its own",
        )
    return ended(context.ledger, brief.run_id, brief.dispatch_id)


def ended(ledger: Ledger, run_id: str, dispatch_id: str) -> Dispatched | None:
    """The same for whoever only knows its id."""
    key = _key(dispatch_id, "ended")
    row = ledger.observation(run_id, key)
    if row is None:
        return None
    claim = ledger.claim(run_id, key)
    if claim is None:
        raise LedgerTampered(f"the claim of {dispatch_id} is gone", next_step="fairwitness ledger verify")
    detail = row.detail
    return Dispatched(
        outcome=Outcome.model_validate({**detail["outcome"], **claim.body}),
        changed=tuple(ChangedPath.model_validate(each) for each in detail["changed"]),
        byproducts=detail["byproducts"],
        start_tree=detail["start_tree"],
        tree=row.tree,
        transcript=detail["transcript"],
        adopted=True,
    )


def write_end(
    context: Context,
    brief: Brief,
    position: DispatchPosition,
    begun: Begun,
    dispatched: Dispatched,
    *,
    agent: str,
) -> None:
    """Everything that is known of a dispatch that ended, in one record: after this it is never made again."""
    outcome = dispatched.outcome
    now = spell(context.clock())
    spending = spending_of(outcome, begun.standing, begun.reservation)
    said = {name: value for name, value in outcome.plain().items() if name in _SAID}
    observation = Observation(
        run_id=brief.run_id,
        task_id=position.task,
        key=_key(brief.dispatch_id, "ended"),
        kind=ENDED,
        subject=brief.dispatch_id,
        holds=outcome.status is OutcomeStatus.OK,
        detail={**_seen(brief, dispatched), "tries": begun.standing.tries, "spending": spending.plain()},
        tree=dispatched.tree,
        observed_at=now,
    )
    claim = Claim(
        run_id=brief.run_id,
        task_id=position.task,
        key=_key(brief.dispatch_id, "ended"),
        agent=brief.role.value,
        instance=brief.instance,
        kind="answer",
        body=said,
        claimed_at=now,
    )
    row = telemetry(brief, position, outcome, agent=agent, started_at=begun.started_at, completed_at=now)

    def write(record: Record) -> None:
        record.observation(observation)
        record.claim(claim)
        record.dispatch(row)
        context.recorder.finished(record, brief, position, outcome, spending, timestamp=now)

    context.ledger.record(brief.run_id, write)


def write_cancelled(
    context: Context,
    brief: Brief,
    position: DispatchPosition,
    begun: Begun,
    dispatched: Dispatched,
    *,
    agent: str,
) -> None:
    """A try that was stopped: what it used is known and counts, and the dispatch is still to be made."""
    outcome = dispatched.outcome
    now = spell(context.clock())
    observation = Observation(
        run_id=brief.run_id,
        task_id=position.task,
        key=_key(brief.dispatch_id, f"cancelled-{begun.standing.tries}"),
        kind=CANCELLED,
        subject=brief.dispatch_id,
        holds=False,
        detail={**_seen(brief, dispatched), "used": used_by(outcome, begun.reservation.asked).plain()},
        tree=dispatched.tree,
        observed_at=now,
    )
    row = telemetry(brief, position, outcome, agent=agent, started_at=begun.started_at, completed_at=now)

    def write(record: Record) -> None:
        record.observation(observation)
        record.dispatch(row)

    context.ledger.record(brief.run_id, write)


def _seen(brief: Brief, dispatched: Dispatched) -> dict[str, Any]:
    outcome = dispatched.outcome.plain()
    return {
        "role": brief.role.value,
        "instance": brief.instance,
        "outcome": {name: value for name, value in outcome.items() if name not in _SAID},
        "changed": [each.plain() for each in dispatched.changed],
        "byproducts": dispatched.byproducts,
        "start_tree": dispatched.start_tree,
        "transcript": dispatched.transcript,
    }


def _key(dispatch_id: str, what: str) -> str:
    return f"dispatch:{dispatch_id}:{what}"
