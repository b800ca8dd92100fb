"""What a dispatch may use is promised before it is used, and never more of it than there is."""

import asyncio
import json
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.gateway.pass_kit import GRANT, asked_of, body_of, limits
from fairwitness.agents.gateway.meter import BudgetRefusal, Capped, CappedMeter, Hold
from fairwitness.agents.gateway.modes import Grant
from fairwitness.agents.gateway.token_estimate import PICTURE, UNSAID_OUTPUT, StreamTokens, estimate
from fairwitness.contracts.agents.dispatch import DispatchLimits, UsageSource
from fairwitness.contracts.agents.model import ApiDialect, ModelUsage
from fairwitness.errors import UsageError


def _usage(tokens_in: int, tokens_out: int = 0) -> ModelUsage:
    return ModelUsage(tokens_in=tokens_in, tokens_out=tokens_out)


def _meter(bounds: DispatchLimits) -> CappedMeter:
    meter = CappedMeter()
    meter.open(GRANT.dispatch_id, bounds)
    return meter


def _hold(meter: CappedMeter, usage: ModelUsage, cost: int | None = None) -> Hold:
    hold = asyncio.run(meter.reserve(GRANT, usage, cost))
    assert isinstance(hold, Hold), hold
    return hold


def _no(meter: CappedMeter, usage: ModelUsage, cost: int | None = None) -> BudgetRefusal:
    refusal = asyncio.run(meter.reserve(GRANT, usage, cost))
    assert isinstance(refusal, BudgetRefusal), refusal
    return refusal


@pytest.mark.req("P12")
@pytest.mark.req("A4")
def test_what_is_promised_counts_until_it_is_settled_and_then_what_was_used_does() -> None:
    meter = _meter(limits(tokens=1000))
    first = _hold(meter, _usage(300, 400))
    assert _no(meter, _usage(301)).what is Capped.TOKENS
    _hold(meter, _usage(300))
    asyncio.run(meter.settle(first, _usage(100, 50), None))
    _hold(meter, _usage(550))
    refusal = _no(meter, _usage(1))
    assert (refusal.cap, refusal.used, refusal.asked) == (1000, 1000, 1)


@pytest.mark.req("P12")
@pytest.mark.req("A4")
def test_at_the_cap_not_even_a_call_that_asks_for_nothing_starts() -> None:
    meter = _meter(limits(tokens=10))
    asyncio.run(meter.settle(_hold(meter, _usage(10)), _usage(10), None))
    assert "over budget" in _no(meter, _usage(0)).reason


@pytest.mark.req("P12")
def test_unknown_usage_is_settled_at_what_was_reserved_and_never_at_zero() -> None:
    meter = _meter(limits(tokens=1000, cost=1000))
    asyncio.run(meter.settle(_hold(meter, _usage(30, 40), 7), None, None))
    used = meter.usage(GRANT.dispatch_id)
    assert (used.tokens_in, used.tokens_out, used.cost_micros, used.turns) == (30, 40, 7, 1)
    assert used.source is UsageSource.GATEWAY


def test_settling_twice_is_settling_once_and_a_released_call_never_was() -> None:
    meter = _meter(limits(tokens=1000))
    hold = _hold(meter, _usage(100))
    asyncio.run(meter.settle(hold, _usage(10), None))
    asyncio.run(meter.settle(hold, _usage(10), None))
    asyncio.run(meter.release(hold))
    released = _hold(meter, _usage(100))
    asyncio.run(meter.release(released))
    asyncio.run(meter.settle(released, _usage(500), None))
    used = meter.usage(GRANT.dispatch_id)
    assert (used.tokens, used.turns) == (10, 1)


def test_settling_may_exceed_what_was_reserved_and_then_nothing_more_starts() -> None:
    meter = _meter(limits(tokens=100))
    asyncio.run(meter.settle(_hold(meter, _usage(10)), _usage(500), None))
    assert meter.usage(GRANT.dispatch_id).tokens == 500
    assert _no(meter, _usage(1)).used == 500


@pytest.mark.req("P12")
def test_turns_and_money_have_caps_of_their_own() -> None:
    by_turns = _meter(limits(turns=2))
    _hold(by_turns, _usage(1))
    asyncio.run(by_turns.settle(_hold(by_turns, _usage(1)), _usage(1), None))
    assert _no(by_turns, _usage(1)).what is Capped.TURNS
    by_money = _meter(limits(cost=100))
    _hold(by_money, _usage(1), 60)
    assert _no(by_money, _usage(1), 41).what is Capped.MONEY
    _hold(by_money, _usage(1), 40)


@pytest.mark.req("P12")
def test_a_cap_on_money_cannot_be_held_for_a_model_without_a_price_so_nothing_starts() -> None:
    refusal = _no(_meter(limits(cost=100)), _usage(1), None)
    assert refusal.what is Capped.PRICE
    assert "price" in refusal.reason
    without_cap = _meter(limits())
    asyncio.run(without_cap.settle(_hold(without_cap, _usage(1), None), _usage(1), None))
    assert without_cap.usage(GRANT.dispatch_id).cost_micros is None


def test_an_answer_that_grows_asks_for_more_and_gets_it_up_to_the_cap() -> None:
    meter = _meter(limits(tokens=100, cost=50))
    hold = _hold(meter, _usage(10, 10), 5)
    assert asyncio.run(meter.extend(hold, _usage(0, 80), 40)) is None
    refusal = asyncio.run(meter.extend(hold, _usage(0, 1), 1))
    assert refusal is not None
    assert refusal.what is Capped.TOKENS
    asyncio.run(meter.settle(hold, None, None))
    assert meter.usage(GRANT.dispatch_id).tokens == 100
    after = asyncio.run(meter.extend(hold, _usage(0, 1), 1))
    assert after is not None
    assert after.what is Capped.DISPATCH


@pytest.mark.req("P12")
def test_only_the_first_refusal_is_told_and_who_hears_it_may_ask_the_meter() -> None:
    meter = CappedMeter()
    heard: list[tuple[BudgetRefusal, int | None]] = []
    meter.open(
        GRANT.dispatch_id, limits(tokens=5), lambda no: heard.append((no, meter.usage(GRANT.dispatch_id).tokens))
    )
    assert meter.refusal(GRANT.dispatch_id) is None
    first = _no(meter, _usage(6))
    _no(meter, _usage(7))
    assert heard == [(first, 0)]
    assert meter.refusal(GRANT.dispatch_id) == first


def test_without_an_account_nothing_starts_and_one_id_has_one_account() -> None:
    meter = CappedMeter()
    assert _no(meter, _usage(1)).what is Capped.DISPATCH
    meter.open(GRANT.dispatch_id, limits())
    with pytest.raises(UsageError):
        meter.open(GRANT.dispatch_id, limits())
    with pytest.raises(UsageError):
        meter.usage("another")


def test_a_closed_account_counts_what_was_under_way_and_starts_nothing() -> None:
    meter = _meter(limits(tokens=1000))
    _hold(meter, _usage(100, 20))
    used = meter.close(GRANT.dispatch_id)
    assert (used.tokens, used.turns) == (120, 1)
    assert _no(meter, _usage(1)).what is Capped.DISPATCH


def test_a_dispatch_does_not_pay_for_another() -> None:
    meter = _meter(limits(tokens=10))
    meter.open("other", limits(tokens=10))
    _hold(meter, _usage(10))
    assert isinstance(asyncio.run(meter.reserve(Grant("t", "other"), _usage(10), None)), Hold)


_STEP = st.tuples(
    st.sampled_from(["reserve", "extend", "settle", "unknown", "release"]), st.integers(0, 400), st.integers(0, 30)
)


@pytest.mark.req("P12")
@pytest.mark.req("A4")
@given(st.lists(_STEP, max_size=60), st.integers(1, 1000), st.integers(1, 60), st.integers(1, 20))
def test_whatever_happens_used_and_promised_stay_within_the_caps(
    steps: list[tuple[str, int, int]], tokens: int, cost: int, turns: int
) -> None:
    async def play() -> None:
        meter = CappedMeter()
        meter.open(GRANT.dispatch_id, limits(tokens=tokens, cost=cost, turns=turns))
        held: list[tuple[Hold, int, int]] = []
        for what, amount, price in steps:
            if what == "reserve":
                hold = await meter.reserve(GRANT, _usage(amount), price)
                if isinstance(hold, Hold):
                    held.append((hold, amount, price))
            elif held:
                hold, promised, paid = held.pop()
                if what == "extend":
                    more = await meter.extend(hold, _usage(amount), price)
                    held.append((hold, promised, paid) if more else (hold, promised + amount, paid + price))
                elif what == "settle":
                    await meter.settle(hold, _usage(min(amount, promised)), min(price, paid))
                elif what == "unknown":
                    await meter.settle(hold, None, None)
                else:
                    await meter.release(hold)
            used = meter.usage(GRANT.dispatch_id)
            assert used.tokens is not None
            assert used.cost_micros is not None
            assert used.turns is not None
            assert used.tokens + sum(promised for _, promised, _ in held) <= tokens
            assert used.cost_micros + sum(paid for _, _, paid in held) <= cost
            assert used.turns <= turns

    asyncio.run(play())


@pytest.mark.req("P12")
def test_twenty_threads_at_once_never_pass_the_cap() -> None:
    meter = _meter(limits(tokens=1000))
    granted: list[Hold] = []

    def spend() -> None:
        for _ in range(50):
            hold = asyncio.run(meter.reserve(GRANT, _usage(7), None))
            if isinstance(hold, Hold):
                granted.append(hold)

    threads = [threading.Thread(target=spend) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 1000 // 7
    assert len({hold.number for hold in granted}) == len(granted)


@pytest.mark.parametrize("dialect", list(ApiDialect))
def test_a_call_is_estimated_by_its_length_and_the_longest_answer_it_allows(dialect: ApiDialect) -> None:
    asked = asked_of(dialect, body_of(dialect, "x" * 4000, most=321))
    assert 1000 < estimate(asked).tokens_in < 1200
    assert estimate(asked).tokens_out == 321
    long = asked_of(dialect, body_of(dialect, "x", most=128_000))
    assert estimate(replace(long, stream=False)).tokens_out == 128_000
    assert estimate(replace(long, stream=True)).tokens_out == UNSAID_OUTPUT, "the rest is asked for as it comes"
    assert estimate(asked_of(dialect, body_of(dialect, "x", most=None))).tokens_out == UNSAID_OUTPUT


def test_a_picture_is_not_counted_by_its_bytes() -> None:
    data = "QUJD" * 100_000
    parts = {
        ApiDialect.ANTHROPIC: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        ApiDialect.OPENAI_CHAT: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        ApiDialect.OPENAI_RESPONSES: {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
        ApiDialect.GEMINI: {"inlineData": {"mimeType": "image/png", "data": data}},
    }
    for dialect, part in parts.items():
        body = body_of(dialect, "look")
        match dialect:
            case ApiDialect.GEMINI:
                body["contents"][0]["parts"].append(part)
            case ApiDialect.OPENAI_RESPONSES:
                body["input"][0]["content"] = [part]
            case _:
                body["messages"][0]["content"] = [part]
        assert PICTURE < estimate(asked_of(dialect, body)).tokens_in < PICTURE + 300
    text = body_of(ApiDialect.ANTHROPIC, data)
    assert estimate(asked_of(ApiDialect.ANTHROPIC, text)).tokens_in > 100_000


@given(st.text(max_size=200), st.integers(1, 30))
def test_the_gauge_hears_what_is_said_however_it_is_cut(said: str, size: int) -> None:
    frame = f"data: {json.dumps({'type': 'content_block_delta', 'delta': {'type': 'text_delta', 'text': said}})}\n\n"
    data = frame.encode() + b"data: [DONE]\n\n"
    gauge = StreamTokens(ApiDialect.ANTHROPIC)
    heard = 0
    for start in range(0, len(data), size):
        heard = gauge.feed(data[start : start + size])
    assert heard == len(said.encode("utf-8", "replace")) // 4


def test_what_nobody_can_read_counts_as_it_is() -> None:
    gauge = StreamTokens(ApiDialect.OPENAI_CHAT)
    assert gauge.feed(b"data: " + b"{" * 3999 + b"\n\n") == 1000
    assert gauge.feed(b"x" * 3_000_000) >= 700_000
