"""What a run leaves for people says what was reached, why it stopped, and how to go on."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.audit import AuditOutcome, SelfAuditSummary
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.completion import CompletionReport
from fairwitness.contracts.autopilot.metrics import MetricsFile, RunMetrics, Trend, TrendSummary
from fairwitness.contracts.autopilot.state import State
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus
from fairwitness.kit.documents import Format, read
from fairwitness.rules.cost import trend
from fairwitness.runs.autopilot.pages_run import (
    LAST_EVENTS,
    POSITIONS,
    BranchChange,
    completion_file,
    completion_page,
    halt_page,
    metrics_file,
    metrics_with,
    run_part,
    trend_file,
    trend_part,
)
from runs.autopilot.written import NOW
from runs.feature.markdown_reader import HOSTILE, seen
from support.fixtures import value_of

CHANGE = BranchChange("fairwitness/run-1/target", ("src/a.py", "tests/test_a.py"), 161_566)
NOTHING = BranchChange("fairwitness/run-1/target", (), 0)
COMPLETION_PARTS = (
    "# Completion report of run-2026-02-10-143052",
    "## Its work",
    "## What failed, and what waits for it",
    "## Skipped phases",
    "## Self-audit",
    "## Numbers",
    "## Trend",
)
HALT_PARTS = (
    "# Why run-2026-02-09-143052 stopped",
    "## How to go on",
    "## Phases",
    "## The circuit breaker",
    "## What the run has used",
    "## The last events (at most 20)",
)


def _report(**changes: object) -> CompletionReport:
    return CompletionReport.model_validate(value_of("003/completion-report.json") | changes)


def _run(number: int = 10, **changes: object) -> RunMetrics:
    value = value_of("003/metrics.json")[0]
    return RunMetrics.model_validate(value | {"run_id": f"run-2026-02-{number:02}-143052"} | changes)


def _trend() -> TrendSummary:
    return Trend.model_validate(value_of("003/trend.json")).trend_summary


def _audit(**changes: object) -> AuditOutcome:
    value = value_of("003/self-audit-summary.json")
    return SelfAuditSummary.model_validate({"self_audit": value["self_audit"] | changes}).self_audit


def _state(**meta: object) -> State:
    value: dict[str, Any] = value_of("003/filled-state.json")
    return State.model_validate(value | {"_meta": value["_meta"] | meta})


@pytest.mark.req("A11")
def test_a_completion_report_for_people() -> None:
    assert completion_page(_report(), _run(), _audit(), _trend(), CHANGE) == snapshot("""\
# Completion report of run-2026-02-10-143052

Written by Fair Witness at 2026-02-10T18:30:00Z, at the end of a run with `--complete`.

**12 of 15 phases of the roadmap completed: 80.0 %.**

This run attempted 5 phases: 3 succeeded, 1 failed, 1 wait for a person, 0 did not end. It skipped 2.

## Its work

2 files changed on the branch `fairwitness/run-1/target`; 161,566 tokens used.

- `src/a.py`
- `tests/test_a.py`

## What failed, and what waits for it

| Failed phase | Why | Phases that wait for it |
| --- | --- | --- |
| 10: Confidence Enforcement | executor_incomplete: 2 acceptance criteria unmet | 11: Competitive Analysis |

## Skipped phases

| Phase | Why |
| --- | --- |
| 9: Pre-Execution Context Mapping | completed already, at 2026-02-09T15:00:00Z |
| 11: Competitive Analysis | phase 10 failed, and it rests on that |

## Self-audit

15 requirements held against the files: 13 met at once, 2 gaps found, 2 closed in 1 cycle, 0 left.

No gap is left.

Commits that closed gaps: `abc1234`, `def5678`.

## Numbers

| What | This run |
| --- | --- |
| Phases that succeeded | 4 of 5 (80.0 %) |
| Phases that failed | 1 |
| Phases put to a person | 0 |
| Mean alignment score | 7.8 of 10 |
| Time from start to end | 2h 15m |
| Tokens, as estimated before | 425,000 tokens |
| Debug attempts | 2 |
| New plans | 0 |

| Phase | Status | Score | Tokens, estimated | Took |
| --- | --- | --- | --- | --- |
| 7 | `completed` | 8.2 of 10 | 110,000 tokens | 25m 0s |

| Failure | Meaning | Times |
| --- | --- | --- |
| `executor_incomplete` | a task was called done before its criteria were met | 1 |
| `acceptance_criteria_unmet` | a criterion is not met | 1 |

## Trend

Against the run before, and over 5 runs:

| What | Change | Lowest | Mean | Highest |
| --- | --- | --- | --- | --- |
| Phases that succeed | +10.0 percentage points | 60.0 % | 78.0 % | 90.0 % |
| Mean alignment score | +0.50 | 6.5 of 10 | 7.4 of 10 | 8.2 of 10 |
| Tokens, as estimated | -25,000 tokens | 200,000 tokens | 380,000 tokens | 600,000 tokens |

| Failed in both runs | Meaning |
| --- | --- |
| `executor_incomplete` | a task was called done before its criteria were met |
""")


@pytest.mark.req("A11")
def test_a_report_of_which_little_is_known_says_so() -> None:
    bare = _report(phases_skipped=[], dependency_gaps=[])
    page = completion_page(bare, None, None, None, NOTHING)
    for said in (
        "No failed phase holds another one back.",
        "It changed no file.",
        "No self-audit was made",
        "No metrics of this run are on record.",
        "A trend needs two finished runs.",
    ):
        assert said in page
    assert tuple(seen(page).headings) == COMPLETION_PARTS


@pytest.mark.req("A11")
def test_gaps_that_are_left_are_named() -> None:
    left = [{"requirement_id": "OBSV-02", "description": "no trace of the judge"}]
    page = completion_page(
        _report(),
        None,
        _audit(gaps_fixed=1, gaps_remaining=1, remaining_gap_details=left, fix_commits=[]),
        None,
        CHANGE,
    )
    assert "| OBSV-02 | no trace of the judge |" in page
    assert "Commits that closed gaps" not in page


@pytest.mark.req("A11")
def test_the_data_of_a_report_is_read_again() -> None:
    report = _report()
    assert CompletionReport.model_validate(read(completion_file(report).encode(), Format.JSON).value) == report


@pytest.mark.req("A11")
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_a_part_of_a_report(text: str) -> None:
    report = _report()
    named = {"failed_phase_name": text, "failure_reason": text}
    hostile = report.model_copy(
        update={
            "phases_skipped": tuple(each.model_copy(update={"phase_name": text}) for each in report.phases_skipped),
            "dependency_gaps": tuple(
                gap.model_copy(
                    update=named
                    | {
                        "blocked_phases": tuple(
                            one.model_copy(update={"phase_name": text}) for one in gap.blocked_phases
                        )
                    }
                )
                for gap in report.dependency_gaps
            ),
        }
    )
    rendered = seen(completion_page(hostile, _run(), _audit(), _trend(), CHANGE._replace(files=(text,))))
    assert rendered.headings == COMPLETION_PARTS
    assert all(len(set(rows)) == 1 for rows in rendered.tables)


@pytest.mark.req("A9")
def test_metrics_are_read_again_and_a_run_has_one_entry() -> None:
    metrics = metrics_with(metrics_with(MetricsFile(()), _run(9)), _run(10))
    again = MetricsFile.model_validate(read(metrics_file(metrics).encode(), Format.JSON).value)
    assert again == metrics
    later = metrics_with(again, _run(9, total_debug_loops=7))
    assert [(entry.run_id, entry.total_debug_loops) for entry in later.root] == [
        ("run-2026-02-10-143052", 2),
        ("run-2026-02-09-143052", 7),
    ]


@pytest.mark.req("A9")
def test_a_trend_is_read_again_and_shown_with_its_words() -> None:
    summary = trend(MetricsFile((_run(9), _run(10, avg_alignment_score=None))))
    assert summary is not None
    assert Trend.model_validate(read(trend_file(summary).encode(), Format.JSON).value).trend_summary == summary
    assert "\n\n".join(trend_part(summary)) == snapshot("""\
Against the run before, and over 2 runs:

| What | Change | Lowest | Mean | Highest |
| --- | --- | --- | --- | --- |
| Phases that succeed | +0.0 percentage points | 80.0 % | 80.0 % | 80.0 % |
| Mean alignment score | not known | 7.8 of 10 | 7.8 of 10 | 7.8 of 10 |
| Tokens, as estimated | +0 tokens | 425,000 tokens | 425,000 tokens | 425,000 tokens |

| Failed in both runs | Meaning |
| --- | --- |
| `executor_incomplete` | a task was called done before its criteria were met |
| `acceptance_criteria_unmet` | a criterion is not met |\
""")
    unrated = trend(MetricsFile((_run(9, avg_alignment_score=None), _run(10, avg_alignment_score=None))))
    assert "| Mean alignment score | not known | not known | not known | not known |" in "\n".join(trend_part(unrated))


@pytest.mark.req("A9")
def test_a_run_without_a_phase_has_numbers_too() -> None:
    empty = _run(
        phases_attempted=0,
        phases_succeeded=0,
        phases_failed=0,
        success_rate=0.0,
        avg_alignment_score=None,
        failure_taxonomy_histogram={},
        per_phase_summary=[],
    )
    text = "\n".join(run_part(empty))
    for said in ("no phase was rated", "No phase was attempted.", "No failure is on record.", "0 of 0 (0.0 %)"):
        assert said in text


@pytest.mark.req("A6")
def test_a_diagnostic_of_a_halt_for_people() -> None:
    page = halt_page(_state(status="paused"), reason="3 steps in a row made no progress.", at="2026-02-09T16:39:00Z")
    assert page == snapshot("""\
# Why run-2026-02-09-143052 stopped

It stopped at 2026-02-09T16:39:00Z in phase 6.3, step execute, and is **paused**. The reason:

3 steps in a row made no progress.

## How to go on

- fix the cause, then resume, from 2026-02-09T16:40:00Z on: `fairwitness resume run-2026-02-09-143052`
- where it stands: `fairwitness status`
- everything that happened, in order: `fairwitness events run-2026-02-09-143052`
- why a phase failed: the post-mortems and diagnostics under `.autopilot/diagnostics`

## Phases

| Phase | Status | Score | Tokens used | Debug attempts | New plans | Took | Diagnostic |
| --- | --- | --- | --- | --- | --- | --- | --- |
| 6.1 | `completed` | 8.2 of 10 | 85,000 tokens | 0 | 0 | 41m 45s | `.autopilot/diagnostics/phase-6.1-confidence.md` |
| 6.2 | `needs_human_verification` | not rated | 41,000 tokens | 0 | 0 | not known | none |
| 6.3 | `in_progress` | not rated | 12,000 tokens | 0 | 0 | 29m 0s so far | none |
| 6a | `failed` | not rated | 0 tokens | 0 | 0 | not known | none |
| 7 | `not_started` | not rated | 0 tokens | 0 | 0 | not started | none |

## The circuit breaker

- Position: half_open (one try is let through)
- Steps in a row without progress: 1
- The same error in a row: 0
- Last error: tool_failure: npm install timed out
- Cools down until: 2026-02-09T16:40:00Z

## What the run has used

450,000 tokens, 3h 0m; 5 phases completed, 0 failed; 2 debug attempts, 0 new plans.

## The last events (at most 20)

| When | Phase | Step | Event | Details |
| --- | --- | --- | --- | --- |
| 2026-02-09T14:31:00Z | 6.1 | execute | `task_completed` | {"task":"task_01","commit":"abc1234"} |
""")  # a table has as many columns as it has


@pytest.mark.req("A6")
def test_every_status_says_how_to_go_on() -> None:
    pages = {status: halt_page(_state(status=status.value), reason="x", at=NOW) for status in AutopilotRunStatus}
    first = {status.value: page.split("## How to go on\n\n")[1].split("\n")[0] for status, page in pages.items()}
    assert first == snapshot(
        {
            "running": "- it was interrupted, and resumes where it was: `fairwitness resume run-2026-02-09-143052`",
            "paused": "- fix the cause, then resume: `fairwitness resume run-2026-02-09-143052`",
            "completed": "- nothing is left to do",
            "failed": "- it does not continue by itself; once the cause is fixed: `fairwitness resume run-2026-02-09-143052`",  # noqa: E501
        }
    )


@pytest.mark.req("A6")
def test_a_halt_before_anything_was_done() -> None:
    state = _state(current_phase=None, current_step=None, status="paused")
    closed = state.circuit_breaker.model_copy(
        update={"state": BreakerPosition.CLOSED, "last_error": None, "cooldown_until": None}
    )
    bare = state.model_copy(update={"phases": {}, "event_log": (), "circuit_breaker": closed})
    page = halt_page(bare, reason="The roadmap has changed.", at=NOW)
    for said in (
        "before its first phase, and is **paused**",
        "The run has no phase.",
        "No event is on record.",
        "- Last error: none",
        "- Cools down until: it does not wait",
        "fix the cause, then resume: `fairwitness resume",
    ):
        assert said in page


@pytest.mark.req("A6")
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_a_part_of_a_diagnostic(text: str) -> None:
    state = _state()
    broken = state.circuit_breaker.model_copy(update={"last_error": text})
    [event] = state.event_log
    told = event.model_copy(update={"details": event.details.model_copy(update={"task": text})})
    hostile = state.model_copy(update={"circuit_breaker": broken, "event_log": (told,) * (LAST_EVENTS + 5)})
    rendered = seen(halt_page(hostile, reason=text, at=NOW))
    assert rendered.headings == HALT_PARTS
    assert rendered.tables == ((8,) * 6, (5,) * (LAST_EVENTS + 1))


def test_every_position_of_the_breaker_is_explained() -> None:
    assert set(POSITIONS) == set(BreakerPosition)
