"""Retries of a feature run: error classes, budgets, and the three bounded loops."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from fairwitness.contracts.common.decisions import (
    Advance,
    ErrorCause,
    ErrorClass,
    Halt,
    HaltOutcome,
    Replan,
    Retry,
    RetryOf,
    Revert,
    Wait,
    WaitsFor,
)
from fairwitness.contracts.common.gates import GateAnswer
from fairwitness.contracts.common.policy import OnExhausted, Policy, RetryPolicy, VerificationPolicy
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.feature.facts import CallFacts, Step, TaskFacts
from fairwitness.rules.evidence_worth import LACKS, SHUTS
from fairwitness.rules.gates import task_rows

CLASS_OF: Mapping[ErrorCause, ErrorClass] = {
    ErrorCause.AGENT_ERROR: ErrorClass.TRANSIENT,
    ErrorCause.TIMEOUT: ErrorClass.TRANSIENT,
    ErrorCause.NETWORK: ErrorClass.TRANSIENT,
    ErrorCause.TOOL_UNAVAILABLE: ErrorClass.TRANSIENT,
    ErrorCause.RATE_LIMITED: ErrorClass.TRANSIENT,
    ErrorCause.SERVER_ERROR: ErrorClass.TRANSIENT,
    ErrorCause.DATABASE_BUSY: ErrorClass.TRANSIENT,
    ErrorCause.SANDBOX_LOST: ErrorClass.TRANSIENT,
    # a model may succeed the second time; the same failure twice is final
    ErrorCause.SCHEMA_VIOLATION: ErrorClass.TRANSIENT,
    ErrorCause.MISSING_INPUT: ErrorClass.DETERMINISTIC,
    ErrorCause.NOT_FOUND: ErrorClass.DETERMINISTIC,
    ErrorCause.PERMISSION_DENIED: ErrorClass.DETERMINISTIC,
    ErrorCause.SECURITY_BLOCKER: ErrorClass.SECURITY,
    ErrorCause.OUT_OF_SCOPE: ErrorClass.SCOPE,
}

_OF_THE_WHOLE_CALL = (ErrorCause.AGENT_ERROR, ErrorCause.SCHEMA_VIOLATION)
"""Causes that concern the whole call, so nothing inside it can be repeated."""

BACKOFF_SECONDS = (1, 2, 4, 8, 16)
"""Seconds before the first, second … further try inside a call."""


class BoundedLoop(StrEnum):
    """Every loop of a feature run; each has a bound."""

    CALL = "one agent's call"
    INSIDE_CALL = "a tool inside a call"
    DATABASE_BUSY = "a busy database"
    CHECKS = "checks that gave no evidence"
    DESIGN_REVISION = "design, review, design"
    REPLAN = "implement, verify, replan"
    CODE_REVIEW = "review, fix, review"
    HUMAN = "an answer that sends work back"


class Bound(NamedTuple):
    """How often a loop may repeat, and what happens then."""

    times: int
    counted: str
    then: str


_EXHAUSTED: Mapping[OnExhausted, str] = {
    OnExhausted.LOW_CONFIDENCE: "known issues, confidence Low",
    OnExhausted.ERROR: "the run ends in error",
}


def bounds(policy: Policy) -> Mapping[BoundedLoop, Bound]:
    """Return the bound of every loop."""
    return {
        BoundedLoop.CALL: Bound(policy.retry.dispatch, "retries", "the step fails"),
        BoundedLoop.INSIDE_CALL: Bound(policy.retry.inside_agent, "retries", "the call reports it"),
        BoundedLoop.DATABASE_BUSY: Bound(policy.retry.database_busy, "retries", "a transient failure of the call"),
        BoundedLoop.CHECKS: Bound(policy.retry.checks, "retries", "the evidence is missing, the task fails"),
        BoundedLoop.DESIGN_REVISION: Bound(policy.review.design_revisions, "revisions", "findings bind the planner"),
        BoundedLoop.REPLAN: Bound(policy.verification.iterations, "iterations", "revert what failed, confidence Low"),
        BoundedLoop.CODE_REVIEW: Bound(policy.review.code_rounds, "rounds", _EXHAUSTED[policy.review.on_exhausted]),
        BoundedLoop.HUMAN: Bound(policy.human_loops, "times for each option", "go on, and pass on what was said"),
    }


def retries_inside(cause: ErrorCause, retry: RetryPolicy) -> tuple[int, ...]:
    """Return the seconds to wait before each further try inside one call; empty if the call fails at once.

    >>> retries_inside(ErrorCause.DATABASE_BUSY, RetryPolicy())
    (1, 2, 4)
    >>> retries_inside(ErrorCause.SCHEMA_VIOLATION, RetryPolicy())
    ()
    """
    if CLASS_OF[cause] is not ErrorClass.TRANSIENT or cause in _OF_THE_WHOLE_CALL:
        return ()
    times = retry.database_busy if cause is ErrorCause.DATABASE_BUSY else retry.inside_agent
    return BACKOFF_SECONDS[:times]


def may_retry(call: CallFacts, retry: RetryPolicy) -> bool:
    """Return True if a failed call is repeated.

    >>> from fairwitness.contracts.feature.events import DispatchStatus
    >>> call = CallFacts(instance="spec", attempts=1, status=DispatchStatus.ERROR, cause=ErrorCause.AGENT_ERROR)
    >>> may_retry(call, RetryPolicy()), may_retry(call.model_copy(update={"attempts": 2}), RetryPolicy())
    (True, False)
    """
    if call.cause is None or CLASS_OF[call.cause] is not ErrorClass.TRANSIENT:
        return False
    return call.attempts <= retry.dispatch


def under_way(
    step: Step, expected: Sequence[str], calls: Sequence[CallFacts], policy: Policy
) -> Halt | Advance | Wait | Retry | None:
    """Return what a step's calls need before the step can be judged, or None if each has ended for good."""
    insecure = sorted(call.instance for call in calls if call.cause and CLASS_OF[call.cause] is ErrorClass.SECURITY)
    if insecure:
        return Halt(reason=f"a security blocker: {', '.join(insecure)}", outcome=HaltOutcome.HALTED, resumable=False)
    known = {call.instance for call in calls}
    unstarted = [instance for instance in expected if instance not in known]
    running = sorted(call.instance for call in calls if call.status is None)
    context = max(policy.max_concurrent - len(running), 0)
    if unstarted[:context]:
        return Advance(
            reason=f"{len(unstarted)} of {len(expected)} calls are not made yet",
            to=step.value,
            start=tuple(unstarted[:context]),
        )
    if running:
        return Wait(reason=f"{len(running)} calls are running", waits_for=WaitsFor.CALLS, what=tuple(running))
    again = sorted(call.instance for call in calls if may_retry(call, policy.retry))
    if again:
        return Retry(
            reason=f"transient failure, retrying: {', '.join(again)}",
            step=step.value,
            what=RetryOf.CALL,
            instances=tuple(again[: policy.max_concurrent]),
        )
    return None


class AfterFailure(StrEnum):
    """What follows a failed iteration."""

    REPLAN = "replan"
    REVERT_AND_REPLAN = "revert, then replan"
    REVERT_AND_GO_ON = "revert, then go on with confidence Low"


def after_failed_iteration(iteration: int, policy: Policy) -> AfterFailure:
    """Return what follows a failed iteration: first replan, then revert and replan, at last revert the rest and
    continue.

    >>> [after_failed_iteration(iteration, Policy()).name for iteration in (1, 2, 3)]
    ['REPLAN', 'REVERT_AND_REPLAN', 'REVERT_AND_GO_ON']
    """
    if iteration >= policy.verification.iterations:
        return AfterFailure.REVERT_AND_GO_ON
    if iteration >= policy.verification.revert_from:
        return AfterFailure.REVERT_AND_REPLAN
    return AfterFailure.REPLAN


def after_failed_verification(
    failing: Sequence[TaskFacts], gates: tuple[GateAnswer, ...], iteration: int, policy: Policy
) -> Retry | Revert | Replan | None:
    """Return what follows when tasks lack evidence, or None after the last iteration when everything is reverted."""
    again = tuple(task.task for task in failing if worth_another_run(task, policy))
    if again:
        return Retry(
            reason="checks gave no evidence", gates=gates, step=Step.VERIFY.value, what=RetryOf.CHECKS, instances=again
        )
    after = after_failed_iteration(iteration, policy)
    standing = tuple(task.task for task in failing if task.ready and not is_reverted(task))
    if standing and after is not AfterFailure.REPLAN:
        return Revert(
            reason=f"failed in iteration {iteration}: {', '.join(standing)}",
            gates=gates,
            iteration=iteration,
            tasks=standing,
            then="replan" if after is AfterFailure.REVERT_AND_REPLAN else "go-on",
        )
    if after is AfterFailure.REVERT_AND_GO_ON:
        return None
    names = tuple(task.task for task in failing)
    return Replan(
        reason=f"tasks lack evidence: {', '.join(names)}",
        gates=gates,
        iteration=iteration + 1,
        tasks=names,
        by="implementer" if _can_be_mended(failing, iteration, policy.verification) else None,
    )


def _can_be_mended(failing: Sequence[TaskFacts], iteration: int, policy: VerificationPolicy) -> bool:
    """Return True if the plan may be right: each failing task has a check that fails, or waits for one that has."""
    if iteration > policy.self_fixes or iteration + 1 >= policy.iterations:
        return False
    tried = [task for task in failing if task.ready]
    return bool(tried) and all(_has_failing_check(task) for task in tried)


def _has_failing_check(task: TaskFacts) -> bool:
    rows = task_rows(task)
    if any(row.assessment is Assessment.VIOLATION for row, _ in rows):
        return False
    return any(worth in SHUTS and row.check_name != "scope" for row, worth in rows)


def worth_another_run(task: TaskFacts, policy: Policy) -> bool:
    """Return True if evidence is missing because of the environment, not the work, and another run is left."""
    if not task.ready or task.check_runs > policy.retry.checks:
        return False
    rows = task_rows(task)
    if any(worth in SHUTS or row.assessment is Assessment.VIOLATION for row, worth in rows):
        return False
    return task.check_runs == 0 or any(worth in LACKS for _, worth in rows)


def is_reverted(task: TaskFacts) -> bool:
    """Return True if the task's files are back at the baseline."""
    return any(row.check_name == f"revert-{task.task}" and worth in SHUTS for row, worth in task_rows(task))
