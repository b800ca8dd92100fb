"""What an error of a provider means: total over everything that can come, one table, and bounded waits."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.rules.provider_faults import (
    LONGEST_PAUSE_S,
    MEANINGS,
    Charge,
    FaultAction,
    ProviderAnswer,
    ProviderFault,
    fault_of,
    limit_pause_s,
    pause_s,
    told_pause_s,
)

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)


@pytest.mark.req("P12")
def test_every_fault_has_one_row_and_every_stop_says_what_to_do() -> None:
    assert set(MEANINGS) == set(ProviderFault)
    assert {meaning.action for meaning in MEANINGS.values()} == set(FaultAction)
    assert {meaning.charge for meaning in MEANINGS.values()} == set(Charge)
    assert all(meaning.next_step for meaning in MEANINGS.values())
    rows = [
        f"{fault.value}: {row.action.value}; {row.cause.value}; costs {row.charge.value}; {row.words}"
        for fault, row in MEANINGS.items()
    ]
    assert rows == snapshot(
        [
            "rate limited: wait; rate_limited; costs nothing; too many requests",
            "overloaded: wait; server_error; costs nothing; it is overloaded",
            "server error: wait; server_error; costs nothing; an error of its own",
            "unreachable: wait; network; costs nothing; it cannot be reached any more",
            "silent: wait; timeout; costs what was reserved; it took the request and did not answer",
            "broken off: ask again; network; costs what arrived; its answer has no end",
            "never reached: stop; network; costs nothing; it cannot be reached",
            "wrong address: stop; not_found; costs nothing; its address serves no model",
            "wrong key: stop; permission_denied; costs nothing; it does not accept the key",
            "not allowed: stop; permission_denied; costs nothing; the key may not use this model",
            "no credit: stop; permission_denied; costs nothing; the account has no credit left",
            "no model: stop; not_found; costs nothing; it does not have this model",
            "context exceeded: fail; agent_error; costs nothing; the conversation is longer than the model's context",
            "bad request: fail; agent_error; costs nothing; it does not accept the request",
            "refused: fail; agent_error; costs what was reported; the model refused to answer",
            "empty: ask again; agent_error; costs what was reported; the model answered with nothing",
        ]
    )


@pytest.mark.req("P12")
def test_every_status_has_a_meaning() -> None:
    ranges: list[tuple[int, int, str]] = []
    for status in range(100, 600):
        word = fault_of(ProviderAnswer(status)).value
        if ranges and ranges[-1][2] == word:
            ranges[-1] = (ranges[-1][0], status, word)
        else:
            ranges.append((status, status, word))
    assert [f"{first}-{last}: {word}" if first != last else f"{first}: {word}" for first, last, word in ranges] == (
        snapshot(
            [
                "100-299: broken off",
                "300-399: wrong address",
                "400: bad request",
                "401: wrong key",
                "402: no credit",
                "403: not allowed",
                "404: no model",
                "405: wrong address",
                "406-407: bad request",
                "408-409: server error",
                "410-412: bad request",
                "413: context exceeded",
                "414-424: bad request",
                "425: server error",
                "426-428: bad request",
                "429: rate limited",
                "430-499: bad request",
                "500: server error",
                "501: wrong address",
                "502: server error",
                "503: overloaded",
                "504-528: server error",
                "529: overloaded",
                "530-599: server error",
            ]
        )
    )


_WORDS = st.lists(st.text(max_size=20) | st.sampled_from(["overloaded_error", "insufficient_quota", "INTERNAL"]))


@given(st.none() | st.integers(0, 999), _WORDS, st.text(max_size=80), st.booleans(), st.booleans())
def test_every_reply_has_a_meaning(
    status: int | None, codes: list[str], message: str, is_sent: bool, was_reached: bool
) -> None:
    assert fault_of(ProviderAnswer(status, tuple(codes), message, is_sent, was_reached)) in MEANINGS


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (ProviderAnswer(None, is_sent=False, was_reached=False), ProviderFault.NEVER_REACHED),
        (ProviderAnswer(None, is_sent=False), ProviderFault.UNREACHABLE),
        (ProviderAnswer(None), ProviderFault.SILENT),
        (ProviderAnswer(200), ProviderFault.BROKEN_OFF),
        (ProviderAnswer(200, ("overloaded_error",)), ProviderFault.OVERLOADED),
        (ProviderAnswer(200, ("server_error",)), ProviderFault.SERVER_ERROR),
        (ProviderAnswer(200, ("UNAVAILABLE",)), ProviderFault.OVERLOADED),
        (ProviderAnswer(429, ("RESOURCE_EXHAUSTED",), "You exceeded your current quota"), ProviderFault.RATE_LIMITED),
        (ProviderAnswer(429, ("insufficient_quota",)), ProviderFault.NO_CREDIT),
        (ProviderAnswer(400, (), "Your credit balance is too low to access the API"), ProviderFault.NO_CREDIT),
        (ProviderAnswer(400, ("INVALID_ARGUMENT",), "API key not valid. Please pass one."), ProviderFault.WRONG_KEY),
        (ProviderAnswer(400, (), "prompt is too long: 210000 tokens > 200000 maximum"), ProviderFault.CONTEXT_EXCEEDED),
        (ProviderAnswer(400, ("context_length_exceeded",)), ProviderFault.CONTEXT_EXCEEDED),
        (ProviderAnswer(400, ("content_filter",)), ProviderFault.REFUSED),
        (ProviderAnswer(400, (), "max_tokens is missing"), ProviderFault.BAD_REQUEST),
    ],
)
def test_what_providers_really_say(reply: ProviderAnswer, fault: ProviderFault) -> None:
    assert fault_of(reply) is fault


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "60"}, 60.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "Tue, 17 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Tue, 17 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "60"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m0.5s"}, 60.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "1h"}, None),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-11-17T12:00:20Z",
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2026-11-17T12:00:45Z",
            },
            45.0,
        ),
    ],
)
def test_how_long_a_provider_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert told_pause_s(headers, NOW) == seconds


def test_the_body_of_an_error_may_say_how_long_to_wait() -> None:
    assert told_pause_s({}, NOW, delay="34s") == 34.0
    assert told_pause_s({"retry-after": "5"}, NOW, delay="34s") == 5.0


@given(st.integers(1, 10_000), st.none() | st.floats(0, 604_800), st.floats(0, 1))
def test_a_pause_is_bounded_and_never_shorter_than_what_was_asked_for(
    number: int, told_s: float | None, draw: float
) -> None:
    pause = pause_s(number, told_s, draw)
    assert pause >= (0.5 if told_s is None else told_s)
    assert pause <= (LONGEST_PAUSE_S if told_s is None else told_s + 2.0)


@given(st.dictionaries(st.text(max_size=30), st.text(max_size=30)))
def test_no_header_can_break_it(headers: dict[str, str]) -> None:
    for found in (told_pause_s(headers, NOW), limit_pause_s(headers, NOW)):
        assert found is None or 0 <= found <= 604_800
