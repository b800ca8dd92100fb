"""The context of phases before they run: sufficiency scores, questions and answers, and `--discuss` conversations."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.autopilot.vocabulary import Grade
from fairwitness.contracts.common.base import AgentDocument, Contract, Fraction, SchemaVersion, Text, Texts, Timestamp
from fairwitness.contracts.common.ids import PhaseId, RelPath
from fairwitness.contracts.common.problems import expect


class QuestionCategory(StrEnum):
    """The kind of missing knowledge that a question asks for."""

    BUILD_CONFIG = "build_config"
    ARCHITECTURE = "architecture"
    REQUIREMENTS = "requirements"
    CRITERIA = "criteria"
    DEPENDENCIES = "dependencies"
    DOMAIN = "domain"


class MappedQuestion(Contract):
    """A question, and its answer if there is one."""

    question: Text
    category: QuestionCategory
    why_needed: Text
    answer: Text | None
    answered_at: Timestamp | None

    @model_validator(mode="after")
    def _answer_has_a_time(self) -> Self:
        expect(self, (self.answer is None) is (self.answered_at is None), "answer and answered_at together", "answer")
        return self


class MappedPhase(Contract):
    """The context of one phase; `score_after` is null until its questions are answered."""

    phase_name: Text
    context_score: Grade
    score_after: Grade | None
    questions: tuple[MappedQuestion, ...]
    mapped_at: Timestamp


class ContextMap(Contract):
    """The context map; it is kept between runs."""

    version: SchemaVersion
    last_updated: Timestamp
    phases: Mapping[PhaseId, MappedPhase]


class Question(AgentDocument):
    """A question by the questioning agent."""

    question: Text
    category: QuestionCategory
    why_needed: Text


class QuestioningReturn(AgentDocument):
    """The return of the questioning agent.

    The agent is asked for two to five questions. A single question is accepted; more than five are not.
    """

    phase_id: PhaseId
    current_score: Grade
    questions: Annotated[tuple[Question, ...], Field(min_length=1, max_length=5)]
    estimated_score_after: Grade


class SufficiencyWeights(Contract):
    """The weight of each factor; the weights add up to exactly one."""

    criteria_specificity: Fraction = 0.35
    requirement_detail: Fraction = 0.35
    documentation_coverage: Fraction = 0.15
    dependency_status: Fraction = 0.15

    @model_validator(mode="after")
    def _together_one(self) -> Self:
        total = (
            self.criteria_specificity + self.requirement_detail + self.documentation_coverage + self.dependency_status
        )
        expect(self, abs(total - 1.0) < 1e-9, "weights that add up to 1.0")
        return self


class Sufficiency(Contract):
    """The scores below which questions are asked."""

    weights: SufficiencyWeights = SufficiencyWeights()
    warning_threshold: Grade = 5.0
    questioning_threshold: Grade = 8.0
    stub_patterns: Annotated[Texts, Field(min_length=1)] = ("[To be planned]", "TBD", "[To be defined]")


class ContextSufficiency(Contract):
    """The document that holds the sufficiency constants."""

    context_sufficiency: Sufficiency


class DiscussCategory(StrEnum):
    """The topic of a question."""

    EDGE_CASE = "edge_case"
    PREFERENCE = "preference"
    THRESHOLD = "threshold"
    TRADE_OFF = "trade_off"
    SCOPE = "scope"


class DiscussedQuestion(Contract):
    """A question about an ambiguity of a phase, and its answer if there is one."""

    question: Text
    area: Text
    category: DiscussCategory
    answer: Text | None
    answered_at: Timestamp | None

    @model_validator(mode="after")
    def _answer_has_a_time(self) -> Self:
        expect(self, (self.answer is None) is (self.answered_at is None), "answer and answered_at together", "answer")
        return self


class DiscussedPhase(Contract):
    """The discussion of one phase."""

    phase_name: Text
    gray_areas_discussed: Texts
    questions: tuple[DiscussedQuestion, ...]
    context_md_path: RelPath
    discussed_at: Timestamp

    @model_validator(mode="after")
    def _areas_were_discussed(self) -> Self:
        known = all(question.area in self.gray_areas_discussed for question in self.questions)
        expect(self, known, "every area among gray_areas_discussed", "questions")
        return self


class DiscussContext(Contract):
    """The `--discuss` conversation by phase."""

    version: SchemaVersion
    last_updated: Timestamp
    phases: Mapping[PhaseId, DiscussedPhase]
