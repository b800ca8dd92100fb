"""Every contract by name: its shape, how it is written, its version, and the signs by which a document is known.

A sign is a dotted way to a field: `a.b` must be there, `a.b=x|y` must be there with one of these values, `!a` must
not be there. `[]` enters a list at its first entry, `*` a mapping at its first value.
"""

from typing import Any, NamedTuple

from fairwitness.contracts.autopilot.catalog import AUTOPILOT
from fairwitness.contracts.common.approvals import ApprovalRecord, ApprovalRequest
from fairwitness.contracts.common.completion import CompletionDocument
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.feature.design import DesignOutput
from fairwitness.contracts.feature.events import FEATURE_EVENT_TYPES, FeatureEvent
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.intake import IntakeReturn
from fairwitness.contracts.feature.knowledge import DecisionLog, KnowledgeOutput
from fairwitness.contracts.feature.plan import PlanOutput
from fairwitness.contracts.feature.research import ResearchOutput
from fairwitness.contracts.feature.review import ReviewReturn, ReviewVerdict
from fairwitness.contracts.feature.spec import SpecOutput
from fairwitness.contracts.feature.task import TaskDocument
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.forge.dag import Dag, DagOverlay
from fairwitness.contracts.forge.documents import ChangeRequest, ForgeTask, Subtask, Walkthrough
from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES, ForgeEvent
from fairwitness.contracts.forge.returns import CaptainReturn, RefineryReturn, WorkerReturn
from fairwitness.contracts.forge.status import DagStatus, RunState


class Entry(NamedTuple):
    """One contract of the catalog; `shape` is a model, or a union of models."""

    name: str
    workflow: str
    shape: Any
    written_as: str
    signs: tuple[str, ...]
    version: str = "1.0"


_PAYLOAD = "agent_output.payload."


def _signed(agent: str, *fields: str) -> tuple[str, ...]:
    return (f"agent_output.agent={agent}", *(_PAYLOAD + field for field in fields))


_COMMON = (
    Entry("completion-contract", "common", CompletionDocument, "yaml", ("completion", "!agent_output")),
    Entry("approval-request", "common", ApprovalRequest, "json", ("gate_id", "options")),
    Entry("approval-record", "common", ApprovalRecord, "json", ("gate_id", "selected_option", "actor")),
    Entry("event-envelope", "common", Envelope, "json", ("event_id", "seq", "workflow", "data")),
)

_OWN_EVENT_TYPES = tuple(name for name in FEATURE_EVENT_TYPES if name not in FORGE_EVENT_TYPES)
"""What happens to a graph is told in forge's words; an event that stands alone is taken for forge's."""

_FEATURE = (
    Entry("intake-return", "feature", IntakeReturn, "yaml", ("understanding", "concerns", "infeasible")),
    Entry(
        "research-output", "feature", ResearchOutput, "yaml", _signed("researcher", "focus", "source_files_examined")
    ),
    Entry("spec-output", "feature", SpecOutput, "yaml", _signed("spec", "feature_name", "acceptance_criteria")),
    Entry("design-output", "feature", DesignOutput, "yaml", _signed("designer", "architecture", "decisions")),
    Entry("plan-output", "feature", PlanOutput, "yaml", _signed("planner", "overall_risk_summary", "waves")),
    Entry("task-schema", "feature", TaskDocument, "yaml", ("task", "!agent_output")),
    Entry(
        "implementation-report",
        "feature",
        ImplementationReport,
        "yaml",
        _signed("implementer", "changes", "self_check"),
    ),
    Entry(
        "verification-report", "feature", VerificationReport, "yaml", _signed("verifier", "evidence_gate", "findings")
    ),
    Entry("review-findings", "feature", ReviewVerdict, "yaml", ("reviewer_perspective", "verdicts", "overall")),
    Entry("review-return", "feature", ReviewReturn, "yaml", ("reviewer_perspective", "findings", "clean_categories")),
    Entry(
        "knowledge-output",
        "feature",
        KnowledgeOutput,
        "yaml",
        _signed("knowledge-agent", "knowledge_updates", "decision_log_entries"),
    ),
    Entry("decision-log", "feature", DecisionLog, "yaml", ("decisions", "!agent_output")),
    Entry("feature-event", "feature", FeatureEvent, "json", (f"type={'|'.join(_OWN_EVENT_TYPES)}", "!event_id")),
)

_FORGE = (
    Entry("forge-dag", "forge", Dag, "json", ("nodes", "metadata.createdBy", "version")),
    Entry("forge-dag-overlay", "forge", DagOverlay, "json", ("crId", "addedNodes", "addedEdges")),
    Entry("forge-dag-status", "forge", DagStatus, "json", ("updatedAt", "nodes", "!metadata")),
    Entry("forge-run-state", "forge", RunState, "json", ("repoUrl", "currentPhase", "lastEventSeq")),
    Entry("forge-task", "forge", ForgeTask, "markdown", ("dependencies", "estimated_complexity", "attemptId")),
    Entry("forge-subtask", "forge", Subtask, "markdown", ("parent_task", "assigned_agent", "type")),
    Entry("forge-walkthrough", "forge", Walkthrough, "markdown", ("task_id", "base_ref", "files_changed")),
    Entry("forge-change-request", "forge", ChangeRequest, "markdown", ("emitted_by", "affected_tasks", "reason")),
    Entry("forge-captain-return", "forge", CaptainReturn, "json", ("specs", "tasks", "assumptions")),
    Entry("forge-worker-return", "forge", WorkerReturn, "json", ("walkthrough.task_id", "!merged_branches")),
    Entry("forge-refinery-return", "forge", RefineryReturn, "json", ("merged_branches", "fixes", "change_requests")),
    Entry("forge-event", "forge", ForgeEvent, "json", (f"type={'|'.join(FORGE_EVENT_TYPES)}", "!event_id")),
)

CATALOG: tuple[Entry, ...] = (
    *_COMMON,
    *_FEATURE,
    *(Entry(name, "autopilot", shape, written_as, signs) for name, shape, written_as, signs in AUTOPILOT),
    *_FORGE,
)

BY_NAME = {entry.name: entry for entry in CATALOG}
