"""What passes is counted: reserved before it starts, settled before its end is read, cut off where the budget ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.gateway.pass_kit import (
    GRANT,
    KEY,
    MODEL,
    FakeProvider,
    asked_of,
    body_of,
    drained,
    fronted,
    limits,
    passing,
    path_of,
    scripted,
    turn_in,
)
from fairwitness.agents.gateway.flow import StreamBroken, close
from fairwitness.agents.gateway.meter import BudgetRefusal, Capped, CappedMeter, Hold
from fairwitness.agents.gateway.metered import OVER_BUDGET, MeteredMode
from fairwitness.agents.gateway.modes import (
    FailedAnswer,
    Grant,
    ModelAnswer,
    ModelRequest,
    NoAnswer,
    RawAnswer,
    TurnAnswer,
    UpstreamFailure,
)
from fairwitness.agents.gateway.pricing import Price, Prices
from fairwitness.agents.gateway.token_estimate import estimate
from fairwitness.agents.gateway.upstream import ModelRoute, Provider, priced
from fairwitness.contracts.agents.dispatch import DispatchLimits
from fairwitness.contracts.agents.model import ApiDialect, ModelTurn, ModelUsage
from fairwitness.testing.script_steps import ErrorStep, ReadStep, Script
from fairwitness.testing.scripted_model import marker

EVERY = pytest.mark.parametrize("dialect", list(ApiDialect))
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
SSE = {"content-type": "text/event-stream"}
READS = Script(name="reads", steps=(ReadStep(path="a.py"),))
FAILS = Script(name="fails", steps=(ErrorStep(status=529),))


def _a_micro(_asked: ModelRequest, usage: ModelUsage) -> int | None:
    return usage.tokens_in + usage.tokens_out


def _free(_asked: ModelRequest, _usage: ModelUsage) -> int | None:
    return None


def _opened(bounds: DispatchLimits) -> CappedMeter:
    meter = CappedMeter()
    meter.open(GRANT.dispatch_id, bounds)
    return meter


class Answers:
    """A mode that answers as it is told."""

    name = "test"

    def __init__(self, *answers: ModelAnswer | BaseException) -> None:
        self._answers = iter(answers)

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """The next."""
        await asyncio.sleep(0)
        given = next(self._answers)
        if isinstance(given, BaseException):
            raise given
        return given


def _asked(dialect: ApiDialect = ApiDialect.ANTHROPIC, *, stream: bool = False, most: int | None = 100) -> ModelRequest:
    return asked_of(dialect, body_of(dialect, "hello", stream=stream, most=most), stream=stream)


@pytest.mark.req("X3")
@pytest.mark.req("P12")
@pytest.mark.enable_socket
@EVERY
@BOTH
def test_in_every_dialect_what_was_used_is_counted_and_priced(
    tmp_path: Path, dialect: ApiDialect, stream: bool
) -> None:
    tmp_path.chmod(0o700)

    async def play() -> None:
        meter = _opened(limits(tokens=50_000, cost=1_000_000))
        route = ModelRoute(Provider("acme", dialect, "http://127.0.0.1:1", KEY), MODEL)
        price = priced(lambda _: route, Prices({MODEL: Price.of("3", "15")}))
        async with (
            passing(scripted(READS), dialect) as mode,
            fronted(MeteredMode(mode, meter, price), tmp_path) as client,
        ):
            body = body_of(dialect, marker("reads"), stream=stream)
            response = await client.post(path_of(dialect, stream=stream), json=body)
            assert turn_in(dialect, response.content) is not None
            used = meter.usage(GRANT.dispatch_id)
            assert (used.tokens_in, used.tokens_out, used.turns) == (1000, 50, 1)
            assert used.cost_micros == 1000 * 3 + 50 * 15

    asyncio.run(play())


@pytest.mark.req("X3")
@pytest.mark.req("P12")
@pytest.mark.enable_socket
@EVERY
def test_at_the_cap_the_agent_is_told_in_its_own_dialect_and_nothing_is_sent(
    tmp_path: Path, dialect: ApiDialect
) -> None:
    tmp_path.chmod(0o700)

    async def play() -> None:
        meter = _opened(limits(tokens=1_100))
        upstream = scripted(READS)
        async with passing(upstream, dialect) as mode, fronted(MeteredMode(mode, meter, _free), tmp_path) as client:
            body = body_of(dialect, marker("reads"))
            statuses = [(await client.post(path_of(dialect, stream=False), json=body)) for _ in range(3)]
            assert [each.status_code for each in statuses] == [200, OVER_BUDGET, OVER_BUDGET]
            assert "over budget" in statuses[1].json()["error"]["message"]
            assert statuses[1].headers["x-should-retry"] == "false"
            assert len(upstream.log.requests) == 1
        refusal = meter.refusal(GRANT.dispatch_id)
        assert refusal is not None
        assert refusal.what is Capped.TOKENS

    asyncio.run(play())


@pytest.mark.req("P12")
@pytest.mark.req("A4")
@pytest.mark.enable_socket
def test_twenty_calls_at_once_never_pass_the_cap(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    dialect = ApiDialect.OPENAI_CHAT

    async def play() -> None:
        cap = 6_000
        meter = _opened(limits(tokens=cap))
        upstream = scripted(READS)
        async with passing(upstream, dialect) as mode, fronted(MeteredMode(mode, meter, _free), tmp_path) as client:
            body = body_of(dialect, marker("reads") + "x" * 4000, most=200)
            asking = [client.post(path_of(dialect, stream=False), json=body) for _ in range(20)]
            statuses = [response.status_code for response in await asyncio.gather(*asking)]
        used = meter.usage(GRANT.dispatch_id)
        assert used.tokens is not None
        assert 0 < used.tokens <= cap
        assert used.turns == statuses.count(200) == len(upstream.log.requests)
        assert statuses.count(OVER_BUDGET) == 20 - statuses.count(200)

    asyncio.run(play())


class Worked:
    """A mode that uses exactly what it says, never more than it was asked for."""

    name = "test"

    def __init__(self, uses: list[int], delays: list[int]) -> None:
        self._uses = uses
        self._delays = delays
        self._calls = 0
        self.sent = 0

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """A turn, after a while."""
        number, self._calls = self._calls, self._calls + 1
        for _ in range(self._delays[number % len(self._delays)]):
            await asyncio.sleep(0)
        promised = estimate(asked)
        usage = ModelUsage(
            tokens_in=promised.tokens_in, tokens_out=min(self._uses[number % len(self._uses)], promised.tokens_out)
        )
        self.sent += usage.tokens_in + usage.tokens_out
        return TurnAnswer(ModelTurn(text="x", usage=usage))


@pytest.mark.req("P12")
@pytest.mark.req("A4")
@settings(max_examples=60)
@given(
    cap=st.integers(1, 3000),
    uses=st.lists(st.integers(0, 120), min_size=1, max_size=8),
    delays=st.lists(st.integers(0, 9), min_size=1, max_size=8),
)
def test_whatever_the_order_parallel_calls_never_pass_the_cap(cap: int, uses: list[int], delays: list[int]) -> None:
    async def play() -> None:
        meter, inner = _opened(limits(tokens=cap, cost=cap)), Worked(uses, delays)
        mode = MeteredMode(inner, meter, _a_micro)
        await asyncio.gather(*(mode.answer(_asked()) for _ in range(20)))
        used = meter.usage(GRANT.dispatch_id)
        assert used.tokens == inner.sent <= cap
        assert used.cost_micros == inner.sent

    asyncio.run(play())


def _frame(dialect: ApiDialect, text: str) -> bytes:
    events: dict[ApiDialect, Any] = {
        ApiDialect.ANTHROPIC: {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text},
        },
        ApiDialect.OPENAI_CHAT: {"choices": [{"index": 0, "delta": {"content": text}}]},
        ApiDialect.OPENAI_RESPONSES: {"type": "response.output_text.delta", "delta": text},
        ApiDialect.GEMINI: {"candidates": [{"content": {"parts": [{"text": text}]}}]},
    }
    return f"data: {json.dumps(events[dialect])}\n\n".encode()


@pytest.mark.req("X3")
@pytest.mark.req("P12")
@pytest.mark.req("A4")
@pytest.mark.enable_socket
@EVERY
def test_a_stream_is_cut_off_in_the_middle_at_the_cap_and_that_is_told(tmp_path: Path, dialect: ApiDialect) -> None:
    tmp_path.chmod(0o700)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield _frame(dialect, "words " * 100)
            await asyncio.sleep(0)

    async def play() -> None:
        heard: list[BudgetRefusal] = []
        meter = CappedMeter()
        meter.open(GRANT.dispatch_id, limits(tokens=12_000), heard.append)
        provider = FakeProvider(endless, headers=SSE)
        async with passing(provider, dialect) as mode, fronted(MeteredMode(mode, meter, _free), tmp_path) as client:
            body = body_of(dialect, "hello", stream=True, most=None)
            response = await client.post(path_of(dialect, stream=True), json=body)
            assert response.status_code == 200
            last = response.content.rstrip().rpartition(b"\n\n")[2]
            assert last.startswith(b"data: " if dialect is ApiDialect.GEMINI else b"event: error\ndata: ")
            assert b"over budget" in last
            assert turn_in(dialect, response.content) is None
            await asyncio.wait_for(provider.is_left.wait(), 5)
            said = response.content.count(b"words ") * len("words ") // 4
            used = meter.usage(GRANT.dispatch_id)
            assert used.tokens is not None
            assert said <= used.tokens <= 12_000
            again = await client.post(path_of(dialect, stream=True), json=body)
            assert again.status_code == OVER_BUDGET
        assert [refusal.what for refusal in heard] == [Capped.TOKENS]

    asyncio.run(play())


def test_what_comes_after_an_end_is_cut_off_as_well() -> None:
    ended = b'data: {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "x"}]}}]}\n\n'

    async def endless() -> AsyncIterator[bytes]:
        yield ended
        while True:
            yield _frame(ApiDialect.GEMINI, "words " * 100)

    async def play() -> None:
        meter = _opened(limits(tokens=12_000))
        mode = MeteredMode(Answers(RawAnswer(200, SSE, endless())), meter, _free)
        answer = await drained(await mode.answer(_asked(ApiDialect.GEMINI, stream=True, most=None)))
        assert b"over budget" in answer
        assert b"words" not in answer

    asyncio.run(play())


@pytest.mark.enable_socket
def test_an_answer_longer_than_was_promised_goes_on_while_there_is_budget() -> None:
    dialect = ApiDialect.ANTHROPIC
    end = [
        b'data: {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3000}}\n\n',
        b'data: {"type": "message_stop"}\n\n',
    ]

    async def long() -> AsyncIterator[bytes]:
        yield b'data: {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}\n\n'
        for _ in range(20):
            yield _frame(dialect, "words " * 100)
        for piece in end:
            yield piece

    async def play() -> None:
        meter = _opened(limits(tokens=100_000))
        async with passing(FakeProvider(long, headers=SSE), dialect) as mode:
            answer = await drained(await MeteredMode(mode, meter, _free).answer(_asked(stream=True, most=10)))
        assert answer.endswith(b"".join(end))
        used = meter.usage(GRANT.dispatch_id)
        assert (used.tokens_in, used.tokens_out) == (5, 3000)

    asyncio.run(play())


@pytest.mark.req("P12")
@pytest.mark.enable_socket
@EVERY
def test_the_end_of_an_answer_is_read_when_it_is_settled(dialect: ApiDialect) -> None:
    async def play() -> None:
        meter = _opened(limits(tokens=50_000))
        async with passing(scripted(READS), dialect) as mode:
            asked = asked_of(dialect, body_of(dialect, marker("reads"), stream=True), stream=True)
            answered = await MeteredMode(mode, meter, _free).answer(asked)
            assert isinstance(answered, RawAnswer)
            pieces = b""
            async for piece in answered.body:
                pieces += piece
                if turn_in(dialect, pieces) is not None:
                    assert meter.usage(GRANT.dispatch_id).tokens == 1050
                    break
            else:
                pytest.fail("the answer had no end")
            await close(answered.body)

    asyncio.run(play())


def _settled(*answers: ModelAnswer | BaseException, asked: ModelRequest | None = None) -> tuple[int | None, int | None]:
    """Tokens and turns after these answers."""

    async def play() -> tuple[int | None, int | None]:
        meter = _opened(limits(tokens=1_000_000))
        mode = MeteredMode(Answers(*answers), meter, _free)
        for _ in answers:
            try:
                answered = await mode.answer(asked or _asked())
                if isinstance(answered, RawAnswer):
                    await drained(answered)
            except (StreamBroken, RuntimeError, asyncio.CancelledError):
                pass
        used = meter.usage(GRANT.dispatch_id)
        return used.tokens, used.turns

    return asyncio.run(play())


def _promised(asked: ModelRequest) -> int:
    expected = estimate(asked)
    return expected.tokens_in + expected.tokens_out


async def _pieces(*pieces: bytes, broken: bool = False) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if broken:
        raise StreamBroken("broken")


@pytest.mark.req("P12")
def test_what_may_have_been_paid_for_and_nobody_counted_costs_what_was_promised() -> None:
    lost = (_promised(_asked()), 1)
    assert _settled(UpstreamFailure(504, "late")) == lost
    assert _settled(NoAnswer()) == lost
    assert _settled(RuntimeError("a fault of ours")) == lost
    assert _settled(asyncio.CancelledError()) == lost
    assert _settled(TurnAnswer(ModelTurn(text="no usage"))) == lost
    assert _settled(RawAnswer(200, {}, _pieces(b"garbage"))) == lost


@pytest.mark.req("P12")
def test_what_never_was_a_turn_costs_nothing_and_is_none() -> None:
    assert _settled(FailedAnswer(502, "not reached")) == (0, 0)
    assert _settled(RawAnswer(429, {}, _pieces(b"slow down")), RawAnswer(500, {}, _pieces(b"sorry"))) == (0, 0)


@pytest.mark.req("P12")
def test_a_stream_that_breaks_off_costs_its_input_and_what_had_arrived() -> None:
    start = b'data: {"type": "message_start", "message": {"usage": {"input_tokens": 70000, "output_tokens": 1}}}\n\n'
    half = _frame(ApiDialect.ANTHROPIC, "half of it, " * 10)
    assert _settled(RawAnswer(200, SSE, _pieces(start, broken=True))) == (70_000 + 1, 1)
    assert _settled(RawAnswer(200, SSE, _pieces(start, half, broken=True))) == (70_000 + 30, 1)
    assert _settled(RawAnswer(200, SSE, _pieces(start, half))) == (70_000 + 30, 1)  # it has no end
    sent = estimate(_asked()).tokens_in
    assert _settled(RawAnswer(200, SSE, _pieces(half, broken=True))) == (sent + 30, 1)
    assert _settled(RawAnswer(200, SSE, _pieces(b"data: garbage\n\n"))) == (sent + 2, 1)


@pytest.mark.req("P12")
def test_a_stream_that_is_empty_or_only_an_error_costs_nothing() -> None:
    error = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n'
    assert _settled(RawAnswer(200, SSE, _pieces(error))) == (0, 0)
    assert _settled(RawAnswer(200, SSE, _pieces(broken=True))) == (0, 0)
    assert _settled(RawAnswer(200, SSE, _pieces())) == (0, 0)


def test_an_agent_that_goes_away_before_or_in_the_middle_still_pays() -> None:
    async def play(read: int) -> int | None:
        meter = _opened(limits(tokens=1_000_000))
        raw = RawAnswer(200, SSE, _pieces(*[_frame(ApiDialect.ANTHROPIC, "word")] * 5))
        answered = await MeteredMode(Answers(raw), meter, _free).answer(_asked(stream=True))
        assert isinstance(answered, RawAnswer)
        for _ in range(read):
            await anext(aiter(answered.body))
        await close(answered.body)
        await close(answered.body)
        return meter.usage(GRANT.dispatch_id).tokens

    for read in (0, 1, 4):
        assert asyncio.run(play(read)) == _promised(_asked(stream=True))


def test_a_slow_meter_settles_although_the_request_was_cancelled() -> None:
    class Slow(CappedMeter):
        async def settle(self, hold: Hold, usage: ModelUsage | None, cost_micros: int | None) -> None:
            await asyncio.sleep(0.05)
            await super().settle(hold, usage, cost_micros)

    async def play() -> None:
        meter = Slow()
        meter.open(GRANT.dispatch_id, limits(tokens=1_000_000))
        mode = MeteredMode(Answers(TurnAnswer(ModelTurn(usage=ModelUsage(tokens_in=7, tokens_out=0)))), meter, _free)
        asking = asyncio.ensure_future(mode.answer(_asked()))
        await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert meter.usage(GRANT.dispatch_id).tokens == 0
        await asyncio.sleep(0.1)
        assert meter.usage(GRANT.dispatch_id).tokens == 7

    asyncio.run(play())


@pytest.mark.enable_socket
def test_a_provider_that_is_overloaded_costs_an_agent_that_tries_again_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    async def play() -> None:
        meter = _opened(limits(tokens=2_000, turns=3))
        dialect = ApiDialect.ANTHROPIC
        async with (
            passing(scripted(FAILS), dialect) as mode,
            fronted(MeteredMode(mode, meter, _free), tmp_path) as client,
        ):
            for _ in range(10):
                response = await client.post("/v1/messages", json=body_of(dialect, marker("fails")))
                assert response.status_code == 529
        used = meter.usage(GRANT.dispatch_id)
        assert (used.tokens, used.turns) == (0, 0)

    asyncio.run(play())


def test_a_dispatch_without_a_route_has_no_price_and_one_with_a_cap_on_money_does_not_start() -> None:
    price = priced(lambda _: None, Prices())
    assert price(_asked(), ModelUsage(tokens_in=1, tokens_out=1)) is None
    mode = MeteredMode(Answers(TurnAnswer(ModelTurn())), _opened(limits(cost=10)), price)
    failed = asyncio.run(mode.answer(_asked()))
    assert isinstance(failed, FailedAnswer)
    assert (failed.status, mode.name) == (OVER_BUDGET, "test")
    stranger = asked_of(ApiDialect.ANTHROPIC, body_of(ApiDialect.ANTHROPIC, "hello"), grant=Grant("t", "unknown"))
    assert isinstance(asyncio.run(mode.answer(stranger)), FailedAnswer)
