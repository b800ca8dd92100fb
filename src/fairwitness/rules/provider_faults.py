"""What an error of a model's provider means: wait, ask again, stop the run, or fail the call.

One table decides for all dialects and backends. The gateway carries it out; the run is told in the table's words.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import NamedTuple

from fairwitness.contracts.common.decisions import ErrorCause


class ProviderFault(StrEnum):
    """What can go wrong between the gateway and a model."""

    RATE_LIMITED = "rate limited"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server error"
    UNREACHABLE = "unreachable"
    """It answered this process before."""
    SILENT = "silent"
    """The request was sent, and no answer came."""
    BROKEN_OFF = "broken off"
    """An answer without its end, or one that is none."""
    NEVER_REACHED = "never reached"
    """It has not answered this process yet, so its address may be wrong."""
    WRONG_ADDRESS = "wrong address"
    WRONG_KEY = "wrong key"
    NOT_ALLOWED = "not allowed"
    NO_CREDIT = "no credit"
    NO_MODEL = "no model"
    CONTEXT_EXCEEDED = "context exceeded"
    BAD_REQUEST = "bad request"
    REFUSED = "refused"
    """The model, or a filter before it, would not answer."""
    EMPTY = "empty"
    """A whole answer without a word or a call."""


class FaultAction(StrEnum):
    """What follows a fault."""

    WAIT = "wait"
    """The gateway repeats the request when the provider answers again. After the limit the run is interrupted."""
    ASK_AGAIN = "ask again"
    """The agent repeats the request, since a part of the answer has reached it."""
    STOP = "stop"
    """The run is interrupted at once: only a person can mend this."""
    FAIL = "fail"
    """The call fails with this reason, as after any other failure of an agent."""


class Charge(StrEnum):
    """The tokens that a request with this fault costs."""

    NOTHING = "nothing"
    ARRIVED = "what arrived"
    """The input, and the output that had arrived."""
    RESERVED = "what was reserved"
    """The answer may have been made and is lost, so its size is unknown."""
    REPORTED = "what was reported"


class FaultMeaning(NamedTuple):
    """One row of the table."""

    action: FaultAction
    cause: ErrorCause
    """The cause on record if the call fails."""
    charge: Charge
    words: str
    """What happened, for a person."""
    next_step: str = ""
    """What a person can do; for `stop` and for a wait that ended."""


_LATER = "try again later"
_WAIT, _AGAIN, _STOP, _FAIL = FaultAction

MEANINGS: Mapping[ProviderFault, FaultMeaning] = {
    ProviderFault.RATE_LIMITED: FaultMeaning(
        _WAIT,
        ErrorCause.RATE_LIMITED,
        Charge.NOTHING,
        "too many requests",
        f"{_LATER}, or raise the limits of your account",
    ),
    ProviderFault.OVERLOADED: FaultMeaning(_WAIT, ErrorCause.SERVER_ERROR, Charge.NOTHING, "it is overloaded", _LATER),
    ProviderFault.SERVER_ERROR: FaultMeaning(
        _WAIT, ErrorCause.SERVER_ERROR, Charge.NOTHING, "an error of its own", _LATER
    ),
    ProviderFault.UNREACHABLE: FaultMeaning(
        _WAIT,
        ErrorCause.NETWORK,
        Charge.NOTHING,
        "it cannot be reached any more",
        "check your network and its status page",
    ),
    ProviderFault.SILENT: FaultMeaning(
        _WAIT, ErrorCause.TIMEOUT, Charge.RESERVED, "it took the request and did not answer", _LATER
    ),
    ProviderFault.BROKEN_OFF: FaultMeaning(
        _AGAIN, ErrorCause.NETWORK, Charge.ARRIVED, "its answer has no end", "check your network and its status page"
    ),
    ProviderFault.NEVER_REACHED: FaultMeaning(
        _STOP,
        ErrorCause.NETWORK,
        Charge.NOTHING,
        "it cannot be reached",
        "check that the server runs, that its base_url is right, and your network",
    ),
    ProviderFault.WRONG_ADDRESS: FaultMeaning(
        _STOP, ErrorCause.NOT_FOUND, Charge.NOTHING, "its address serves no model", "set the base_url of the backend"
    ),
    ProviderFault.WRONG_KEY: FaultMeaning(
        _STOP, ErrorCause.PERMISSION_DENIED, Charge.NOTHING, "it does not accept the key", "set a valid key"
    ),
    ProviderFault.NOT_ALLOWED: FaultMeaning(
        _STOP,
        ErrorCause.PERMISSION_DENIED,
        Charge.NOTHING,
        "the key may not use this model",
        "choose another model, or a key that may use it",
    ),
    ProviderFault.NO_CREDIT: FaultMeaning(
        _STOP,
        ErrorCause.PERMISSION_DENIED,
        Charge.NOTHING,
        "the account has no credit left",
        "add credit to the account",
    ),
    ProviderFault.NO_MODEL: FaultMeaning(
        _STOP, ErrorCause.NOT_FOUND, Charge.NOTHING, "it does not have this model", "choose another model"
    ),
    ProviderFault.CONTEXT_EXCEEDED: FaultMeaning(
        _FAIL,
        ErrorCause.AGENT_ERROR,
        Charge.NOTHING,
        "the conversation is longer than the model's context",
        "choose a model with a larger context, or a smaller task",
    ),
    ProviderFault.BAD_REQUEST: FaultMeaning(
        _FAIL, ErrorCause.AGENT_ERROR, Charge.NOTHING, "it does not accept the request", "choose another model or agent"
    ),
    ProviderFault.REFUSED: FaultMeaning(
        _FAIL, ErrorCause.AGENT_ERROR, Charge.REPORTED, "the model refused to answer", "reword the request"
    ),
    ProviderFault.EMPTY: FaultMeaning(
        _AGAIN, ErrorCause.AGENT_ERROR, Charge.REPORTED, "the model answered with nothing", "choose another model"
    ),
}


class ModelTrouble(NamedTuple):
    """A fault that a dispatch met, and what the provider said about it."""

    fault: ProviderFault
    said: str

    @property
    def meaning(self) -> FaultMeaning:
        """The row of the table."""
        return MEANINGS[self.fault]

    @property
    def text(self) -> str:
        """Return the fault in words, and the provider's own.

        >>> ModelTrouble(ProviderFault.NO_MODEL, "404: no gpt-9").text
        'it does not have this model (404: no gpt-9)'
        """
        return f"{self.meaning.words} ({self.said})" if self.said else self.meaning.words


class ProviderAnswer(NamedTuple):
    """The facts of a request that brought no answer."""

    status: int | None
    """The HTTP status; None if there was no reply. 200 for an error inside an answer that had begun."""
    codes: tuple[str, ...] = ()
    """The words by which the provider names the error: its type, code, status and reasons."""
    message: str = ""
    is_sent: bool = True
    """Whether the request reached the provider."""
    was_reached: bool = True
    """Whether the provider answered this process before."""


_STATUS_OF = {
    "api_error": 500,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "unauthenticated": 401,
    "api_key_invalid": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "not_found": 404,
    "request_too_large": 413,
    "context_length_exceeded": 413,
    "exceed_context_size_error": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "resource_exhausted": 429,
    "server_error": 500,
    "internal": 500,
    "overloaded_error": 529,
    "unavailable": 503,
    "invalid_request_error": 400,
    "invalid_argument": 400,
}
"""The status that a provider's word for an error stands for: in a stream there is no other."""
_STRONGER = frozenset({"insufficient_quota", "context_length_exceeded", "exceed_context_size_error", "api_key_invalid"})
"""Words that say more than the status they come with."""
_FILTERED = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
_TOO_LONG = re.compile(
    r"prompt is too long|maximum context length|context window|context size|context length"
    r"|exceeds the maximum number of tokens|input length and .?max_tokens.? exceed",
    re.IGNORECASE,
)
_OUT_OF_CREDIT = re.compile(r"credit balance is too low", re.IGNORECASE)
_BAD_KEY = re.compile(r"api key not valid", re.IGNORECASE)

_BY_STATUS = {
    401: ProviderFault.WRONG_KEY,
    402: ProviderFault.NO_CREDIT,
    403: ProviderFault.NOT_ALLOWED,
    404: ProviderFault.NO_MODEL,
    405: ProviderFault.WRONG_ADDRESS,
    408: ProviderFault.SERVER_ERROR,
    409: ProviderFault.SERVER_ERROR,
    413: ProviderFault.CONTEXT_EXCEEDED,
    425: ProviderFault.SERVER_ERROR,
    429: ProviderFault.RATE_LIMITED,
    501: ProviderFault.WRONG_ADDRESS,
    503: ProviderFault.OVERLOADED,
    529: ProviderFault.OVERLOADED,
}


def fault_of(reply: ProviderAnswer) -> ProviderFault:
    """Return what a reply means; every reply has a meaning.

    >>> fault_of(ProviderAnswer(429)), fault_of(ProviderAnswer(429, ("insufficient_quota",)))
    (<ProviderFault.RATE_LIMITED: 'rate limited'>, <ProviderFault.NO_CREDIT: 'no credit'>)
    """
    if reply.status is None:
        if reply.is_sent:
            return ProviderFault.SILENT
        return ProviderFault.UNREACHABLE if reply.was_reached else ProviderFault.NEVER_REACHED
    codes = [code.lower() for code in reply.codes]
    strong = next((code for code in codes if code in _STRONGER), None)
    status = reply.status if strong is None else _STATUS_OF[strong]
    if status < 300:
        named = next((code for code in codes if code in _STATUS_OF), None)
        if named is None:
            return ProviderFault.BROKEN_OFF
        status = _STATUS_OF[named]
    if status < 400:
        return ProviderFault.WRONG_ADDRESS
    if status in (400, 422):
        return _of_bad_request(codes, reply.message)
    if status >= 500:
        return _BY_STATUS.get(status, ProviderFault.SERVER_ERROR)
    return _BY_STATUS.get(status, ProviderFault.BAD_REQUEST)


def _of_bad_request(codes: list[str], message: str) -> ProviderFault:
    """Return what status 400 means: providers also use it for a key, for credit, for length and for filters."""
    if _BAD_KEY.search(message):
        return ProviderFault.WRONG_KEY
    if _OUT_OF_CREDIT.search(message):
        return ProviderFault.NO_CREDIT
    if _TOO_LONG.search(message):
        return ProviderFault.CONTEXT_EXCEEDED
    return ProviderFault.REFUSED if _FILTERED.intersection(codes) else ProviderFault.BAD_REQUEST


FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
SPREAD_S = 2.0
"""Seconds by which callers who were told the same time are spread at most."""


def pause_s(number: int, told_s: float | None, draw: float) -> float:
    """Return the seconds before the next request after fault `number` of a row, with a `draw` between 0 and 1.

    What the provider says is honoured. Otherwise pauses double, and half of each is drawn, so that callers spread.

    >>> pause_s(1, None, 0.0), pause_s(3, None, 1.0), pause_s(30, None, 1.0), pause_s(1, 42.0, 0.5)
    (0.5, 4.0, 60.0, 43.0)
    """
    if told_s is not None:
        return told_s + draw * min(SPREAD_S, told_s / 4 + 0.1)
    whole = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(number - 1, 30))
    return whole / 2 + draw * whole / 2


_REMAINING = re.compile(r"(?:anthropic-|x-)?ratelimit-(?:remaining(?:-[a-z-]+)?|[a-z-]+-remaining)")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_MOST_S = 7 * 24 * 3600.0


def told_pause_s(headers: Mapping[str, str], now: datetime, *, delay: str = "") -> float | None:
    """Return how long a provider asks to wait; None if it says nothing. `delay` is what the body of an error says.

    >>> told_pause_s({"retry-after": "60"}, datetime(2026, 1, 1, tzinfo=UTC))
    60.0
    """
    if (number := _number(headers.get("retry-after-ms", ""))) is not None:
        return number / 1000
    for said in (headers.get("retry-after", ""), delay):
        if (seconds := _seconds(said, now)) is not None:
            return seconds
    return limit_pause_s(headers, now)


def limit_pause_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds until an exhausted limit is renewed; None if no limit is exhausted.

    Providers write `x-ratelimit-remaining-requests` and `x-ratelimit-reset-requests`, or
    `anthropic-ratelimit-requests-remaining` and `anthropic-ratelimit-requests-reset`.

    >>> spent = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}
    >>> limit_pause_s(spent, datetime(2026, 1, 1, tzinfo=UTC))
    360.0
    """
    pauses = []
    for name, value in headers.items():
        if _REMAINING.fullmatch(name) is None or _number(value) != 0:
            continue
        seconds = _seconds(headers.get(name.replace("remaining", "reset"), ""), now)
        pauses += [seconds] if seconds is not None else []
    return max(pauses, default=None)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < _MOST_S * 1000 else None


def _seconds(text: str, now: datetime) -> float | None:
    """Return the seconds that a text means: a number, `1m20.5s`, an HTTP date or an ISO time."""
    text = text.strip()
    if not text:
        return None
    if (number := _number(text)) is not None:
        return min(number, _MOST_S)
    if (found := _DURATION.fullmatch(text)) is not None:
        hours, minutes, seconds, millis = (float(part or 0) for part in found.groups())
        return min(hours * 3600 + minutes * 60 + seconds + millis / 1000, _MOST_S)
    moment = _moment(text)
    return None if moment is None else min(max(0.0, (moment - now).total_seconds()), _MOST_S)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
