"""What a turn costs is known offline, exact, and never taken for nothing."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.agents.gateway.pricing import Price, Prices
from fairwitness.contracts.agents.model import ModelUsage
from fairwitness.errors import UsageError

ANTHROPIC = "https://api.anthropic.com"
COUNT = st.integers(0, 10_000_000)


def _clock() -> datetime:
    return datetime(2026, 2, 26, tzinfo=UTC)


def _usage(tokens_in: int, tokens_out: int, cached: int = 0) -> ModelUsage:
    return ModelUsage(tokens_in=tokens_in, tokens_out=tokens_out, tokens_cached=cached)


@pytest.mark.req("X3")
def test_a_model_on_the_list_is_priced_without_a_network() -> None:
    prices = Prices(clock=_clock)
    assert prices.micros("claude-sonnet-4-5", _usage(1000, 100), url=ANTHROPIC) == 1000 * 3 + 100 * 15
    cached = prices.micros("claude-sonnet-4-5", _usage(1000, 100, 1000), url=ANTHROPIC)
    assert cached == 300 + 1500
    kept = _usage(1000, 100).model_copy(update={"tokens_cache_written": 1000})
    assert prices.micros("claude-sonnet-4-5", kept, url=ANTHROPIC) == 1000 * 3 * 5 // 4 + 1500, "writing it costs more"
    assert prices.micros("gpt-4o", _usage(1_000_000, 0), url="https://api.openai.com/v1") == 2_500_000


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("no-such-model", ANTHROPIC),
        ("claude-sonnet-4-5", "http://127.0.0.1:8080"),
        ("claude-sonnet-4-5", "https://models.example"),
    ],
)
def test_a_model_that_nobody_sells_there_has_no_price(model: str, url: str) -> None:
    assert Prices(clock=_clock).micros(model, _usage(1000, 100), url=url) is None


def test_a_price_set_by_hand_goes_first_and_zero_is_a_price() -> None:
    prices = Prices({"claude-sonnet-4-5": Price.of("1", "2"), "own": Price.of("0", "0")}, clock=_clock)
    assert prices.micros("claude-sonnet-4-5", _usage(10, 10), url=ANTHROPIC) == 30
    assert prices.micros("own", _usage(10, 10), url="http://127.0.0.1:1") == 0


def test_a_price_is_exact_and_rounded_up_to_the_next_millionth() -> None:
    price = Price.of("0.1", "0.3", "0.01")
    assert price.micros(_usage(10, 10)) == 4
    assert price.micros(_usage(11, 10)) == 5
    assert price.micros(_usage(100, 0, 100)) == 1
    assert price.micros(_usage(0, 0)) == 0


@given(COUNT, COUNT, COUNT)
def test_more_tokens_never_cost_less_and_cached_ones_never_more_than_sent_ones(
    sent: int, said: int, cached: int
) -> None:
    price = Price.of("3", "15", "0.3")
    whole = price.micros(_usage(sent, said))
    assert price.micros(_usage(sent, said, cached)) <= whole
    assert price.micros(_usage(sent + 1, said)) >= whole
    assert price.micros(_usage(sent, said + 1)) >= whole


def test_cached_tokens_cost_what_sent_ones_do_unless_it_is_said() -> None:
    assert Price.of("3", "15").micros(_usage(10, 0, 10)) == 30


@pytest.mark.parametrize("text", ["-1", "NaN", "Infinity", "three", ""])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a price"):
        Price.of(text, "1")
