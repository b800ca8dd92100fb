"""One whole run of each workflow as a stream of events, for the tests of the folds."""

from itertools import pairwise
from typing import Any

from fairwitness.contracts.autopilot.facts import RunSetup
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag
from support.fixtures import value_of

HASH = "sha256:" + "a" * 64

Said = tuple[str, dict[str, Any]]


def time_of(seq: int) -> str:
    return f"2026-02-26T{14 + seq // 60:02}:{seq % 60:02}:00Z"


def stream(workflow: Workflow, run_id: str, said: list[Said], *, first: int = 1) -> list[Envelope]:
    """Envelopes numbered from 1, one a minute; `phase` in the data is the envelope's."""
    return [
        Envelope(
            event_id=f"evt-{seq:04}",
            seq=seq,
            timestamp=time_of(seq),
            workflow=workflow,
            run_id=run_id,
            phase=data.get("phase"),
            type=kind,
            version=1,
            data={key: value for key, value in data.items() if key != "phase"},
        )
        for seq, (kind, data) in enumerate(said, first)
    ]


FEATURE_RUN = "2026-02-26T14:00:00Z"
FEATURE: list[Said] = [
    (
        "run_started",
        {
            "slug": "login",
            "mode": "interactive",
            "base_commit": "abc1234",
            "baseline_tag": "pipeline-baseline-2026-02-26T14-00-00Z",
            "settings_hash": HASH,
        },
    ),
    ("step_started", {"step": "step-0"}),
    (
        "pushback_recorded",
        {"step": "step-0", "concerns": 1, "worst": "Minor", "selected_option": "proceed", "auto_selected": False},
    ),
    ("step_finished", {"step": "step-0", "outcome": "advanced"}),
    ("step_started", {"step": "step-1"}),
    ("dispatch_started", {"dispatch_id": "d-1", "step": "step-1", "agent": "researcher", "instance": "patterns"}),
    ("call_refused", {"dispatch_id": "d-1", "tool": "create_file", "target": "src/a.py", "reason": "not its file"}),
    ("dispatch_finished", {"dispatch_id": "d-1", "status": "DONE", "duration_ms": 1200, "tokens": 900}),
    ("artifact_written", {"path": "research/patterns.yaml", "sha256": HASH}),
    ("degraded", {"kind": "fewer_researchers", "detail": "1 of 4"}),
    ("approval_requested", {"gate_id": "gate-1a", "options": ["proceed", "abort"]}),
    (
        "approval_answered",
        {"gate_id": "gate-1a", "selected_option": "proceed", "auto_selected": False, "actor": "ada"},
    ),
    ("step_finished", {"step": "step-1", "outcome": "advanced", "reason": "enough"}),
    (
        "task.started",
        {"nodeId": "task-01", "attemptId": 1, "branch": "fairwitness/task-01/attempt-1", "agent": "type 2"},
    ),
    (
        "node.changed",
        {
            "nodeId": "task-01",
            "previousStatus": "RUNNING",
            "newStatus": "FAILED",
            "timestamp": "2026-02-26T14:15:00Z",
            "attemptId": 1,
            "reason": "tests failed",
        },
    ),
    ("task_reverted", {"task": "task-01", "files": ["src/a.py"]}),
    ("replan_started", {"iteration": 1, "failing": ["task-01"]}),
    (
        "task.started",
        {"nodeId": "task-01", "attemptId": 2, "branch": "fairwitness/task-01/attempt-2", "agent": "type 2"},
    ),
    ("task.verified", {"nodeId": "task-01", "attemptId": 2, "commit": "abc1234", "tree": "def5678"}),
    ("branch.merged", {"nodeId": "task-01", "commit": "fed9876"}),
    ("gate_evaluated", {"gate": "EG-2", "open": False, "count": 1, "threshold": 2, "missing": ["tests"]}),
    ("gate_evaluated", {"gate": "EG-2", "open": True, "count": 2, "threshold": 2, "missing": []}),
    (
        "review_submitted",
        {
            "scope": "code",
            "round": 1,
            "perspective": "security-sentinel",
            "verdicts": {"security": "needs_revision", "architecture": "approve", "correctness": "approve"},
        },
    ),
    (
        "review_submitted",
        {
            "scope": "code",
            "round": 1,
            "perspective": "pragmatic-verifier",
            "verdicts": {"security": "approve", "architecture": "approve", "correctness": "approve"},
        },
    ),
    (
        "review_submitted",
        {
            "scope": "code",
            "round": 1,
            "perspective": "security-sentinel",
            "verdicts": {"security": "approve", "architecture": "approve", "correctness": "approve"},
        },
    ),
    ("decided", {"number": 7, "kind": "advance", "reason": "the reviewers approve the code"}),
    ("budget_exhausted", {"what": "tokens", "cap": 100, "used": 120}),
    ("head_recorded", {"head": HASH, "rows": 12}),
    ("committed", {"commit": "fed9876", "rollback_command": "git revert fed9876"}),
    ("run_finished", {"outcome": "error", "confidence": None, "reason": "a reviewer is missing"}),
    ("run_resumed", {"from_step": "step-7"}),
    ("run_finished", {"outcome": "committed", "confidence": "High", "commit": "fed9876", "reason": ""}),
]


FEATURE_BESIDE: list[Said] = [
    ("task.stale", {"nodeId": "task-01", "attemptId": 1, "lastHeartbeat": "2026-02-26T14:15:00Z"}),
    ("task.retried", {"nodeId": "task-01", "nextAttempt": 2, "reason": "tests failed"}),
    ("task.exhausted", {"nodeId": "task-01", "attempts": 1, "lastError": "tests failed"}),
    ("conflict.found", {"nodeId": "task-01", "attemptId": 1, "onto": "abc1234", "paths": ["src/a.py"]}),
    ("merge.started", {"batch": 1, "nodes": ["task-01"]}),
    ("merge.finished", {"batch": 1, "tip": "abc1234", "landed": [], "conflicting": [], "left": [], "checks": 0}),
    ("target.moved", {"target": "fairwitness/target", "expected": "abc1234"}),
]
"""What a graph tells beside; the state of the run as a whole does not change by it."""

FORGE_RUN = "run-7f2"
DAG = Dag.model_validate(value_of("004/dag.json"))


def node_moved(node: str, before: str, after: str, **more: Any) -> Said:
    return (
        "node.changed",
        {"nodeId": node, "previousStatus": before, "newStatus": after, "timestamp": "2024-01-15T09:30:00Z", **more},
    )


def node_merged(node: str) -> list[Said]:
    way = ["PENDING", "RUNNING", "DONE", "MERGE_READY", "MERGED"]
    return [node_moved(node, before, after) for before, after in pairwise(way)]


FORGE: list[Said] = [
    ("run.created", {"repoUrl": "file:///srv/shop", "model": "m-1", "request": "a shop"}),
    ("captain.message", {"speaker": "captain", "text": "which shop?"}),
    ("plan.proposed", {"tasks": 2, "refineries": 1}),
    ("plan.returned", {"actor": "ada", "feedback": "smaller"}),
    ("plan.proposed", {"tasks": 2, "refineries": 1}),
    ("plan.approved", {"actor": "ada"}),
    ("run.started", {}),
    node_moved("task-001", "PENDING", "RUNNING", attemptId=1),
    ("task.started", {"nodeId": "task-001", "attemptId": 1, "branch": "forge/task-001/attempt-1", "agent": "worker-7"}),
    ("task.stale", {"nodeId": "task-001", "attemptId": 1, "lastHeartbeat": "2024-01-15T09:31:00Z"}),
    node_moved("task-001", "RUNNING", "STALE"),
    ("task.retried", {"nodeId": "task-001", "nextAttempt": 2, "reason": "worker lost"}),
    node_moved("task-001", "STALE", "PENDING", attemptId=2),
    node_moved("task-001", "PENDING", "RUNNING", attemptId=2),
    node_moved("task-001", "PENDING", "RUNNING", attemptId=2),
    (
        "walkthrough.written",
        {"nodeId": "task-001", "attemptId": 2, "status": "completed", "confidence": 0.5, "path": "task-001/2/w.md"},
    ),
    ("review.low_confidence", {"nodeId": "task-001", "confidence": 0.5}),
    ("conflict.potential", {"nodeId": "task-001", "otherNodeId": "task-002", "files": ["src/a.py"]}),
    ("followup.spawned", {"nodeId": "task-001", "followup": "fix the bug"}),
    *node_merged("task-001")[1:],
    ("cr.emitted", {"crId": "cr-001", "emittedBy": "refinery-001", "affectedTasks": []}),
    ("cr.emitted", {"crId": "cr-001", "emittedBy": "refinery-001", "affectedTasks": []}),
    ("cr.emitted", {"crId": "cr-002", "emittedBy": "refinery-001", "affectedTasks": []}),
    ("run.paused", {"reason": "cr-001"}),
    ("cr.approved", {"crId": "cr-001", "actor": "captain"}),
    ("cr.rejected", {"crId": "cr-002", "actor": "ada", "reason": "no"}),
    ("overlay.refused", {"crId": "cr-001", "problems": ["a ring"]}),
    ("overlay.applied", {"crId": "cr-001", "addedNodes": ["task-006"], "addedEdges": 1}),
    ("run.resumed", {}),
    *node_merged("task-002"),
    *node_merged("task-006"),
    *node_merged("refinery-001"),
    ("branch.merged", {"refineryId": "refinery-001", "nodeId": "task-001", "commit": "abc1234"}),
    ("run.completed", {}),
]
EXHAUSTED: list[Said] = [
    *FORGE[:5],
    *FORGE[6:7],
    node_moved("task-001", "PENDING", "RUNNING"),
    node_moved("task-001", "RUNNING", "FAILED", reason="exit 1"),
    ("task.exhausted", {"nodeId": "task-001", "attempts": 1, "lastError": "exit 2"}),
    ("run.failed", {"reason": "task-001 has no attempt left"}),
]
REOPENED: list[Said] = [
    *EXHAUSTED,
    ("task.reopened", {"nodeId": "task-001", "maxAttempts": 2, "actor": "ada"}),
    ("task.retried", {"nodeId": "task-001", "nextAttempt": 2, "reason": "exit 2"}),
    node_moved("task-001", "FAILED", "PENDING", attemptId=2),
    ("run.resumed", {}),
    *node_merged("task-001"),
]
"""A run of one attempt for each node, and a person who gives one of them a second."""


PILOT_RUN = "run-2026-02-26-140000"
SETUP = RunSetup.model_validate(
    {
        "roadmap_path": ".planning/ROADMAP.md",
        "phases": [
            {"id": "6", "name": "login", "type": "ui", "depends_on": []},
            {"id": "6.1", "name": "logout", "type": "data", "depends_on": ["6"]},
            {"id": "7", "name": "shop", "type": "mixed", "depends_on": []},
        ],
        "spec": {"path": "SPEC.md", "hash": HASH, "locked_at": "2026-02-26T14:00:00Z"},
        "specs": [{"path": "SPEC.md", "hash": HASH, "locked_at": "2026-02-26T14:00:00Z"}],
        "deferral_threshold": 0.05,
        "kept_events": 5,
    }
)
ALL = SETUP.model_copy(update={"kept_events": None})


def step_outcome(step: str, **more: Any) -> dict[str, Any]:
    return {"step": step, "new_commits": 0, "newly_passing": 0, "score_gained": 0, "error": None} | more


JUSTIFIED = {
    "checkpoint_task_id": "07-02",
    "task_description": "pay with a real card",
    "auto_tasks_passed": 1,
    "auto_tasks_total": 2,
}
PILOT: list[Said] = [
    ("run_started", {"flags": ["--quality"], "pass_threshold": 9.5}),
    ("phase_started", {"phase": "6", "estimated_tokens": 100_000}),
    ("step_started", {"phase": "6", "step": "preflight"}),
    (
        "step_completed",
        {
            "phase": "6",
            "step": "preflight",
            "facts": {
                "steps": {"preflight": {"status": "pass", "timestamp": "2026-02-26T14:04:00Z"}},
                "tokens": 500,
                "context_pct": 12,
                "outcome": step_outcome("preflight"),
            },
        },
    ),
    ("step_started", {"phase": "6", "step": "execute"}),
    ("task_failed", {"phase": "6", "task": "06-01", "category": "build_failure", "error": "no"}),
    ("task_retried", {"phase": "6", "task": "06-01", "attempt": 2}),
    ("debug_attempt", {"phase": "6", "attempt": 1}),
    (
        "step_failed",
        {
            "phase": "6",
            "step": "execute",
            "category": "build_failure",
            "facts": {
                "tokens": 1_000,
                "outcome": step_outcome("execute", error={"category": "build_failure", "first_line": "a.c:4: no"}),
            },
        },
    ),
    ("replan_attempt", {"phase": "6", "attempt": 1}),
    ("task_completed", {"phase": "6", "task": "06-01", "commit": "abc1234"}),
    ("task_completed", {"phase": "6", "task": "06-02"}),
    ("step_started", {"phase": "6", "step": "rate"}),
    (
        "remediation_started",
        {"phase": "6", "phase_id": "6", "cycle": 1, "current_score": 8.0, "pass_threshold": 9.0, "feedback_items": 1},
    ),
    (
        "remediation_completed",
        {
            "phase": "6",
            "phase_id": "6",
            "cycle": 1,
            "old_score": 8.0,
            "new_score": 7.8,
            "improved": False,
            "reached_threshold": False,
        },
    ),
    (
        "confidence_diagnostic_written",
        {
            "phase": "6",
            "phase_id": "6",
            "alignment_score": 8.0,
            "pass_threshold": 9.0,
            "diagnostic_path": "d.md",
            "path_to_9_items": 2,
        },
    ),
    (
        "force_incomplete_marked",
        {
            "phase": "6",
            "phase_id": "6",
            "final_score": 8.0,
            "pass_threshold": 9.0,
            "remediation_cycles": 1,
            "diagnostic_path": "d.md",
        },
    ),
    ("phase_completed", {"phase": "6", "alignment_score": 8.0, "tokens_used": 90_000}),
    ("quality_remediation_started", {"phase": "6", "cycle": 1}),
    ("quality_remediation_completed", {"phase": "6", "cycle": 1, "old_score": 8.0, "new_score": 9.1, "target": 9.5}),
    ("quality_exhausted", {"phase": "6"}),
    ("gaps_iteration_started", {"phase": "6", "iteration": 1}),
    (
        "gaps_iteration_completed",
        {
            "phase": "6",
            "iteration": 1,
            "deficiency_addressed": "x",
            "old_score": 9.1,
            "new_score": 8.7,
            "remaining_deficiencies": 0,
        },
    ),
    ("gaps_exhausted", {"phase": "6"}),
    ("force_reexecution_started", {"phase": "6", "previous_score": 9.1, "previous_status": "completed"}),
    ("phase_started", {"phase": "6", "phase_type": "mixed"}),
    ("phase_completed", {"phase": "6", "alignment_score": 9.6}),
    ("phase_started", {"phase": "6.1"}),
    ("rollback_initiated", {"phase": "6.1"}),
    ("rollback_completed", {"phase": "6.1"}),
    ("phase_failed", {"phase": "6.1", "category": "scope_creep"}),
    ("phase_started", {"phase": "7"}),
    ("phase_started", {"phase": "7"}),
    (
        "unnecessary_deferral_warning",
        {
            "phase": "7",
            "facts": {"deferral": {"reason": "card", "autonomous_confidence": 4, "justification": JUSTIFIED}},
        },
    ),
    ("high_defer_rate_warning", {"human_deferred_count": 1}),
    ("circuit_breaker_opened", {"setting": "same_error_threshold", "cooldown_until": "2026-02-26T14:37:00Z"}),
    ("run_halted", {"status": "paused", "reason": "open"}),
    ("run_resumed", {"previous_status": "paused"}),
    ("circuit_breaker_closed", {}),
    ("human_verdict_recorded", {"phase": "7", "verdict": "issues_found", "issues": ["no receipt"]}),
    ("deferral_threshold_adjusted", {"old_confidence": 6.0, "new_confidence": 6.5}),
    ("autonomous_resolution_success", {"phase": "7"}),
    ("checkpoint_written", {}),
    ("phase_skipped", {"phase": "6.1", "phase_id": "6.1", "reason": "already_completed"}),
    ("phase_skipped", {"phase": "6", "phase_id": "6", "reason": "already_completed"}),
    ("self_audit_started", {"phases_to_audit": ["6"], "spec_path": "SPEC.md"}),
    (
        "self_audit_gap_found",
        {"phase": "6", "requirement_id": "R1", "phase_id": "6", "gap_description": "x", "fix_complexity": "small"},
    ),
    (
        "self_audit_gap_fixed",
        {"phase": "6", "requirement_id": "R1", "phase_id": "6", "fix_commit": "abc1234", "re_verified": True},
    ),
    (
        "self_audit_completed",
        {
            "total_requirements_checked": 1,
            "passed_on_first_check": 0,
            "gaps_found": 1,
            "gaps_fixed": 1,
            "gaps_remaining": 0,
            "audit_cycles": 1,
        },
    ),
    (
        "batch_completion_report",
        {
            "phases_attempted": 3,
            "phases_succeeded": 1,
            "phases_failed": 2,
            "phases_skipped": 0,
            "completion_percentage": 33.3,
            "report_path": "r.md",
        },
    ),
    ("context_mapping_started", {"target_phases": ["6"], "mode": "--map"}),
    (
        "context_mapping_completed",
        {
            "phases_scored": 1,
            "phases_below_threshold": 0,
            "questions_generated": 0,
            "questions_answered": 0,
            "context_map_path": "c.json",
        },
    ),
    ("discuss_session_started", {}),
    ("discuss_answers_recorded", {"phase": "6", "questions_asked": 1, "questions_answered": 1}),
    ("flag_mutual_exclusivity_error", {"flags": ["--force", "--gaps"]}),
    ("rubber_stamp_warning", {}),
    ("rubber_stamp_enhanced", {}),
    ("rubber_stamp_critical", {"phases": ["6", "99"]}),
    ("run_completed", {}),
]
