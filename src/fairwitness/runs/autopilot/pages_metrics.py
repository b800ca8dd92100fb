"""metrics.json and the trend: what finished runs came to, and how the last one compares."""

from collections.abc import Iterator

from fairwitness.contracts.autopilot.metrics import MetricsFile, RunMetrics, Spread, Trend, TrendSummary
from fairwitness.kit.markdown import Markdown, code, counted, table
from fairwitness.runs.autopilot.wording import CATEGORIES, json_file, minutes, of_ten, percent, tokens


def metrics_with(metrics: MetricsFile, run: RunMetrics) -> MetricsFile:
    """The file with a run's entry at its end; a run that is told twice still has one entry, the later one."""
    return MetricsFile((*(entry for entry in metrics.root if entry.run_id != run.run_id), run))


def metrics_file(metrics: MetricsFile) -> str:
    """`metrics.json`."""
    return json_file(metrics.plain())


def trend_file(trend: TrendSummary) -> str:
    """The trend as a document."""
    return json_file(Trend(trend_summary=trend).plain())


def run_part(run: RunMetrics) -> Iterator[Markdown]:
    """One run in numbers, as a part of a page."""
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
            ("Plans made anew", str(run.total_replan_attempts)),
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
    """The last run against the one before, and all runs together; None as long as there are not two."""
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
