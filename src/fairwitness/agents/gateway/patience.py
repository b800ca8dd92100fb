"""Waits for a provider that refuses or does not answer, for every agent and every dialect.

`rules.provider_faults` says what a fault means. All calls of this process to one provider share a `ProviderWatch`:
after a fault none is made before the time that the provider named; then one goes first, and the others follow when it
is answered. When the limit is reached the dispatch is stopped with `ProviderAway`, which interrupts the run.
"""

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from fairwitness.agents.gateway.dialects import observe
from fairwitness.agents.gateway.dialects.base import InvalidJson, SaidError, error_in, load
from fairwitness.agents.gateway.dialects.observer import TurnObserver
from fairwitness.agents.gateway.flow import AnswerStream, StreamBroken, close, once
from fairwitness.agents.gateway.modes import (
    FailedAnswer,
    Mode,
    ModelAnswer,
    ModelRequest,
    RawAnswer,
    UpstreamFailure,
)
from fairwitness.agents.gateway.upstream import ModelRoute
from fairwitness.errors import ProviderAway
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.text import visible
from fairwitness.rules.provider_faults import (
    FaultAction,
    ModelTrouble,
    ProviderAnswer,
    ProviderFault,
    fault_of,
    limit_pause_s,
    pause_s,
    told_pause_s,
)

WAITS = "waiting for the provider until "
"""How the line about a wait begins."""
_LOOK_S = 0.25
_COURTESY_S = 60.0
"""The longest wait for a limit that is used up, before the provider itself refuses."""
_SHOWN = 300
_MINUTE = 60.0


def _draw() -> float:
    return random.random()  # noqa: S311 -- spreads callers; nothing secret


@dataclass(frozen=True, slots=True)
class Timer:
    """Time as a wait needs it; tests have one that passes at once."""

    now: Clock = system_clock
    seconds: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = _draw


_TIMER = Timer()


@dataclass(slots=True, eq=False)
class _Outage:
    """A row of faults of one provider, until a call is answered."""

    since: float
    until: float
    trouble: ModelTrouble
    faults: int = 0
    shown: str = ""
    """The time until which is waited, in words."""
    is_probed: bool = False
    """Whether a call is on its way to find out whether the provider answers again."""
    is_passing: bool = False
    """Whether that call was answered, so that others may follow."""
    over: ProviderAway | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """The permission to send one request."""

    outage: _Outage | None
    """The outage that this request may end."""


class ProviderWatch:
    """What this process knows of one provider. It is thread-safe."""

    def __init__(self, name: str, *, timer: Timer = _TIMER) -> None:
        self.name = name
        self.was_reached = False
        """Whether it ever answered."""
        self._timer = timer
        self._guard = threading.Lock()
        self._outage: _Outage | None = None
        self._spent_until = float("-inf")
        """When a limit that is used up is renewed."""
        self._waiting = 0

    async def admit(self) -> Admission | ProviderAway:
        """Wait until a request may be sent; return the error if the limit of the wait is reached."""
        mine: _Outage | None = None
        while True:
            with self._guard:
                mine = mine or self._outage
                if mine is not None and mine.over is not None:
                    return mine.over
                pause = self._pause()
                if pause <= 0:
                    return Admission(self._outage)
                self._waiting += 1
            try:
                await self._timer.sleep(pause)
            finally:
                with self._guard:
                    self._waiting -= 1

    def _pause(self) -> float:
        now, outage = self._timer.seconds(), self._outage
        if outage is None:
            return self._spent_until - now
        if outage.is_passing:
            return 0.0
        if now < outage.until:
            return outage.until - now
        if outage.is_probed:
            return _LOOK_S
        outage.is_probed = True
        return 0.0

    def failed(
        self, admitted: Admission, trouble: ModelTrouble, told_s: float | None, limit_s: float
    ) -> ProviderAway | None:
        """Note a fault that passes, and how long the provider asks to wait; return an error if that is too long."""
        with self._guard:
            now, outage = self._timer.seconds(), self._outage
            if outage is None:
                outage = self._outage = _Outage(now, now, trouble)
            elif admitted.outage is not outage:  # it was sent before the outage began, so it is no further fault
                outage.until = max(outage.until, now + (told_s or 0.0))
                return None
            outage.faults += 1
            outage.trouble, outage.is_probed, outage.is_passing = trouble, False, False
            outage.until = now + pause_s(outage.faults, told_s, self._timer.draw())
            outage.shown = self._shown(outage.until - now)
            if outage.until <= outage.since + limit_s:
                return None
            outage.over, self._outage = self._away(outage, told_s, limit_s), None
            return outage.over

    def _shown(self, seconds: float) -> str:
        moment = (self._timer.now() + timedelta(seconds=seconds)).astimezone()
        return moment.strftime("%H:%M" if seconds >= _MINUTE else "%H:%M:%S")

    def _away(self, outage: _Outage, told_s: float | None, limit_s: float) -> ProviderAway:
        meaning = outage.trouble.meaning
        limit = f"{limit_s / _MINUTE:.3g} min" if limit_s >= _MINUTE else f"{limit_s:.3g} s"
        if told_s is not None and told_s > limit_s:
            what = f"the provider {self.name} asks to wait until {outage.shown}, and a run waits at most {limit}"
            return ProviderAway(f"{what}: {outage.trouble.text}", next_step=f"wait until {outage.shown}")
        what = f"the provider {self.name} gave no answer for {limit}: {outage.trouble.text}"
        return ProviderAway(what, next_step=meaning.next_step)

    def begun(self, admitted: Admission, pace: Mapping[str, str]) -> None:
        """Note that the provider has begun an answer, so that other calls may follow."""
        with self._guard:
            self.was_reached = True
            if self._outage is not None and admitted.outage is self._outage:
                self._outage.is_passing = True
            spent_s = limit_pause_s(pace, self._timer.now())
            if spent_s is not None:
                self._spent_until = self._timer.seconds() + min(spent_s, _COURTESY_S)

    def ended(self, admitted: Admission) -> None:
        """Note an answer, which ends an outage that had begun before it was asked for."""
        with self._guard:
            self.was_reached = True
            if admitted.outage is self._outage:
                self._outage = None

    def left(self, admitted: Admission) -> None:
        """Note that a request ended without telling anything about the provider."""
        with self._guard:
            if self._outage is not None and admitted.outage is self._outage:
                self._outage.is_probed = False

    def now(self) -> datetime:
        """Return the time, for what a provider says about its limits."""
        return self._timer.now()

    def note(self) -> str:
        """Return the line for a person while calls wait; empty if none does."""
        with self._guard:
            outage = self._outage
            if outage is None or not self._waiting:
                return ""
            return f"{WAITS}{outage.shown} ({self.name}: {outage.trouble.text})"


class ProviderWatches:
    """The watches of all providers that this process calls."""

    def __init__(self, timer: Timer = _TIMER) -> None:
        self._timer = timer
        self._guard = threading.Lock()
        self._by_address: dict[tuple[str, str], ProviderWatch] = {}

    def of(self, route: ModelRoute) -> ProviderWatch:
        """Return the watch that all calls to this provider share."""
        provider = route.provider
        with self._guard:
            key = (provider.name, provider.base_url)
            return self._by_address.setdefault(key, ProviderWatch(provider.name, timer=self._timer))

    def note(self) -> str:
        """Return what the calls of this process wait for; empty if none waits."""
        with self._guard:
            watches = tuple(self._by_address.values())
        return "; ".join(filter(None, (watch.note() for watch in watches)))


WATCHES = ProviderWatches()
"""The providers of this process."""


class Stoppable(Protocol):
    """A dispatch that can be stopped because of its provider; called from any thread."""

    def interrupt(self, error: ProviderAway) -> None:
        """Stop it; it has not failed."""
        ...


class PatientMode:
    """The mode of one dispatch: repeats and waits as the table of faults says."""

    def __init__(
        self, inner: Mode, watch: ProviderWatch, route: ModelRoute, dispatch: Stoppable, *, limit_s: float
    ) -> None:
        self._inner, self._watch, self._route, self._dispatch = inner, watch, route, dispatch
        self._limit_s = limit_s
        self._waited, self._waiting, self._since = 0.0, 0, 0.0
        self.trouble: ModelTrouble | None = None
        """The fault of the last call; None if it was answered."""

    @property
    def name(self) -> str:
        """The name of the inner mode."""
        return self._inner.name

    @property
    def waited_s(self) -> float:
        """Seconds that calls of this dispatch have waited for the provider."""
        return self._waited + (time.monotonic() - self._since if self._waiting else 0.0)

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        """Return the first answer that is no passing fault."""
        while True:
            admitted = await self._admitted()
            if isinstance(admitted, ProviderAway):
                return self._stopped(admitted)
            try:
                answered = await self._judged(asked, await self._inner.answer(asked), admitted)
            except BaseException:
                self._watch.left(admitted)
                raise
            if answered is not None:
                return answered

    async def _admitted(self) -> Admission | ProviderAway:
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting += 1
        try:
            return await self._watch.admit()
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._waited += time.monotonic() - self._since

    async def _judged(self, asked: ModelRequest, answered: ModelAnswer, admitted: Admission) -> ModelAnswer | None:
        """Return the answer for the agent, or None if the request is to be repeated."""
        match answered:
            case UpstreamFailure(reply=reply):
                said = answered.message if reply.status is None else f"{reply.status}: {answered.message}"
                return self._met(reply._replace(was_reached=self._watch.was_reached), said, None, answered, admitted)
            case RawAnswer(status=status) if status >= 400:
                body = b"".join([piece async for piece in answered.body])
                error = _error_of(body)
                told_s = told_pause_s(answered.pace, self._watch.now(), delay=error.delay)
                reply = ProviderAnswer(status, error.codes, error.message)
                said = f"{status}: {_line(error.message)}" if error.message else str(status)
                self._watch.was_reached = True
                return self._met(reply, said, told_s, replace(answered, body=once(body)), admitted)
            case RawAnswer():
                return await self._read(asked, answered, admitted)
            case _:  # of our own: the budget, the grant, the form of the request; or of a script
                self._watch.left(admitted)
                return answered

    def _met(
        self, reply: ProviderAnswer, said: str, told_s: float | None, answered: ModelAnswer, admitted: Admission
    ) -> ModelAnswer | None:
        """Act on a fault of which nothing has reached the agent."""
        self.trouble = trouble = ModelTrouble(fault_of(reply), said)
        match trouble.meaning.action:
            case FaultAction.WAIT | FaultAction.ASK_AGAIN:
                away = self._watch.failed(admitted, trouble, told_s, self._limit_s)
                return None if away is None else self._stopped(away)
            case FaultAction.STOP:
                self._watch.left(admitted)
                return self._stopped(self._unusable(trouble))
            case FaultAction.FAIL:
                self._watch.ended(admitted)
                return answered

    async def _read(self, asked: ModelRequest, raw: RawAnswer, admitted: Admission) -> RawAnswer | ModelAnswer | None:
        """Read an answer up to its first event, or whole if it is no stream: until then it can be repeated."""
        observer, pieces = observe(asked.dialect), list[bytes]()
        is_stream = "text/event-stream" in raw.headers.get("content-type", "")
        self._watch.begun(admitted, raw.pace)
        try:
            async for piece in raw.body:
                pieces.append(piece)
                observer.feed(piece)
                is_known = observer.has_begun or b"data:" not in b"".join(pieces)
                if is_stream and is_known and not observer.error:
                    stream = AnswerStream(
                        self._rest(tuple(pieces), raw, observer, admitted), lambda: self._closed(raw, admitted)
                    )
                    return replace(raw, body=stream)
        except StreamBroken as error:
            return self._met(ProviderAnswer(200), str(error), None, raw, admitted)
        if _is_cut(raw):
            self._watch.left(admitted)
        elif observer.is_complete:
            self._well(admitted, observer)
        else:
            reply = ProviderAnswer(200, observer.codes, observer.error)
            return self._met(reply, _line(observer.error) or "it ended too early", None, raw, admitted)
        return replace(raw, body=once(b"".join(pieces)))

    async def _rest(
        self, pieces: tuple[bytes, ...], raw: RawAnswer, observer: TurnObserver, admitted: Admission
    ) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
        try:
            async for piece in raw.body:
                observer.feed(piece)
                yield piece
        except StreamBroken as error:
            self._broke(admitted, ModelTrouble(ProviderFault.BROKEN_OFF, str(error)))
            raise
        if _is_cut(raw):
            return
        if observer.error:  # the agent has read it, in its own dialect
            fault = fault_of(ProviderAnswer(200, observer.codes, observer.error))
            self._broke(admitted, ModelTrouble(fault, _line(observer.error)))
        elif observer.is_complete:
            self._well(admitted, observer)
        else:
            trouble = ModelTrouble(ProviderFault.BROKEN_OFF, "the stream ended too early")
            self._broke(admitted, trouble)
            raise StreamBroken(trouble.text)

    async def _closed(self, raw: RawAnswer, admitted: Admission) -> None:
        self._watch.left(admitted)
        await close(raw.body)

    def _well(self, admitted: Admission, observer: TurnObserver) -> None:
        self._watch.ended(admitted)
        refusal = _line(observer.refusal)
        self.trouble = ModelTrouble(ProviderFault.REFUSED, refusal) if refusal else None

    def _broke(self, admitted: Admission, trouble: ModelTrouble) -> None:
        """Act on a fault in the middle of an answer."""
        self.trouble = trouble
        if trouble.meaning.action is FaultAction.STOP:
            self._stopped(self._unusable(trouble))
        elif trouble.meaning.action is FaultAction.FAIL:
            self._watch.ended(admitted)
        elif (away := self._watch.failed(admitted, trouble, None, self._limit_s)) is not None:
            self._stopped(away)

    def _stopped(self, away: ProviderAway) -> FailedAnswer:
        self._dispatch.interrupt(away)
        return FailedAnswer(503, away.what, {"x-should-retry": "false"})

    def _unusable(self, trouble: ModelTrouble) -> ProviderAway:
        provider, meaning = self._route.provider, trouble.meaning
        source = f" of {provider.key.source}" if provider.key is not None else ""
        where = {
            ProviderFault.WRONG_KEY: f"{meaning.next_step} in place of the one{source}",
            ProviderFault.NO_MODEL: f"{meaning.next_step} than {self._route.sold_as}",
            ProviderFault.NEVER_REACHED: f"{meaning.next_step} (base_url {provider.base_url})",
            ProviderFault.WRONG_ADDRESS: f"{meaning.next_step} (now {provider.base_url})",
        }
        return ProviderAway(
            f"the provider {provider.name} cannot be used: {trouble.text}",
            next_step=where.get(trouble.fault, meaning.next_step),
        )


def _is_cut(raw: RawAnswer) -> bool:
    return isinstance(raw.body, AnswerStream) and raw.body.is_cut


def _line(text: str) -> str:
    return visible(" ".join(text.split()))[:_SHOWN]


def _error_of(body: bytes) -> SaidError:
    text = body.decode("utf-8", "replace")
    try:
        return error_in(load(text))
    except InvalidJson:
        return SaidError((), text)
