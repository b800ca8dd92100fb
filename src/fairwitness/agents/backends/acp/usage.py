"""Reads the usage that an agent reports, where its profile says it is."""

from collections.abc import Mapping
from typing import Any

from fairwitness.contracts.agents.dispatch import Usage, UsageSource
from fairwitness.contracts.agents.profile import UsageFrom, UsageWay

_MICROS = 1_000_000
_MOST = 1 << 53
"""Larger numbers are not plausible counts."""


class UsageCounter:
    """Adds up the usage of the turns of one session."""

    def __init__(self, way: UsageWay) -> None:
        self._way = way
        self._tokens: tuple[int, int, int | None] | None = None
        self._is_whole = True
        """False once a turn did not report its usage: the sum is not a total then."""
        self._cost: int | None = None
        self._turns = 0

    def answered(self, response: Mapping[str, Any]) -> None:
        """Take the response that ended a turn."""
        self._turns += 1
        found = self._found(response)
        if found is None:
            self._is_whole = False
        elif self._way.is_of_session or self._tokens is None:
            self._tokens = found
        else:
            cached = [count for count in (self._tokens[2], found[2]) if count is not None]
            self._tokens = (self._tokens[0] + found[0], self._tokens[1] + found[1], sum(cached) if cached else None)

    def updated(self, update: Mapping[str, Any]) -> bool:
        """Take the cost of the session from an update; return False if it has none."""
        cost = _object(update.get("cost"))
        amount = cost.get("amount")
        if not self._way.cost or cost.get("currency") != "USD":
            return False
        if not isinstance(amount, int | float) or isinstance(amount, bool) or not 0 <= amount < _MOST:
            return False
        self._cost = round(amount * _MICROS)
        return True

    @property
    def usage(self) -> Usage:
        """The usage of the session so far; unknown parts are None."""
        tokens = self._tokens if self._is_whole or self._way.is_of_session else None
        if tokens is None and self._cost is None:
            return Usage()
        return Usage(
            source=UsageSource.AGENT,
            tokens_in=tokens[0] if tokens is not None else None,
            tokens_out=tokens[1] if tokens is not None else None,
            tokens_cached=tokens[2] if tokens is not None else None,
            cost_micros=self._cost,
        )

    def _found(self, response: Mapping[str, Any]) -> tuple[int, int, int | None] | None:
        """Return the tokens in, out and from a cache of one response."""
        if self._way.last_call_only:
            return None
        if self._way.found is UsageFrom.RESPONSE:
            told = _object(response.get("usage"))
            cached, written = _count(told.get("cachedReadTokens")), _count(told.get("cachedWriteTokens"))
            fresh, said = _count(told.get("inputTokens")), _count(told.get("outputTokens"))
            if fresh is None or said is None:
                return None
            return _with_cache(fresh, cached, written, said, _count(told.get("totalTokens")))
        if self._way.found is UsageFrom.QUOTA:
            told = _object(_object(_object(response.get("_meta")).get("quota")).get("token_count"))
            fresh, said = _count(told.get("input_tokens")), _count(told.get("output_tokens"))
            return None if fresh is None or said is None else (fresh, said, None)
        return None


def _with_cache(
    fresh: int, cached: int | None, written: int | None, said: int, total: int | None
) -> tuple[int, int, int | None]:
    """Return the tokens in, out and cached; the total shows whether the agent counts cached tokens as input."""
    beside = fresh + (cached or 0) + (written or 0)
    is_inside = total is not None and total <= fresh + said
    return (fresh if is_inside else beside), said, cached


def model_of(response: Mapping[str, Any]) -> str | None:
    """Return the model that answered, if the agent reports it."""
    models = _object(_object(response.get("_meta")).get("quota")).get("model_usage")
    names = [_object(item).get("model") for item in models] if isinstance(models, list) else []
    return next((name for name in reversed(names) if isinstance(name, str) and name.strip()), None)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None
