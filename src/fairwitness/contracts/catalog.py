"""The catalog of all published contracts: name, model, file format, version and the signs that identify a document.

A sign is a dotted path to a field: `a.b` must exist, `a.b=x|y` must exist with one of these values, `!a` must not
exist. `[]` enters a list at its first entry, `*` a mapping at its first value.

A run takes the contracts of its own workflow by `entry_of`; importing those of the other two would delay every resumed
run. The name of a contract of autopilot or forge begins with the name of its workflow.
"""

from functools import cache
from typing import Any, NamedTuple


class CatalogEntry(NamedTuple):
    """One contract of the catalog; `shape` is a model, or a union of models."""

    name: str
    workflow: str
    shape: Any
    written_as: str
    signs: tuple[str, ...]
    version: str = "1.0"


@cache
def catalog() -> dict[str, CatalogEntry]:
    """Return all published contracts by name, in the order in which they are listed."""
    return {entry.name: entry for entry in (*_common(), *_feature(), *_autopilot(), *_forge())}


@cache
def entry_of(name: str) -> CatalogEntry:
    """Return a published contract; raise `KeyError` if there is none of this name."""
    if name.startswith("autopilot-"):
        entries = _autopilot()
    elif name.startswith("forge-"):
        entries = _forge()
    else:
        entries = (*_common(), *_feature())
    return {entry.name: entry for entry in entries}[name]


_PAYLOAD = "agent_output.payload."


def _signed(agent: str, *fields: str) -> tuple[str, ...]:
    return (f"agent_output.agent={agent}", *(_PAYLOAD + field for field in fields))


@cache
def _common() -> tuple[CatalogEntry, ...]:
    from fairwitness.contracts.common.approvals import ApprovalRecord, ApprovalRequest
    from fairwitness.contracts.common.completion import CompletionDocument
    from fairwitness.contracts.common.events import Envelope

    return (
        CatalogEntry("completion-contract", "common", CompletionDocument, "yaml", ("completion", "!agent_output")),
        CatalogEntry("approval-request", "common", ApprovalRequest, "json", ("gate_id", "options")),
        CatalogEntry("approval-record", "common", ApprovalRecord, "json", ("gate_id", "selected_option", "actor")),
        CatalogEntry("event-envelope", "common", Envelope, "json", ("event_id", "seq", "workflow", "data")),
    )


@cache
def _feature() -> tuple[CatalogEntry, ...]:
    from fairwitness.contracts.feature.design import DesignOutput
    from fairwitness.contracts.feature.events import FEATURE_EVENT_TYPES, FeatureEvent
    from fairwitness.contracts.feature.implementation import ImplementationReport
    from fairwitness.contracts.feature.intake import IntakeReturn
    from fairwitness.contracts.feature.knowledge import DecisionLog, KnowledgeOutput
    from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
    from fairwitness.contracts.feature.research import ResearchOutput
    from fairwitness.contracts.feature.review import ReviewReturn, ReviewVerdict
    from fairwitness.contracts.feature.spec import SpecOutput
    from fairwitness.contracts.feature.verification import VerificationReport
    from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES

    # feature runs record graph events with forge's types; an event without context is taken for forge's
    own_event_types = tuple(name for name in FEATURE_EVENT_TYPES if name not in FORGE_EVENT_TYPES)
    return (
        CatalogEntry("intake-return", "feature", IntakeReturn, "yaml", ("understanding", "concerns", "infeasible")),
        CatalogEntry(
            "research-output",
            "feature",
            ResearchOutput,
            "yaml",
            _signed("researcher", "focus", "source_files_examined"),
        ),
        CatalogEntry(
            "spec-output", "feature", SpecOutput, "yaml", _signed("spec", "feature_name", "acceptance_criteria")
        ),
        CatalogEntry(
            "design-output", "feature", DesignOutput, "yaml", _signed("designer", "architecture", "decisions")
        ),
        CatalogEntry("plan-output", "feature", PlanOutput, "yaml", _signed("planner", "overall_risk_summary", "waves")),
        CatalogEntry("task-schema", "feature", TaskDocument, "yaml", ("task", "!agent_output")),
        CatalogEntry(
            "implementation-report",
            "feature",
            ImplementationReport,
            "yaml",
            _signed("implementer", "changes", "self_check"),
            version="1.2",
        ),
        CatalogEntry(
            "verification-report",
            "feature",
            VerificationReport,
            "yaml",
            _signed("verifier", "evidence_gate", "findings"),
        ),
        CatalogEntry(
            "review-findings", "feature", ReviewVerdict, "yaml", ("reviewer_perspective", "verdicts", "overall")
        ),
        CatalogEntry(
            "review-return", "feature", ReviewReturn, "yaml", ("reviewer_perspective", "findings", "clean_categories")
        ),
        CatalogEntry(
            "knowledge-output",
            "feature",
            KnowledgeOutput,
            "yaml",
            _signed("knowledge-agent", "knowledge_updates", "decision_log_entries"),
        ),
        CatalogEntry("decision-log", "feature", DecisionLog, "yaml", ("decisions", "!agent_output")),
        CatalogEntry(
            "feature-event",
            "feature",
            FeatureEvent,
            "json",
            (f"type={'|'.join(own_event_types)}", "!event_id"),
            version="1.2",
        ),
    )


@cache
def _autopilot() -> tuple[CatalogEntry, ...]:
    from fairwitness.contracts.autopilot.audit import SelfAuditReturn, SelfAuditSummary
    from fairwitness.contracts.autopilot.breaker import BreakerConfig
    from fairwitness.contracts.autopilot.completion import CompletionReport
    from fairwitness.contracts.autopilot.context_map import (
        ContextMap,
        ContextSufficiency,
        DiscussContext,
        QuestioningReturn,
    )
    from fairwitness.contracts.autopilot.events import AutopilotEvent
    from fairwitness.contracts.autopilot.execution import ExecutionResult
    from fairwitness.contracts.autopilot.metrics import CostConstants, MetricsFile, Trend
    from fairwitness.contracts.autopilot.phase_return import PhaseReturn
    from fairwitness.contracts.autopilot.plan import PhasePlan
    from fairwitness.contracts.autopilot.postmortem import PostMortem
    from fairwitness.contracts.autopilot.rating import GapList, RatingReturn, ScoreHistory
    from fairwitness.contracts.autopilot.repomap import RepoMap
    from fairwitness.contracts.autopilot.returns import (
        DebuggerReturn,
        DebugSession,
        ExecutorReturn,
        JudgeReturn,
        PlanCheckerReturn,
        PlannerReturn,
        PreflightReturn,
        ResearcherReturn,
    )
    from fairwitness.contracts.autopilot.state import State
    from fairwitness.contracts.autopilot.trace import TraceSpan
    from fairwitness.contracts.autopilot.triage import Triage
    from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, VerifierReturn
    from fairwitness.contracts.autopilot.visual import ScreenshotResult, VisualBugReport, VisualConfig

    return (
        CatalogEntry(
            "autopilot-state",
            "autopilot",
            State,
            "json",
            ("_meta.run_id", "circuit_breaker", "event_log"),
            version="1.1",
        ),
        CatalogEntry("autopilot-breaker-config", "autopilot", BreakerConfig, "json", ("circuit_breaker_config",)),
        CatalogEntry("autopilot-event", "autopilot", AutopilotEvent, "json", ("event",), version="1.1"),
        CatalogEntry(
            "autopilot-researcher-return",
            "autopilot",
            ResearcherReturn,
            "json",
            ("key_findings", "recommended_approach", "open_questions"),
        ),
        CatalogEntry(
            "autopilot-planner-return",
            "autopilot",
            PlannerReturn,
            "json",
            ("plans_created", "waves", "total_tasks", "!tasks"),
        ),
        CatalogEntry(
            "autopilot-phase-plan", "autopilot", PhasePlan, "json", ("plans_created", "waves", "total_tasks", "tasks")
        ),
        CatalogEntry(
            "autopilot-executor-return",
            "autopilot",
            ExecutorReturn,
            "json",
            ("tasks_completed", "commit_shas", "deviations"),
        ),
        CatalogEntry(
            "autopilot-mini-verifier-return",
            "autopilot",
            MiniVerifierReturn,
            "json",
            ("task_id", "criteria_results", "concerns"),
        ),
        CatalogEntry(
            "autopilot-preflight-return",
            "autopilot",
            PreflightReturn,
            "json",
            ("all_clear", "spec_hash_match", "dependencies_met"),
        ),
        CatalogEntry(
            "autopilot-plan-checker-return",
            "autopilot",
            PlanCheckerReturn,
            "json",
            ("blocker_count", "warning_count", "confidence"),
        ),
        CatalogEntry(
            "autopilot-verifier-return",
            "autopilot",
            VerifierReturn,
            "json",
            ("automated_checks", "criteria_results", "verification_duration_seconds"),
        ),
        CatalogEntry(
            "autopilot-judge-return",
            "autopilot",
            JudgeReturn,
            "json",
            ("verifier_agreement", "independent_evidence", "recommendation"),
        ),
        CatalogEntry(
            "autopilot-rating-return",
            "autopilot",
            RatingReturn,
            "json",
            ("scorecard", "score_band", "aggregate_justification"),
        ),
        CatalogEntry(
            "autopilot-debugger-return", "autopilot", DebuggerReturn, "json", ("fixed", "remaining_issues", "changes")
        ),
        CatalogEntry(
            "autopilot-phase-return",
            "autopilot",
            PhaseReturn,
            "json",
            ("pipeline_steps", "recommendation", "checkpoint_sha", "replan_attempts"),
        ),
        CatalogEntry(
            "autopilot-triage", "autopilot", Triage, "json", ("criteria_checked", "routing_decision", "pass_ratio")
        ),
        CatalogEntry(
            "autopilot-trace-span", "autopilot", TraceSpan, "jsonl", ("action", "duration_ms", "input_summary")
        ),
        CatalogEntry(
            "autopilot-post-mortem",
            "autopilot",
            PostMortem,
            "json",
            ("root_cause", "prevention_rule", "attempted_fixes"),
        ),
        CatalogEntry("autopilot-metrics", "autopilot", MetricsFile, "json", ("[].run_id", "[].phases_attempted")),
        CatalogEntry("autopilot-trend", "autopilot", Trend, "json", ("trend_summary",)),
        CatalogEntry("autopilot-cost-constants", "autopilot", CostConstants, "json", ("cost_estimation",)),
        CatalogEntry(
            "autopilot-self-audit-return", "autopilot", SelfAuditReturn, "json", ("audit_results", "aggregate")
        ),
        CatalogEntry("autopilot-self-audit-summary", "autopilot", SelfAuditSummary, "json", ("self_audit",)),
        CatalogEntry(
            "autopilot-completion-report",
            "autopilot",
            CompletionReport,
            "json",
            ("mode=--complete", "dependency_gaps", "completion_percentage"),
        ),
        CatalogEntry("autopilot-context-map", "autopilot", ContextMap, "json", ("last_updated", "phases.*.mapped_at")),
        CatalogEntry(
            "autopilot-context-sufficiency", "autopilot", ContextSufficiency, "json", ("context_sufficiency",)
        ),
        CatalogEntry(
            "autopilot-questioning-return",
            "autopilot",
            QuestioningReturn,
            "json",
            ("questions", "estimated_score_after", "current_score"),
        ),
        CatalogEntry(
            "autopilot-discuss-context", "autopilot", DiscussContext, "json", ("last_updated", "phases.*.discussed_at")
        ),
        CatalogEntry(
            "autopilot-score-history",
            "autopilot",
            ScoreHistory,
            "json",
            ("score_history", "quality_exhausted", "gaps_exhausted"),
            version="1.1",
        ),
        CatalogEntry("autopilot-gap-list", "autopilot", GapList, "json", ("deficiencies",)),
        CatalogEntry(
            "autopilot-execution-result",
            "autopilot",
            ExecutionResult,
            "json",
            ("stdout_truncated", "assessment", "sandbox_violation"),
        ),
        CatalogEntry(
            "autopilot-repo-map", "autopilot", RepoMap, "json", ("project_root", "size_cap_applied", "summary")
        ),
        CatalogEntry("autopilot-debug-session", "autopilot", DebugSession, "markdown", ("trigger", "updated", "body")),
        CatalogEntry("autopilot-visual-config", "autopilot", VisualConfig, "json", ("visual_testing",)),
        CatalogEntry(
            "autopilot-screenshot-result",
            "autopilot",
            ScreenshotResult,
            "json",
            ("screenshot_path", "analysis", "capture_timestamp"),
        ),
        CatalogEntry(
            "autopilot-visual-bug-report",
            "autopilot",
            VisualBugReport,
            "json",
            ("total_routes_tested", "regression_status", "screenshots"),
        ),
    )


@cache
def _forge() -> tuple[CatalogEntry, ...]:
    from fairwitness.contracts.forge.dag import Dag, DagOverlay
    from fairwitness.contracts.forge.documents import ChangeRequest, ForgeTask, Subtask, Walkthrough
    from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES, ForgeEvent
    from fairwitness.contracts.forge.returns import CaptainReturn, RefineryReturn, WorkerReturn
    from fairwitness.contracts.forge.status import DagStatus, RunState

    return (
        CatalogEntry("forge-dag", "forge", Dag, "json", ("nodes", "metadata.createdBy", "version")),
        CatalogEntry("forge-dag-overlay", "forge", DagOverlay, "json", ("crId", "addedNodes", "addedEdges")),
        CatalogEntry("forge-dag-status", "forge", DagStatus, "json", ("updatedAt", "nodes", "!metadata")),
        CatalogEntry("forge-run-state", "forge", RunState, "json", ("repoUrl", "currentPhase", "lastEventSeq")),
        CatalogEntry(
            "forge-task",
            "forge",
            ForgeTask,
            "markdown",
            ("dependencies", "estimated_complexity", "attemptId"),
            version="1.2",
        ),
        CatalogEntry("forge-subtask", "forge", Subtask, "markdown", ("parent_task", "assigned_agent", "type")),
        CatalogEntry(
            "forge-walkthrough",
            "forge",
            Walkthrough,
            "markdown",
            ("task_id", "base_ref", "files_changed"),
            version="1.1",
        ),
        CatalogEntry(
            "forge-change-request", "forge", ChangeRequest, "markdown", ("emitted_by", "affected_tasks", "reason")
        ),
        CatalogEntry(
            "forge-captain-return", "forge", CaptainReturn, "json", ("specs", "tasks", "assumptions"), version="1.3"
        ),
        CatalogEntry(
            "forge-worker-return",
            "forge",
            WorkerReturn,
            "json",
            ("walkthrough.task_id", "!merged_branches"),
            version="1.1",
        ),
        CatalogEntry(
            "forge-refinery-return",
            "forge",
            RefineryReturn,
            "json",
            ("merged_branches", "fixes", "change_requests"),
            version="1.1",
        ),
        CatalogEntry("forge-event", "forge", ForgeEvent, "json", (f"type={'|'.join(FORGE_EVENT_TYPES)}", "!event_id")),
    )
