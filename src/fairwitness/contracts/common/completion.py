"""The completion contract (schema 1) and the common header of agent outputs in the feature pipeline."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import (
    AgentDocument,
    Count,
    Maybe,
    SchemaVersion,
    Summary,
    Text,
    Timestamp,
)
from fairwitness.contracts.common.ids import RelPath
from fairwitness.contracts.common.vocabulary import CompletionStatus, Risk, Severity


class FeatureAgent(StrEnum):
    """The nine agents of the feature pipeline."""

    ORCHESTRATOR = "orchestrator"
    RESEARCHER = "researcher"
    SPEC = "spec"
    DESIGNER = "designer"
    REVIEWER = "adversarial-reviewer"
    PLANNER = "planner"
    IMPLEMENTER = "implementer"
    VERIFIER = "verifier"
    KNOWLEDGE = "knowledge-agent"


StepId = Annotated[str, Field(pattern=r"^step-[0-9]{1,2}[a-z]?(-[a-z0-9]+)*$")]
"""`step-1`, `step-3b`, or with a round or wave: `step-5-w2`."""


class EvidenceSummary(AgentDocument):
    """Check counts reported by an agent; they are compared with the ledger, which decides."""

    total_checks: Count
    passed: Count
    failed: Count
    security_blockers: Count


class Completion(AgentDocument):
    """How an agent completed its work (schema 1): DONE, NEEDS_REVISION or ERROR."""

    status: CompletionStatus
    summary: Summary
    severity: Severity | None
    findings_count: Count
    risk_level: Risk | None
    output_paths: Annotated[tuple[RelPath, ...], Field(min_length=1)]
    evidence_summary: Maybe[EvidenceSummary] = None


class CompletionDocument(AgentDocument):
    """A document that holds only a completion."""

    completion: Completion


class Header(AgentDocument):
    """The header of every agent output; each document adds its own `payload`."""

    agent: FeatureAgent
    instance: Text
    step: StepId
    started_at: Timestamp
    completed_at: Timestamp
    schema_version: SchemaVersion
