"""The outcome of one call to an agent, as the retry rules read it."""

from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.contracts.feature.facts import CallFacts


def call_facts(instance: str, attempts: int, status: DispatchStatus | None, cause: ErrorCause | None) -> CallFacts:
    """Return the facts of a call. If the agent itself reports a failure, the agent is the cause."""
    if status is DispatchStatus.TIMEOUT:
        cause = ErrorCause.TIMEOUT
    elif status is DispatchStatus.ERROR:
        cause = ErrorCause.AGENT_ERROR if cause in (None, ErrorCause.TIMEOUT) else cause
    else:
        cause = None
    return CallFacts(instance=instance, attempts=attempts, status=status, cause=cause)
