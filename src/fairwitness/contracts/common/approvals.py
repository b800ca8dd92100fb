"""Approval requests to a person, and the records of their answers."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from fairwitness.contracts.common.base import Contract, Flag, Maybe, Prose, Text, Timestamp
from fairwitness.contracts.common.ids import RunId, SafeName


class ApprovalMode(StrEnum):
    """Whether a person answers approval requests, or the default option is selected."""

    INTERACTIVE = "interactive"
    AUTONOMOUS = "autonomous"


class ApprovalOption(Contract):
    """One option of an approval request."""

    id: SafeName
    label: Text
    description: Text
    is_default: Flag


class ApprovalRequest(Contract):
    """An approval request; the same text is shown again after a restart."""

    gate_id: SafeName
    pipeline_step: Text
    question: Text
    context: Prose
    options: Annotated[tuple[ApprovalOption, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _one_default(self) -> "ApprovalRequest":
        ids = [option.id for option in self.options]
        if len(set(ids)) != len(ids):
            raise PydanticCustomError("option_ids", "options with different ids")
        if sum(option.is_default for option in self.options) != 1:
            raise PydanticCustomError("one_default", "exactly one default option")
        return self


class ApprovalRecord(Contract):
    """The answer to an approval request: who selected which option, and whether a person did."""

    gate_id: SafeName
    run_id: RunId
    timestamp: Timestamp
    mode: ApprovalMode
    selected_option: SafeName
    auto_selected: Flag
    actor: Text
    user_response_raw: Maybe[Prose] = None

    @model_validator(mode="after")
    def _only_autonomous_selects_by_itself(self) -> "ApprovalRecord":
        if self.auto_selected and self.mode is not ApprovalMode.AUTONOMOUS:
            raise PydanticCustomError("auto_selected", "auto_selected only in autonomous mode")
        return self
