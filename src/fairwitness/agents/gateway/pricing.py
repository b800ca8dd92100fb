"""The cost of a model's turn in millionths of a dollar, computed without a network.

A price in the settings comes first, then the list of `genai_prices`. A model that neither has costs an unknown amount,
never zero.
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
    """Dollars for a million tokens; cached tokens cost as much as input unless a price is set."""

    tokens_in: Decimal
    tokens_out: Decimal
    tokens_cached: Decimal | None = None

    @classmethod
    def of(cls, tokens_in: str, tokens_out: str, tokens_cached: str | None = None) -> "Price":
        """Return a price from texts such as `"3.75"`: floats would round."""
        return cls(
            _dollars(tokens_in), _dollars(tokens_out), None if tokens_cached is None else _dollars(tokens_cached)
        )

    def micros(self, usage: ModelUsage) -> int:
        """Return the cost of a turn: a dollar for a million tokens is a millionth of a dollar for one."""
        cached = min(usage.tokens_cached, usage.tokens_in)
        rate = self.tokens_in if self.tokens_cached is None else self.tokens_cached
        return _up((usage.tokens_in - cached) * self.tokens_in + cached * rate + usage.tokens_out * self.tokens_out)


class Prices:
    """The known prices of models."""

    def __init__(self, set_by_hand: Mapping[str, Price] | None = None, *, clock: Clock = system_clock) -> None:
        self._by_hand = dict(set_by_hand or {})
        self._clock = clock

    def micros(self, model: str, usage: ModelUsage, *, url: str) -> int | None:
        """Return the cost of a turn of a model at this URL; None if its price is unknown.

        Providers sell a model at different prices, so a model at a URL that is not on the list, such as a private
        server, has no price unless one is set.
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
        except (LookupError, ValueError):  # unknown URL, unknown model, or a price that does not fit the usage
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
    """Round up: a budget must never be undercounted."""
    return int(micros.to_integral_value(ROUND_CEILING))
