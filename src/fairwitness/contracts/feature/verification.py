"""Schema 8, `verification-report`: the cascade's results for one task; where the ledger differs, the ledger holds."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from fairwitness.contracts.common.base import (
    AgentDocument,
    Count,
    Flag,
    Integer,
    Maybe,
    Positive,
    Prose,
    Text,
    TruthLiteral,
)
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.criteria import CriterionJudgement
from fairwitness.contracts.common.evidence import Snippet
from fairwitness.contracts.common.ids import FeatureRunId, TaskId
from fairwitness.contracts.feature.document import SignedDocument
from fairwitness.contracts.feature.evaluation import ArtifactEvaluation


class GateStatus(StrEnum):
    """How the verifier reads its own counts."""

    PASSED = "passed"
    FAILED = "failed"


class CheckPhase(StrEnum):
    """Before or after the change."""

    BASELINE = "baseline"
    AFTER = "after"


class EvidenceGate(AgentDocument):
    """Counts of the checks."""

    total_checks: Positive
    passed: Count
    failed: Count
    gate_status: GateStatus


class CheckFinding(AgentDocument):
    """One check and what came of it."""

    check_name: Text
    tier: Annotated[Integer, Field(ge=1, le=4)]
    phase: CheckPhase
    tool: Text
    command: Maybe[Prose] = None
    exit_code: Maybe[Integer] = None
    passed: Flag
    output_snippet: Maybe[Snippet] = None


class Regression(AgentDocument):
    """A check that held before the change and does not any more."""

    check_name: Text
    baseline_result: Annotated[Literal[True], TruthLiteral]
    after_result: Annotated[Literal[False], TruthLiteral]
    detail: Text


class BaselineCrossCheck(AgentDocument):
    """Whether the implementer's baseline is what stands at the tag; the tag is read in either spelling of the time."""

    method: Annotated[
        str,
        Field(
            pattern=r"^git show pipeline-baseline-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}[:-][0-9]{2}[:-][0-9]{2}Z:\S.*$"
        ),
    ]
    discrepancies_found: Flag


class VerificationPayload(AgentDocument):
    """The report."""

    task_id: TaskId
    run_id: FeatureRunId
    evidence_gate: EvidenceGate
    findings: Annotated[tuple[CheckFinding, ...], Field(min_length=1)]
    regressions: Maybe[tuple[Regression, ...]] = None
    baseline_cross_check: Maybe[BaselineCrossCheck] = None
    criteria: Maybe[tuple[CriterionJudgement, ...]] = None
    artifact_evaluations: Maybe[tuple[ArtifactEvaluation, ...]] = None


class VerificationReport(SignedDocument[VerificationPayload]):
    """Schema 8: `verification-reports/<task-id>.yaml`."""

    signer = FeatureAgent.VERIFIER
