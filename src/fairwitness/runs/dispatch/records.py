"""The records of a dispatch in the ledger: its start, its end or cancellation, and how an ended one is adopted."""

import asyncio
from typing import Any, NamedTuple

from fairwitness.contracts.agents.dispatch import Brief, ChangedPath, DispatchOutcome, OutcomeStatus
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import OverBudget, Reservation, Reserved
from fairwitness.contracts.common.evidence import Claim, Observation
from fairwitness.errors import LedgerTampered, UsageError
from fairwitness.kit.clock import spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.rules.budgets import reserve
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.dispatch.budget_account import (
    CANCELLED,
    ENDED,
    STARTED,
    DispatchHistory,
    budget_of,
    history_of,
    of_dispatches,
    spending_of,
    used_by,
)
from fairwitness.runs.dispatch.model import DispatchContext, DispatchDeps, Dispatched, DispatchPosition
from fairwitness.runs.dispatch.telemetry import telemetry
from fairwitness.runs.dispatch.worktree_snapshot import WorktreeSnapshot, restore, take_snapshot


class StartedDispatch(NamedTuple):
    """A dispatch whose start is recorded."""

    history: DispatchHistory
    """The history, including this try."""
    reservation: Reservation
    snapshot: WorktreeSnapshot
    """The worktree before the first try."""
    started_at: str
    """When this try started."""


async def begin(
    context: DispatchContext, spec: RoleSpec, brief: Brief, position: DispatchPosition, deps: DispatchDeps
) -> StartedDispatch | OverBudget:
    """Reserve the budget and record the start in one transaction, so that no other dispatch takes the same budget."""
    id_ = brief.dispatch_id
    # in a thread, as every call of the ledger here: while the database is away it waits, and the loop must go on
    own = await run_blocking(of_dispatches, lambda kind: context.ledger.observations(brief.run_id, kind, subject=id_))
    before = history_of(own, id_)
    left: str | None = None
    if before.started and not deps.is_fresh:
        snapshot = WorktreeSnapshot.of(before.started[0].detail["seen"])
        left = await asyncio.to_thread(restore, context.shadow, deps.worktree, snapshot)
        killpoint("dispatch.restored")
    else:
        snapshot = await asyncio.to_thread(
            take_snapshot, context.shadow, deps.worktree, stored_contents=context.stored_contents
        )
    started_at = spell(context.clock())
    wanted = before.reservation or Reservation(id=brief.dispatch_id, phase=position.phase, asked=spec.budget)
    number = before.tries + 1

    def write(record: Record) -> Observation | OverBudget:
        answer = reserve(budget_of(context.caps, of_dispatches(record.observations)), wanted)
        if isinstance(answer, OverBudget):
            context.recorder.over_budget(record, brief, position, answer, timestamp=started_at)
            return answer
        if not isinstance(answer, Reserved):
            raise UsageError(f"{brief.dispatch_id} cannot be reserved: {answer.expected}", next_step="use another id")
        row = Observation(
            run_id=brief.run_id,
            task_id=position.task,
            key=f"dispatch:{brief.dispatch_id}:try-{number}",
            kind=STARTED,
            subject=brief.dispatch_id,
            holds=True,
            detail={
                "role": brief.role.value,
                "instance": brief.instance,
                "agent": deps.probe.plain(),
                "sandbox": deps.runner.tier.value,
                "reservation": wanted.plain(),
                "seen": snapshot.plain(),
                **({"left_by_killed_try": left} if left is not None else {}),
            },
            tree=snapshot.tree,
            observed_at=started_at,
        )
        record.observation(row)
        context.recorder.started(record, brief, position, timestamp=started_at)
        return row

    written = await run_blocking(context.ledger.record, brief.run_id, write)
    if isinstance(written, OverBudget):
        return written
    return StartedDispatch(before._replace(started=(*before.started, written)), wanted, snapshot, started_at)


def begun(context: DispatchContext, brief: Brief) -> StartedDispatch | None:
    """Return the last recorded start of a dispatch, or None if it never started."""
    id_ = brief.dispatch_id
    history = history_of(
        of_dispatches(lambda kind: context.ledger.observations(brief.run_id, kind, subject=id_)), brief.dispatch_id
    )
    reservation = history.reservation
    if reservation is None:
        return None
    snapshot = WorktreeSnapshot.of(history.started[0].detail["seen"])
    return StartedDispatch(history, reservation, snapshot, history.started[-1].observed_at)


_SAID = ("answer", "raw_text")
"""The fields that an agent provides: a claim, not an observation."""


def adopt(context: DispatchContext, brief: Brief) -> Dispatched | None:
    """Return the recorded result of a dispatch that ended, or None if it has not ended."""
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
    """Return the recorded result of the dispatch with this id, or None if it has not ended."""
    key = _key(dispatch_id, "ended")
    row = ledger.observation(run_id, key)
    if row is None:
        return None
    claim = ledger.claim(run_id, key)
    if claim is None:
        raise LedgerTampered(f"the claim of {dispatch_id} is gone", next_step="fairwitness ledger verify")
    detail = row.detail
    return Dispatched(
        dispatch_id,
        outcome=DispatchOutcome.model_validate({**detail["outcome"], **claim.body}),
        changed=tuple(ChangedPath.model_validate(each) for each in detail["changed"]),
        byproducts=detail["byproducts"],
        start_tree=detail["start_tree"],
        tree=row.tree,
        transcript=detail["transcript"],
        adopted=True,
    )


def write_end(
    context: DispatchContext,
    brief: Brief,
    position: DispatchPosition,
    started: StartedDispatch,
    dispatched: Dispatched,
    *,
    agent: str,
) -> None:
    """Record everything about a dispatch that ended, in one record. It is never repeated after this."""
    outcome = dispatched.outcome
    now = spell(context.clock())
    spending = spending_of(outcome, started.history, started.reservation)
    said = {name: value for name, value in outcome.plain().items() if name in _SAID}
    observation = Observation(
        run_id=brief.run_id,
        task_id=position.task,
        key=_key(brief.dispatch_id, "ended"),
        kind=ENDED,
        subject=brief.dispatch_id,
        holds=outcome.status is OutcomeStatus.OK,
        detail={**_outcome_detail(brief, dispatched), "tries": started.history.tries, "spending": spending.plain()},
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
    row = telemetry(brief, position, outcome, agent=agent, started_at=started.started_at, completed_at=now)

    def write(record: Record) -> None:
        record.observation(observation)
        record.claim(claim)
        record.dispatch(row)
        context.recorder.finished(record, brief, position, outcome, spending, timestamp=now)

    context.ledger.record(brief.run_id, write)


def write_cancelled(
    context: DispatchContext,
    brief: Brief,
    position: DispatchPosition,
    started: StartedDispatch,
    dispatched: Dispatched,
    *,
    agent: str,
) -> None:
    """Record a try that was stopped. Its usage is known and counts; the dispatch can still be repeated."""
    outcome = dispatched.outcome
    now = spell(context.clock())
    observation = Observation(
        run_id=brief.run_id,
        task_id=position.task,
        key=_key(brief.dispatch_id, f"cancelled-{started.history.tries}"),
        kind=CANCELLED,
        subject=brief.dispatch_id,
        holds=False,
        detail={**_outcome_detail(brief, dispatched), "used": used_by(outcome, started.reservation.asked).plain()},
        tree=dispatched.tree,
        observed_at=now,
    )
    row = telemetry(brief, position, outcome, agent=agent, started_at=started.started_at, completed_at=now)

    def write(record: Record) -> None:
        record.observation(observation)
        record.dispatch(row)

    context.ledger.record(brief.run_id, write)


def _outcome_detail(brief: Brief, dispatched: Dispatched) -> dict[str, Any]:
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
