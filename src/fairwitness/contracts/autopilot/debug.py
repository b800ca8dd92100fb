"""A debug session's file: its front matter and its five sections."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from fairwitness.contracts.autopilot.checks import expect
from fairwitness.contracts.autopilot.words import FailureCategory
from fairwitness.contracts.common.base import AgentDocument, Maybe, Text, Timestamp, instant
from fairwitness.contracts.common.markdown import body_with

SECTIONS = ("Current Focus", "Symptoms", "Eliminated", "Evidence", "Resolution")


class DebugStatus(StrEnum):
    """How far an investigation is."""

    GATHERING = "gathering"
    INVESTIGATING = "investigating"
    FIXING = "fixing"
    VERIFYING = "verifying"
    RESOLVED = "resolved"
    DIAGNOSED = "diagnosed"


_CAUSE_UNKNOWN = (DebugStatus.GATHERING, DebugStatus.INVESTIGATING)


def _empty_is_unknown(value: Any) -> Any:
    return None if value == "" else value


_EMPTY_IS_UNKNOWN = BeforeValidator(_empty_is_unknown, json_schema_input_type=FailureCategory | Literal[""] | None)


class DebugSession(AgentDocument):
    """The whole memory of an investigation: a fresh agent can go on from it."""

    status: DebugStatus
    trigger: Text
    failure_category: Annotated[Maybe[FailureCategory], _EMPTY_IS_UNKNOWN] = None
    """Empty until the root cause is known."""
    created: Timestamp
    updated: Timestamp
    body: Annotated[str, body_with(*SECTIONS)]

    @model_validator(mode="after")
    def _cause_before_fix(self) -> Self:
        known = self.failure_category is not None or self.status in _CAUSE_UNKNOWN
        expect(self, known, "a failure_category once the root cause is known", "failure_category")
        expect(self, instant(self.created) <= instant(self.updated), "an updated time not before created", "updated")
        return self
