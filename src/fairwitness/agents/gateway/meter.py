"""The budget of dispatches at the gateway: a model call is reserved before it is sent and settled when it has ended.

When the budget is spent no call starts. A call whose usage is unknown is settled at its reservation, never at zero: a
lost answer has to be paid for as well.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from fairwitness.agents.gateway.modes import Grant
from fairwitness.contracts.agents.dispatch import DispatchLimits, Usage, UsageSource
from fairwitness.contracts.agents.model import ModelUsage
from fairwitness.errors import UsageError


class Capped(StrEnum):
    """The limit that refused a call."""

    TOKENS = "tokens"
    MONEY = "money_micros"
    TURNS = "turns"
    PRICE = "price"
    """There is a limit on money, and the price of the model is unknown."""
    DISPATCH = "dispatch"
    """The dispatch has no account, or it is closed."""


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """Why a call may not start or continue."""

    what: Capped
    reason: str
    """One sentence for the agent and for a person."""
    cap: int = 0
    used: int = 0
    """What was used or is reserved for running calls."""
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """The reservation of one call."""

    dispatch_id: str
    number: int


class Meter(Protocol):
    """Accounts of dispatches; calls of one dispatch may be concurrent."""

    async def reserve(self, grant: Grant, expected: ModelUsage, cost_micros: int | None) -> Hold | BudgetRefusal:
        """Reserve what a call may use before it is sent, or return why it may not start. The cost may be unknown."""
        ...

    async def extend(self, hold: Hold, more: ModelUsage, cost_micros: int | None) -> BudgetRefusal | None:
        """Reserve more for an answer that is longer than expected; if this is refused, its stream is cut off."""
        ...

    async def settle(self, hold: Hold, usage: ModelUsage | None, cost_micros: int | None) -> None:
        """Settle a call at its usage; None is unknown and counts as the reservation. A second call has no effect."""
        ...

    async def release(self, hold: Hold) -> None:
        """Release a call that is known to have cost nothing."""
        ...


_NOTHING = ModelUsage(tokens_in=0, tokens_out=0)


@dataclass(slots=True)
class _Promise:
    usage: ModelUsage
    cost: int | None


@dataclass(slots=True)
class _Account:
    limits: DispatchLimits
    told: Callable[[BudgetRefusal], None] | None
    promised: dict[int, _Promise] = field(default_factory=dict)
    spent: ModelUsage = _NOTHING
    cost: int | None = 0
    """None once a call with an unknown price was settled."""
    turns: int = 0
    """Calls that were started, without the released ones."""
    refusal: BudgetRefusal | None = None
    is_open: bool = True

    def tokens(self) -> int:
        return _total(self.spent) + sum(_total(promise.usage) for promise in self.promised.values())

    def money(self) -> int:
        return (self.cost or 0) + sum(promise.cost or 0 for promise in self.promised.values())


class CappedMeter:
    """A meter that keeps the limits of dispatches in memory; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, _Account] = {}
        self._number = 0

    def open(
        self, dispatch_id: str, limits: DispatchLimits, told: Callable[[BudgetRefusal], None] | None = None
    ) -> None:
        """Open the account of a dispatch with its limits; `told` is called at once with its first refusal."""
        with self._lock:
            if dispatch_id in self._accounts:
                raise UsageError(
                    f"the dispatch {dispatch_id} has an account already", next_step="use one id for one dispatch"
                )
            self._accounts[dispatch_id] = _Account(limits, told)

    def close(self, dispatch_id: str) -> Usage:
        """Close an account and return its usage; running calls count as reserved."""
        with self._lock:
            account = self._account(dispatch_id)
            account.is_open = False
            for number in tuple(account.promised):
                self._settle(account, number, None, None)
        return self.usage(dispatch_id)

    def usage(self, dispatch_id: str) -> Usage:
        """Return what a dispatch used so far, without running calls."""
        with self._lock:
            account = self._account(dispatch_id)
            return Usage(
                source=UsageSource.GATEWAY,
                tokens_in=account.spent.tokens_in,
                tokens_out=account.spent.tokens_out,
                tokens_cached=account.spent.tokens_cached,
                cost_micros=account.cost,
                turns=account.turns,
            )

    def refusal(self, dispatch_id: str) -> BudgetRefusal | None:
        """Return the first refusal of a dispatch, or None; it tells that the budget was spent."""
        with self._lock:
            return self._account(dispatch_id).refusal

    async def reserve(self, grant: Grant, expected: ModelUsage, cost_micros: int | None) -> Hold | BudgetRefusal:
        """See `Meter`."""
        with self._lock:
            account = self._accounts.get(grant.dispatch_id)
            if account is None or not account.is_open:
                return BudgetRefusal(Capped.DISPATCH, f"the dispatch {grant.dispatch_id} has no account that is open")
            answer = _may_start(account, expected, cost_micros)
            if answer is None:
                self._number += 1
                account.turns += 1
                account.promised[self._number] = _Promise(expected, cost_micros)
                return Hold(grant.dispatch_id, self._number)
            told = _note(account, answer)
        if told is not None:
            told(answer)
        return answer

    async def extend(self, hold: Hold, more: ModelUsage, cost_micros: int | None) -> BudgetRefusal | None:
        """See `Meter`."""
        with self._lock:
            account = self._accounts.get(hold.dispatch_id)
            promise = account.promised.get(hold.number) if account is not None else None
            if account is None or promise is None:
                return BudgetRefusal(
                    Capped.DISPATCH, f"nothing is promised any more to this call of {hold.dispatch_id}"
                )
            answer = _fits(account, more, cost_micros)
            if answer is None:
                promise.usage = _sum(promise.usage, more)
                promise.cost = None if promise.cost is None or cost_micros is None else promise.cost + cost_micros
                return None
            told = _note(account, answer)
        if told is not None:
            told(answer)
        return answer

    async def settle(self, hold: Hold, usage: ModelUsage | None, cost_micros: int | None) -> None:
        """See `Meter`."""
        with self._lock:
            account = self._accounts.get(hold.dispatch_id)
            if account is not None:
                self._settle(account, hold.number, usage, cost_micros)

    async def release(self, hold: Hold) -> None:
        """See `Meter`."""
        with self._lock:
            account = self._accounts.get(hold.dispatch_id)
            if account is not None and account.promised.pop(hold.number, None) is not None:
                account.turns -= 1

    def _account(self, dispatch_id: str) -> _Account:
        account = self._accounts.get(dispatch_id)
        if account is None:
            raise UsageError(f"the dispatch {dispatch_id} has no account", next_step="open one before its first call")
        return account

    @staticmethod
    def _settle(account: _Account, number: int, usage: ModelUsage | None, cost: int | None) -> None:
        promise = account.promised.pop(number, None)
        if promise is None:
            return
        account.spent = _sum(account.spent, promise.usage if usage is None else usage)
        cost = promise.cost if cost is None else cost
        account.cost = None if account.cost is None or cost is None else account.cost + cost


def _may_start(account: _Account, expected: ModelUsage, cost: int | None) -> BudgetRefusal | None:
    if account.turns >= account.limits.turns:
        return _refusal(Capped.TURNS, "calls of a model", account.limits.turns, account.turns, 1)
    return _fits(account, expected, cost)


def _fits(account: _Account, expected: ModelUsage, cost: int | None) -> BudgetRefusal | None:
    limits = account.limits
    asked, used = _total(expected), account.tokens()
    if limits.tokens is not None and (used >= limits.tokens or used + asked > limits.tokens):
        return _refusal(Capped.TOKENS, "tokens", limits.tokens, used, asked)
    if limits.cost_micros is None:
        return None
    if cost is None or account.cost is None:
        return BudgetRefusal(
            Capped.PRICE,
            "this dispatch has a cap on money, and the price of its model is unknown: set the model's price, "
            "or no cap on money",
            cap=limits.cost_micros,
        )
    paid = account.money()
    if paid >= limits.cost_micros or paid + cost > limits.cost_micros:
        return _refusal(Capped.MONEY, "millionths of a dollar", limits.cost_micros, paid, cost)
    return None


def _refusal(what: Capped, unit: str, cap: int, used: int, asked: int) -> BudgetRefusal:
    reason = f"over budget: of {cap:,} {unit}, {used:,} are used or promised, and this call needs {asked:,}"
    return BudgetRefusal(what, reason, cap, used, asked)


def _note(account: _Account, refusal: BudgetRefusal) -> Callable[[BudgetRefusal], None] | None:
    """Return the callback for the first refusal; it is called outside the lock, as it may call the meter."""
    if account.refusal is not None:
        return None
    account.refusal = refusal
    return account.told


def _total(usage: ModelUsage) -> int:
    return usage.tokens_in + usage.tokens_out


def _sum(one: ModelUsage, other: ModelUsage) -> ModelUsage:
    return ModelUsage(
        tokens_in=one.tokens_in + other.tokens_in,
        tokens_out=one.tokens_out + other.tokens_out,
        tokens_cached=one.tokens_cached + other.tokens_cached,
        tokens_cache_written=one.tokens_cache_written + other.tokens_cache_written,
    )
