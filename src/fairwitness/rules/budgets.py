"""Budgets: a dispatch reserves before it starts and settles after it ends; at a cap nothing more starts.

After a crash between the two, the reservation remains and counts until it is released.
"""

from collections.abc import Iterator

from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import (
    Amounts,
    Budget,
    BudgetLevel,
    Caps,
    OverBudget,
    Reservation,
    Reserved,
    Resource,
    Spending,
)
from fairwitness.contracts.common.problems import Problem

EXTERNAL = Amounts(tokens=400_000, money_micros=2_000_000)
EXTERNAL_TURNS = 10
"""What an external agent gets in addition. With every call of its model it sends its own prompt of some ten thousand
tokens again, and it also asks for titles and summaries. A role's own budget is meant for the built-in loop."""


_SPELLED = {
    Resource.TOKENS: ("tokens", 1, 0),
    Resource.MONEY: ("dollars", 1_000_000, 2),
    Resource.TIME: ("minutes", 60_000, 1),
}
"""The unit of each resource, how many of the recorded amounts make one, and the digits that are shown of it."""


def sized(spec: RoleSpec, kind: str) -> RoleSpec:
    """Return the role with the budget of a kind of agent, which is printed and enforced; no limit stays no limit."""
    if kind != "acp":
        return spec
    budget = spec.budget
    larger = Amounts(
        tokens=budget.tokens + EXTERNAL.tokens if budget.tokens else 0,
        money_micros=budget.money_micros + EXTERNAL.money_micros if budget.money_micros else 0,
        milliseconds=budget.milliseconds,
    )
    return spec.model_copy(update={"budget": larger, "turns": spec.turns + EXTERNAL_TURNS})


def spelled_amount(what: Resource, count: int) -> str:
    """Return an amount as people write it.

    >>> spelled_amount(Resource.TOKENS, 5000), spelled_amount(Resource.MONEY, 1_500_000)
    ('5,000 tokens', '1.50 dollars')
    """
    unit, factor, digits = _SPELLED[what]
    return f"{count / factor:,.{digits}f} {unit}" if digits else f"{count:,} {unit}"


def spelled_refusal(over: OverBudget, who: str) -> str:
    """Return why a dispatch may not start, and how much it would need.

    >>> over = OverBudget(level=BudgetLevel.RUN, what=Resource.TOKENS, cap=50, used=0, asked=90)
    >>> spelled_refusal(over, "spec")
    'the run may use 50 tokens, none of them used or reserved; a call of spec reserves 90 tokens: a cap of 90 is needed'
    """
    used = spelled_amount(over.what, over.used) if over.used else "none of them"
    needed = spelled_amount(over.what, over.used + over.asked).partition(" ")[0]
    return (
        f"the {over.level.value} may use {spelled_amount(over.what, over.cap)}, {used} used or reserved; "
        f"a call of {who} reserves {spelled_amount(over.what, over.asked)}: a cap of {needed} is needed"
    )


def amount(amounts: Amounts, what: Resource) -> int:
    """Return the amount of one resource.

    >>> amount(Amounts(tokens=7), Resource.TOKENS)
    7
    """
    count: int = getattr(amounts, what.value)
    return count


def cap_of(caps: Caps, what: Resource) -> int | None:
    """Return the cap of one resource, or None if it is not limited."""
    cap: int | None = getattr(caps, what.value)
    return cap


def used(budget: Budget, what: Resource, *, phase: str | None = None) -> int:
    """Return what is spent and reserved of a resource, in one phase or in the whole run.

    >>> from fairwitness.contracts.common.budgets import BudgetCaps
    >>> free = Caps(tokens=None, money_micros=None, milliseconds=None)
    >>> one = Reservation(id="d-1", phase="3", asked=Amounts(tokens=7))
    >>> account = Budget(caps=BudgetCaps(dispatch=free, phase=free, run=free), reserved={"d-1": one})
    >>> used(account, Resource.TOKENS), used(account, Resource.TOKENS, phase="4")
    (7, 0)
    """
    return sum(amount(amounts, what) for where, amounts in _entries(budget) if phase is None or where == phase)


def _entries(budget: Budget) -> Iterator[tuple[str | None, Amounts]]:
    for spending in budget.spent.values():
        yield spending.phase, spending.used
    for reservation in budget.reserved.values():
        yield reservation.phase, reservation.asked


def reserve(budget: Budget, wanted: Reservation) -> Reserved | OverBudget | Problem:
    """Reserve an amount for a dispatch, or return the narrowest cap that does not allow it.

    Repeating the same reservation has no effect: a step that is repeated after a crash does not pay twice.
    """
    standing = budget.reserved.get(wanted.id)
    if wanted.id in budget.spent or standing not in (None, wanted):
        return Problem(where=("reserved", wanted.id), expected="an id that no other dispatch has", found=wanted.id)
    if standing is not None:
        return Reserved(budget=budget)
    for level, what, cap in _caps(budget, wanted):
        asked = amount(wanted.asked, what)
        before = _used_at(budget, level, what, wanted)
        if before >= cap or before + asked > cap:
            return OverBudget(level=level, what=what, cap=cap, used=before, asked=asked)
    return Reserved(budget=budget.model_copy(update={"reserved": {**budget.reserved, wanted.id: wanted}}))


def _caps(budget: Budget, wanted: Reservation) -> Iterator[tuple[BudgetLevel, Resource, int]]:
    caps = {
        BudgetLevel.DISPATCH: budget.caps.dispatch,
        BudgetLevel.PHASE: budget.caps.phase,
        BudgetLevel.RUN: budget.caps.run,
    }
    for level in BudgetLevel:
        if level is BudgetLevel.PHASE and wanted.phase is None:
            continue
        for what in Resource:
            cap = cap_of(caps[level], what)
            if cap is not None:
                yield level, what, cap


def _used_at(budget: Budget, level: BudgetLevel, what: Resource, wanted: Reservation) -> int:
    if level is BudgetLevel.DISPATCH:
        return 0  # a dispatch that has not started has used nothing yet
    return used(budget, what, phase=wanted.phase if level is BudgetLevel.PHASE else None)


def settle(budget: Budget, reservation_id: str, spent: Amounts) -> Budget | Problem:
    """Return the account after a dispatch ended: its actual usage counts, even beyond its reservation.

    Settling a dispatch again with the same amounts has no effect; with other amounts it is a problem.
    """
    reservation = budget.reserved.get(reservation_id)
    if reservation is None:
        before = budget.spent.get(reservation_id)
        if before is not None and before.used == spent:
            return budget
        found = "nothing" if before is None else "other amounts, settled already"
        return Problem(where=("reserved", reservation_id), expected="a reservation to settle", found=found)
    return budget.model_copy(
        update={
            "reserved": _without(budget, reservation_id),
            "spent": {**budget.spent, reservation_id: Spending(phase=reservation.phase, used=spent)},
        }
    )


def release(budget: Budget, reservation_id: str) -> Budget:
    """Return the account without the reservation of a dispatch that never ran; settled dispatches stay settled."""
    return budget.model_copy(update={"reserved": _without(budget, reservation_id)})


def _without(budget: Budget, reservation_id: str) -> dict[str, Reservation]:
    return {name: standing for name, standing in budget.reserved.items() if name != reservation_id}


def exhausted(budget: Budget) -> OverBudget | None:
    """Return the first cap of the run that is reached, or None; once one is reached, nothing may start."""
    for what in Resource:
        cap = cap_of(budget.caps.run, what)
        count = used(budget, what)
        if cap is not None and count >= cap:
            return OverBudget(level=BudgetLevel.RUN, what=what, cap=cap, used=count, asked=0)
    return None
