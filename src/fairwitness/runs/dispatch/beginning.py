"""The first of the two records that frame a dispatch: what it is promised, and what stands in its worktree."""

import asyncio
from typing import NamedTuple

from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import OverBudget, Reservation, Reserved
from fairwitness.contracts.common.evidence import Observation
from fairwitness.errors import UsageError
from fairwitness.kit.clock import spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.record import Record
from fairwitness.rules.budgets import reserve
from fairwitness.runs.dispatch.account import STARTED, Standing, budget_of, of_dispatches, standing
from fairwitness.runs.dispatch.model import Context, DispatchDeps, DispatchPosition
from fairwitness.runs.dispatch.restoring import restore
from fairwitness.runs.dispatch.seen import Seen, see


class Begun(NamedTuple):
    """A dispatch whose beginning stands on record."""

    standing: Standing
    """This try included."""
    reservation: Reservation
    seen: Seen
    """Before its first try."""
    started_at: str
    """Of this try."""


async def begin(
    context: Context, spec: RoleSpec, brief: Brief, position: DispatchPosition, deps: DispatchDeps
) -> Begun | OverBudget:
    """Reserves and says so in one transaction: between looking at the account and taking from it, nobody else can."""
    id_ = brief.dispatch_id
    own = of_dispatches(lambda kind: context.ledger.observations(brief.run_id, kind, subject=id_))
    before = standing(own, id_)
    left: str | None = None
    if before.started and not deps.is_fresh:
        seen = Seen.of(before.started[0].detail["seen"])
        left = await asyncio.to_thread(restore, context.shadow, deps.worktree, seen)
        killpoint("dispatch.restored")
    else:
        seen = await asyncio.to_thread(see, context.shadow, deps.worktree, known=context.known)
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
                "seen": seen.plain(),
                **({"left_by_killed_try": left} if left is not None else {}),
            },
            tree=seen.tree,
            observed_at=started_at,
        )
        record.observation(row)
        context.recorder.started(record, brief, position, timestamp=started_at)
        return row

    written = context.ledger.record(brief.run_id, write)
    if isinstance(written, OverBudget):
        return written
    return Begun(before._replace(started=(*before.started, written)), wanted, seen, started_at)
