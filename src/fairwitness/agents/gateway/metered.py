"""Meters a mode: reserves budget before a call, settles it before the agent reads the end, and cuts off at the limit.

A complete turn is settled at the usage that the model's server reported. A stream that the provider broke off is
settled at what had arrived, and an answer of which nothing is known at what was reserved. One that gets longer than was
reserved reserves more, and is cut off if the budget has no more.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

from fairwitness.agents.gateway.dialects import CODECS, observe
from fairwitness.agents.gateway.dialects.base import sse
from fairwitness.agents.gateway.dialects.observer import TurnObserver
from fairwitness.agents.gateway.flow import AnswerStream, HeldEnd, StreamBroken, close
from fairwitness.agents.gateway.meter import BudgetRefusal, Hold, Meter
from fairwitness.agents.gateway.modes import (
    FailedAnswer,
    Mode,
    ModelAnswer,
    ModelRequest,
    NoAnswer,
    RawAnswer,
    TurnAnswer,
    UpstreamFailure,
)
from fairwitness.agents.gateway.token_estimate import StreamTokens, estimate
from fairwitness.contracts.agents.model import ApiDialect, ModelUsage
from fairwitness.rules.provider_faults import MEANINGS, Charge, fault_of

OVER_BUDGET = 402
"""The status when the budget is spent: one after which no agent retries."""
STEP = 1024
"""Tokens that are reserved at least when an answer is longer than was reserved."""

Priced = Callable[[ModelRequest, ModelUsage], int | None]
"""Returns the cost of a call's usage in millionths of a dollar; None if the price is unknown."""


class MeteredMode:
    """A mode whose calls are metered."""

    def __init__(self, inner: Mode, meter: Meter, priced: Priced) -> None:
        self._inner = inner
        self._meter = meter
        self._priced = priced
        self._settling: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """The name of the inner mode."""
        return self._inner.name

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """Reserve budget and return the inner mode's answer, or a refusal."""
        expected = estimate(asked)
        hold = await self._meter.reserve(asked.grant, expected, self._priced(asked, expected))
        if isinstance(hold, BudgetRefusal):
            return FailedAnswer(OVER_BUDGET, hold.reason, {"x-should-retry": "false"})
        call = _Call(self, asked, hold, expected)
        try:
            answered = await self._inner.answer(asked)
        except BaseException:
            await call.lost()
            raise
        match answered:
            case TurnAnswer():
                await call.settle(answered.turn.usage)
            case NoAnswer():
                await call.lost()
            case UpstreamFailure() if MEANINGS[fault_of(answered.reply)].charge is not Charge.NOTHING:
                await call.lost()
            case FailedAnswer():
                await call.release()
            case RawAnswer(status=status) if status >= 400:
                await call.release()
            case RawAnswer():
                return replace(answered, body=call.overheard(answered))
        return answered

    async def settle(self, hold: Hold, usage: ModelUsage, cost: int | None) -> None:
        """Settle a reservation, even if the request is cancelled meanwhile."""
        await self._firmly(self._meter.settle(hold, usage, cost))

    async def release(self, hold: Hold) -> None:
        """Release a reservation, even if the request is cancelled meanwhile."""
        await self._firmly(self._meter.release(hold))

    async def extend(self, asked: ModelRequest, hold: Hold, more: ModelUsage) -> BudgetRefusal | None:
        """Reserve more for a call."""
        return await self._meter.extend(hold, more, self._priced(asked, more))

    def price(self, asked: ModelRequest, usage: ModelUsage) -> int | None:
        """Return the cost of a usage, or None."""
        return self._priced(asked, usage)

    async def _firmly(self, settling: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(settling)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        await asyncio.shield(task)


class _Call:
    """A call with a reservation, which is settled or released exactly once."""

    def __init__(self, mode: MeteredMode, asked: ModelRequest, hold: Hold, promised: ModelUsage) -> None:
        self._mode = mode
        self._asked = asked
        self._hold = hold
        self._promised = promised
        self._is_settled = False
        self._stream: AnswerStream | None = None

    async def settle(self, usage: ModelUsage | None) -> None:
        """Settle at the reported usage, or at the reservation if none was reported."""
        usage = self._promised if usage is None else usage
        if not self._is_settled:
            self._is_settled = True
            await self._mode.settle(self._hold, usage, self._mode.price(self._asked, usage))

    async def lost(self, partial: ModelUsage | None = None) -> None:
        """Settle at the reservation, or at the usage reported so far if that is more."""
        await self.settle(_larger(self._promised, partial))

    async def release(self) -> None:
        """Release the reservation: there was no turn."""
        if not self._is_settled:
            self._is_settled = True
            await self._mode.release(self._hold)

    def overheard(self, raw: RawAnswer) -> AnswerStream:
        """Return the answer as a stream that is metered."""
        observer = observe(self._asked.dialect)

        async def ended() -> None:
            try:
                await self.lost(_usage(observer))  # does nothing if it was settled
            finally:
                await close(raw.body)

        self._stream = AnswerStream(self._pieces(raw, observer), ended)
        return self._stream

    async def _pieces(self, raw: RawAnswer, observer: TurnObserver) -> AsyncIterator[bytes]:
        gauge, end, said = StreamTokens(self._asked.dialect), HeldEnd(raw.headers, observer), 0
        try:
            async for piece in raw.body:
                is_held = end.holds(piece)
                said = gauge.feed(piece) if end.is_stream else 0
                refusal = await self._more(said)
                if refusal is not None:
                    assert self._stream is not None
                    self._stream.is_cut = True
                    yield _cut(self._asked.dialect, refusal)
                    return
                if not is_held:
                    yield piece
        except StreamBroken:
            if end.is_stream:
                await self._settle_arrived(observer, said)
            raise
        if observer.is_complete:
            await self.settle(_usage(observer))
        elif end.is_stream:
            await self._settle_arrived(observer, said)
        else:
            await self.lost(_usage(observer))
        for piece in end.held:
            yield piece

    async def _settle_arrived(self, observer: TurnObserver, said: int) -> None:
        """Settle a stream that the provider broke off: its input, and the output that had arrived."""
        if not observer.has_begun and (observer.error or not said):
            await self.release()  # there was no turn
            return
        partial = _usage(observer)
        tokens_in = self._promised.tokens_in if partial is None else partial.tokens_in
        tokens_out = said if partial is None else max(said, partial.tokens_out)
        await self.settle(ModelUsage(tokens_in=tokens_in, tokens_out=tokens_out))

    async def _more(self, said: int) -> BudgetRefusal | None:
        short = said - self._promised.tokens_out
        if short <= 0:
            return None
        more = ModelUsage(tokens_in=0, tokens_out=max(short, STEP))
        refusal = await self._mode.extend(self._asked, self._hold, more)
        if refusal is None:
            self._promised = ModelUsage(
                tokens_in=self._promised.tokens_in, tokens_out=self._promised.tokens_out + more.tokens_out
            )
        return refusal


def _cut(dialect: ApiDialect, refusal: BudgetRefusal) -> bytes:
    """Return the end of an answer that is cut off: an error, so that it is not taken for complete."""
    name = "" if dialect is ApiDialect.GEMINI else "error"  # Gemini's events have no names, and its clients expect none
    return b"\n\n" + sse(CODECS[dialect].failure(OVER_BUDGET, refusal.reason), name)


def _usage(observer: TurnObserver) -> ModelUsage | None:
    turn = observer.turn()
    return None if turn is None else turn.usage


def _larger(promised: ModelUsage, partial: ModelUsage | None) -> ModelUsage:
    if partial is None:
        return promised
    return ModelUsage(
        tokens_in=max(promised.tokens_in, partial.tokens_in),
        tokens_out=max(promised.tokens_out, partial.tokens_out),
    )
