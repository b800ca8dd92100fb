"""A dispatch as a row of `pipeline_telemetry`, written when it ends, whatever the outcome."""

from collections.abc import Iterator

from fairwitness.contracts.agents.dispatch import Brief, DispatchOutcome, OutcomeStatus
from fairwitness.contracts.common.evidence import Dispatch
from fairwitness.contracts.common.vocabulary import CompletionStatus
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.runs.dispatch.model import DispatchPosition

NOTES = 1000


def status_of(outcome: DispatchOutcome) -> DispatchStatus:
    """Return how a dispatch ended, in the four words of the pipeline.

    Only a validated answer can say DONE or NEEDS_REVISION; a valid answer without a completion is DONE.
    """
    if outcome.status is OutcomeStatus.TIMED_OUT:
        return DispatchStatus.TIMEOUT
    if outcome.status is not OutcomeStatus.OK or outcome.answer is None:
        return DispatchStatus.ERROR
    completion = outcome.answer.get("completion")
    said = completion.get("status") if isinstance(completion, dict) else CompletionStatus.DONE.value
    return DispatchStatus(said) if said in {status.value for status in CompletionStatus} else DispatchStatus.ERROR


def telemetry(
    brief: Brief,
    position: DispatchPosition,
    outcome: DispatchOutcome,
    *,
    agent: str,
    started_at: str,
    completed_at: str,
) -> Dispatch:
    """Return the telemetry row of a dispatch."""
    return Dispatch(
        run_id=brief.run_id,
        step=position.step,
        agent=brief.role.value,
        instance=brief.instance,
        started_at=started_at,
        completed_at=completed_at,
        status=status_of(outcome).value,
        dispatch_count=position.dispatch_count,
        retry_count=position.retry_count,
        notes="; ".join(_notes(outcome, agent))[:NOTES],
    )


def _notes(outcome: DispatchOutcome, agent: str) -> Iterator[str]:
    """Yield what the published table has no column for."""
    usage = outcome.usage
    yield f"agent {agent}"
    if outcome.model is not None:
        yield f"model {outcome.model}"
    counts = {"in": usage.tokens_in, "out": usage.tokens_out, "cached": usage.tokens_cached}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count is not None)
    yield f"tokens {told} ({usage.source.value})" if told else "tokens not reported"
    if usage.cost_micros is not None:
        yield f"cost {usage.cost_micros} micros"
    yield f"asked {outcome.asked}"
    if outcome.denials:
        yield f"refused {len(outcome.denials)}"
    if outcome.status is not OutcomeStatus.OK:
        yield f"{outcome.status.value}: {outcome.problems[0] if outcome.problems else 'no reason was given'}"
