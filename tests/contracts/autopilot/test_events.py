"""Autopilot's events: one closed union, one envelope, older spellings read."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from contracts.autopilot.seed003 import DOCUMENTS, load, parse
from fairwitness.contracts.autopilot.events import AUTOPILOT_EVENT_TYPES, EVENT_CLASSES, AutopilotEvent
from fairwitness.contracts.autopilot.events_quality import RemediationStarted

EVENT: TypeAdapter[Any] = TypeAdapter(AutopilotEvent)
TIME = "2026-02-11T10:00:00Z"

SECTION_3 = [
    "run_started",
    "run_completed",
    "run_halted",
    "run_resumed",
    "phase_started",
    "phase_completed",
    "phase_failed",
    "step_started",
    "step_completed",
    "step_failed",
    "task_completed",
    "task_failed",
    "task_retried",
    "circuit_breaker_opened",
    "circuit_breaker_closed",
    "checkpoint_written",
    "debug_attempt",
    "replan_attempt",
    "rollback_initiated",
    "rollback_completed",
    "human_verdict_recorded",
    "unnecessary_deferral_warning",
    "high_defer_rate_warning",
    "autonomous_resolution_success",
    "deferral_threshold_adjusted",
    "self_audit_started",
    "self_audit_completed",
    "self_audit_gap_found",
    "self_audit_gap_fixed",
    "phase_skipped",
    "batch_completion_report",
    "context_mapping_started",
    "context_mapping_completed",
    "remediation_started",
    "remediation_completed",
    "confidence_diagnostic_written",
    "force_incomplete_marked",
]
QUALITY_FLAGS = [
    "force_reexecution_started",
    "quality_remediation_started",
    "quality_remediation_completed",
    "quality_exhausted",
    "gaps_iteration_started",
    "gaps_iteration_completed",
    "gaps_exhausted",
    "discuss_session_started",
    "discuss_answers_recorded",
    "flag_mutual_exclusivity_error",
]
RUBBER_STAMPS = ["rubber_stamp_warning", "rubber_stamp_enhanced", "rubber_stamp_critical"]

WRITTEN_OUT: dict[str, dict[str, object]] = {
    "run_started": {"run_id": "run-2026-02-09-143052", "phases": ["6"], "flags": ["--quality"], "pass_threshold": 9.5},
    "run_completed": {"phases_completed": 5, "duration_minutes": 180, "total_tokens_used": 450000},
    "run_halted": {"reason": "the total cap is reached", "status": "failed"},
    "run_resumed": {"previous_status": "paused", "from_phase": "6.3", "from_step": "execute"},
    "phase_started": {"phase_name": "Import", "phase_type": "data", "estimated_tokens": 110000},
    "phase_completed": {
        "alignment_score": 9.1,
        "score_band": "good",
        "tokens_used": 85000,
        "checkpoint_sha": "abc1234",
    },
    "phase_failed": {"reason": "retries are spent", "category": "tool_failure", "recommendation": "halt"},
    "step_started": {"agent": "planner", "attempt": 1},
    "step_completed": {"output": ".planning/phases/6/PLAN.md", "duration_ms": 12},
    "step_failed": {"error": "no plan", "category": "executor_incomplete"},
    "task_completed": {"task": "task_01", "commit": "abc1234"},
    "task_failed": {"task": "task_01", "error": "two tests fail", "category": "acceptance_criteria_unmet"},
    "task_retried": {"task": "task_01", "attempt": 2, "reason": "two tests fail"},
    "circuit_breaker_opened": {"setting": "no_progress_threshold", "value": 3, "cooldown_until": TIME},
    "circuit_breaker_closed": {"reason": "a person resumed the run"},
    "checkpoint_written": {"path": ".autopilot/state.json", "hash": "sha256:" + "a" * 64},
    "debug_attempt": {"attempt": 1, "task": "task_01", "issues": ["the build fails"]},
    "replan_attempt": {"attempt": 1, "reason": "the score is low", "alignment_score": 6.4},
    "rollback_initiated": {"reason": "the judge asked for it", "rollback_from": "abc1234", "rollback_to": "def5678"},
    "rollback_completed": {"rollback_to": "def5678", "diagnostic_branch": "autopilot-diagnostic-phase-6"},
    "human_verdict_recorded": {"verdict": "issues_found", "issues": ["no date"]},
    "unnecessary_deferral_warning": {"checkpoint_task_id": "06-03", "task_description": "look at it"},
    "high_defer_rate_warning": {"human_deferred_count": 1, "total_phases_processed": 4, "defer_rate": 0.25},
    "autonomous_resolution_success": {"autonomous_confidence": 7},
    "deferral_threshold_adjusted": {"old_confidence": 6, "new_confidence": 5.5, "pass_rate": 0.9, "verdicts": 3},
    "quality_remediation_started": {"cycle": 1, "current_score": 8.7, "target": 9.5},
    "quality_exhausted": {"cycles": 3, "final_score": 9.2, "target": 9.5},
    "gaps_iteration_started": {"iteration": 1, "deficiency": "no test for CRLF", "current_score": 9.0},
    "gaps_exhausted": {"iterations": 5, "final_score": 9.4, "target": 9.5},
    "discuss_session_started": {"target_phases": ["3"]},
    "flag_mutual_exclusivity_error": {"flags": ["--force", "--gaps"]},
    "rubber_stamp_warning": {"count": 3, "lowest": 8.8, "highest": 8.9, "phases": ["4", "5", "6"]},
    "rubber_stamp_enhanced": {"count": 5},
    "rubber_stamp_critical": {"count": 7},
}
"""One full set of details for every event that no example of the seed shows."""


@pytest.mark.req("A5")
def test_the_union_holds_exactly_the_fifty_events() -> None:
    assert (len(SECTION_3), len(QUALITY_FLAGS), len(RUBBER_STAMPS)) == (37, 10, 3)
    assert sorted(AUTOPILOT_EVENT_TYPES) == sorted(SECTION_3 + QUALITY_FLAGS + RUBBER_STAMPS)
    assert len(EVENT_CLASSES) == 50


@pytest.mark.req("A5")
@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_an_event_is_read_with_its_details_and_refuses_others(name: str) -> None:
    said = {"timestamp": TIME, "phase": "6", "step": "execute", "event": name, "details": WRITTEN_OUT[name]}
    read = EVENT.validate_python(said)
    assert read.plain() == said
    assert EVENT.validate_python(read) is read
    with pytest.raises(ValidationError) as refused:
        EVENT.validate_python(said | {"details": WRITTEN_OUT[name] | {"mood": "hopeful"}})
    assert refused.value.errors()[0]["loc"][-2:] == ("details", "mood")


def test_every_event_is_shown_by_an_example_or_written_out() -> None:
    shown = {load(file)["event"] for file, name in DOCUMENTS.items() if name == "autopilot-event"}
    assert shown | set(WRITTEN_OUT) == set(AUTOPILOT_EVENT_TYPES)


@pytest.mark.parametrize("said", [{"event": "run_paused"}, {}, {"event": ["run_started"]}, "run_started"])
def test_an_unknown_event_is_refused(said: object) -> None:
    whole = {"timestamp": TIME, "details": {}} | said if isinstance(said, dict) else said
    with pytest.raises(ValidationError):
        EVENT.validate_python(whole)


@pytest.mark.req("A14")
def test_a_flat_flag_event_is_read_into_the_envelope() -> None:
    flat = load("filled-event-force-reexecution-started.json")
    assert (flat["phase_id"], "details" in flat) == ("3", False)
    assert parse("filled-event-force-reexecution-started.json").plain() == {
        "timestamp": TIME,
        "phase": "3",
        "event": "force_reexecution_started",
        "details": {"previous_score": 8.4, "previous_status": "completed"},
    }


def test_a_flat_event_with_a_field_nobody_knows_is_refused() -> None:
    flat = load("filled-event-discuss-answers-recorded.json") | {"mood": "hopeful"}
    with pytest.raises(ValidationError) as refused:
        EVENT.validate_python(flat)
    assert refused.value.errors()[0]["loc"] == ("discuss_answers_recorded", "details", "mood")


def test_an_event_that_is_no_object_is_refused() -> None:
    with pytest.raises(ValidationError):
        RemediationStarted.model_validate("remediation_started")


def test_a_stray_field_beside_details_is_refused() -> None:
    with pytest.raises(ValidationError) as refused:
        EVENT.validate_python({"timestamp": TIME, "event": "run_halted", "details": {}, "reason": "tired"})
    assert refused.value.errors()[0]["loc"] == ("run_halted", "reason")


def test_the_phase_is_taken_from_the_details() -> None:
    said = load("event-remediation-started.json")
    assert "phase" not in said
    read = EVENT.validate_python(said)
    assert (read.phase, read.details.phase_id) == ("7", "7")


def test_the_phase_is_taken_from_details_that_are_a_value_already() -> None:
    details = RemediationStarted.Details.model_validate(load("event-remediation-started.json")["details"])
    assert RemediationStarted(timestamp=TIME, event="remediation_started", details=details).phase == "7"


def test_two_spellings_of_the_phase_must_agree() -> None:
    for file, spelling in (
        ("event-remediation-started.json", "phase"),
        ("filled-event-force-reexecution-started.json", "phase"),
    ):
        with pytest.raises(ValidationError, match="the same phase"):
            EVENT.validate_python(load(file) | {spelling: "99"})
    agreeing = load("filled-event-force-reexecution-started.json") | {"phase": "3"}
    assert EVENT.validate_python(agreeing).phase == "3"
