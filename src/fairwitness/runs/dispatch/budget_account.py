"""The budget of a run, folded from the observations of its dispatches: reserved, spent, or never reported.

It is stored nowhere else, so several processes of one run cannot disagree about it.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fairwitness.contracts.agents.dispatch import DispatchLimits, DispatchOutcome
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import Amounts, Budget, BudgetCaps, Reservation, Spending
from fairwitness.contracts.common.evidence import Observation

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
        return Reservation.model_validate(self.started[0].detail["reservation"]) if self.started else None


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
            reserved.setdefault(row.subject, Reservation.model_validate(row.detail["reservation"]))
        elif row.kind == ENDED:
            spent[row.subject] = Spending.model_validate(row.detail["spending"])
    for ended in spent:
        reserved.pop(ended, None)
    return Budget(caps=caps, reserved=reserved, spent=spent)


EXTERNAL = Amounts(tokens=400_000, money_micros=2_000_000)
EXTERNAL_TURNS = 10
"""What an external agent gets in addition. With every turn it sends its own prompt of some ten thousand tokens
again, most of them cached, and it also calls its model for titles and summaries. A role's budget is meant for our
own loop."""


def sized(spec: RoleSpec, kind: str) -> RoleSpec:
    """Return the role with the budget for this kind of agent; what is unlimited stays unlimited."""
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
