"""What a turn of a model costs, in millionths of a dollar and without asking anybody over a network.

A price that a person set goes first; then the list that comes with `genai_prices`. A model that neither knows has no
price: that is "not reported", and never nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, InvalidOperation

from fairwitness.contracts.agents.model import ModelUsage
from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.clock import Clock, system_clock

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens; what comes from the cache costs what is sent, unless it is said."""

    tokens_in: Decimal
    tokens_out: Decimal
    tokens_cached: Decimal | None = None

    @classmethod
    def of(cls, tokens_in: str, tokens_out: str, tokens_cached: str | None = None) -> "Price":
        """From texts such as `"3.75"`, so that no sum is ever off by a rounded binary fraction."""
        return cls(
            _dollars(tokens_in), _dollars(tokens_out), None if tokens_cached is None else _dollars(tokens_cached)
        )

    def micros(self, usage: ModelUsage) -> int:
        """The cost of a turn: a dollar for a million tokens is a millionth of a dollar for one."""
        cached = min(usage.tokens_cached, usage.tokens_in)
        rate = self.tokens_in if self.tokens_cached is None else self.tokens_cached
        return _up((usage.tokens_in - cached) * self.tokens_in + cached * rate + usage.tokens_out * self.tokens_out)


class Prices:
    """What models cost, as far as anybody here knows."""

    def __init__(self, set_by_hand: Mapping[str, Price] | None = None, *, clock: Clock = system_clock) -> None:
        self._by_hand = dict(set_by_hand or {})
        self._clock = clock

    def micros(self, model: str, usage: ModelUsage, *, url: str) -> int | None:
        """The cost of a turn of the model as it is sold at this address; None if nobody knows.

        The same name may be sold elsewhere at another price, so a model at an address that is not on the list, such as
        a server of one's own, has none unless it was set.
        """
        if (price := self._by_hand.get(model)) is not None:
            return price.micros(usage)
        try:
            from genai_prices import calc_price
            from genai_prices.types import Usage as Sold
        except ImportError:
            raise NotReady(
                "the list of prices is not installed", next_step="pip install 'fairwitness[gateway]'"
            ) from None
        sold = Sold(
            input_tokens=usage.tokens_in,
            output_tokens=usage.tokens_out,
            cache_read_tokens=min(usage.tokens_cached, usage.tokens_in),
            cache_write_tokens=min(usage.tokens_cache_written, max(0, usage.tokens_in - usage.tokens_cached)),
        )
        try:
            found = calc_price(sold, model, provider_api_url=url, genai_request_timestamp=self._clock())
        except (LookupError, ValueError):  # no such address, no such model, or a price that does not fit the usage
            return None
        return _up(found.total_price * MILLION)


def _dollars(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise UsageError(f"{text!r} is not a price", next_step='write dollars for a million tokens, such as "3.75"')
    return amount


def _up(micros: Decimal) -> int:
    """To the next whole one: a budget must never be counted short."""
    return int(micros.to_integral_value(ROUND_CEILING))
