"""Schema 1 and the common header: how an agent of the feature pipeline signs what it returns."""

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
"""`step-1`, `step-3b`, and with a round or wave behind it: `step-5-w2`."""


class EvidenceSummary(AgentDocument):
    """Counts an agent reports; the ledger decides, this is only compared with it."""

    total_checks: Count
    passed: Count
    failed: Count
    security_blockers: Count


class Completion(AgentDocument):
    """Schema 1: the three-state completion signal."""

    status: CompletionStatus
    summary: Summary
    severity: Severity | None
    findings_count: Count
    risk_level: Risk | None
    output_paths: Annotated[tuple[RelPath, ...], Field(min_length=1)]
    evidence_summary: Maybe[EvidenceSummary] = None


class CompletionDocument(AgentDocument):
    """A completion contract standing alone."""

    completion: Completion


class Header(AgentDocument):
    """The fields every agent's output opens with; each document adds its own `payload`."""

    agent: FeatureAgent
    instance: Text
    step: StepId
    started_at: Timestamp
    completed_at: Timestamp
    schema_version: SchemaVersion
