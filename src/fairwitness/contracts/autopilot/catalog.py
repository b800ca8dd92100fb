"""Every autopilot contract by name: its shape, its file format, and how a document of it is recognised.

A recognising key is the way to a field that stands in the document: `a.b` steps into an object, `a.*.b` into any of its
fields, `[].a` into the first entry of a list; `a=x` also asks for the value, `!a` that nothing stands there.
"""

from typing import Any, TypeAlias

from fairwitness.contracts.autopilot.audit import SelfAuditReturn, SelfAuditSummary
from fairwitness.contracts.autopilot.breaker import BreakerConfig
from fairwitness.contracts.autopilot.completion import CompletionReport
from fairwitness.contracts.autopilot.context_map import ContextMap, ContextSufficiency, QuestioningReturn
from fairwitness.contracts.autopilot.cost import CostConstants
from fairwitness.contracts.autopilot.debug import DebugSession
from fairwitness.contracts.autopilot.discuss import DiscussContext
from fairwitness.contracts.autopilot.events import AutopilotEvent
from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.gaps import GapList
from fairwitness.contracts.autopilot.metrics import MetricsFile, Trend
from fairwitness.contracts.autopilot.phase_return import PhaseReturn
from fairwitness.contracts.autopilot.plan import PhasePlan
from fairwitness.contracts.autopilot.postmortem import PostMortem
from fairwitness.contracts.autopilot.rating import RatingReturn
from fairwitness.contracts.autopilot.repomap import RepoMap
from fairwitness.contracts.autopilot.returns import (
    DebuggerReturn,
    ExecutorReturn,
    JudgeReturn,
    PlanCheckerReturn,
    PlannerReturn,
    PreflightReturn,
    ResearcherReturn,
)
from fairwitness.contracts.autopilot.score import ScoreHistory
from fairwitness.contracts.autopilot.state import State
from fairwitness.contracts.autopilot.trace import TraceSpan
from fairwitness.contracts.autopilot.triage import Triage
from fairwitness.contracts.autopilot.verifying import MiniVerifierReturn, VerifierReturn
from fairwitness.contracts.autopilot.visual import ScreenshotResult, VisualBugReport, VisualConfig

Entry: TypeAlias = tuple[str, Any, str, tuple[str, ...]]
"""Name, model or annotation, format, recognising keys."""

AUTOPILOT: tuple[Entry, ...] = (
    ("autopilot-state", State, "json", ("_meta.run_id", "circuit_breaker", "event_log")),
    ("autopilot-breaker-config", BreakerConfig, "json", ("circuit_breaker_config",)),
    ("autopilot-event", AutopilotEvent, "json", ("event",)),
    (
        "autopilot-researcher-return",
        ResearcherReturn,
        "json",
        ("key_findings", "recommended_approach", "open_questions"),
    ),
    ("autopilot-planner-return", PlannerReturn, "json", ("plans_created", "waves", "total_tasks", "!tasks")),
    ("autopilot-phase-plan", PhasePlan, "json", ("plans_created", "waves", "total_tasks", "tasks")),
    ("autopilot-executor-return", ExecutorReturn, "json", ("tasks_completed", "commit_shas", "deviations")),
    ("autopilot-mini-verifier-return", MiniVerifierReturn, "json", ("task_id", "criteria_results", "concerns")),
    ("autopilot-preflight-return", PreflightReturn, "json", ("all_clear", "spec_hash_match", "dependencies_met")),
    ("autopilot-plan-checker-return", PlanCheckerReturn, "json", ("blocker_count", "warning_count", "confidence")),
    (
        "autopilot-verifier-return",
        VerifierReturn,
        "json",
        ("automated_checks", "criteria_results", "verification_duration_seconds"),
    ),
    ("autopilot-judge-return", JudgeReturn, "json", ("verifier_agreement", "independent_evidence", "recommendation")),
    ("autopilot-rating-return", RatingReturn, "json", ("scorecard", "score_band", "aggregate_justification")),
    ("autopilot-debugger-return", DebuggerReturn, "json", ("fixed", "remaining_issues", "changes")),
    (
        "autopilot-phase-return",
        PhaseReturn,
        "json",
        ("pipeline_steps", "recommendation", "checkpoint_sha", "replan_attempts"),
    ),
    ("autopilot-triage", Triage, "json", ("criteria_checked", "routing_decision", "pass_ratio")),
    ("autopilot-trace-span", TraceSpan, "jsonl", ("action", "duration_ms", "input_summary")),
    ("autopilot-post-mortem", PostMortem, "json", ("root_cause", "prevention_rule", "attempted_fixes")),
    ("autopilot-metrics", MetricsFile, "json", ("[].run_id", "[].phases_attempted")),
    ("autopilot-trend", Trend, "json", ("trend_summary",)),
    ("autopilot-cost-constants", CostConstants, "json", ("cost_estimation",)),
    ("autopilot-self-audit-return", SelfAuditReturn, "json", ("audit_results", "aggregate")),
    ("autopilot-self-audit-summary", SelfAuditSummary, "json", ("self_audit",)),
    (
        "autopilot-completion-report",
        CompletionReport,
        "json",
        ("mode=--complete", "dependency_gaps", "completion_percentage"),
    ),
    ("autopilot-context-map", ContextMap, "json", ("last_updated", "phases.*.mapped_at")),
    ("autopilot-context-sufficiency", ContextSufficiency, "json", ("context_sufficiency",)),
    (
        "autopilot-questioning-return",
        QuestioningReturn,
        "json",
        ("questions", "estimated_score_after", "current_score"),
    ),
    ("autopilot-discuss-context", DiscussContext, "json", ("last_updated", "phases.*.discussed_at")),
    ("autopilot-score-history", ScoreHistory, "json", ("score_history", "quality_exhausted", "gaps_exhausted")),
    ("autopilot-gap-list", GapList, "json", ("deficiencies",)),
    ("autopilot-execution-result", ExecutionResult, "json", ("stdout_truncated", "assessment", "sandbox_violation")),
    ("autopilot-repo-map", RepoMap, "json", ("project_root", "size_cap_applied", "summary")),
    ("autopilot-debug-session", DebugSession, "markdown", ("trigger", "updated", "body")),
    ("autopilot-visual-config", VisualConfig, "json", ("visual_testing",)),
    ("autopilot-screenshot-result", ScreenshotResult, "json", ("screenshot_path", "analysis", "capture_timestamp")),
    (
        "autopilot-visual-bug-report",
        VisualBugReport,
        "json",
        ("total_routes_tested", "regression_status", "screenshots"),
    ),
)
