"""The budget of a run as its dispatches left it in the ledger: what is promised, what is spent, what was never told.

It is folded from rows and kept nowhere else, so that several processes of one run cannot disagree about it.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fairwitness.contracts.agents.dispatch import DispatchLimits, Outcome
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import Amounts, Budget, BudgetCaps, Reservation, Spending
from fairwitness.contracts.common.evidence import Observation

STARTED = "dispatch-started"
CANCELLED = "dispatch-cancelled"
ENDED = "dispatch-ended"
"""The kinds of observation that a dispatch leaves; each names its dispatch as its subject."""


def of_dispatches(observations: Callable[[str], tuple[Observation, ...]]) -> tuple[Observation, ...]:
    """Everything that the dispatches of a run left, kind by kind."""
    return tuple(row for kind in (STARTED, CANCELLED, ENDED) for row in observations(kind))


class DispatchHistory(NamedTuple):
    """How far a dispatch has got, over all its tries."""

    started: tuple[Observation, ...] = ()
    cancelled: tuple[Observation, ...] = ()
    ended: Observation | None = None

    @property
    def tries(self) -> int:
        """How often it was begun."""
        return len(self.started)

    @property
    def reservation(self) -> Reservation | None:
        """What it was promised when it was begun first; a repeated step does not pay twice."""
        return Reservation.model_validate(self.started[0].detail["reservation"]) if self.started else None


def history_of(observations: Iterable[Observation], dispatch_id: str) -> DispatchHistory:
    """What the rows say of one dispatch."""
    own = [row for row in observations if row.subject == dispatch_id]
    return DispatchHistory(
        started=tuple(row for row in own if row.kind == STARTED),
        cancelled=tuple(row for row in own if row.kind == CANCELLED),
        ended=next((row for row in own if row.kind == ENDED), None),
    )


def budget_of(caps: BudgetCaps, observations: Iterable[Observation]) -> Budget:
    """The account of a run: a dispatch that has not ended counts in full."""
    reserved: dict[str, Reservation] = {}
    spent: dict[str, Spending] = {}
    for row in observations:
        if row.kind == STARTED:
            reserved.setdefault(row.subject, Reservation.model_validate(row.detail["reservation"]))
        elif row.kind == ENDED:
            spent[row.subject] = Spending.model_validate(row.detail["spending"])
    for ended in spent:
        reserved.pop(ended, None)
    return Budget(caps=caps, reserved=reserved, spent=spent)


EXTERNAL = Amounts(tokens=400_000, money_micros=2_000_000)
EXTERNAL_TURNS = 10
"""What an external agent gets on top: with every turn it sends its own prompt of some ten thousand tokens again, most
of them from a cache, and it calls its model for titles and summaries beside. A role's budget is for our own loop."""


def sized(spec: RoleSpec, kind: str) -> RoleSpec:
    """The role with the budget that fits the kind of agent it is given to; what is not limited stays so."""
    if kind != "acp":
        return spec
    budget = spec.budget
    larger = Amounts(
        tokens=budget.tokens + EXTERNAL.tokens if budget.tokens else 0,
        money_micros=budget.money_micros + EXTERNAL.money_micros if budget.money_micros else 0,
        milliseconds=budget.milliseconds,
    )
    return spec.model_copy(update={"budget": larger, "turns": spec.turns + EXTERNAL_TURNS})


def limits_of(spec: RoleSpec) -> DispatchLimits:
    """How far a dispatch of a role may go: what is reserved for it, and no further."""
    return DispatchLimits(
        wall_s=spec.timeout_s,
        turns=spec.turns,
        tokens=spec.budget.tokens or None,
        cost_micros=spec.budget.money_micros or None,
    )


def used_by(outcome: Outcome, asked: Amounts) -> Amounts:
    """What one try used; what nobody counted is what was promised, and nothing only if nobody was asked."""
    usage = outcome.usage
    if outcome.asked == 0 and usage.tokens is None:
        return Amounts(milliseconds=outcome.duration_ms)
    return Amounts(
        tokens=asked.tokens if usage.tokens is None else usage.tokens,
        money_micros=asked.money_micros if usage.cost_micros is None else usage.cost_micros,
        milliseconds=outcome.duration_ms,
    )


def spending_of(outcome: Outcome, before: DispatchHistory, reservation: Reservation) -> Spending:
    """What a dispatch used up in all its tries; a try that was killed told nothing, so it counts as promised."""
    asked = reservation.asked
    parts = [used_by(outcome, asked), *(Amounts.model_validate(row.detail["used"]) for row in before.cancelled)]
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
