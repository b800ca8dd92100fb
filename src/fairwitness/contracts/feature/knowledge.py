"""The output of the knowledge agent (schema 10, `knowledge-output`): lessons, decisions, measurements and proposals.

The ledger sets the confidence, not this document. Changes to instruction files are applied only with approval.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fairwitness.contracts.common.base import AgentDocument, Amount, Count, Maybe, Number, Prose, Text
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.ids import RelPath
from fairwitness.contracts.common.problems import unique_ids
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Confidence, Severity
from fairwitness.contracts.feature.document import SignedDocument

COPILOT_INSTRUCTIONS = ".github/copilot-instructions.md"
INSTRUCTIONS_FOLDER = ".github/instructions/"


class InstructionChange(StrEnum):
    """The kind of change to the file."""

    CREATE = "create"
    APPEND = "append"
    MODIFY = "modify"
    DELETE = "delete"


def _governed(path: str) -> str:
    if path != COPILOT_INSTRUCTIONS and not path.startswith(INSTRUCTIONS_FOLDER):
        raise PydanticCustomError(
            "instruction_path", "a file under .github/instructions/ or .github/copilot-instructions.md"
        )
    return path


class InstructionUpdate(AgentDocument):
    """One proposed change to one file."""

    file_path: Annotated[RelPath, AfterValidator(_governed)]
    change_type: InstructionChange
    change_summary: Annotated[str, Field(pattern=r"\S", max_length=1000)]
    patch: Prose


class KnowledgeType(StrEnum):
    """What kind of thing was learned."""

    CONVENTION = "convention"
    COMMAND = "command"
    PATTERN = "pattern"
    LESSON = "lesson"


class StoredVia(StrEnum):
    """Where an entry was put, or that the safety filter refused it."""

    STORE_MEMORY = "store_memory"
    DECISIONS = "decisions.yaml"
    REJECTED = "rejected_by_safety_filter"


class KnowledgeUpdate(AgentDocument):
    """One lesson for later runs."""

    type: KnowledgeType
    key: Text
    value: Text
    stored_via: StoredVia


class DecisionLogEntry(AgentDocument):
    """One entry of `decisions.yaml`; ids increase and are never reused."""

    id: Annotated[str, Field(pattern=r"^DL-[0-9]{3,6}$")]
    title: Text
    rationale: Text
    confidence: Confidence


class DecisionLog(AgentDocument):
    """`decisions.yaml`: an append-only list of decisions."""

    decisions: Annotated[tuple[DecisionLogEntry, ...], AfterValidator(unique_ids("decision"))]


class VerificationSummary(AgentDocument):
    """Counts over all tasks."""

    tasks_verified: Count
    total_checks: Count
    passed: Count
    failed: Count
    regressions: Count


class ReviewRound(AgentDocument):
    """How one review ended; keys are perspectives (older documents keyed them by model)."""

    round: Count
    verdicts: dict[Text, CategoryVerdict]


class ReviewSummary(AgentDocument):
    """Both reviews."""

    design_review: Maybe[ReviewRound] = None
    code_review: Maybe[ReviewRound] = None


class BlastRadius(AgentDocument):
    """How much was changed, and at which risk."""

    files_modified: Count
    risk_red_files: Count
    risk_yellow_files: Count
    risk_green_files: Count
    regressions: Count


class KnownIssue(AgentDocument):
    """A known issue that is left open."""

    description: Text
    severity: Severity


class NarratedEvidence(AgentDocument):
    """The agent's summary of the evidence; the authoritative bundle is assembled from the ledger."""

    overall_confidence: Confidence
    verification_summary: VerificationSummary
    review_summary: ReviewSummary
    rollback_command: Text
    blast_radius: BlastRadius
    known_issues: tuple[KnownIssue, ...]


class SlowStep(AgentDocument):
    """A step and how long it took."""

    step: Text
    duration_seconds: Amount


class RetriedAgent(AgentDocument):
    """An agent that had to be asked again."""

    agent: Text
    instance: Maybe[Text] = None
    retry_count: Count


class TelemetrySummary(AgentDocument):
    """Totals over all dispatches."""

    total_dispatches: Count
    total_duration_seconds: Amount
    error_count: Count
    slowest_steps: Maybe[tuple[SlowStep, ...]] = None
    retries: Maybe[tuple[RetriedAgent, ...]] = None


class WorstArtifact(AgentDocument):
    """A document that its users rated low."""

    artifact_path: RelPath
    mean_usefulness: Number


class EvaluationSummary(AgentDocument):
    """How agents rated each other's documents."""

    total_evaluations: Count
    mean_usefulness: Number | None
    mean_clarity: Number | None
    worst_artifacts: tuple[WorstArtifact, ...]


class KnowledgePayload(AgentDocument):
    """What the knowledge agent returns."""

    knowledge_updates: tuple[KnowledgeUpdate, ...]
    decision_log_entries: Maybe[Annotated[tuple[DecisionLogEntry, ...], AfterValidator(unique_ids("decision"))]] = None
    evidence_bundle: Maybe[NarratedEvidence] = None
    pipeline_telemetry_summary: Maybe[TelemetrySummary] = None
    evaluation_summary: Maybe[EvaluationSummary] = None
    instruction_updates: Maybe[tuple[InstructionUpdate, ...]] = None


class KnowledgeOutput(SignedDocument[KnowledgePayload]):
    """Schema 10: `knowledge-output.yaml`."""

    signer = FeatureAgent.KNOWLEDGE
