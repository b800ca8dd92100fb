"""A run ends once: the ledger is told first, the numbers are appended once, and what was cut short is finished."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.autopilot.audit import AuditOutcome, RemainingGap
from fairwitness.contracts.autopilot.completion import CompletionReport
from fairwitness.contracts.autopilot.events_phase import HumanVerdictRecorded, PhaseSkipped, StepCompleted
from fairwitness.contracts.autopilot.events_run import (
    AutopilotRunCompleted,
    AutopilotRunResumed,
    BatchCompletionReport,
    RunHalted,
)
from fairwitness.contracts.autopilot.facts import DeferralFacts, EventFacts
from fairwitness.contracts.autopilot.metrics import MetricsFile, RunMetrics
from fairwitness.contracts.autopilot.order import EarlierPhase
from fairwitness.contracts.autopilot.phase_record import HumanVerifyJustification
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, HumanWord, PhaseStatus, RunFlag, StepName
from fairwitness.errors import UsageError
from fairwitness.rules.fold_phase import autopilot_event
from fairwitness.runs.autopilot.log import LoggedEvent, new_event
from fairwitness.runs.autopilot.run_end import append_metrics
from fairwitness.runs.autopilot.state_file import StateSource, read_state
from fairwitness.store.artifacts import Store
from fairwitness.store.layout import autopilot
from runs.autopilot.logbook import AT, RUN, Logbook, killed_everywhere
from support.fixtures import value_of

FILES = [autopilot.COMPLETION_REPORT, autopilot.METRICS, autopilot.STATE_BACKUP, autopilot.archived_state(RUN)]


def _metrics(files: Store) -> tuple[RunMetrics, ...]:
    return MetricsFile.model_validate(json.loads(files.get(autopilot.METRICS))).root


def _run(number: int = 10, **changes: object) -> RunMetrics:
    value = value_of("003/metrics.json")[0]
    return RunMetrics.model_validate(value | {"run_id": f"run-2026-01-{number:02}-143052"} | changes)


def _last(logbook: Logbook, kind: type[Any]) -> Any:
    name = new_event(kind, AT).event if kind is not BatchCompletionReport else "batch_completion_report"
    envelope = logbook.log.ledger.last_event(logbook.log.run_id, name)
    assert envelope is not None
    opened = autopilot_event(envelope)
    assert isinstance(opened, tuple)
    return opened[0]


def _all_pass(root: Path, *flags: RunFlag) -> Logbook:
    logbook = Logbook.create(root, *flags)
    for phase in ("5", "6", "7"):
        logbook.passes(phase)
    return logbook


@pytest.mark.req("A1", "A5", "A9")
def test_a_run_that_completes_is_told_counted_and_archived(tmp_path: Path) -> None:
    logbook = _all_pass(tmp_path / "run")
    ended = logbook.ending().complete(None)
    assert logbook.events()[-2:] == ["run_completed", "checkpoint_written"]
    said = _last(logbook, AutopilotRunCompleted).details
    assert (said.phases_completed, said.duration_minutes) == (3, ended.metrics.total_duration_minutes)
    assert (ended.metrics.phases_succeeded, ended.metrics.success_rate, ended.trend) == (3, 1.0, None)
    assert sorted(logbook.tree()) == sorted(FILES)
    assert ended.archived == autopilot.archived_state(RUN)
    assert b"A trend needs two finished runs." in logbook.files.get(autopilot.COMPLETION_REPORT)
    assert (ended.report, logbook.files.exists(autopilot.COMPLETION_DATA)) == (None, False)


@pytest.mark.req("A9")
def test_ending_again_changes_nothing(tmp_path: Path) -> None:
    logbook = _all_pass(tmp_path / "run", RunFlag.COMPLETE)
    ended = logbook.ending().complete(None)
    before, events = logbook.tree(), logbook.events()
    assert logbook.ending().complete(None) == ended
    found = Logbook.open(logbook.root)
    assert found.ending().complete(None) == ended
    assert (found.tree(), found.events()) == (before, events)


@pytest.mark.req("A1", "A9", "A11")
@pytest.mark.parametrize("deed", ["complete", "fail", "pause"])
def test_killed_between_any_two_writes_the_same_ending_finishes_it(tmp_path: Path, deed: str) -> None:
    whole = _all_pass(tmp_path / "whole", RunFlag.COMPLETE)
    logbook = _all_pass(tmp_path / "run", RunFlag.COMPLETE)
    ends = {"complete": ["run_completed"], "fail": ["run_halted"], "pause": ["run_halted"]}[deed]
    _end(whole, deed)
    for found in killed_everywhere(logbook, deed, tmp_path):
        _end(found, deed)
        before, events = found.tree(), found.events()
        assert sorted(map(_timeless, before)) == sorted(map(_timeless, whole.tree()))
        assert [each for each in events if each in ("run_completed", "run_halted")] == ends
        assert events.count("batch_completion_report") == (deed != "pause")
        assert events == whole.events()
        if deed != "pause":
            assert len(_metrics(found.files)) == 1
        _end(found, deed)
        assert (found.tree(), found.events()) == (before, events)


def _end(logbook: Logbook, deed: str) -> None:
    if deed == "complete":
        logbook.ending().complete(None)
    elif deed == "fail":
        logbook.ending().fail("phase 5 failed")
    else:
        logbook.ending().pause("the breaker is open")


def _timeless(path: str) -> str:
    return path.split("diagnostic-")[0]


@pytest.mark.req("A1", "A9", "A11")
@pytest.mark.parametrize("deed", ["complete", "fail", "pause"])
def test_an_ending_that_was_told_but_cut_short_is_mended(tmp_path: Path, deed: str) -> None:
    whole = _all_pass(tmp_path / "whole", RunFlag.COMPLETE)
    _end(whole, deed)
    logbook = _all_pass(tmp_path / "run", RunFlag.COMPLETE)
    for found in killed_everywhere(logbook, deed, tmp_path):
        before = found.tree()
        found.ending().finish_files()
        if found.log.state().state.meta.status is AutopilotRunStatus.RUNNING:
            assert found.tree() == before
            continue
        assert sorted(map(_timeless, found.tree())) == sorted(map(_timeless, whole.tree()))
        after, events = found.tree(), found.events()
        found.ending().finish_files()
        _end(found, deed)
        assert (found.tree(), found.events()) == (after, events)


@pytest.mark.req("A4", "A9")
def test_a_halt_that_somebody_else_told_of_gets_its_files_and_counts_once(tmp_path: Path) -> None:
    logbook = Logbook.create(tmp_path / "run")
    logbook.begins("5")
    logbook.tell(RunHalted, "5", reason="the tokens of the run are used up", status=AutopilotRunStatus.FAILED)
    logbook.ending().finish_files()
    (entry,) = _metrics(logbook.files)
    assert (entry.run_id, entry.phases_attempted) == (RUN, 1)
    assert "the tokens of the run are used up" in logbook.files.get(logbook.ending().diagnose()).decode()
    logbook.tell(AutopilotRunResumed, previous_status=AutopilotRunStatus.FAILED)
    logbook.passes("5")
    logbook.tell(RunHalted, reason="again", status=AutopilotRunStatus.FAILED)
    logbook.ending().finish_files()
    logbook.ending().finish_files()
    (entry,) = _metrics(logbook.files)
    assert entry.phases_succeeded == 1
    assert logbook.events().count("run_halted") == 2


@pytest.mark.req("A1", "A5")
def test_a_pause_says_why_and_how_to_go_on(tmp_path: Path) -> None:
    logbook = Logbook.create(tmp_path / "run")
    logbook.begins("5")
    path = logbook.ending().pause("the breaker is open")
    said = _last(logbook, RunHalted).details
    assert (said.reason, said.status) == ("the breaker is open", AutopilotRunStatus.PAUSED)
    page = logbook.files.get(path).decode()
    assert path.startswith(".autopilot/diagnostics/diagnostic-2026-02-09T")
    assert "the breaker is open" in page
    assert f"fairwitness resume {RUN}" in page
    found = read_state(logbook.files)
    assert found is not None
    assert (found.source, found.state.meta.status) == (StateSource.FILE, AutopilotRunStatus.PAUSED)
    assert not logbook.files.exists(autopilot.METRICS)


@pytest.mark.req("A1", "A9")
def test_a_run_that_fails_stays_where_it_was_and_counts_once_however_often_it_ends(tmp_path: Path) -> None:
    logbook = Logbook.create(tmp_path / "run")
    logbook.fails("5")
    first = logbook.ending().fail("phase 5 failed, and phase 6 rests on it")
    assert (first.archived, first.metrics.phases_failed) == (None, 1)
    assert logbook.files.exists(autopilot.STATE)
    logbook.tell(AutopilotRunResumed, previous_status=AutopilotRunStatus.FAILED)
    for phase in ("5", "6", "7"):
        logbook.passes(phase)
    second = logbook.ending().complete(None)
    assert second.metrics.phases_failed == 0
    assert _metrics(logbook.files) == (second.metrics,)
    assert logbook.events().count("run_halted") == logbook.events().count("run_completed") == 1


@pytest.mark.req("A1")
def test_a_run_that_failed_is_not_completed_by_saying_so(tmp_path: Path) -> None:
    logbook = Logbook.create(tmp_path / "run")
    logbook.fails("5")
    logbook.ending().fail("phase 5 failed")
    with pytest.raises(UsageError, match="only a completed run is archived"):
        logbook.ending().complete(None)
    assert "run_completed" not in logbook.events()


def _defer(logbook: Logbook, phase: str) -> None:
    justification = HumanVerifyJustification(
        checkpoint_task_id="07-02", task_description="pay by card", auto_tasks_passed=1, auto_tasks_total=2
    )
    facts = EventFacts(
        deferral=DeferralFacts(reason="only a person can", autonomous_confidence=4, justification=justification)
    )
    logbook.begins(phase)
    told = new_event(StepCompleted, logbook.log.now(), phase=phase, step=StepName.VERIFY)
    logbook.log.append(LoggedEvent(told, facts))


@pytest.mark.req("A11", "A5")
def test_a_complete_run_reports_what_it_reached_and_what_waits(tmp_path: Path) -> None:
    logbook = Logbook.create(tmp_path / "run", RunFlag.COMPLETE)
    logbook.fails("5", "the total is wrong")
    logbook.tell(PhaseSkipped, "6", phase_id="6", reason="blocked_by_phase_5", blocking_phase="5")
    _defer(logbook, "7")
    report = logbook.ending().report()
    assert report is not None
    assert (report.total_phases_in_roadmap, report.completed_phases_total, report.completion_percentage) == (3, 0, 0.0)
    assert (report.phases_attempted, report.phases_failed, report.phases_deferred) == (2, 1, 1)
    assert [(each.phase_id, each.reason) for each in report.phases_skipped] == [("6", "blocked_by_phase_5")]
    (gap,) = report.dependency_gaps
    assert (gap.failed_phase_id, gap.failure_reason) == ("5", "executor_incomplete: the total is wrong")
    assert [each.phase_id for each in gap.blocked_phases] == ["6"]
    said = _last(logbook, BatchCompletionReport).details
    assert (said.phases_skipped, said.report_path) == (1, autopilot.COMPLETION_REPORT)
    data = json.loads(logbook.files.get(autopilot.COMPLETION_DATA))
    assert CompletionReport.model_validate(data) == report
    assert "phase 5 failed, and it rests on that" in logbook.files.get(autopilot.COMPLETION_REPORT).decode()
    before = logbook.tree()
    assert logbook.ending().report() == report
    assert (logbook.events().count("batch_completion_report"), logbook.tree()) == (1, before)
    logbook.tell(HumanVerdictRecorded, "7", verdict=HumanWord.ISSUES_FOUND, issues=("the card is refused",))
    later = logbook.ending().report()
    assert later is not None
    assert later.dependency_gaps[-1].failure_reason == "a person found: the card is refused"
    assert logbook.events().count("batch_completion_report") == 2


@pytest.mark.req("A11")
def test_what_earlier_runs_finished_counts_and_is_named(tmp_path: Path) -> None:
    earlier = {"5": EarlierPhase(status=PhaseStatus.COMPLETED, alignment_score=9.1, deficiencies=(), completed_at=AT)}
    logbook = Logbook.create(tmp_path / "run", RunFlag.COMPLETE, phases=("6", "7"), earlier=earlier)
    logbook.passes("6")
    report = logbook.ending().report()
    assert report is not None
    assert (report.completed_phases_total, report.completion_percentage) == (2, 66.67)
    (skipped,) = report.phases_skipped
    assert (skipped.phase_id, skipped.reason, skipped.original_run_timestamp) == ("5", "already_completed", AT)


@pytest.mark.req("A11")
def test_a_run_that_does_not_complete_a_roadmap_has_no_such_report(tmp_path: Path) -> None:
    logbook = Logbook.create(tmp_path / "run")
    assert logbook.ending().report() is None
    assert logbook.tree() == {}


@pytest.mark.req("A10")
@pytest.mark.parametrize("flags", [(), (RunFlag.COMPLETE,)])
def test_gaps_that_an_audit_left_stand_in_the_report(tmp_path: Path, flags: tuple[RunFlag, ...]) -> None:
    left = (RemainingGap(requirement_id="REQ-02", description="no test covers it"),)
    audit = AuditOutcome(
        total_requirements_checked=2,
        passed_on_first_check=1,
        gaps_found=1,
        gaps_fixed=0,
        gaps_remaining=1,
        remaining_gap_details=left,
        audit_cycles=2,
        fix_commits=(),
    )
    logbook = _all_pass(tmp_path / "run", *flags)
    logbook.ending().complete(audit)
    page = logbook.files.get(autopilot.COMPLETION_REPORT).decode()
    assert "no test covers it" in page
    assert "1 gap found" in page


@pytest.mark.req("A9")
def test_a_second_run_has_a_trend(tmp_path: Path) -> None:
    logbook = _all_pass(tmp_path / "run")
    append_metrics(logbook.files, _run())
    ended = logbook.ending().complete(None)
    assert ended.trend is not None
    assert ended.trend.success_rate_delta == pytest.approx(0.2)
    assert ended.trend.historical.total_runs == 2
    assert b"Against the run before, and over 2 runs:" in logbook.files.get(autopilot.COMPLETION_REPORT)


@pytest.mark.req("A9")
def test_a_run_is_appended_once_and_later_runs_stay_behind_it(tmp_path: Path) -> None:
    files = Store(tmp_path)
    first, second = _run(1), _run(2)
    append_metrics(files, first)
    append_metrics(files, second)
    before = files.get(autopilot.METRICS)
    assert append_metrics(files, first).root == (first,)
    assert append_metrics(files, second).root == (first, second)
    assert files.get(autopilot.METRICS) == before
    again = _run(1, total_debug_loops=7)
    assert append_metrics(files, again).root == (second, again)


@pytest.mark.req("A9")
@pytest.mark.parametrize("damage", [b"", b"[{}]", b"[1", b"\xff"])
def test_metrics_that_cannot_be_read_are_put_aside_and_not_lost(tmp_path: Path, damage: bytes) -> None:
    files = Store(tmp_path)
    files.put(autopilot.METRICS, damage)
    assert append_metrics(files, _run()).root == (_run(),)
    (aside,) = [name for name in files.names(autopilot.ARCHIVE) if name != "metrics.json"]
    assert files.get(f"{autopilot.ARCHIVE}/{aside}") == damage
