"""The questions and answers of a `--discuss` conversation."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from pydantic import model_validator

from fairwitness.contracts.autopilot.checks import expect
from fairwitness.contracts.common.base import Contract, SchemaVersion, Text, Texts, Timestamp
from fairwitness.contracts.common.ids import PhaseId, RelPath


class DiscussCategory(StrEnum):
    """What a question is after."""

    EDGE_CASE = "edge_case"
    PREFERENCE = "preference"
    THRESHOLD = "threshold"
    TRADE_OFF = "trade_off"
    SCOPE = "scope"


class DiscussedQuestion(Contract):
    """A question about a grey area, and the answer once there is one."""

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
    """What was talked about for one phase."""

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
    """The conversation, phase by phase."""

    version: SchemaVersion
    last_updated: Timestamp
    phases: Mapping[PhaseId, DiscussedPhase]
