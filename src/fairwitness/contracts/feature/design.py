"""Schema 4, `design-output`: decisions, what was rejected for them, and how sure the designer is."""

from typing import Annotated

from pydantic import AfterValidator, Field

from fairwitness.contracts.common.base import AgentDocument, Maybe, Text
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.problems import unique_ids
from fairwitness.contracts.common.vocabulary import Confidence, Risk
from fairwitness.contracts.feature.document import SignedDocument


class RejectedAlternative(AgentDocument):
    """What was not chosen, why, and how sure that is."""

    name: Text
    reason: Text
    confidence: Confidence


class DesignDecision(AgentDocument):
    """One decision with at least one rejected alternative."""

    id: Text
    title: Text
    risk: Risk
    rationale: Text
    alternatives_rejected: Annotated[tuple[RejectedAlternative, ...], Field(min_length=1)]
    confidence: Maybe[Confidence] = None


class DeviationRecord(AgentDocument):
    """A point where the design leaves the specification on purpose."""

    id: Text
    spec_requirement: Text
    deviation: Text
    rationale: Text


class InventoryEntry(AgentDocument):
    """One agent of a design that is itself about agents; whatever else it says is kept."""

    name: Text


class DesignPayload(AgentDocument):
    """The design."""

    architecture: Text
    decisions: Annotated[tuple[DesignDecision, ...], Field(min_length=1), AfterValidator(unique_ids("decision"))]
    agent_inventory: Maybe[tuple[InventoryEntry, ...]] = None
    pipeline_steps: Maybe[tuple[AgentDocument, ...]] = None
    deviation_records: Maybe[Annotated[tuple[DeviationRecord, ...], AfterValidator(unique_ids("deviation record"))]] = (
        None
    )


class DesignOutput(SignedDocument[DesignPayload]):
    """Schema 4: `design-output.yaml`."""

    signer = FeatureAgent.DESIGNER
