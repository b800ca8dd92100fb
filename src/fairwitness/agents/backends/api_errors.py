"""What went wrong with a model's turn, in the words of the retry rule; texts of a provider are cut short."""

from dataclasses import dataclass

import httpx2
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRequestTimeout,
    ModelTimeoutError,
)

from fairwitness.contracts.agents.dispatch import Stop
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.kit.text import visible

_SHOWN = 500
_OVER_BUDGET = "over budget:"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no turn."""

    stop: Stop
    cause: ErrorCause | None
    text: str


def failed(cause: ErrorCause, text: str) -> Failure:
    """A failure that is nobody's limit and nobody's refusal."""
    return Failure(Stop.FAILED, cause, text)


def failure_of(error: Exception) -> Failure:
    """What an exception of pydantic-ai, of a provider's package or of HTTP means."""
    text = visible(_words(error))[:_SHOWN]
    match error:
        case ContentFilterError():
            return Failure(Stop.REFUSED, None, text)
        case ModelHTTPError(status_code=402):  # the gateway's own answer at the cap
            return Failure(Stop.LIMIT, None, text)
        case ModelAPIError(in_stream=True) if _OVER_BUDGET in text:  # a stream that was cut off there has no status
            return Failure(Stop.LIMIT, None, text)
        case ModelQuotaExceededError():  # waiting does not fill an account
            return failed(ErrorCause.PERMISSION_DENIED, text)
        case ModelHTTPError():
            return failed(_by_status(error.status_code), text)
        case ModelTimeoutError() | ModelRequestTimeout() | httpx2.TimeoutException():
            return failed(ErrorCause.TIMEOUT, text)
        case ModelConnectionError() | httpx2.HTTPError() | httpx2.StreamError():
            return failed(ErrorCause.NETWORK, text)
        case ModelAPIError():
            return failed(ErrorCause.SERVER_ERROR, text)
        case _:  # nonsense where an answer was due
            return failed(ErrorCause.AGENT_ERROR, text)


def _by_status(status: int) -> ErrorCause:
    if status >= 500:
        return ErrorCause.SERVER_ERROR
    return {
        401: ErrorCause.PERMISSION_DENIED,
        403: ErrorCause.PERMISSION_DENIED,
        404: ErrorCause.NOT_FOUND,
        408: ErrorCause.TIMEOUT,
        429: ErrorCause.RATE_LIMITED,
    }.get(status, ErrorCause.AGENT_ERROR)


def _words(error: Exception) -> str:
    """The provider's own sentence where there is one; else what the exception says."""
    if not isinstance(error, ModelHTTPError):
        return f"the model failed: {error}" if str(error) else f"the model failed: {type(error).__name__}"
    body: object = error.body
    while isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    if isinstance(body, list) and body:
        body = body[0]
    said = body.get("message") if isinstance(body, dict) else body
    return f"the model answered {error.status_code}: {said or 'without a word'}"
