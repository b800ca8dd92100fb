"""Concerns raised against a request before work begins, and how they were answered."""

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import AgentDocument, Count, Flag, Text
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.vocabulary import Severity


class PushbackOption(StrEnum):
    """The possible answers to concerns."""

    PROCEED = "proceed"
    MODIFY = "modify"
    ABANDON = "abandon"
    OTHER = "other"


class Concern(AgentDocument):
    """One concern about the request."""

    severity: Severity
    title: Text
    description: Text
    recommendation: Text


class PushbackLog(AgentDocument):
    """The concerns and the answer; present even without concerns, so that their absence is recorded."""

    concerns_identified: Count
    mode: ApprovalMode
    auto_selected: Flag
    selected_option: PushbackOption
    concerns: tuple[Concern, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refusals = []
        if self.concerns_identified != len(self.concerns):
            refusals.append(
                FieldRefusal(
                    ("concerns_identified",), f"the number of concerns, {len(self.concerns)}", self.concerns_identified
                )
            )
        if self.auto_selected and self.mode is not ApprovalMode.AUTONOMOUS:
            refusals.append(FieldRefusal(("auto_selected",), "false in interactive mode", self.auto_selected))
        refuse_if_any("PushbackLog", refusals)
        return self
