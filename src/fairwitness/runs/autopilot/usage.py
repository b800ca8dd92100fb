"""What a run has used so far, and how its circuit breaker reacts to a step."""

from fairwitness.contracts.autopilot import events_run as of_run
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.facts import RunUsage, StepEffect
from fairwitness.contracts.autopilot.state import State
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus
from fairwitness.contracts.common.base import instant
from fairwitness.rules.breaker import FailRun, GoOn, Pause, after_step, error_key
from fairwitness.runs.autopilot.log import BEGUN, STEP, AutopilotLog, LoggedEvent, new_event
from fairwitness.runs.dispatch.budget_account import counted_tokens, of_dispatches


def untold_tokens(log: AutopilotLog) -> int:
    """Return the tokens that dispatches used and no event reports yet."""
    rows = of_dispatches(lambda kind: log.ledger.observations(log.run_id, kind))
    return max(0, counted_tokens(rows) - log.state().state.metrics.total_tokens_used)


def task_retries(state: State) -> int:
    """Return how often tasks of a run were retried."""
    executed = [record.steps.execute for record in state.phases.values() if record.steps.execute is not None]
    return sum(task.retries for step in executed for task in step.tasks.values())


def seconds_of(log: AutopilotLog, phase: str | None = None) -> float:
    """Return how long the steps of a phase took, or of the whole run; waiting for a person does not count."""
    began = {row.key: instant(row.observed_at) for row in log.ledger.observations(log.run_id, BEGUN)}
    rows = log.ledger.observations(log.run_id, STEP)
    own = [row for row in rows if phase is None or row.subject.rpartition("-")[0] == phase]
    return sum((instant(row.observed_at) - began[f"{BEGUN}:{row.key}"]).total_seconds() for row in own)


def breaker_events(
    log: AutopilotLog, phase: str, outcome: StepEffect, tokens: int, took_ms: int, now: str
) -> tuple[LoggedEvent, ...]:
    """Return the events after a step: none, or that the breaker opened or closed."""
    state = log.state().state
    record = state.phases.get(phase)
    took = took_ms / 1000  # the step that is about to be recorded
    retried = sum(each.debug_attempts + each.replan_attempts for each in state.phases.values())
    usage = RunUsage(
        phase_tokens=(0 if record is None else record.tokens_used) + tokens,
        phase_minutes=int((seconds_of(log, phase) + took) // 60),
        total_tokens=state.metrics.total_tokens_used + tokens,
        total_minutes=int((seconds_of(log) + took) // 60),
        total_retries=retried + task_retries(state),
    )
    answer = after_step(state.circuit_breaker, outcome, usage, log.order().limits.breaker, now=now)
    if isinstance(answer, GoOn):
        was_half = state.circuit_breaker.state is BreakerPosition.HALF_OPEN
        if was_half and answer.breaker.state is BreakerPosition.CLOSED:
            return (
                LoggedEvent(new_event(of_run.CircuitBreakerClosed, now, reason=f"{outcome.step.value} made progress")),
            )
        return ()
    return _opened(answer, None if outcome.error is None else error_key(outcome.error), now)


def _opened(answer: Pause | FailRun, last_error: str | None, now: str) -> tuple[LoggedEvent, ...]:
    status = AutopilotRunStatus.PAUSED if isinstance(answer, Pause) else AutopilotRunStatus.FAILED
    opened = new_event(
        of_run.CircuitBreakerOpened,
        now,
        setting=answer.setting,
        value=answer.value,
        last_error=last_error,
        cooldown_until=answer.breaker.cooldown_until,
    )
    reason = f"the circuit breaker opened: {answer.setting} is reached at {answer.value}"
    return LoggedEvent(opened), LoggedEvent(new_event(of_run.RunHalted, now, reason=reason, status=status))
