"""The next step of a pass through a phase, or its end. The steps themselves decide nothing."""

from collections.abc import Sequence
from typing import assert_never

from fairwitness.contracts.autopilot.breaker import BreakerSettings
from fairwitness.contracts.autopilot.facts import Retries, RetryKind
from fairwitness.contracts.autopilot.passes import PassKind, PassMove, PassMoveKind, PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome
from fairwitness.contracts.autopilot.vocabulary import Recommendation, StepName, TriageRoute
from fairwitness.rules.breaker import LowScoreMove, after_low_score, may_retry

PLAN_ROUNDS = 3
"""The maximum number of plans for one research before the phase fails."""
PLAN_CONFIDENCE = 7
"""The minimum confidence of the plan checker."""


def next_step(
    asked: PhasePass,
    results: Sequence[StepResult],
    retries: Retries,
    settings: BreakerSettings,
    *,
    repeated: Sequence[StepResult] = (),
) -> PassMove:
    """Return the next move of a pass after these results; `retries` counts what the phase and the run used before it.

    `repeated` are the results of the passes whose steps it repeats: steps that are not repeated keep their results.
    """
    if not results:
        # all steps after a repeated step are repeated too, so the earliest one counts
        return _step(next((step for step in StepName if step in asked.again), StepName.PREFLIGHT), results)
    last = results[-1]
    if last.halt is not None:
        return _ends(PhaseOutcome.FAILED, Recommendation.HALT, last.halt, halt=last.halt)
    match last.step:
        case StepName.PREFLIGHT:
            return _after_preflight(asked, results)
        case StepName.TRIAGE:
            is_there = last.good and last.route is TriageRoute.VERIFY_ONLY
            return _step(StepName.VERIFY if is_there else StepName.RESEARCH, results)
        case StepName.RESEARCH:
            return _step(StepName.PLAN, results) if last.good else _failed("the research produced no result", last)
        case StepName.PLAN:
            return _step(StepName.PLAN_CHECK, results) if last.good else _failed("there is no plan", last)
        case StepName.PLAN_CHECK:
            return _after_plan_check(results)
        case StepName.EXECUTE | StepName.DEBUG:
            return _after_work(asked, results, retries, settings, repeated)
        case StepName.VERIFY:
            return _step(StepName.JUDGE, results)
        case StepName.JUDGE:
            return _after_judge(results, retries, settings, repeated)
        case StepName.RATE:
            return _after_rate(asked, last, retries, settings, results)
        case never:
            assert_never(never)


def _after_preflight(asked: PhasePass, results: Sequence[StepResult]) -> PassMove:
    last = results[-1]
    if not last.good:
        return _ends(PhaseOutcome.FAILED, Recommendation.HALT, _first(last, "the preflight is not clear"))
    return _step(StepName.TRIAGE if asked.kind is PassKind.WHOLE else StepName.EXECUTE, results)


def _after_plan_check(results: Sequence[StepResult]) -> PassMove:
    last = results[-1]
    plan = next((result for result in reversed(results) if result.step is StepName.PLAN), None)
    if (
        last.good and plan is not None and plan.splits
    ):  # only after the check, because the parts are executed without another check
        return _ends(PhaseOutcome.SPLIT_REQUEST, Recommendation.PROCEED, "the plan is too large for one phase")
    if last.good:
        return _step(StepName.EXECUTE, results)
    research = max((at for at, result in enumerate(results) if result.step is StepName.RESEARCH), default=0)
    rounds = sum(result.step is StepName.PLAN for result in results[research:])
    if rounds < PLAN_ROUNDS:
        return _step(StepName.PLAN, results)
    return _failed(f"{PLAN_ROUNDS} plans were refused", last)


def _after_work(
    asked: PhasePass,
    results: Sequence[StepResult],
    retries: Retries,
    settings: BreakerSettings,
    repeated: Sequence[StepResult],
) -> PassMove:
    """Verify what was changed; files that are as they were keep their verification, judgement and score."""
    last = results[-1]
    if not last.unchanged:
        return _step(StepName.VERIFY, results)
    if last.step is StepName.DEBUG:
        return _repaired_or_failed((*repeated, *results), results, retries, settings)
    if asked.kind is PassKind.CYCLE:
        why = f"the cycle changed nothing: {_first(last, 'nothing was merged')}"
        return _ends(PhaseOutcome.FAILED, Recommendation.PROCEED, why)
    return _step(StepName.VERIFY, results)


def _repaired_or_failed(
    known: Sequence[StepResult], results: Sequence[StepResult], retries: Retries, settings: BreakerSettings
) -> PassMove:
    """Start another repair, or fail the phase with what its last verification found, or its judge if that passed."""
    if may_retry(RetryKind.DEBUG, _spent(results, retries), settings):
        return _step(StepName.DEBUG, results)
    last: dict[StepName, StepResult] = {each.step: each for each in known}
    verified, judged = last.get(StepName.VERIFY, known[-1]), last.get(StepName.JUDGE)
    if verified.good and judged is not None:
        why = f"the judge says: {_first(judged, 'debug it')}"
    else:
        why = _first(verified, "the verification failed")
    return _ends(PhaseOutcome.FAILED, Recommendation.ROLLBACK, f"debugging is exhausted: {why}")


def _after_judge(
    results: Sequence[StepResult], retries: Retries, settings: BreakerSettings, repeated: Sequence[StepResult]
) -> PassMove:
    last = results[-1]
    wants = last.recommendation
    if not last.good or wants is None:
        return _ends(PhaseOutcome.FAILED, Recommendation.HALT, _first(last, "the judge gave no valid verdict"))
    if wants in (Recommendation.ROLLBACK, Recommendation.HALT):
        return _ends(PhaseOutcome.FAILED, wants, _first(last, f"the judge asks for {wants.value}"))
    verified = next((each for each in reversed((*repeated, *results)) if each.step is StepName.VERIFY), None)
    if wants is Recommendation.DEBUG or (verified is not None and not verified.good):
        return _repaired_or_failed((*repeated, *results), results, retries, settings)
    if verified is not None and verified.defers:
        return _ends(PhaseOutcome.NEEDS_HUMAN_VERIFICATION, Recommendation.PROCEED, "a person must verify it")
    return _step(StepName.RATE, results)


def _after_rate(
    asked: PhasePass, last: StepResult, retries: Retries, settings: BreakerSettings, results: Sequence[StepResult]
) -> PassMove:
    if not last.good or last.score_tenths is None:
        return _failed("the phase has no valid score", last)
    degraded = after_low_score(last.score_tenths, _spent(results, retries), settings)
    if asked.kind is PassKind.WHOLE and degraded is LowScoreMove.REPLAN:
        return _step(StepName.RESEARCH, results)
    if asked.kind is PassKind.WHOLE and degraded is LowScoreMove.FAIL_PHASE:
        why = f"its score is {last.score_tenths / 10} and no replanning is left"
        return _ends(PhaseOutcome.FAILED, Recommendation.ROLLBACK, why)
    return _ends(PhaseOutcome.COMPLETED, Recommendation.PROCEED, "all steps are done")


def _spent(results: Sequence[StepResult], before: Retries) -> Retries:
    """Return the retries used before and in this pass."""
    debugged = sum(result.step is StepName.DEBUG for result in results)
    replanned = max(0, sum(result.step is StepName.RESEARCH for result in results) - 1)
    return Retries(
        debug_in_phase=before.debug_in_phase + debugged,
        replan_in_phase=before.replan_in_phase + replanned,
        total=before.total + debugged + replanned,
    )


def _step(step: StepName, results: Sequence[StepResult]) -> PassMove:
    number = 1 + sum(result.step is step for result in results)
    return PassMove(kind=PassMoveKind.STEP, step=step, number=number)


def _failed(why: str, last: StepResult) -> PassMove:
    return _ends(PhaseOutcome.FAILED, Recommendation.ROLLBACK, f"{why}: {last.issues[0]}" if last.issues else why)


def _first(result: StepResult, otherwise: str) -> str:
    return result.issues[0] if result.issues else otherwise


def _ends(outcome: PhaseOutcome, wants: Recommendation, because: str, *, halt: str | None = None) -> PassMove:
    return PassMove(kind=PassMoveKind.RETURN, outcome=outcome, recommendation=wants, because=because, halt=halt)
