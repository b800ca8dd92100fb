"""The gateway's meter for one run: it checks each model call against the limits of its dispatch and the caps of the
run.

A dispatch may have used more than was reserved for it. Then the others stop at the run's cap, although each is within
its own limits: what the ledger says was spent and what is being spent count together.
"""

import threading
from collections.abc import Callable

from fairwitness.agents.gateway.meter import BudgetRefusal, Capped, CappedMeter, Hold
from fairwitness.agents.gateway.modes import Grant
from fairwitness.contracts.agents.dispatch import DispatchLimits, Usage
from fairwitness.contracts.agents.model import ModelUsage
from fairwitness.contracts.common.budgets import Amounts, Budget, OverBudget, Resource, Spending
from fairwitness.rules.budgets import exhausted

RefusalListener = Callable[[BudgetRefusal], None]
UNKNOWN_PRICE = "the run has a cap in dollars, and the price of its model is unknown"
_CAPPED = {Resource.TOKENS: Capped.TOKENS, Resource.MONEY: Capped.MONEY}


class RunMeter:
    """The meter that all dispatches of a run in this process share. It is thread-safe."""

    def __init__(self, account: Callable[[], Budget]) -> None:
        """`account` returns the budget of the run from the ledger; it is called before each model call."""
        self._account = account
        self._calls = CappedMeter()
        self._lock = threading.Lock()
        self._open: dict[str, RefusalListener | None] = {}
        self._refused: dict[str, BudgetRefusal] = {}

    def open(self, dispatch_id: str, limits: DispatchLimits, told: RefusalListener | None = None) -> None:
        """Allow the dispatch to call models. `told` is called with the first refusal, at once."""
        self._calls.open(dispatch_id, limits, lambda refusal: self._note(dispatch_id, refusal))
        with self._lock:
            self._open[dispatch_id] = told

    def close(self, dispatch_id: str) -> Usage:
        """Allow no more calls of the dispatch and return what it used."""
        usage = self._calls.close(dispatch_id)
        with self._lock:
            self._open.pop(dispatch_id, None)
        return usage

    def usage(self, dispatch_id: str) -> Usage:
        """Return what the dispatch used so far."""
        return self._calls.usage(dispatch_id)

    def refusal(self, dispatch_id: str) -> BudgetRefusal | None:
        """Return the first refusal of the dispatch."""
        with self._lock:
            return self._refused.get(dispatch_id)

    async def reserve(self, grant: Grant, expected: ModelUsage, cost_micros: int | None) -> Hold | BudgetRefusal:
        """See `Meter`."""
        over = self._over(grant.dispatch_id, cost_micros)
        if over is not None:
            return over
        return await self._calls.reserve(grant, expected, cost_micros)

    async def extend(self, hold: Hold, more: ModelUsage, cost_micros: int | None) -> BudgetRefusal | None:
        """See `Meter`."""
        over = self._over(hold.dispatch_id, cost_micros)
        if over is not None:
            return over
        return await self._calls.extend(hold, more, cost_micros)

    async def settle(self, hold: Hold, usage: ModelUsage | None, cost_micros: int | None) -> None:
        """See `Meter`."""
        await self._calls.settle(hold, usage, cost_micros)

    async def release(self, hold: Hold) -> None:
        """See `Meter`."""
        await self._calls.release(hold)

    def _over(self, dispatch_id: str, cost_micros: int | None) -> BudgetRefusal | None:
        """Return a refusal if the run has reached a cap by actual use, or if its money cannot be counted.

        Reservations are the dispatches' own limits.
        """
        account = self._account()
        money = account.caps.run.money_micros
        if money is not None and cost_micros is None:
            unknown = BudgetRefusal(Capped.PRICE, f"over budget: {UNKNOWN_PRICE}", cap=money)
            self._note(dispatch_id, unknown)
            return unknown
        with self._lock:
            live = {name: _live(self._calls.usage(name)) for name in self._open if name not in account.spent}
        over = exhausted(Budget(caps=account.caps, spent={**account.spent, **live}))
        if over is None:
            return None
        refusal = _refusal(over)
        self._note(dispatch_id, refusal)
        return refusal

    def _note(self, dispatch_id: str, refusal: BudgetRefusal) -> None:
        """Report only the first refusal. The callback runs outside the lock, since it may call the meter."""
        with self._lock:
            if dispatch_id in self._refused or dispatch_id not in self._open:
                return
            self._refused[dispatch_id] = refusal
            told = self._open[dispatch_id]
        if told is not None:
            told(refusal)


def _live(usage: Usage) -> Spending:
    return Spending(used=Amounts(tokens=usage.tokens or 0, money_micros=usage.cost_micros or 0))


def _refusal(over: OverBudget) -> BudgetRefusal:
    what = _CAPPED.get(over.what, Capped.DISPATCH)
    reason = f"over budget: the run has used {over.used} of {over.cap} {over.what.value}"
    return BudgetRefusal(what, reason, over.cap, over.used)
