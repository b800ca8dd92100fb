"""Budgets: a dispatch reserves before it starts and settles after it ends; at a cap nothing more starts.

After a crash between the two, the reservation remains and counts until it is released.
"""

from collections.abc import Iterator

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
