"""Schema 2, `research-output`: what one researcher found, with evidence for each finding."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from fairwitness.contracts.common.base import AgentDocument, Text
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.problems import unique_ids
from fairwitness.contracts.feature.document import SignedDocument


class Focus(StrEnum):
    """The four foci; one researcher each."""

    ARCHITECTURE = "architecture"
    IMPACT = "impact"
    DEPENDENCIES = "dependencies"
    PATTERNS = "patterns"


class ResearchFinding(AgentDocument):
    """One fact about the repository and where it can be seen."""

    id: Text
    title: Text
    category: Text
    detail: Text
    evidence: Annotated[tuple[Text, ...], Field(min_length=1)]
    relevance: Text


class ResearchPayload(AgentDocument):
    """The findings of one focus."""

    focus: Focus
    findings: Annotated[tuple[ResearchFinding, ...], Field(min_length=1), AfterValidator(unique_ids("finding"))]
    summary: Text
    source_files_examined: Annotated[tuple[Text, ...], Field(min_length=1)]


class ResearchOutput(SignedDocument[ResearchPayload]):
    """Schema 2: `research/<focus>.yaml`."""

    signer = FeatureAgent.RESEARCHER
