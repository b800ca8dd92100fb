"""The budget of a run, folded from the observations of its dispatches: reserved, spent, or never reported.

It is stored nowhere else, so several processes of one run cannot disagree about it.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fairwitness.contracts.agents.dispatch import DispatchLimits, DispatchOutcome, Usage
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import Amounts, Budget, BudgetCaps, Reservation, Spending
from fairwitness.contracts.common.evidence import Observation
from fairwitness.ledger.kept import recorded

STARTED = "dispatch-started"
CANCELLED = "dispatch-cancelled"
ENDED = "dispatch-ended"
"""The kinds of observation that a dispatch leaves; the subject of each is the dispatch id."""


def of_dispatches(observations: Callable[[str], tuple[Observation, ...]]) -> tuple[Observation, ...]:
    """Return all observations of a run's dispatches, kind by kind."""
    return tuple(row for kind in (STARTED, CANCELLED, ENDED) for row in observations(kind))


class DispatchHistory(NamedTuple):
    """The history of a dispatch over all its tries."""

    started: tuple[Observation, ...] = ()
    cancelled: tuple[Observation, ...] = ()
    ended: Observation | None = None

    @property
    def tries(self) -> int:
        """Return how often the dispatch was started."""
        return len(self.started)

    @property
    def reservation(self) -> Reservation | None:
        """Return what was reserved at the first start; a repeated step does not pay twice."""
        return recorded(Reservation, self.started[0], "reservation") if self.started else None


def history_of(observations: Iterable[Observation], dispatch_id: str) -> DispatchHistory:
    """Return the history of one dispatch."""
    own = [row for row in observations if row.subject == dispatch_id]
    return DispatchHistory(
        started=tuple(row for row in own if row.kind == STARTED),
        cancelled=tuple(row for row in own if row.kind == CANCELLED),
        ended=next((row for row in own if row.kind == ENDED), None),
    )


def budget_of(caps: BudgetCaps, observations: Iterable[Observation]) -> Budget:
    """Return the budget of a run. A dispatch that has not ended counts with its full reservation."""
    reserved: dict[str, Reservation] = {}
    spent: dict[str, Spending] = {}
    for row in observations:
        if row.kind == STARTED:
            reserved.setdefault(row.subject, recorded(Reservation, row, "reservation"))
        elif row.kind == ENDED:
            spent[row.subject] = recorded(Spending, row, "spending")
    for ended in spent:
        reserved.pop(ended, None)
    return Budget(caps=caps, reserved=reserved, spent=spent)


def counted_tokens(observations: Iterable[Observation]) -> int:
    """Return the tokens that dispatches reported.

    A killed try reported nothing: the budget counts its reservation, but it is no figure of what was used.
    """
    rows = tuple(observations)
    total, with_all_tries = 0, set()
    for row in rows:
        if row.kind == ENDED:
            counted = Usage.model_validate(row.detail["outcome"]["usage"]).tokens
            if counted is None:  # the spending is that of all tries, also of the cancelled ones
                with_all_tries.add(row.subject)
            total += recorded(Spending, row, "spending").used.tokens if counted is None else counted
    cancelled = (row for row in rows if row.kind == CANCELLED and row.subject not in with_all_tries)
    return total + sum(recorded(Amounts, row, "used").tokens for row in cancelled)


def limits_of(spec: RoleSpec) -> DispatchLimits:
    """Return the limits of a dispatch of a role: exactly what is reserved for it."""
    return DispatchLimits(
        wall_s=spec.timeout_s,
        turns=spec.turns,
        tokens=spec.budget.tokens or None,
        cost_micros=spec.budget.money_micros or None,
    )


def used_by(outcome: DispatchOutcome, asked: Amounts) -> Amounts:
    """Return what one try used. An amount that was not counted is the reserved one, and zero only if no model was
    called."""
    usage = outcome.usage
    if outcome.asked == 0 and usage.tokens is None:
        return Amounts(milliseconds=outcome.duration_ms)
    return Amounts(
        tokens=asked.tokens if usage.tokens is None else usage.tokens,
        money_micros=asked.money_micros if usage.cost_micros is None else usage.cost_micros,
        milliseconds=outcome.duration_ms,
    )


def spending_of(outcome: DispatchOutcome, before: DispatchHistory, reservation: Reservation) -> Spending:
    """Return what a dispatch used in all its tries. A killed try reported nothing, so it counts as reserved."""
    asked = reservation.asked
    parts = [used_by(outcome, asked), *(recorded(Amounts, row, "used") for row in before.cancelled)]
    total = Amounts(
        tokens=sum(part.tokens for part in parts),
        money_micros=sum(part.money_micros for part in parts),
        milliseconds=sum(part.milliseconds for part in parts),
    )
    if before.tries > len(before.cancelled) + 1:
        total = Amounts(
            tokens=max(total.tokens, asked.tokens),
            money_micros=max(total.money_micros, asked.money_micros),
            milliseconds=max(total.milliseconds, asked.milliseconds),
        )
    return Spending(phase=reservation.phase, used=total)
