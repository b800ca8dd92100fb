"""Events of the self-audit at the end of a run."""

from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.vocabulary import FixComplexity
from fairwitness.contracts.common.base import Contract, Count, Flag, Text
from fairwitness.contracts.common.ids import Commit, PhaseId, RelPath
from fairwitness.contracts.common.problems import expect


class SelfAuditStarted(AutopilotEventBase):
    """The audit agent is about to be started."""

    class Details(Contract):
        """The phases to audit, and the specification."""

        phases_to_audit: tuple[PhaseId, ...]
        spec_path: RelPath

    event: Literal["self_audit_started"]
    details: Details


class SelfAuditGapFound(AutopilotEventBase):
    """The audit found a requirement that is not met."""

    class Details(Contract):
        """The requirement, and what is missing."""

        requirement_id: Text
        phase_id: PhaseId
        gap_description: Text
        fix_complexity: FixComplexity

    event: Literal["self_audit_gap_found"]
    details: Details


class SelfAuditGapFixed(AutopilotEventBase):
    """A gap was fixed, and the requirement was checked again."""

    class Details(Contract):
        """The requirement, and the commit that fixed it."""

        requirement_id: Text
        phase_id: PhaseId
        fix_commit: Commit
        re_verified: Flag

    event: Literal["self_audit_gap_fixed"]
    details: Details


class SelfAuditCompleted(AutopilotEventBase):
    """The audit and all its fix cycles ended."""

    class Details(Contract):
        """The counts of the audit."""

        total_requirements_checked: Count
        passed_on_first_check: Count
        gaps_found: Count
        gaps_fixed: Count
        gaps_remaining: Count
        audit_cycles: Annotated[int, Strict(), Field(ge=0, le=2)]

        @model_validator(mode="after")
        def _counts_add_up(self) -> Self:
            first = self.passed_on_first_check + self.gaps_found == self.total_requirements_checked
            expect(
                self, first, "passed_on_first_check and gaps_found adding up to the total", "total_requirements_checked"
            )
            gaps = self.gaps_fixed + self.gaps_remaining == self.gaps_found
            expect(self, gaps, "gaps_fixed and gaps_remaining adding up to gaps_found", "gaps_found")
            return self

    event: Literal["self_audit_completed"]
    details: Details


AuditEvent = SelfAuditStarted | SelfAuditGapFound | SelfAuditGapFixed | SelfAuditCompleted
