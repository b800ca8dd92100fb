"""Schema 9, `review-findings`: a reviewer's typed findings, and the verdict derived from them.

The reviewer returns findings; Markdown, verdict file, counts and ledger rows are made from them, so that a verdict
cannot be milder than what was found.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import AgentDocument, Count, Integer, Maybe, SchemaVersion, Text, Texts
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Severity
from fairwitness.contracts.feature.evaluation import ArtifactEvaluation


class Perspective(StrEnum):
    """The perspectives of the three reviewers."""

    SECURITY = "security-sentinel"
    ARCHITECTURE = "architecture-guardian"
    PRAGMATIC = "pragmatic-verifier"


class ReviewScope(StrEnum):
    """What is under review."""

    DESIGN = "design"
    CODE = "code"


class Category(StrEnum):
    """The categories that each reviewer judges."""

    SECURITY = "security"
    ARCHITECTURE = "architecture"
    CORRECTNESS = "correctness"


class CategoryVerdicts(AgentDocument):
    """One verdict for each category."""

    security: CategoryVerdict
    architecture: CategoryVerdict
    correctness: CategoryVerdict


class FindingsCount(AgentDocument):
    """How many findings of each severity."""

    blocker: Count
    critical: Count
    major: Count
    minor: Count


class ReviewVerdict(AgentDocument):
    """Schema 9: `review-verdicts/<scope>-<perspective>.yaml`. It carries no header and no completion."""

    reviewer_perspective: Perspective
    scope: ReviewScope
    verdicts: CategoryVerdicts
    overall: CategoryVerdict
    findings_count: FindingsCount
    summary: Annotated[str, Field(pattern=r"\S", max_length=500)]


class Resolution(StrEnum):
    """The resolution of a finding of an earlier round."""

    ADDRESSED = "addressed"
    PARTLY = "partly"
    UNRESOLVED = "unresolved"


class ReviewFinding(AgentDocument):
    """One finding of a reviewer with its evidence."""

    id: Text
    category: Category
    severity: Severity
    title: Text
    description: Text
    artifacts: Annotated[tuple[Text, ...], Field(min_length=1)]
    recommendation: Text
    evidence: Annotated[tuple[Text, ...], Field(min_length=1)]


class EarlierFinding(AgentDocument):
    """How a second round judges a finding of the first."""

    id: Text
    resolution: Resolution
    note: Maybe[Text] = None


class ReviewReturn(AgentDocument):
    """The return of a reviewer: typed findings, and an explicit list of clean categories."""

    schema_version: SchemaVersion
    reviewer_perspective: Perspective
    scope: ReviewScope
    round: Annotated[Integer, Field(ge=1, le=2)]
    findings: tuple[ReviewFinding, ...]
    clean_categories: tuple[Category, ...]
    summary: Annotated[str, Field(pattern=r"\S", max_length=500)]
    earlier_findings: Maybe[tuple[EarlierFinding, ...]] = None
    artifact_evaluations: Maybe[tuple[ArtifactEvaluation, ...]] = None
    known_limits: Maybe[Texts] = None
