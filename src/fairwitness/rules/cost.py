"""Cost: the estimate of a run before it begins, estimates of autopilot phases, metrics and trends of runs."""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.autopilot.facts import AutopilotState
from fairwitness.contracts.autopilot.metrics import (
    CostEstimation,
    History,
    MetricsFile,
    PhaseMetrics,
    RunMetrics,
    Spread,
    TrendSummary,
)
from fairwitness.contracts.autopilot.phase_record import PhaseRecord
from fairwitness.contracts.autopilot.vocabulary import Complexity, PhaseStatus, PhaseType
from fairwitness.contracts.common.base import Amount, Contract, Count, Positive, instant
from fairwitness.contracts.common.tools import POLICIES, Role
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.rules.scores import FAIL_BELOW_TENTHS, mean_score, tenths


def estimated_tokens(
    constants: CostEstimation, phase_type: PhaseType, tasks: Sequence[Complexity] | None = None
) -> int:
    """Return the estimated tokens of a phase, rounded up: from the tasks of its plan, or from its type if it has no
    plan.

    >>> estimated_tokens(CostEstimation(), PhaseType.DATA)
    120000
    >>> estimated_tokens(CostEstimation(), PhaseType.DATA, [Complexity.SIMPLE, Complexity.COMPLEX])
    150000
    """
    if tasks is None:
        base = _default(constants)[phase_type]
    else:
        each = _task(constants)
        base = constants.pipeline_overhead + sum(each[task] for task in tasks)
    return (base * Fraction(repr(constants.buffer_multiplier))).__ceil__()


def _default(constants: CostEstimation) -> Mapping[PhaseType, int]:
    defaults = constants.default_estimates
    return {
        PhaseType.PROTOCOL: defaults.protocol,
        PhaseType.UI: defaults.ui,
        PhaseType.DATA: defaults.data,
        PhaseType.MIXED: defaults.mixed,
    }


def _task(constants: CostEstimation) -> Mapping[Complexity, int]:
    tokens = constants.task_tokens
    return {
        Complexity.SIMPLE: tokens.simple,
        Complexity.MEDIUM: tokens.medium,
        Complexity.COMPLEX: tokens.complex,
    }


class CostWarning(Contract):
    """An estimate that is close to the cap of a phase or above it."""

    estimated: Count
    cap: Positive
    percent: Amount


def cost_warning(constants: CostEstimation, estimated: int, cap: int) -> CostWarning | None:
    """Return a warning if the estimate exceeds the warning threshold of the cap.

    >>> cost_warning(CostEstimation(), 400_000, 500_000) is None
    True
    >>> cost_warning(CostEstimation(), 400_001, 500_000).percent
    80.0
    """
    if estimated * 100 <= cap * constants.warning_threshold_pct:
        return None
    return CostWarning(estimated=estimated, cap=cap, percent=round(estimated * 100 / cap, 1))


class CallRange(NamedTuple):
    """How often a role is called in a usual run, or in one phase of autopilot."""

    role: Role
    least: int
    most: int


USUAL_CALLS: Mapping[Workflow, tuple[CallRange, ...]] = {
    Workflow.FEATURE: (
        CallRange(Role.INTAKE, 1, 1),
        CallRange(Role.RESEARCHER, 4, 4),
        CallRange(Role.SPEC, 1, 1),
        CallRange(Role.DESIGNER, 1, 2),
        CallRange(Role.PLANNER, 1, 2),
        CallRange(Role.IMPLEMENTER, 1, 6),
        CallRange(Role.VERIFIER, 1, 6),
        CallRange(Role.REVIEWER, 6, 9),
        CallRange(Role.KNOWLEDGE, 1, 1),
    ),
    Workflow.FORGE: (
        CallRange(Role.CAPTAIN, 1, 2),
        CallRange(Role.WORKER, 1, 8),
        CallRange(Role.REFINERY, 0, 3),
    ),
    Workflow.AUTOPILOT: (
        CallRange(Role.PHASE_RESEARCHER, 1, 1),
        CallRange(Role.PHASE_PLANNER, 1, 2),
        CallRange(Role.PLAN_CHECKER, 1, 2),
        CallRange(Role.EXECUTOR, 1, 6),
        CallRange(Role.MINI_VERIFIER, 1, 6),
        CallRange(Role.PHASE_VERIFIER, 1, 2),
        CallRange(Role.JUDGE, 1, 2),
        CallRange(Role.RATER, 1, 2),
        CallRange(Role.DEBUGGER, 0, 2),
    ),
}
"""Measured on the demos and on runs with real models; a run that retries everything needs more."""
LIGHT_CALLS: tuple[CallRange, ...] = (
    CallRange(Role.INTAKE, 1, 1),
    CallRange(Role.PLANNER, 1, 2),
    CallRange(Role.IMPLEMENTER, 1, 3),
    CallRange(Role.VERIFIER, 1, 3),
    CallRange(Role.REVIEWER, 1, 2),
)
"""The calls of a feature run that stays on the light path."""
_TURNS, _TURNS_OF_WRITERS = (2, 5), (3, 12)
"""Model calls in one call of a role: of one that reads, and of one that changes files."""
_INPUTS = (1_000, 3_000)
"""Tokens of the documents and answers of each model call."""
_READ_AT_MOST = 12_000
"""Tokens of the repository that a conversation carries along at the most."""
_OWN_PROMPT = (4_000, 25_000)
"""Tokens that an external agent adds to each model call."""


class TokenRange(NamedTuple):
    """An estimate of calls and tokens, from a run that goes well to one that needs all usual repetitions."""

    calls: tuple[int, int]
    tokens: tuple[int, int]
    runs: int = 0
    """The number of earlier runs that it comes from; 0 if it comes from roles and the size of the repository."""


def estimated_run(
    calls: Sequence[CallRange],
    roles: Mapping[Role, RoleSpec],
    *,
    external: Collection[Role],
    repository_bytes: int,
    earlier: Sequence[int],
) -> TokenRange:
    """Estimate a run from its roles and the size of its repository; earlier runs here (their tokens) count more.

    >>> estimated_run((), {}, external=(), repository_bytes=0, earlier=(80_000, 120_000)).tokens
    (56000, 180000)
    """
    counted = (sum(one.least for one in calls), sum(one.most for one in calls))
    if earlier:
        return TokenRange(counted, (min(earlier) * 7 // 10, max(earlier) * 3 // 2), len(earlier))
    reach = min(repository_bytes // 4, _READ_AT_MOST)
    low = high = 0
    for one in calls:
        turns = _TURNS_OF_WRITERS if POLICIES[one.role].source else _TURNS
        own = _OWN_PROMPT if one.role in external else (0, 0)
        fixed = roles[one.role].prompt_tokens
        low += one.least * turns[0] * (fixed + _INPUTS[0] + own[0])
        high += one.most * turns[1] * (fixed + _INPUTS[1] + reach // 2 + own[1])
    return TokenRange(counted, (low, high))


def run_metrics(folded: AutopilotState, *, now: str) -> RunMetrics:
    """Return the entry of a run for the metrics file."""
    state = folded.state
    attempted = {
        phase: record
        for phase, record in state.phases.items()
        if record.status not in (PhaseStatus.NOT_STARTED, PhaseStatus.SKIPPED)
    }
    statuses = [record.status for record in attempted.values()]
    scores = [score for record in attempted.values() if (score := standing_score(record)) is not None]
    succeeded = sum(_succeeded(record) for record in attempted.values())
    return RunMetrics(
        run_id=state.meta.run_id,
        timestamp=now,
        phases_attempted=len(attempted),
        phases_succeeded=succeeded,
        phases_failed=statuses.count(PhaseStatus.FAILED),
        phases_human_deferred=statuses.count(PhaseStatus.NEEDS_HUMAN_VERIFICATION),
        failure_taxonomy_histogram={one.category: one.count for one in folded.failures},
        avg_alignment_score=mean_score(scores) if scores else None,
        total_duration_minutes=_minutes(state.meta.started_at, now),
        total_estimated_tokens=sum(record.estimated_tokens or 0 for record in attempted.values()),
        total_debug_loops=state.metrics.debug_loops_total,
        total_replan_attempts=state.metrics.replan_count,
        success_rate=round(succeeded / len(attempted), 4) if attempted else 0.0,
        per_phase_summary=tuple(
            PhaseMetrics(
                phase_id=phase,
                status=record.status,
                alignment_score=standing_score(record),
                estimated_tokens=record.estimated_tokens or 0,
                duration_minutes=_minutes(record.started_at or now, record.completed_at or now),
            )
            for phase, record in attempted.items()
        ),
    )


def standing_score(record: PhaseRecord) -> float | None:
    """Return the current score of a phase, or None if it was not rated."""
    return None if record.steps.rate is None else record.steps.rate.alignment_score


def _succeeded(record: PhaseRecord) -> bool:
    """Return True for a completed phase above the failing mark; a phase that a person passed may have no score."""
    score = standing_score(record)
    good = tenths(score) >= FAIL_BELOW_TENTHS if score is not None else record.human_verdict is not None
    return record.status is PhaseStatus.COMPLETED and good


def _minutes(start: str, end: str) -> float:
    return max(0.0, round((instant(end) - instant(start)).total_seconds() / 60, 2))


def trend(metrics: MetricsFile) -> TrendSummary | None:
    """Compare the last run with the one before and with all runs; None with fewer than two runs."""
    runs = metrics.root
    if len(runs) < 2:
        return None
    before, last = runs[-2], runs[-1]
    return TrendSummary(
        success_rate_delta=round(last.success_rate - before.success_rate, 4),
        avg_alignment_delta=_delta(before.avg_alignment_score, last.avg_alignment_score),
        estimated_cost_delta=last.total_estimated_tokens - before.total_estimated_tokens,
        recurring_failures=tuple(
            category for category in last.failure_taxonomy_histogram if category in before.failure_taxonomy_histogram
        ),
        historical=_history(runs),
    )


def _delta(before: float | None, last: float | None) -> float | None:
    return None if before is None or last is None else round(last - before, 2)


def _history(runs: Sequence[RunMetrics]) -> History:
    scores = [run.avg_alignment_score for run in runs if run.avg_alignment_score is not None]
    return History(
        total_runs=len(runs),
        success_rate=_spread([run.success_rate for run in runs]),
        avg_alignment=_spread(scores) if scores else None,
        total_cost=_spread([float(run.total_estimated_tokens) for run in runs]),
    )


def _spread(values: Sequence[float]) -> Spread:
    lowest, highest = min(values), max(values)
    mean = round(sum(values) / len(values), 4)
    return Spread(min=lowest, max=highest, avg=min(max(mean, lowest), highest))
