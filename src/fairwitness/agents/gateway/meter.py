"""What the gateway counts against: every call of a model is reserved before it is sent and settled when it has ended.

At the cap nothing more starts. What a call used and nobody said is settled at what was reserved for it, never at zero:
a lost answer was paid for all the same.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from fairwitness.agents.gateway.modes import FailedAnswer, Grant
from fairwitness.contracts.agents.dispatch import DispatchLimits, Usage, UsageSource
from fairwitness.contracts.agents.model import ModelUsage
from fairwitness.errors import UsageError


class Capped(StrEnum):
    """What stood in the way of a call."""

    TOKENS = "tokens"
    MONEY = "money_micros"
    TURNS = "turns"
    PRICE = "price"
    """There is a cap on money, and nobody knows what the model costs."""
    DISPATCH = "dispatch"
    """Nobody opened an account for this dispatch, or it is closed."""


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """A call that may not start, or may not go on, and why."""

    what: Capped
    reason: str
    """One sentence, fit for the agent and for the person."""
    cap: int = 0
    used: int = 0
    """What was used or is promised to calls under way."""
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """What was promised to one call; only who reserved it can settle it."""

    dispatch_id: str
    number: int


@dataclass(frozen=True, slots=True)
class LostAnswer(FailedAnswer):
    """An error after the request had left: the model may have answered, and the answer may have to be paid for."""


class Meter(Protocol):
    """The account behind the gateway; calls of one dispatch may come at the same time."""

    async def reserve(self, grant: Grant, expected: ModelUsage, cost_micros: int | None) -> Hold | BudgetRefusal:
        """Before a call is sent: promises it what it may use, or says why it may not start. A price may be unknown."""
        ...

    async def extend(self, hold: Hold, more: ModelUsage, cost_micros: int | None) -> BudgetRefusal | None:
        """While an answer streams in that is longer than was promised; refused, the stream is cut off."""
        ...

    async def settle(self, hold: Hold, usage: ModelUsage | None, cost_micros: int | None) -> None:
        """What the call did use; None is unknown and costs what was reserved. Settling twice is settling once."""
        ...

    async def release(self, hold: Hold) -> None:
        """The call came to nothing and is known to have cost nothing: it is as if it had never been asked for."""
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
    """None once a call was settled whose price nobody knows."""
    turns: int = 0
    """Calls that were started, less those that came to nothing."""
    refusal: BudgetRefusal | None = None
    is_open: bool = True

    def tokens(self) -> int:
        return _total(self.spent) + sum(_total(promise.usage) for promise in self.promised.values())

    def money(self) -> int:
        return (self.cost or 0) + sum(promise.cost or 0 for promise in self.promised.values())


class CappedMeter:
    """The caps of dispatches, kept in memory; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, _Account] = {}
        self._number = 0

    def open(
        self, dispatch_id: str, limits: DispatchLimits, told: Callable[[BudgetRefusal], None] | None = None
    ) -> None:
        """From now on the dispatch may call models, up to its limits; `told` hears of the first refusal, at once."""
        with self._lock:
            if dispatch_id in self._accounts:
                raise UsageError(
                    f"the dispatch {dispatch_id} has an account already", next_step="use one id for one dispatch"
                )
            self._accounts[dispatch_id] = _Account(limits, told)

    def close(self, dispatch_id: str) -> Usage:
        """No call of the dispatch starts any more; those under way count in full, as nobody will wait for them."""
        with self._lock:
            account = self._account(dispatch_id)
            account.is_open = False
            for number in tuple(account.promised):
                self._settle(account, number, None, None)
        return self.usage(dispatch_id)

    def usage(self, dispatch_id: str) -> Usage:
        """What the dispatch used so far, calls under way not included."""
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
        """The first refusal of the dispatch: it went over its budget, whatever it says itself."""
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
            "this dispatch has a cap on money, and nobody knows what its model costs: set the model's price, "
            "or no cap on money",
            cap=limits.cost_micros,
        )
    paid = account.money()
    if paid >= limits.cost_micros or paid + cost > limits.cost_micros:
        return _refusal(Capped.MONEY, "millionths of a dollar", limits.cost_micros, paid, cost)
    return None


def _refusal(what: Capped, unit: str, cap: int, used: int, asked: int) -> BudgetRefusal:
    reason = f"over budget: of {cap} {unit}, {used} are used or promised, and {asked} more were asked for"
    return BudgetRefusal(what, reason, cap, used, asked)


def _note(account: _Account, refusal: BudgetRefusal) -> Callable[[BudgetRefusal], None] | None:
    """Whom to tell: only the first refusal is news. It is told outside the lock, since who hears it may ask us back."""
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
