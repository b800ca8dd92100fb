"""Pages about a whole run: the completion report with its data, metrics and trend, and the diagnostic of a halt."""

from collections.abc import Iterator
from typing import NamedTuple

from fairwitness.contracts.autopilot.audit import AuditOutcome
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.completion import CompletionReport, SkippedPhase
from fairwitness.contracts.autopilot.metrics import MetricsFile, RunMetrics, Spread, Trend, TrendSummary
from fairwitness.contracts.autopilot.phase_record import PhaseRecord
from fairwitness.contracts.autopilot.state import State
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus
from fairwitness.contracts.common.base import instant
from fairwitness.kit.json_text import render_line
from fairwitness.kit.markdown import (
    Markdown,
    code,
    counted,
    items,
    line,
    listed,
    page,
    prose,
    table,
)
from fairwitness.rules.cost import standing_score
from fairwitness.runs.autopilot.page_words import (
    CATEGORIES,
    json_file,
    length,
    minutes,
    of_ten,
    percent,
    readable,
    tokens,
)
from fairwitness.store.layout import autopilot


def metrics_with(metrics: MetricsFile, run: RunMetrics) -> MetricsFile:
    """Return the file with a run's entry at the end; a run that ended twice has only its later entry."""
    return MetricsFile((*(entry for entry in metrics.root if entry.run_id != run.run_id), run))


def metrics_file(metrics: MetricsFile) -> str:
    """Return `metrics.json`."""
    return json_file(metrics.plain())


def trend_file(trend: TrendSummary) -> str:
    """Return the trend as a document."""
    return json_file(Trend(trend_summary=trend).plain())


class BranchChange(NamedTuple):
    """What a run did: its branch, the files that differ from where it began, and the tokens it used."""

    branch: str
    files: tuple[str, ...]
    tokens: int


def work_part(change: BranchChange) -> Iterator[Markdown]:
    """Yield where the work of a run is, as a part of a page."""
    yield Markdown("## Its work")
    files, used = counted(len(change.files), "file"), tokens(change.tokens)
    yield Markdown(f"{files} changed on the branch {code(change.branch)}; {used} used.")
    yield items([Markdown(f"- {code(each)}") for each in change.files], "It changed no file.")


def run_part(run: RunMetrics) -> Iterator[Markdown]:
    """Yield one run in numbers, as a part of a page."""
    score = "no phase was rated" if run.avg_alignment_score is None else of_ten(run.avg_alignment_score)
    yield table(
        ("What", "This run"),
        [
            (
                "Phases that succeeded",
                f"{run.phases_succeeded} of {run.phases_attempted} ({percent(run.success_rate)})",
            ),
            ("Phases that failed", str(run.phases_failed)),
            ("Phases put to a person", str(run.phases_human_deferred)),
            ("Mean alignment score", score),
            ("Time from start to end", minutes(run.total_duration_minutes)),
            ("Tokens, as estimated before", tokens(run.total_estimated_tokens)),
            ("Debug attempts", str(run.total_debug_loops)),
            ("New plans", str(run.total_replan_attempts)),
        ],
        "",
    )
    yield table(
        ("Phase", "Status", "Score", "Tokens, estimated", "Took"),
        [
            (
                each.phase_id,
                code(each.status.value),
                "not rated" if each.alignment_score is None else of_ten(each.alignment_score),
                tokens(each.estimated_tokens),
                minutes(each.duration_minutes),
            )
            for each in run.per_phase_summary
        ],
        "No phase was attempted.",
    )
    yield table(
        ("Failure", "Meaning", "Times"),
        [(code(kind.value), CATEGORIES[kind], str(count)) for kind, count in run.failure_taxonomy_histogram.items()],
        "No failure is on record.",
    )


def trend_part(trend: TrendSummary | None) -> Iterator[Markdown]:
    """Yield the comparison with the run before and with all runs; None if there are fewer than two."""
    if trend is None:
        yield Markdown("A trend needs two finished runs.")
        return
    past = trend.historical
    yield Markdown(f"Against the run before, and over {counted(past.total_runs, 'run')}:")
    rates, scores, costs = past.success_rate, past.avg_alignment, past.total_cost
    yield table(
        ("What", "Change", "Lowest", "Mean", "Highest"),
        [
            (
                "Phases that succeed",
                f"{trend.success_rate_delta * 100:+.1f} percentage points",
                *_spread(rates, "rate"),
            ),
            (
                "Mean alignment score",
                "not known" if trend.avg_alignment_delta is None else f"{trend.avg_alignment_delta:+.2f}",
                *(("not known",) * 3 if scores is None else _spread(scores, "score")),
            ),
            ("Tokens, as estimated", f"{trend.estimated_cost_delta:+,} tokens", *_spread(costs, "tokens")),
        ],
        "",
    )
    yield table(
        ("Failed in both runs", "Meaning"),
        [(code(kind.value), CATEGORIES[kind]) for kind in trend.recurring_failures],
        "No kind of failure came back.",
    )


def _spread(spread: Spread, kind: str) -> tuple[str, str, str]:
    values = (spread.min, spread.avg, spread.max)
    low, mean, high = (
        percent(value) if kind == "rate" else of_ten(round(value, 2)) if kind == "score" else tokens(round(value))
        for value in values
    )
    return low, mean, high


LAST_EVENTS = 20
DETAILS = 160
"""How many characters of an event's details a table shows."""

POSITIONS: dict[BreakerPosition, str] = {
    BreakerPosition.CLOSED: "work is let through",
    BreakerPosition.OPEN: "nothing more is started",
    BreakerPosition.HALF_OPEN: "one try is let through",
}


def completion_file(report: CompletionReport) -> str:
    """Return `completion-report.json`: the data behind the report."""
    return json_file(report.plain())


def completion_page(
    report: CompletionReport,
    run: RunMetrics | None,
    audit: AuditOutcome | None,
    trend: TrendSummary | None,
    change: BranchChange,
) -> str:
    """Return `completion-report.md`: what was reached, what failed, what is left."""
    return page(_completion(report, run, audit, trend, change), whole=f"`{autopilot.COMPLETION_DATA}`")


def _completion(
    report: CompletionReport,
    run: RunMetrics | None,
    audit: AuditOutcome | None,
    trend: TrendSummary | None,
    change: BranchChange,
) -> Iterator[Markdown]:
    yield Markdown(f"# Completion report of {report.run_id}")
    yield Markdown(f"Written by Fair Witness at {report.timestamp}, at the end of a run with `{report.mode}`.")
    yield Markdown(
        f"**{report.completed_phases_total} of {counted(report.total_phases_in_roadmap, 'phase')} of the roadmap "
        f"completed: {report.completion_percentage:.1f} %.**"
    )
    ended = report.phases_succeeded + report.phases_failed + report.phases_deferred
    yield Markdown(
        f"This run attempted {counted(report.phases_attempted, 'phase')}: {report.phases_succeeded} succeeded, "
        f"{report.phases_failed} failed, {report.phases_deferred} wait for a person, "
        f"{report.phases_attempted - ended} did not end. It skipped {len(report.phases_skipped)}."
    )
    yield from work_part(change)
    yield Markdown("## What failed, and what waits for it")
    yield table(
        ("Failed phase", "Why", "Phases that wait for it"),
        [
            (
                f"{gap.failed_phase_id}: {gap.failed_phase_name}",
                gap.failure_reason,
                "; ".join(f"{each.phase_id}: {each.phase_name}" for each in gap.blocked_phases) or "none",
            )
            for gap in report.dependency_gaps
        ],
        "No failed phase holds another one back.",
    )
    yield Markdown("## Skipped phases")
    yield table(
        ("Phase", "Why"),
        [(f"{each.phase_id}: {each.phase_name}", _skipped(each)) for each in report.phases_skipped],
        "None.",
    )
    yield Markdown("## Self-audit")
    yield from _audit(audit)
    yield Markdown("## Numbers")
    if run is None:
        yield Markdown("No metrics of this run are on record.")
    else:
        yield from run_part(run)
    yield Markdown("## Trend")
    yield from trend_part(trend)


def _skipped(each: SkippedPhase) -> str:
    if each.blocking_phase is not None:
        return f"phase {each.blocking_phase} failed, and it rests on that"
    when = each.original_run_timestamp
    return f"completed already{'' if when is None else f', at {when}'}"


def _audit(audit: AuditOutcome | None) -> Iterator[Markdown]:
    if audit is None:
        yield Markdown("No self-audit was made, so nothing is known of requirements that were forgotten.")
        return
    yield Markdown(
        f"{counted(audit.total_requirements_checked, 'requirement')} held against the files: "
        f"{audit.passed_on_first_check} met at once, {counted(audit.gaps_found, 'gap')} found, {audit.gaps_fixed} "
        f"closed in {counted(audit.audit_cycles, 'cycle')}, {audit.gaps_remaining} left."
    )
    yield table(
        ("Requirement", "What is left"),
        [(each.requirement_id, each.description) for each in audit.remaining_gap_details],
        "No gap is left.",
    )
    if audit.fix_commits:
        yield Markdown(f"Commits that closed gaps: {listed(audit.fix_commits)}.")


def halt_page(state: State, *, reason: str, at: str) -> str:
    """Return `diagnostic-<time>.md`: why a run stopped, its state, and how to resume it."""
    return page(_halt(state, reason, at), whole=f"`{autopilot.STATE}`")


def _has_begun(state: State) -> bool:
    """Return whether any phase was started."""
    return any(record.started_at is not None for record in state.phases.values())


def _halt(state: State, reason: str, at: str) -> Iterator[Markdown]:
    meta, totals = state.meta, state.metrics
    where = f"in phase {meta.current_phase}"
    if meta.current_phase is None:
        where = "between two phases or after the last" if _has_begun(state) else "before its first phase"
    step = "" if meta.current_step is None else f", step {meta.current_step.value}"
    yield Markdown(f"# Why {meta.run_id} stopped")
    yield Markdown(f"It stopped at {at} {where}{step}, and is **{meta.status.value}**. The reason:")
    yield prose(reason)
    yield Markdown("## How to go on")
    yield items([Markdown(f"- {each}") for each in _next(state, at)], "")
    yield Markdown("## Phases")
    yield table(
        ("Phase", "Status", "Score", "Tokens used", "Debug attempts", "New plans", "Took", "Diagnostic"),
        [_phase_row(phase, record, at) for phase, record in state.phases.items()],
        "The run has no phase.",
    )
    yield Markdown("## The circuit breaker")
    breaker = state.circuit_breaker
    yield items(
        [
            Markdown(f"- Position: {breaker.state.value} ({POSITIONS[breaker.state]})"),
            Markdown(f"- Steps in a row without progress: {breaker.consecutive_no_progress}"),
            Markdown(f"- The same error in a row: {breaker.consecutive_same_error}"),
            Markdown(f"- Last error: {'none' if breaker.last_error is None else line(breaker.last_error)}"),
            Markdown(f"- Cools down until: {breaker.cooldown_until or 'it does not wait'}"),
        ],
        "",
    )
    yield Markdown("## What the run has used")
    yield Markdown(
        f"{tokens(totals.total_tokens_used)}, {minutes(totals.total_duration_minutes)}; "
        f"{counted(totals.phases_completed, 'phase')} completed, {totals.phases_failed} failed; "
        f"{counted(totals.debug_loops_total, 'debug attempt')}, {counted(totals.replan_count, 'new plan')}."
    )
    yield Markdown(f"## The last events (at most {LAST_EVENTS})")
    yield table(
        ("When", "Phase", "Step", "Event", "Details"),
        [
            (
                event.timestamp,
                event.phase or "",
                "" if event.step is None else event.step.value,
                code(event.event),
                _details(event.details.plain()),
            )
            for event in state.event_log[-LAST_EVENTS:]
        ],
        "No event is on record.",
    )


def _details(plain: dict[str, object]) -> str:
    text = render_line(readable(plain))
    return text if len(text) <= DETAILS else f"{text[:DETAILS]} …"


def _next(state: State, at: str) -> Iterator[Markdown]:
    run = state.meta.run_id
    cooled = state.circuit_breaker.cooldown_until
    match state.meta.status:
        case AutopilotRunStatus.PAUSED:
            wait = f", from {cooled} on" if cooled is not None and instant(cooled) > instant(at) else ""
            yield Markdown(f"fix the cause, then resume{wait}: {code(f'fairwitness resume {run}')}")
        case AutopilotRunStatus.FAILED:
            yield Markdown(
                f"it does not continue by itself; once the cause is fixed: {code(f'fairwitness resume {run}')}"
            )
        case AutopilotRunStatus.RUNNING:
            yield Markdown(f"it was interrupted, and resumes where it was: {code(f'fairwitness resume {run}')}")
        case AutopilotRunStatus.COMPLETED:
            yield Markdown("nothing is left to do")
    yield Markdown(f"where it stands: {code('fairwitness status')}")
    yield Markdown(f"everything that happened, in order: {code(f'fairwitness events {run}')}")
    yield Markdown(f"why a phase failed: the post-mortems and diagnostics under {code(autopilot.DIAGNOSTICS)}")


def _phase_row(phase: str, record: PhaseRecord, at: str) -> tuple[str, ...]:
    score = standing_score(record)
    return (
        phase,
        code(record.status.value),
        "not rated" if score is None else of_ten(score),
        tokens(record.tokens_used),
        str(record.debug_attempts),
        str(record.replan_attempts),
        _took(record, at),
        "none" if record.diagnostic_path is None else code(record.diagnostic_path),
    )


def _took(record: PhaseRecord, at: str) -> str:
    if record.started_at is None:
        return "not started"
    end = record.completed_at or (at if record.status is PhaseStatus.IN_PROGRESS else None)
    if end is None:
        return "not known"
    lasted = length(max(0.0, (instant(end) - instant(record.started_at)).total_seconds()))
    return lasted if record.completed_at is not None else f"{lasted} so far"
