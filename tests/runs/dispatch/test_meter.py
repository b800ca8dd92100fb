"""Calls of models against a dispatch's own limits, and against what the whole run has used."""

import asyncio

import pytest

from fairwitness.agents.gateway.meter import BudgetRefusal, Capped, Hold
from fairwitness.agents.gateway.modes import Grant
from fairwitness.contracts.agents.dispatch import DispatchLimits
from fairwitness.contracts.agents.model import ModelUsage
from fairwitness.contracts.common.budgets import Amounts, Budget, BudgetCaps, Caps, Reservation, Spending
from fairwitness.runs.dispatch.meter import RunMeter
from runs.dispatch.world import NO_LIMIT

LIMITS = DispatchLimits(wall_s=60, turns=10, tokens=1000, cost_micros=None)
CALL = ModelUsage(tokens_in=300, tokens_out=100)


def account(spent: int = 0, cap: int | None = 2000) -> Budget:
    """A run with two dispatches under way, and one that has ended."""
    caps = BudgetCaps(dispatch=NO_LIMIT, phase=NO_LIMIT, run=Caps(tokens=cap, money_micros=None, milliseconds=None))
    reserved = {name: Reservation(id=name, asked=Amounts(tokens=1000)) for name in ("a", "b")}
    return Budget(caps=caps, reserved=reserved, spent={"c": Spending(used=Amounts(tokens=spent))})


def grant(name: str) -> Grant:
    return Grant(token="t" * 32, dispatch_id=name)


def settled(meter: RunMeter, name: str, usage: ModelUsage = CALL) -> Hold | BudgetRefusal:
    async def call() -> Hold | BudgetRefusal:
        hold = await meter.reserve(grant(name), usage, None)
        if isinstance(hold, Hold):
            await meter.settle(hold, usage, None)
        return hold

    return asyncio.run(call())


@pytest.mark.req("P12")
def test_calls_within_the_limits_go_through_and_are_counted() -> None:
    meter = RunMeter(account)
    meter.open("a", LIMITS)
    assert isinstance(settled(meter, "a"), Hold)
    assert meter.usage("a").tokens == 400
    assert meter.refusal("a") is None
    assert meter.close("a").turns == 1


@pytest.mark.req("P12")
def test_a_dispatch_stops_at_its_own_limit_and_is_told_once() -> None:
    told: list[BudgetRefusal] = []
    meter = RunMeter(account)
    meter.open("a", LIMITS, told.append)
    settled(meter, "a")
    settled(meter, "a")
    for _ in range(2):
        refused = settled(meter, "a")
        assert isinstance(refused, BudgetRefusal)
        assert refused.what is Capped.TOKENS
    assert told == [meter.refusal("a")]


@pytest.mark.req("P12")
def test_when_another_used_more_than_it_was_promised_the_rest_stop_at_the_cap_of_the_run() -> None:
    told: list[BudgetRefusal] = []
    meter = RunMeter(lambda: account(spent=1700))
    meter.open("a", LIMITS, told.append)
    meter.open("b", LIMITS)
    assert isinstance(settled(meter, "b"), Hold)
    refused = settled(meter, "a")
    assert isinstance(refused, BudgetRefusal)
    assert (refused.cap, refused.used) == (2000, 2100)
    assert "the run has used 2100 of 2000 tokens" in refused.reason
    assert told == [refused]


def test_what_is_only_promised_does_not_stop_the_one_it_is_promised_to() -> None:
    meter = RunMeter(lambda: account(cap=2000))
    meter.open("a", LIMITS)
    assert isinstance(settled(meter, "a"), Hold)


def test_a_stream_that_grows_is_cut_at_the_cap_of_the_run() -> None:
    spent = 0
    meter = RunMeter(lambda: account(spent=spent))
    meter.open("a", LIMITS)

    async def call() -> tuple[BudgetRefusal | None, BudgetRefusal | None]:
        nonlocal spent
        hold = await meter.reserve(grant("a"), CALL, None)
        assert isinstance(hold, Hold)
        more = ModelUsage(tokens_in=0, tokens_out=10)
        first = await meter.extend(hold, more, None)
        spent = 2000
        second = await meter.extend(hold, more, None)
        await meter.release(hold)
        return first, second

    first, second = asyncio.run(call())
    assert first is None
    assert second is not None
    assert meter.usage("a").tokens == 0


def test_a_dispatch_without_an_account_is_refused() -> None:
    refused = settled(RunMeter(account), "nobody")
    assert isinstance(refused, BudgetRefusal)
    assert refused.what is Capped.DISPATCH


def test_nobody_is_told_of_a_dispatch_that_was_never_opened() -> None:
    meter = RunMeter(lambda: account(spent=5000))
    assert isinstance(settled(meter, "nobody"), BudgetRefusal)
    assert meter.refusal("nobody") is None


@pytest.mark.req("P12")
@pytest.mark.parametrize(("cap", "is_refused"), [(None, False), (1_000_000, True)])
def test_an_unknown_price_is_refused_under_a_cap_in_dollars_only(cap: int | None, is_refused: bool) -> None:
    told: list[BudgetRefusal] = []
    caps = BudgetCaps(dispatch=NO_LIMIT, phase=NO_LIMIT, run=Caps(tokens=None, money_micros=cap, milliseconds=None))
    meter = RunMeter(lambda: Budget(caps=caps))
    meter.open("a", LIMITS, told.append)
    done = settled(meter, "a")
    assert isinstance(done, BudgetRefusal) is is_refused
    if isinstance(done, BudgetRefusal):
        assert done.what is Capped.PRICE
        assert "the price of its model is unknown" in done.reason
        assert told == [done]


def test_a_refused_call_says_what_it_would_have_needed() -> None:
    meter = RunMeter(lambda: account(cap=None))
    meter.open("a", DispatchLimits(wall_s=60, turns=10, tokens=100, cost_micros=None))
    refused = settled(meter, "a")
    assert isinstance(refused, BudgetRefusal)
    assert refused.reason == "over budget: of 100 tokens, 0 are used or promised, and this call needs 400"
